package answer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/answer"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/datasets"
)

// Nodes and edges that are sent to /v1/edges are part of later answers: also after a reload, and those of a file after a server that
// was killed while it wrote.
func TestAdditionsAreKept(t *testing.T) {
	first, second := predictor(t, 1), predictor(t, 2)
	path := filepath.Join(t.TempDir(), "additions.jsonl")
	o := answer.Options{Additions: path, Reload: func(context.Context) (*predict.Predictor, error) { return second, nil }}
	s, url := server(t, first, o)
	status, before := ask(t, url+"/v1/nodes?id=7", "")
	if status != 200 {
		t.Fatal(before)
	}
	status, got := ask(t, url+"/v1/edges", `{"nodes": [{"id": "n", "features": [1,2,3,4,5,6,7,8]}], "edges": [{"source": "n", "target": "7"}, {"source": "8", "target": "7"}]}`)
	if status != 200 || got["nodes"] != 1.0 || got["saved"] != true || got["kept_nodes"] != 1.0 {
		t.Fatalf("status %d, %v", status, got)
	}
	if status, got := ask(t, url+"/v1/edges", `{"edges": [{"source": "n", "target": "nobody"}]}`); status != 404 || got["kind"] != "unknown_node" {
		t.Errorf("an edge to nobody: status %d, %v", status, got)
	}
	_, after := ask(t, url+"/v1/nodes?id=7&id=n", "")
	if reflect.DeepEqual(before["answers"], after["answers"].([]any)[:1]) {
		t.Error("two new edges changed nothing")
	}
	if _, err := answer.New(second, o); err == nil || !strings.Contains(err.Error(), "another server writes") {
		t.Errorf("a second server with the same file: %v", err)
	}
	if status, got := ask(t, url+"/v1/reload", "{}"); status != 200 {
		t.Fatalf("reload: status %d, %v", status, got)
	}
	status, reloaded := ask(t, url+"/v1/nodes?id=n", "")
	if status != 200 {
		t.Fatalf("the added node after a reload: status %d, %v", status, reloaded)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"nodes": [{"id": "ha`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s, url = server(t, predictor(t, 1), o)
	if _, again := ask(t, url+"/v1/nodes?id=7&id=n", ""); !reflect.DeepEqual(again, after) {
		t.Errorf("a server that starts again answers %v, and the one before %v", again, after)
	}
	if status, got := ask(t, url+"/v1/edges", `{"edges": [{"source": "9", "target": "7"}]}`); status != 200 {
		t.Errorf("status %d, %v", status, got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 3 || strings.Contains(string(text), "ha") {
		t.Errorf("the file is %q, %v", text, err)
	}
	if err := os.WriteFile(path, []byte("[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"is no file of additions": "[]\n", "are to x with 3 nodes": `{"graphnb_additions": 1, "dataset": "x", "nodes": 3, "edges": 4}` + "\n",
		"its first line": "notes that somebody wrote", "line 3 of": string(text) + "{}}\n" + "{}\n",
	} {
		if what == "line 3 of" {
			text = strings.Join(strings.SplitAfter(text, "\n")[:2], "") + "{}}\n{}\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := answer.New(predictor(t, 1), o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("a file of something else: error %v, want one with %q", err, what)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != text {
			t.Errorf("a file of something else became %q, %v", left, err)
		}
	}
	_, url = server(t, predictor(t, 1), answer.Options{})
	if status, got := ask(t, url+"/v1/edges", `{"edges": [{"source": "9", "target": "7"}]}`); status != 404 {
		t.Errorf("a server that keeps none: status %d, %v", status, got)
	}
}

// The targets of a node are those of predict.Top.
func TestTopTargets(t *testing.T) {
	ds, err := datasets.Load("planted?nodes=300&features=8&classes=4")
	if err != nil {
		t.Fatal(err)
	}
	var o links.Options
	o.Quiet, o.Threads, o.Workers, o.Hidden, o.Dim, o.Layers, o.Epochs, o.RunDir = true, 1, 1, 16, 8, 2, 1, filepath.Join(t.TempDir(), "run")
	run, err := links.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	p := opened(t, run, ds, predict.Options{Threads: 1, Precompute: 2, Quiet: true})
	_, url := server(t, p, answer.Options{MaxNodes: 20})
	want, err := p.Top(t.Context(), predict.TopQuery{ID: "5", K: 7})
	if err != nil {
		t.Fatal(err)
	}
	status, got := ask(t, url+"/v1/top", `{"id": "5", "k": 7}`)
	if status != 200 || !reflect.DeepEqual(got["targets"], decoded(t, want)) || len(want) != 7 {
		t.Errorf("status %d, %v, want %v", status, got, want)
	}
	if status, got := ask(t, url+"/v1/top", `{"id": "5", "k": 21}`); status != 413 || !strings.Contains(fmt.Sprint(got), "at most 20") {
		t.Errorf("more targets than a request may have: %d, %v", status, got)
	}
	if status, got := ask(t, url+"/v1/explain", `{"pair": {"source": "5", "target": "7"}, "method": "gradient-input"}`); status != 200 || got["columns"] == nil {
		t.Errorf("the explanation of a pair: %d, %v", status, got)
	}
	if status, got := ask(t, url+"/v1/explain", `{"id": "5", "pair": {"source": "5", "target": "7"}}`); status != 400 {
		t.Errorf("an explanation of two things: %d, %v", status, got)
	}
	_, url = server(t, opened(t, run, ds, predict.Options{Quiet: true}), answer.Options{})
	if status, got := ask(t, url+"/v1/top", `{"id": "5"}`); status != 400 || !strings.Contains(fmt.Sprint(got), "--precompute 2") {
		t.Errorf("without embeddings: %d, %v", status, got)
	}
}

func opened(t *testing.T, run *runs.Run, ds *gnb.Dataset, o predict.Options) *predict.Predictor {
	t.Helper()
	p, err := predict.Open(t.Context(), run, ds, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// A reload may take longer than other calls, and additions wait for it no longer than a request may take; they are then not made.
func TestAdditionsWaitForAReload(t *testing.T) {
	slow := make(chan struct{})
	next := predictor(t, 1)
	_, url := server(t, predictor(t, 1), answer.Options{Additions: answer.InMemory, Timeout: 300 * time.Millisecond, Reload: func(ctx context.Context) (*predict.Predictor, error) {
		<-slow
		return next, ctx.Err()
	}})
	var reload sync.WaitGroup
	reload.Go(func() {
		if status, got := ask(t, url+"/v1/reload", "{}"); status != 200 {
			t.Errorf("a reload of a second: status %d, %v", status, got)
		}
	})
	time.Sleep(100 * time.Millisecond)
	if status, got := ask(t, url+"/v1/edges", `{"nodes": [{"id": "late", "features": [1,2,3,4,5,6,7,8]}]}`); status != 504 {
		t.Errorf("an addition during a reload: status %d, %v", status, got)
	}
	if status, got := ask(t, url+"/v1/nodes?id=1", ""); status != 200 {
		t.Errorf("a known node during a reload: status %d, %v", status, got)
	}
	time.Sleep(700 * time.Millisecond)
	close(slow)
	reload.Wait()
	if status, got := ask(t, url+"/v1/nodes?id=late", ""); status != 404 {
		t.Errorf("an addition that was refused: status %d, %v", status, got)
	}
}
