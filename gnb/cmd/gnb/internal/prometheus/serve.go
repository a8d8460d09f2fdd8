package prometheus

import (
	"errors"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// connections is the most that are open at a time: more than one scraper needs.
const connections = 64

// Serve serves metrics at l until stop is called. It reports the address, and a failure, to log.
func Serve(l net.Listener, h http.Handler, log func(format string, args ...any)) (stop func()) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	done := make(chan error, 1)
	go func() { done <- server.Serve(netutil.LimitListener(l, connections)) }()
	log("Prometheus finds the metrics at http://%s/metrics", l.Addr())
	return func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			log("serving metrics: %v", err)
		}
	}
}
