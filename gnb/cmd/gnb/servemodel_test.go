package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// gnb serve-model answers for the dataset that its run was trained on, by the last run after a reload, and ends with status 0.
func TestServeModel(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	dir := t.TempDir()
	result(t, dir, "data", "generate", "planted?nodes=300&features=8", "d")
	_, first := result(t, dir, "train", "d", "--epochs", "1", "--workers", "1", "--seed", "1")
	s, err := beginCommand(t, dir, "serve-model", "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, map[string]any) {
		r, err := http.Get(s.address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		data, _ := io.ReadAll(r.Body)
		var v map[string]any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatalf("%s: %q: %v", path, data, err)
		}
		return r.StatusCode, v
	}
	status, before := get("/v1/nodes?id=17")
	if status != 200 || before["kind"] != "classes" {
		t.Fatalf("status %d, %v", status, before)
	}
	if status, got := get("/v1/nodes?id=1700"); status != 404 || !strings.Contains(got["error"].(string), "1700") {
		t.Errorf("an unknown node: status %d, %v", status, got)
	}
	_, second := result(t, dir, "train", "d", "--epochs", "2", "--workers", "1", "--seed", "2")
	if r, err := http.Post(s.address+"/v1/reload", "", nil); err != nil || r.StatusCode != 200 {
		t.Fatalf("a reload: %v, %v", r, err)
	}
	if _, after := get("/v1/nodes?id=17"); after["answers"].([]any)[0].(map[string]any)["probability"] == before["answers"].([]any)[0].(map[string]any)["probability"] {
		t.Errorf("runs %v and %v answer alike", first["run"], second["run"])
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for s.out.Scan() {
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, s.stderr.String())
	}
}
