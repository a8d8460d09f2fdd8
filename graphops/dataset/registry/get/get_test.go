package get

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/filelock"
	"github.com/graphnb/graphnb/internal/testneed"
)

// edges is a path of five nodes as an edge list.
const edges = "# a path\n0 1\n1 2\n2 3\n3 4\n"

// published returns a dataset of one file on its own test server.
func published(t *testing.T, content []byte, serve http.HandlerFunc) (registry.Entry, *atomic.Int32) {
	t.Helper()
	t.Setenv("GNB_HOME", t.TempDir())
	t.Setenv("GNB_DATA", "")
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		serve(w, r)
	}))
	t.Cleanup(s.Close)
	h := sha256.Sum256(content)
	return registry.Entry{
		Name: "path", Summary: "a path", Metric: "accuracy", Homepage: "https://example.org", Licence: "CC0-1.0", Citation: "nobody",
		Folder: "paths", Format: "edgelist", Undirected: true, Known: []registry.Accuracy{{Model: "GCN", Value: 50, Source: "nobody"}},
		Files: []registry.File{{Name: "path.txt", URL: s.URL + "/path.txt", Size: int64(len(content)), SHA256: hex.EncodeToString(h[:]), MaxSize: 1 << 20}},
	}, &asked
}

func serveBytes(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

var quick = Options{stall: 5 * time.Second, backoff: time.Millisecond}

func TestGet(t *testing.T) {
	e, asked := published(t, []byte(edges), serveBytes([]byte(edges)))
	o := quick
	stages := map[string]bool{}
	o.Progress = func(p Progress) { stages[p.Stage] = true }
	for range 2 {
		dir, err := Get(t.Context(), e, o)
		if err != nil {
			t.Fatal(err)
		}
		d, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if d.Name() != "path" || d.Nodes() != 5 || d.Edges() != 8 || d.Meta.Licence != "CC0-1.0" || d.Metric() != "accuracy" ||
			len(d.Meta.KnownAccuracies) != 1 || !strings.HasPrefix(d.Meta.Source, "https://example.org; converted from") {
			t.Errorf("got %s: %+v", d, d.Meta)
		}
		if err := d.Check(t.Context()); err != nil {
			t.Error(err)
		}
		_ = d.Close()
	}
	if asked.Load() != 1 || !stages["download"] || !stages["convert"] || !stages["build"] || !stages["check"] || !stages["write"] {
		t.Errorf("the server got %d requests, stages %v", asked.Load(), stages)
	}
	// Only the dataset and the downloaded file are left.
	var left []string
	home := os.Getenv("GNB_HOME")
	_ = filepath.WalkDir(home, func(path string, d fs.DirEntry, _ error) error {
		if rel, _ := filepath.Rel(home, path); !d.IsDir() {
			left = append(left, rel)
		}
		return nil
	})
	want := []string{"datasets/path/indices.npy", "datasets/path/indptr.npy", "datasets/path/metadata.json", "raw/path/path.txt"}
	if !slices.Equal(left, want) {
		t.Errorf("left: %v", left)
	}
}

// Without a network, the error says which file to put where; with the file in place, the next
// attempt succeeds.
func TestGetWithoutNetwork(t *testing.T) {
	e, _ := published(t, []byte(edges), serveBytes(nil))
	e.Files[0].URL = "http://127.0.0.1:1/path.txt" // no server listens on this port
	raw, _ := e.RawDir()
	_, err := Get(t.Context(), e, quick)
	want := filepath.Join(raw, "path.txt")
	if err == nil || !strings.Contains(err.Error(), "put "+want+" there yourself (from http://127.0.0.1:1/path.txt)") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
	if err := os.WriteFile(want, []byte(edges), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), e, quick); err != nil {
		t.Error(err)
	}
}

func TestGetFromData(t *testing.T) {
	e, asked := published(t, []byte(edges), serveBytes(nil))
	data := t.TempDir()
	t.Setenv("GNB_DATA", data)
	path := filepath.Join(data, "paths", "path.txt")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(edges, "3 4", "3 3", 1)
	if err := os.WriteFile(path, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), e, quick); err == nil || !strings.Contains(err.Error(), "the SHA-256 of "+path) {
		t.Errorf("a downloaded file with other contents gave %v", err)
	}
	if err := os.WriteFile(path, []byte(edges), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), e, quick); err != nil || asked.Load() != 0 {
		t.Errorf("got %v; the server got %d requests", err, asked.Load())
	}
}

func TestGetFails(t *testing.T) {
	bad := []byte("0 1\n1 x\n")
	for _, c := range []struct {
		name    string
		content []byte
		serve   http.HandlerFunc
		want    string
	}{
		{"wrong bytes", []byte(edges), serveBytes([]byte(strings.Replace(edges, "3", "4", 1))), "the SHA-256 of"},
		{"not found", []byte(edges), http.NotFound, "404"},
		{"a file that cannot be converted", bad, serveBytes(bad), "path.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, _ := published(t, c.content, c.serve)
			_, err := Get(t.Context(), e, quick)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "dataset: getting path: ") {
				t.Errorf("got %v; want %q", err, c.want)
			}
			dir, _ := e.Dir()
			entries, _ := os.ReadDir(filepath.Dir(dir))
			if len(entries) != 0 {
				t.Errorf("left: %v", entries)
			}
		})
	}
}

func TestGetWaitsForAnotherProcess(t *testing.T) {
	e, _ := published(t, []byte(edges), serveBytes([]byte(edges)))
	raw, _ := e.RawDir()
	if err := os.MkdirAll(raw, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := filelock.Lock(raw)
	if errors.Is(err, filelock.ErrNoLocks) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := quick
	ctx, cancel := context.WithCancel(t.Context())
	o.Note = func(text string) {
		if strings.Contains(text, "another process") {
			cancel()
		}
	}
	if _, err := Get(ctx, e, o); !errors.Is(err, context.Canceled) {
		t.Errorf("Get while another process holds the lock gave %v", err)
	}
	o.Note = func(text string) {
		if strings.Contains(text, "another process") {
			_ = lock.Close()
		}
	}
	if _, err := Get(t.Context(), e, o); err != nil {
		t.Errorf("Get after the lock was released gave %v", err)
	}
}

func TestLoad(t *testing.T) {
	t.Setenv("GNB_HOME", t.TempDir())
	if d, err := Load(t.Context(), "karate", Options{}); err != nil || d.Name() != "karate" {
		t.Errorf("%v, %v", d, err)
	}
	data := testneed.DataDir()
	for _, c := range []struct {
		name, file string
		nodes      int
		edges      int64
	}{
		{"cora", "planetoid/ind.cora.x", 2708, 10556},
		{"amazon_cs", "shchur/amazon_cs.npz", 13752, 491722},
		{"tolokers", "heterophilous/tolokers.npz", 11758, 1038000},
	} {
		t.Run(c.name, func(t *testing.T) {
			testneed.RealData(t, c.file)
			t.Setenv("GNB_DATA", data)
			d, err := Load(t.Context(), c.name, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			e, _ := registry.Find(c.name)
			if d.Name() != c.name || d.Nodes() != c.nodes || d.Edges() != c.edges || d.FeatureDim() != e.Features || d.Classes() != e.Classes ||
				d.Metric() != e.Metric || d.Nodes() != e.Nodes || d.Edges() != e.Edges || len(d.Meta.KnownAccuracies) == 0 {
				t.Errorf("got %s: %+v", d, d.Meta)
			}
			again, err := datasets.Load(c.name)
			if err != nil {
				t.Fatal(err)
			}
			_ = again.Close()
		})
	}
}
