package pyclient_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/answer"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/pyclient"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestMain(m *testing.M) { runtest.MainWithRuns(m) }

const script = `
import json, os, sys, threading
from model_client import Client, ModelError

url = sys.argv[1]
model = Client(url, token="secret")
assert model.healthz() == "ok\n"
about = model.model()
assert about["kind"] == "classes" and len(about["columns"]) == 4, about
a = model.nodes(["7", "99"])
b = model.get_nodes(["7", "99"])
assert a == b and [x["id"] for x in a["answers"]] == ["7", "99"], (a, b)
new = model.new_nodes([{"id": "n", "features": [0.5] * 8}], [{"source": "n", "target": "7"}])
assert new["answers"][0]["id"] == "n"
assert model.explain("7", method="gradient-input")["node"] == "7"
assert "gnb_answer_requests_total" in model.metrics()

def refused(call, kind, status, text):
    try:
        call()
    except ModelError as e:
        assert (e.kind, e.status) == (kind, status) and text in str(e), (e.kind, e.status, e)
    else:
        raise AssertionError("no error")

refused(lambda: model.nodes(["nobody"]), "unknown_node", 404, "nobody")
refused(lambda: model.new_nodes([{"id": "n", "features": [1.0]}]), "request", 400, "1 features")
refused(lambda: model.scores([{"source": "1", "target": "2"}]), "request", 400, "links")
refused(lambda: model.nodes([str(i) for i in range(50)]), "too_large", 413, "at most 20")
refused(lambda: Client(url).model(), "unauthorized", 401, "token")
try:
    Client("localhost:7800")
except ValueError as e:
    assert "address" in str(e)
else:
    raise AssertionError("an address without a scheme")
try:
    Client("http://127.0.0.1:9", timeout=2).healthz()
except OSError:
    pass
else:
    raise AssertionError("nobody listens there")

failed = []
def ask(i):
    try:
        for k in range(20):
            got = model.nodes([str(i * 20 + k)])
            assert got["answers"][0]["id"] == str(i * 20 + k)
    except BaseException as e:
        failed.append(e)
threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not failed, failed
print(json.dumps(a))
`

// The client asks a real server with Python's own library: all calls, refusals with their kinds, a token, and threads.
func TestClientAsksAServer(t *testing.T) {
	python := testneed.PythonWith(t, "http.client")
	ds, err := datasets.Load("planted?nodes=500&features=8&classes=4")
	if err != nil {
		t.Fatal(err)
	}
	var o gnb.TrainOptions
	o.Workers, o.Threads, o.Hidden, o.Layers, o.Epochs, o.Quiet, o.RunDir = 1, 1, 16, 2, 1, true, filepath.Join(t.TempDir(), "run")
	run, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := predict.Open(t.Context(), run, ds, predict.Options{Threads: 1, Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := answer.New(p, answer.Options{Token: "secret", MaxNodes: 20})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	out, err := ask(t, python, script, h.URL)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := p.Nodes(t.Context(), "7", "99")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Answers []struct {
			Class       string
			Probability float64
		}
	}
	if err := json.Unmarshal(out, &got); err != nil || len(got.Answers) != 2 {
		t.Fatalf("%s: %v", out, err)
	}
	for i, a := range got.Answers {
		if class, probability := want.Class(i); a.Class != class || float32(a.Probability) != float32(probability) {
			t.Errorf("answer %d is %+v, want %s %v", i, a, class, probability)
		}
	}
	// Each call of the document has a method.
	text, err := pyclient.Module(answer.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(answer.OpenAPI(), &d); err != nil {
		t.Fatal(err)
	}
	for path, methods := range d.Paths {
		for method := range methods {
			if call := "(" + strings.ToUpper(method) + " " + path + ")"; !strings.Contains(text, call) {
				t.Errorf("the client has no call %s", call)
			}
		}
	}
}

const interrupted = `
import http.client, sys
from model_client import Client

def interrupt(*_):
    raise KeyboardInterrupt

answers = http.client.HTTPConnection.getresponse
model = Client(sys.argv[1])
# The first call of the thread is interrupted, and one on a connection that has been used.
for call in [model.healthz, lambda: model.nodes(["7"])]:
    http.client.HTTPConnection.getresponse = interrupt
    try:
        call()
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("no interrupt")
    http.client.HTTPConnection.getresponse = answers
    assert call() is not None
model.close()
`

// After Ctrl-C during a wait for an answer, the client makes the next call on another connection.
func TestClientAfterAnInterrupt(t *testing.T) {
	python := testneed.PythonWith(t, "http.client")
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer h.Close()
	if out, err := ask(t, python, interrupted, h.URL); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// ask runs a script beside the client of the server's document. The output is the script's if it succeeds, else what Python says.
func ask(t *testing.T, python, script, url string) ([]byte, error) {
	t.Helper()
	text, err := pyclient.Module(answer.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"model_client.py": text, "ask.py": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(python, "-W", "error", "ask.py", url)
	c.Dir = dir
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return []byte(stderr.String()), err
	}
	return out, nil
}

// A call that a document gets has a method; names that are words of Python are written otherwise, and what no client can do is refused.
func TestModule(t *testing.T) {
	text, err := pyclient.Module([]byte(`{"info": {"title": "T"}, "paths": {"/v1/edges/{id}": {"post": {"operationId": "addEdges", "summary": "adds edges",
		"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}, {"name": "from", "in": "query", "schema": {"type": "integer"}}],
		"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Edges"}}}},
		"responses": {"200": {"content": {"application/json": {"schema": {"type": "object", "additionalProperties": {"type": ["number", "null"]}}}}}}}}},
		"components": {"schemas": {"Edges": {"type": "object", "required": ["class"], "properties": {"class": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/components/schemas/Edges"}}]}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"def add_edges(self, id: str, class_: str | list[Edges], from_: int | None = None) -> dict[str, float | None]:",
		`self._ask("POST", "/v1/edges/" + urllib.parse.quote(str(id), safe="") + "", _some({"from": from_}), _some({"class": class_}))`,
		`"class": "str | list[Edges]"`, "ErrorKind = str\n", "Adds edges (POST /v1/edges/{id}).",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the module has no\n%s\n%s", want, text)
		}
	}
	for bad, want := range map[string]string{
		`{`:                              "OpenAPI document",
		`{"paths": {"/x": {"get": {}}}}`: "operationId",
		`{"paths": {"/x": {"get": {"operationId": "x", "parameters": [{"name": "h", "in": "header"}]}}}}`: "header",
		`{"components": {"schemas": {"A": {"type": "blob"}}}}`:                                            "blob",
		`{"components": {"schemas": {"A": {"$ref": "#/components/schemas/B"}}}}`:                          "refers to",
	} {
		if _, err := pyclient.Module([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bad, err, want)
		}
	}
}
