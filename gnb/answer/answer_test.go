package answer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/answer"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/graphops/datasets"
)

func TestMain(m *testing.M) { runtest.MainWithRuns(m) }

// predictor trains for a moment and opens the run.
func predictor(t *testing.T, seed uint64) *predict.Predictor {
	t.Helper()
	ds, err := datasets.Load("planted?nodes=500&features=8&classes=4")
	if err != nil {
		t.Fatal(err)
	}
	var o gnb.TrainOptions
	o.Workers, o.Threads, o.Hidden, o.Layers, o.Epochs, o.Seed, o.Quiet, o.RunDir = 1, 1, 16, 2, 3, seed, true, filepath.Join(t.TempDir(), "run")
	run, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := predict.Open(t.Context(), run, ds, predict.Options{Threads: 1, MaxEdges: 2000, Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func server(t *testing.T, p *predict.Predictor, o answer.Options) (*answer.Server, string) {
	t.Helper()
	s, err := answer.New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	return s, h.URL
}

// ask returns the status and the decoded body of a request; with a body it is a POST.
func ask(t *testing.T, url, body string) (int, map[string]any) {
	t.Helper()
	var r *http.Response
	var err error
	if body == "" {
		r, err = http.Get(url)
	} else {
		r, err = http.Post(url, "application/json", strings.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: status %d, %q: %v", url, r.StatusCode, data, err)
	}
	return r.StatusCode, v
}

// decoded is what JSON makes of a value.
func decoded(t *testing.T, v any) (out any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The answers are those of the predictor: for known nodes in both forms, for new ones, and with explanations.
func TestAnswersAreThoseOfThePredictor(t *testing.T) {
	p := predictor(t, 1)
	_, url := server(t, p, answer.Options{})
	a, err := p.Nodes(t.Context(), "7", "99")
	if err != nil {
		t.Fatal(err)
	}
	want := decoded(t, a)
	for path, body := range map[string]string{"/v1/nodes?id=7&id=99": "", "/v1/nodes": `{"ids": ["7", "99"]}`} {
		if status, got := ask(t, url+path, body); status != 200 || !reflect.DeepEqual(any(got), want) {
			t.Errorf("%s: status %d, %v, want %v", path, status, got, want)
		}
	}
	added := predict.Additions{Nodes: []predict.Node{{ID: "n", Features: make([]float32, 8)}}, Edges: []predict.Edge{{Source: "n", Target: "7"}}}
	fresh, err := p.New(t.Context(), added)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := json.Marshal(added)
	if status, got := ask(t, url+"/v1/new", string(body)); status != 200 || !reflect.DeepEqual(any(got), decoded(t, fresh)) {
		t.Errorf("new: status %d, %v, want %v", status, got, decoded(t, fresh))
	}
	if status, got := ask(t, url+"/v1/explain", `{"id": "7", "method": "gradient-input"}`); status != 200 || got["node"] != "7" || len(got["columns"].([]any)) != 8 {
		t.Errorf("explain: status %d, %v", status, got)
	}
	if status, got := ask(t, url+"/v1/model", ""); status != 200 || got["kind"] != "classes" || len(got["columns"].([]any)) != 4 {
		t.Errorf("model: status %d, %v", status, got)
	}
}

// The OpenAPI document describes the requests that a server answers, each one.
func TestOpenAPI(t *testing.T) {
	_, url := server(t, predictor(t, 1), answer.Options{
		Additions: answer.InMemory, Reload: func(context.Context) (*predict.Predictor, error) { return nil, errors.New("no other run") },
	})
	status, document := ask(t, url+"/openapi.json", "")
	if status != 200 {
		t.Fatalf("status %d, %v", status, document)
	}
	for path, methods := range document["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			q, err := http.NewRequest(strings.ToUpper(method), url+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.DefaultClient.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r.Body)
			if r.Body.Close(); err != nil || strings.Contains(string(text), "there is nothing at") {
				t.Errorf("%s %s: status %d, %s", method, path, r.StatusCode, text)
			}
		}
	}
}

// Requests that wait are computed together, without a change of a bit, and a mistake in one is not that of the others.
func TestRequestsAreJoined(t *testing.T) {
	p := predictor(t, 1)
	_, url := server(t, p, answer.Options{Calls: 1})
	var want [40]any
	for i := range want {
		a, err := p.Nodes(t.Context(), fmt.Sprint(i), fmt.Sprint(i+100))
		if err != nil {
			t.Fatal(err)
		}
		want[i] = decoded(t, a)
	}
	var all sync.WaitGroup
	for round := range 5 {
		all.Go(func() { // takes the one slot for a moment, so that others wait
			if status, got := ask(t, url+"/v1/explain", `{"id": "3", "method": "mask"}`); status != 200 {
				t.Errorf("explain: status %d, %v", status, got)
			}
		})
		for i := range want {
			all.Go(func() {
				if i%10 == 9 {
					if status, got := ask(t, url+"/v1/nodes?id=nobody", ""); status != 404 || got["kind"] != "unknown_node" {
						t.Errorf("an unknown node: status %d, %v", status, got)
					}
					return
				}
				status, got := ask(t, fmt.Sprintf("%s/v1/nodes?id=%d&id=%d", url, i, i+100), "")
				if status != 200 || !reflect.DeepEqual(any(got), want[i]) {
					t.Errorf("round %d, request %d: status %d, %v", round, i, status, got)
				}
			})
		}
	}
	all.Wait()
	r, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	if strings.Contains(string(text), "gnb_answer_joined_total 0\n") || !strings.Contains(string(text), `gnb_answer_requests_total{call="GET /v1/nodes",status="404"} 20`) {
		t.Errorf("the metrics are\n%s", text)
	}
}

// What cannot be answered has a sentence, a kind and a status.
func TestRefusals(t *testing.T) {
	_, url := server(t, predictor(t, 1), answer.Options{MaxNodes: 3, MaxBody: 2000})
	for _, c := range []struct {
		path, body string
		status     int
		kind, want string
	}{
		{"/v1/nodes?id=500", "", 404, "unknown_node", "500"},
		{"/v1/nodes", `{"ids": ["-1"]}`, 404, "unknown_node", "-1"},
		{"/v1/nodes", "", 400, "request", "has no nodes"},
		{"/v1/nodes?id=1&id=2&id=3&id=4", "", 413, "too_large", "at most 3"},
		{"/v1/nodes", `{"id": "1"}`, 400, "request", "unknown field"},
		{"/v1/nodes", `{"ids": ["1"]} {}`, 400, "request", "more follows"},
		{"/v1/nodes", `{"ids": [`, 400, "request", "the body is not"},
		{"/v1/nodes", `{"ids": ["` + strings.Repeat("x", 3000) + `"]}`, 413, "too_large", "more than 2000 bytes"},
		{"/v1/new", `{"nodes": []}`, 400, "request", "has no nodes"},
		{"/v1/new", `{"nodes": [{"id": "n", "features": [1]}]}`, 400, "request", "has 1 features"},
		{"/v1/new", `{"nodes": [{"id": "n", "columns": {"plan": "pro"}}]}`, 400, "request", "tables"},
		{"/v1/new", `{"nodes": [{"id": "n", "features": [1,1,1,1,1,1,1,1]}], "edges": [{"source": "n", "target": "9999"}]}`, 404, "unknown_node", "9999"},
		{"/v1/scores", `{"pairs": [{"source": "1", "target": "2"}]}`, 400, "request", "links"},
		{"/v1/explain", `{"id": "1", "output": "no class"}`, 400, "request", "no class"},
		{"/v1/nothing", "", 404, "request", "openapi.json"},
	} {
		status, got := ask(t, url+c.path, c.body)
		text, _ := got["error"].(string)
		if status != c.status || got["kind"] != c.kind || !strings.Contains(text, c.want) || strings.Contains(text, "\n") {
			t.Errorf("%s %.80s: status %d, %v, want %d %s %q", c.path, c.body, status, got, c.status, c.kind, c.want)
		}
	}
}

// A server with a token answers nobody without it, but says that it lives; and it listens beyond loopback only with a certificate and
// a token.
func TestTokenAndAddress(t *testing.T) {
	s, url := server(t, predictor(t, 1), answer.Options{Token: "secret"})
	for _, path := range []string{"/v1/nodes?id=1", "/openapi.json", "/metrics", "/v1/model"} {
		if status, got := ask(t, url+path, ""); status != 401 || got["kind"] != "unauthorized" {
			t.Errorf("%s without a token: %d, %v", path, status, got)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/nodes?id=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer secret")
	if got, err := http.DefaultClient.Do(r); err != nil || got.StatusCode != 200 {
		t.Errorf("with the token: %v, %v", got, err)
	}
	if got, err := http.Get(url + "/healthz"); err != nil || got.StatusCode != 200 {
		t.Errorf("/healthz: %v, %v", got, err)
	}
	if err := s.Allowed(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without a certificate it may listen for all: %v", err)
	}
}

// A new run takes over without a failed request, and requests in progress are answered when the server ends.
func TestReloadAndDrain(t *testing.T) {
	first, second := predictor(t, 1), predictor(t, 2)
	s, err := answer.New(first, answer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	url := "http://" + l.Addr().String()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 60 {
				if status, got := ask(t, fmt.Sprintf("%s/v1/nodes?id=%d", url, i), ""); status != 200 {
					t.Errorf("status %d, %v", status, got)
				}
			}
		})
	}
	for i := range 10 {
		next := second
		if i%2 == 1 {
			next = predictor(t, 3)
		}
		if before := s.Use(next); before != first && before != second {
			_ = before.Close()
		}
		time.Sleep(time.Millisecond)
	}
	all.Wait()
	if before := s.Use(second); before == nil {
		t.Error("there was no predictor before")
	}
	_, got := ask(t, url+"/v1/nodes?id=1", "")
	a, _ := second.Nodes(t.Context(), "1")
	if !reflect.DeepEqual(any(got), decoded(t, a)) {
		t.Errorf("after the reload the answer is %v", got)
	}
	end()
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("it answers after its end")
	}
}

// More requests than may wait are refused at once, and one that takes too long ends.
func TestBusyAndTimeout(t *testing.T) {
	p := predictor(t, 1)
	_, url := server(t, p, answer.Options{Calls: 1, Waiting: 1, MaxNodes: 1000})
	var busy, ok sync.Map
	var all sync.WaitGroup
	many := `{"ids": ["` + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(make([]int, 400)), "[]")), `","`) + `"]}`
	for i := range 64 {
		all.Go(func() {
			status, got := ask(t, url+"/v1/nodes", many)
			switch {
			case status == 503 && got["kind"] == "busy":
				busy.Store(i, true)
			case status == 200:
				ok.Store(i, true)
			default:
				t.Errorf("status %d, %v", status, got)
			}
		})
	}
	all.Wait()
	n := 0
	ok.Range(func(any, any) bool { n++; return true })
	if n == 0 {
		t.Error("no request was answered")
	}
	_, slow := server(t, p, answer.Options{Timeout: time.Nanosecond})
	if status, got := ask(t, slow+"/v1/nodes?id=1", ""); status != 504 || got["kind"] != "timeout" {
		t.Errorf("a request without time: %d, %v", status, got)
	}
	if _, err := answer.New(p, answer.Options{Calls: -1}); err == nil {
		t.Error("a negative limit is taken")
	}
}

// Requests whose clients have gone while they waited leave no trace: as many as may wait, and the server answers on.
func TestRequestsThatLeave(t *testing.T) {
	p := predictor(t, 1)
	_, url := server(t, p, answer.Options{Calls: 1, Waiting: 2, Timeout: 300 * time.Millisecond})
	for range 3 {
		held := make(chan struct{})
		go func() { // takes the slot until its time is over
			defer close(held)
			for range 3 {
				r, err := http.Post(url+"/v1/explain", "application/json", strings.NewReader(`{"id": "3", "method": "mask"}`))
				if err == nil {
					_ = r.Body.Close()
				}
			}
		}()
		for i := range 6 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i)*time.Millisecond)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/nodes?id=7", nil)
			if err != nil {
				t.Fatal(err)
			}
			if a, err := http.DefaultClient.Do(r); err == nil {
				_ = a.Body.Close()
			}
			cancel()
		}
		<-held
	}
	for i := range 20 {
		if status, got := ask(t, fmt.Sprintf("%s/v1/nodes?id=%d", url, i), ""); status != 200 {
			t.Fatalf("request %d after those that left: status %d, %v", i, status, got)
		}
	}
}

// After its end a server refuses, and a method that does not exist is the client's mistake.
func TestEndedServer(t *testing.T) {
	s, url := server(t, predictor(t, 1), answer.Options{})
	if status, got := ask(t, url+"/v1/explain", `{"id": "1", "method": "magic"}`); status != 400 || got["kind"] != "request" {
		t.Errorf("an unknown method: status %d, %v", status, got)
	}
	s.Use(nil)
	for _, path := range []string{"/v1/nodes?id=1", "/v1/model"} {
		if status, got := ask(t, url+path, ""); status != 503 {
			t.Errorf("%s of a server that has ended: status %d, %v", path, status, got)
		}
	}
}
