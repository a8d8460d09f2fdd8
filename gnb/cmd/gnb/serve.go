package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/prometheus"

	_ "github.com/graphnb/graphnb/gnb/budget" // --sampler hgt
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/flight"
	_ "github.com/graphnb/graphnb/gnb/remote" // datasets of servers
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

var serveCommand = cli.Command{Name: "serve", Summary: "answer other machines' requests for a graph and its features", Run: runServe}

const serveHelp = `
Serves a dataset, or parts of one, over gRPC until an interrupt or SIGTERM; then it finishes what it is answering and
ends. "gnb train grpc://HOST:PORT" trains on it. Programs that speak Apache Arrow Flight read its
tables of nodes and edges on the same port. Beyond this machine it needs a certificate (--tls-cert,
--tls-key) and a token (GNB_TOKEN or GNB_TOKEN_FILE), or --insecure.`

func runServe(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("DATASET", serveHelp)
	var o serve.Options
	var tables flight.Options
	listen := fs.String("listen", "127.0.0.1:7700", "`address` to listen on: \":7700\" locally, \"0.0.0.0:7700\" publicly")
	metrics := fs.String("metrics", "", "`address` of /metrics for Prometheus: \":9401\" locally, \"0.0.0.0:9401\" publicly")
	cert := fs.String("tls-cert", "", "`file` of the server's certificate, in PEM format")
	key := fs.String("tls-key", "", "`file` of the certificate's key")
	parts := fs.String("parts", "", "`parts` of a divided dataset: 0,1 (default all here)")
	fs.BoolVar(&o.Insecure, "insecure", false, "serve other machines without certificate or token")
	fs.IntVar(&o.Limits.Nodes, "max-nodes", 0, "nodes of a request (default 1048576)")
	fs.IntVar(&o.Limits.Edges, "max-edges", 0, "edges of an answer (default 4194304)")
	fs.IntVar(&o.Limits.Bytes, "max-bytes", 0, "bytes of an answer's rows (default 67108864)")
	fs.IntVar(&o.Calls, "calls", 0, "requests answered at once (default 64)")
	fs.IntVar(&o.Connections, "connections", 0, "open connections (default 1024)")
	fs.DurationVar(&o.Drain, "drain", 10*time.Second, "`time` for open requests after SIGTERM")
	fs.IntVar(&o.Threads, "threads", 0, "threads per request (default all CPUs)")
	fs.StringVar(&tables.TakeIn, "take-in", "", "`directory` for datasets that clients send over Arrow Flight")
	fs.Int64Var(&tables.TakeInBytes, "take-in-bytes", 0, "bytes of tables taken in, unbuilt (default 4294967296)")
	options.Verify(out, fs)
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if err := cli.SetFrom1To(fs, map[string]int64{
		"max-nodes": serve.MostNodes, "max-edges": serve.MostEdges, "max-bytes": serve.MostBytes, "calls": serve.MostCalls,
		"connections": serve.MostConnections, "take-in-bytes": 1 << 50,
	}); err != nil {
		return err
	}
	if *parts != "" {
		for _, word := range strings.Split(*parts, ",") {
			p, err := strconv.Atoi(word)
			if err != nil {
				return cli.Usagef("--parts %s: it is a list of numbers, such as 0,1", *parts)
			}
			o.Parts = append(o.Parts, p)
		}
	}
	if o.Certificate, o.Token, o.Insecure, err = protection(*cert, *key, o.Insecure); err != nil {
		return err
	}
	ds, err := options.Load(ctx, out, rest[0])
	if err != nil {
		return err
	}
	defer ds.Close()
	s, err := serve.New(ctx, ds, o)
	if err != nil {
		return err
	}
	if _, zeros, err := ds.WithoutZeroWeights(); err == nil && zeros > 0 {
		out.Logf("%s of weight 0 left out: nothing samples them", phrase.Count(int(zeros), "edge"))
	}
	tables.Digest, tables.Parts, tables.Threads = s.Digest(), s.Parts(), o.Threads
	f, err := flight.New(ds, tables)
	if err != nil {
		return err
	}
	defer f.Close()
	s.Add(f)
	l, err := cli.Listen(ctx, "listen", *listen)
	if err != nil {
		return err
	}
	if err := s.Allowed(l.Addr()); err != nil {
		return errors.Join(fmt.Errorf("%w (--tls-cert and --tls-key, GNB_TOKEN_FILE, --insecure)", err), l.Close())
	}
	listening := map[string]any{"dataset": ds.Name()}
	if *metrics != "" {
		m, err := cli.Listen(ctx, "metrics", *metrics)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", s.Metrics())
		defer prometheus.Serve(m, mux, out.Logf)()
		listening["metrics"] = "http://" + m.Addr().String() + "/metrics"
	}
	scheme := "grpc"
	if o.Certificate != nil {
		scheme = "grpcs"
	}
	address := scheme + "://" + l.Addr().String()
	listening["address"] = address
	out.Event("listening", listening)
	out.Logf("serving %s at %s", ds.Name(), address)
	if err := s.Serve(ctx, l); err != nil {
		return err
	}
	out.Logf("ended")
	out.Result(map[string]any{"address": address})
	return nil
}

// protection returns what a server needs where other machines reach it: the certificate of --tls-cert and --tls-key, nil without them,
// and the token of the environment; and whether it may do without.
func protection(cert, key string, insecure bool) (pair *tls.Certificate, token string, open bool, err error) {
	if (cert == "") != (key == "") {
		return nil, "", false, cli.Usagef("--tls-cert and --tls-key go together")
	}
	if cert != "" {
		p, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, "", false, fmt.Errorf("reading the certificate: %w", err)
		}
		pair = &p
	}
	token, open, err = cluster.Token()
	return pair, token, open || insecure, err
}
