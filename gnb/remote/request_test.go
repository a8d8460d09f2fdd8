package remote_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
)

// After Close, a client's requests end with an error that says so: a request that waits for an
// answer, one that waits to be sent again, and a new one.
func TestClose(t *testing.T) {
	for name, silent := range map[string]bool{"server does not answer": true, "server has ended": false} {
		t.Run(name, func(t *testing.T) {
			s := servetest.Start(t, graph(t), serve.Options{})
			s.Stop()
			c := open2(t, s)
			asked := make(chan struct{}, 1)
			if silent { // a listener that accepts connections and never answers
				l, err := net.Listen("tcp", s.Addr)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				go func() {
					for {
						conn, err := l.Accept()
						if err != nil {
							return
						}
						defer conn.Close()
						select {
						case asked <- struct{}{}:
						default:
						}
					}
				}()
			}
			row := make([]byte, c.RowBytes())
			ended := make(chan error, 1)
			go func() { ended <- c.Rows(t.Context(), []int32{1}, row) }()
			if silent {
				<-asked
			} else {
				time.Sleep(50 * time.Millisecond) // the client closes at an arbitrary moment of a request that is being repeated
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), "ended because the client was closed") {
					t.Errorf("the open request ended with %v", err)
				}
			case <-time.After(time.Minute): // half of the time for which a request is repeated
				t.Fatal("the open request does not end")
			}
			if err := c.Rows(t.Context(), []int32{1}, row); err == nil || !strings.Contains(err.Error(), "ended because the client was closed") {
				t.Errorf("a later request gave %v", err)
			}
		})
	}
}
