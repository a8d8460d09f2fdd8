//go:build linux

package remote_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
)

// listener counts connections, and keeps what comes over them.
type listener struct {
	net.Listener
	mu    sync.Mutex
	conns int
	got   []byte
}

func listen(t *testing.T, cert *tls.Certificate) *listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	to := &listener{Listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			to.mu.Lock()
			to.conns++
			to.mu.Unlock()
			if cert != nil {
				c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*cert}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13})
			}
			go func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(5 * time.Second))
				b, _ := io.ReadAll(c)
				to.mu.Lock()
				to.got = append(to.got, b...)
				to.mu.Unlock()
			}()
		}
	}()
	return to
}

// A token goes to the servers that the user names: a dataset of somebody else that names servers, and brings a certificate
// for them, gets no connection.
func TestDatasetNamesServers(t *testing.T) {
	const token = "a token of the user, a secret"
	t.Setenv("GNB_TOKEN", token)
	t.Setenv("GNB_HOME", t.TempDir())
	s := servetest.Start(t, dataset.Karate(), serve.Options{Token: token})
	own, err := datasets.Load("grpc://" + s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if err := divided.CheckServers(own); err != nil {
		t.Errorf("a dataset of an address that the user named: %v", err)
	}

	cert, ca := certificate(t)
	for name, tt := range map[string]struct {
		tls  bool
		rest string // of the address
	}{
		"without TLS":                   {},
		"with the dataset's own ca":     {tls: true, rest: "?ca=" + ca},
		"with the system's certificate": {tls: true},
	} {
		t.Run(name, func(t *testing.T) {
			var l *listener
			scheme := "grpc://"
			if tt.tls {
				l, scheme = listen(t, &cert), "grpcs://"
			} else {
				l = listen(t, nil)
			}
			dir := filepath.Join(t.TempDir(), "stranger")
			renamed(t, own, dir, scheme+l.Addr().String()+tt.rest)
			ds, err := datasets.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			book, err := divided.Of(ds)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := book.Far(); !errors.Is(err, divided.ErrNotNamed) {
				t.Errorf("the error of a connection is %v, want %v", err, divided.ErrNotNamed)
			}
			_, err = gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: filepath.Join(t.TempDir(), "run"), Workers: 1, Device: "cpu"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
			if !errors.Is(err, divided.ErrNotNamed) || !strings.Contains(err.Error(), l.Addr().String()) {
				t.Errorf("the error of training is %v, want %v with the servers", err, divided.ErrNotNamed)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.conns != 0 || len(l.got) != 0 {
				t.Errorf("the dataset's server got %d connections and %q", l.conns, l.got)
			}
		})
	}
}

// renamed writes a dataset with the address of other servers, as somebody who hands it on can.
func renamed(t *testing.T, ds *dataset.Dataset, dir, address string) {
	t.Helper()
	other := *ds
	parts := *ds.Meta.Parts
	parts.Servers = address
	other.Meta.Parts = &parts
	if err := dataset.WriteWith(t.Context(), dir, &other, dataset.WriteOptions{Checked: true}); err != nil {
		t.Fatal(err)
	}
}
