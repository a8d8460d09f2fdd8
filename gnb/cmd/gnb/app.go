package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/setup"
	"github.com/graphnb/graphnb/gnb/deploy"
)

const appServeHelp = `
Answers for single nodes by the model inside this program, over HTTP with JSON, until an interrupt or SIGTERM; then it
finishes what it is answering and ends. GET /openapi.json describes the requests. It reads no other file and writes none. Beyond
this machine it needs a certificate (--tls-cert, --tls-key) and a token (GNB_TOKEN or GNB_TOKEN_FILE), or --insecure.`

// dispatchApp runs a command of a program with a model inside; without the name of one it serves.
func dispatchApp(ctx context.Context, app *deploy.App, args []string, stdout, stderr io.Writer) int {
	m := subject{app}
	program := filepath.Base(app.Path)
	commands := []cli.Command{
		{Program: program, Name: "serve", Summary: "answer over HTTP (the default)", Run: m.serve},
		{Program: program, Name: "predict", Summary: predictCommand.Summary, Run: m.predict},
		{Program: program, Name: "explain", Summary: explainCommand.Summary, Run: m.explain},
		{Program: program, Name: "healthy", Summary: "ask whether the server answers", Run: askHealth},
		{Program: program, Name: "check", Summary: "compare the whole file with its checksums", Run: m.check},
		setup.Version,
	}
	name, rest := "serve", args
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, rest = args[0], args[1:]
	}
	first := append(args, "")[0]
	if name == "help" && len(rest) > 0 {
		name, rest = rest[0], []string{"--help"}
	} else if name == "help" || slices.Contains([]string{"-h", "-help", "--help"}, first) {
		fmt.Fprintf(stdout, "%s answers by %s.\n\nusage: %s [COMMAND] [flags] [arguments]\n\ncommands:\n", program, app, program)
		for _, c := range commands {
			fmt.Fprintf(stdout, "  %-10s %s\n", c.Name, c.Summary)
		}
		fmt.Fprintf(stdout, "\n\"%s COMMAND --help\" explains one; every command takes --json.\n", program)
		return cli.StatusOK
	}
	if first == "-version" || first == "--version" {
		name, rest = "version", args[1:]
	}
	for _, c := range commands {
		if c.Name == name {
			return cli.Run(ctx, c, rest, stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "%s: there is no command %q; \"%s help\" lists what there is\n", program, name, program)
	return cli.StatusUsage
}

func (m subject) check(_ context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("", "Reads the whole file and compares it with its checksums.")
	if _, err := out.Parse(fs, args, 0, 0); err != nil {
		return err
	}
	if err := m.app.Check(); err != nil {
		return err
	}
	out.Printf("%s: %s, as it was built\n", m.app.Path, m.app)
	out.Result(map[string]any{"path": m.app.Path, "run": m.app.Table.Run, "made": m.app.Table.Made, "files": m.app.Table.Files})
	return nil
}

const healthyHelp = `
Asks a server, by default that at 127.0.0.1:7800, whether it answers. The exit status is 0 if it does. An address of this machine without a
scheme is asked with TLS, and without TLS if the server has none. A certificate is not checked.`

// askHealth is for the health checks of containers that have no other program.
func askHealth(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("[URL|ADDRESS]", healthyHelp)
	within := fs.Duration("timeout", 4*time.Second, "`time` for the answer")
	rest, err := out.Parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	ctx, end := context.WithTimeout(ctx, *within)
	defer end()
	given := strings.TrimSuffix(append(rest, "127.0.0.1:7800")[0], "/")
	url := given
	if !strings.Contains(given, "://") {
		if !ofThisMachine(given) {
			return cli.Usagef("%s is no address of this machine, such as 127.0.0.1:7800; a URL of another begins with http:// or https://", given)
		}
		// TLS first, because a server with TLS logs each request without it. A server without TLS does not log this.
		url = "https://" + given
	}
	err = askURL(ctx, url)
	if url != given && errors.Is(err, http.ErrSchemeMismatch) {
		url = "http://" + given
		err = askURL(ctx, url)
	}
	if err != nil {
		return err
	}
	out.Printf("%s answers\n", url)
	out.Result(map[string]any{"address": url})
	return nil
}

// ofThisMachine reports whether an address HOST:PORT is one of the loopback interface.
func ofThisMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// askURL asks the server at a URL whether it answers.
func askURL(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return cli.Usagef("%s is no address: %w", url, err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it asks whether anything answers
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("no server answers: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers with status %d", url, answer.StatusCode)
	}
	return nil
}
