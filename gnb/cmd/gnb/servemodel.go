package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/graphnb/graphnb/gnb/answer"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/pyclient"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
)

var serveModelCommand = cli.Command{Name: "serve-model", Summary: "answer requests for a trained run's predictions over HTTP and gRPC", Run: subject{}.serve}

const serveModelHelp = `
Answers for single nodes by a trained run, RUN or the last one, over HTTP with JSON and over gRPC, until an interrupt or SIGTERM; then it
finishes what it is answering and ends. It answers on the dataset that the run was trained on, or on --dataset. GET /openapi.json describes
the requests: nodes of the dataset, new nodes with raw columns and edges, scores of pairs, the best
targets of a node (--precompute), explanations. With --additions, POST /v1/edges keeps new nodes and edges. POST
/v1/reload reads RUN again, or the last run, and answers by it without a failed request. Beyond this machine it needs a certificate (--tls-cert,
--tls-key) and a token (GNB_TOKEN or GNB_TOKEN_FILE), or --insecure.`

func (m subject) serve(ctx context.Context, args []string, out *cli.Output) (err error) {
	fs := out.Flags(m.arguments("[RUN]", ""), m.help(serveModelHelp, appServeHelp))
	var o answer.Options
	var p predict.Options
	var fanouts ranks.Fanouts
	given := m.datasetFlag(fs, "answer on")
	listen := fs.String("listen", "127.0.0.1:7800", "`address` to listen on: \":7800\" locally, \"0.0.0.0:7800\" publicly")
	cert := fs.String("tls-cert", "", "`file` of the server's certificate, in PEM format")
	key := fs.String("tls-key", "", "`file` of the certificate's key")
	if err := m.fanoutFlag(fs, &fanouts); err != nil {
		return err
	}
	fs.BoolVar(&p.Final, "final", false, "use the final weights instead of the best ones")
	fs.IntVar(&p.MaxEdges, "max-edges", 0, "edges of a node's neighbourhood (default 4194304)")
	fs.IntVar(&p.Precompute, "precompute", 0, "`layer` whose rows of all nodes are computed first")
	fs.IntVar(&p.MaxNew, "max-new", 0, "new nodes of a type (default 4096)")
	fs.StringVar(&o.Additions, "additions", "", "`file` that keeps POST /v1/edges, or memory (default refused)")
	fs.IntVar(&p.Threads, "threads", 1, "threads per call; 0 means all CPUs")
	fs.BoolVar(&o.Insecure, "insecure", false, "answer other machines without certificate or token")
	fs.IntVar(&o.Calls, "calls", 0, "requests computed at once (default all CPUs)")
	fs.IntVar(&o.Waiting, "waiting", 0, "requests that may wait (default 1024)")
	fs.IntVar(&o.MaxNodes, "max-nodes", 0, "nodes of a request (default 1024)")
	fs.Int64Var(&o.MaxBody, "max-bytes", 0, "bytes of a request (default 1048576)")
	fs.IntVar(&o.Connections, "connections", 0, "open connections (default 1024)")
	fs.DurationVar(&o.Timeout, "timeout", 10*time.Second, "`time` for a request, with waiting")
	fs.DurationVar(&o.Drain, "drain", 10*time.Second, "`time` for open requests after SIGTERM")
	client := fs.String("client", "", "print a client module instead: `python`")
	m.verifyFlag(out, fs)
	rest, err := out.Parse(fs, args, 0, m.names())
	if err != nil {
		return err
	}
	if *client != "" {
		return printClient(out, *client)
	}
	if o.Certificate, o.Token, o.Insecure, err = protection(*cert, *key, o.Insecure); err != nil {
		return err
	}
	setPredict(&p, fanouts, out)
	name := ""
	if len(rest) > 0 {
		name = rest[0]
	}
	run, ds, err := m.open(ctx, out, name, *given)
	if err != nil {
		return err
	}
	defer ds.Close()
	of, err := predict.Open(ctx, run, ds, p)
	if err != nil {
		return err
	}
	first := run
	reload := func(ctx context.Context) (*predict.Predictor, error) {
		run, err := modelRun(ctx, name)
		if err != nil {
			return nil, err
		}
		if was := first.Config; run.Config.Dataset != was.Dataset || run.DatasetSpec() != first.DatasetSpec() || run.Config.Nodes != was.Nodes || run.Config.Edges != was.Edges {
			return nil, fmt.Errorf("run %s was trained on another dataset, %s, and the server has %s; start the server with the run's name", run.Config.ID, cmp.Or(run.Config.DatasetDir, run.Config.Dataset), cmp.Or(was.DatasetDir, was.Dataset))
		}
		return predict.Open(ctx, run, ds, p)
	}
	if m.app == nil {
		o.Reload = reload
	}
	s, err := answer.New(of, o)
	if err != nil {
		return errors.Join(err, of.Close())
	}
	defer func() { err = errors.Join(err, s.Close(), s.Use(nil).Close()) }()
	defer populate(ctx, ds)()
	warm(ctx, of, ds, cmp.Or(o.Calls, runtime.GOMAXPROCS(0)))
	l, err := cli.Listen(ctx, "listen", *listen)
	if err != nil {
		return err
	}
	if err := s.Allowed(l.Addr()); err != nil {
		return errors.Join(fmt.Errorf("%w (--tls-cert and --tls-key, GNB_TOKEN_FILE, --insecure)", err), l.Close())
	}
	scheme := "http"
	if o.Certificate != nil {
		scheme = "https"
	}
	address := scheme + "://" + l.Addr().String()
	out.Event("listening", map[string]any{"address": address, "run": run.Config.ID, "dataset": ds.Name()})
	out.Logf("%s, at %s", of, address)
	ctx, checked := m.checkBehind(ctx)
	if err := errors.Join(s.Serve(ctx, l), checked()); err != nil {
		return err
	}
	out.Logf("ended")
	out.Result(map[string]any{"address": address})
	return nil
}

// printClient prints a module of a language that asks model servers.
func printClient(out *cli.Output, language string) error {
	if language != "python" {
		return cli.Usagef("--client is %s; there is python, and GET /openapi.json for generators of other languages", language)
	}
	text, err := pyclient.Module(answer.OpenAPI())
	if err != nil {
		return err
	}
	out.Printf("%s", text)
	out.Result(map[string]any{"client": text})
	return nil
}

// lastRun is a name of the last run, for commands with further arguments.
const lastRun = "last"

// modelRun opens a run by its name, or the last one.
func modelRun(ctx context.Context, name string) (*runs.Run, error) {
	if _, err := os.Stat(options.RunDir(name)); name == "" || name == lastRun && err != nil {
		return runs.Last(ctx)
	}
	return options.OpenRun(name)
}
