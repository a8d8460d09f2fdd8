package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serving is "gnb serve --json" in its own process.
type serving struct {
	cmd     *exec.Cmd
	address string
	metrics string
	out     *bufio.Scanner
	stderr  bytes.Buffer // may be read after cmd.Wait
}

func startServing(t *testing.T, dir string, args ...string) *serving {
	t.Helper()
	s, err := beginServing(t, dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// beginServing is startServing for goroutines other than the test's.
func beginServing(t *testing.T, dir string, args ...string) (*serving, error) {
	return beginCommand(t, dir, append([]string{"serve"}, args...)...)
}

// beginCommand starts "gnb" with arguments in its own process, and waits until it listens.
func beginCommand(t *testing.T, dir string, args ...string) (*serving, error) {
	bin, err := binary()
	if err != nil {
		return nil, err
	}
	s := &serving{cmd: exec.Command(bin, append(args, "--json")...)}
	s.cmd.Dir, s.cmd.Stderr = dir, &s.stderr
	pipe, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	s.out = bufio.NewScanner(pipe)
	for s.out.Scan() {
		var e struct{ Event, Address, Metrics string }
		if err := json.Unmarshal(s.out.Bytes(), &e); err != nil {
			return nil, err
		}
		if e.Event == "listening" {
			s.address, s.metrics = e.Address, e.Metrics
			return s, nil
		}
	}
	_ = s.cmd.Wait()
	return nil, errors.New("gnb " + args[0] + " ended: " + s.stderr.String())
}

// Training at a server gives the digest and weights of training on the dataset itself, and so does
// training on a copy. A trainer that starts before the server waits for it.
func TestTrainOnServer(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	dir := t.TempDir()
	const dataset = "planted?nodes=3000&features=16"
	train := func(name string, args ...string) (digest any, weights []byte) {
		t.Helper()
		run := filepath.Join(dir, name)
		_, r := result(t, dir, append(append([]string{"train"}, args...), "--workers", "2", "--epochs", "2", "--batch", "256", "--hidden", "8", "--model", "gcn", "--seed", "4", "--digest", "--run", run)...)
		b, err := os.ReadFile(filepath.Join(run, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return r["digest"], b
	}
	digest, weights := train("local", dataset)
	s := startServing(t, dir, dataset, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
	r, err := http.Get(s.metrics)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil || !strings.Contains(string(text), "gnb_serve_busy 0") {
		t.Errorf("metrics: %q, %v", text, err)
	}
	// The server is killed and started again while the trainer waits for it.
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	var again *serving
	back := make(chan error, 1)
	go func() {
		time.Sleep(500 * time.Millisecond)
		var err error
		again, err = beginServing(t, dir, dataset, "--listen", strings.TrimPrefix(s.address, "grpc://"))
		back <- err
	}()
	d, w := train("served", s.address)
	if d != digest {
		t.Errorf("digest %v, want %v", d, digest)
	}
	if !bytes.Equal(w, weights) {
		t.Error("the weights have different bits")
	}
	if err := <-back; err != nil {
		t.Fatal(err)
	}
	s = again
	if d, w := train("copied", s.address+"?copy=all"); d != digest || !bytes.Equal(w, weights) {
		t.Errorf("training on a copy: digest %v, want %v; the weights are equal: %v", d, digest, bytes.Equal(w, weights))
	}
	links := func(spec string) (digest any) {
		_, r := result(t, dir, "train", spec, "--task", "links", "--epochs", "1", "--digest")
		return r["digest"]
	}
	here := links(dataset)
	for _, copies := range []string{"?copy=all", "?copy=topology"} {
		if copied := links(s.address + copies); here == nil || here != copied {
			t.Errorf("links with %s have the digest %v, and on the local dataset %v", copies, copied, here)
		}
	}
	for _, args := range [][]string{{"partition"}, {"inspect"}, {"train", "--cooperative", "--workers", "2", "--epochs", "1"}, {"train", "--task", "links"}} {
		copies := "?copy=all"
		if slices.Contains(args, "links") {
			copies = "?copy=topology" // is enough for links
		}
		status, _, stderr := gnbRun(t, dir, append(args, s.address)...)
		if status == 0 || !strings.Contains(stderr, "load "+s.address+copies) {
			t.Errorf("gnb %v on a graph at servers: status %d, %q", args, status, stderr)
		}
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	last := ""
	for s.out.Scan() {
		last = s.out.Text()
	}
	if err := s.cmd.Wait(); err != nil || !strings.Contains(last, `"event":"result"`) {
		t.Errorf("after SIGTERM: %v, %q, %s", err, last, s.stderr.String())
	}
}

func TestServeRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"karate", "--listen", "0.0.0.0:0"}, "give it a certificate and a token"},
		{[]string{"karate", "--tls-cert", "x"}, "--tls-cert and --tls-key go together"},
		{[]string{"karate", "--tls-cert", "/nowhere", "--tls-key", "/nowhere"}, "reading the certificate"},
		{[]string{"karate", "--parts", "0,x"}, "--parts 0,x: it is a list of numbers"},
		{[]string{"karate", "--parts", "0"}, "is not divided"},
		{[]string{"karate", "--listen", "nonsense"}, "--listen nonsense"},
		{[]string{"karate", "--max-nodes", "-1"}, "cannot be negative"},
		{[]string{"karate", "--take-in", "/dev/null"}, "the directory for tables to take in, /dev/null"},
		{[]string{"karate", "--take-in-bytes", "-1"}, "cannot be negative"},
		{[]string{"grpc://127.0.0.1:1?x=1"}, "unknown option x"},
	} {
		status, stderr := say(t, append([]string{"serve"}, c.args...)...)
		if status == 0 || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "serving ") {
			t.Errorf("gnb serve %v: status %d, %q, want %q", c.args, status, stderr, c.want)
		}
	}
}
