package answer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/predict"
)

// An addition that could not be written is written before the next one, and leaves nothing behind in the file.
func TestAdditionsThatAreNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "additions")
	of := header{1, "x", 10, 20}
	var l log
	if err := l.open(path, of); err != nil {
		t.Fatal(err)
	}
	good := l.file
	bad, err := os.Open(path) // for reading
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	node := func(id string) predict.Additions { return predict.Additions{Nodes: []predict.Node{{ID: id}}} }
	l.file, l.all = bad, append(l.all, node("first"))
	if err := l.save(); err == nil || l.saved != 0 {
		t.Fatalf("written into a file for reading: %d, %v", l.saved, err)
	}
	l.file, l.all = good, append(l.all, node("second"))
	if err := l.save(); err != nil || l.saved != 2 {
		t.Fatal(l.saved, err)
	}
	if err := good.Close(); err != nil {
		t.Fatal(err)
	}
	// What a killed server was writing is left out; a line that lacks its end alone is not.
	for _, tail := range []string{"", `{"nodes": [{"id": "to`, `{"nodes":[{"id":"third"}]}`} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(text, tail...), 0o600); err != nil {
			t.Fatal(err)
		}
		var again log
		if err := again.open(path, of); err != nil {
			t.Fatal(err)
		}
		_ = again.file.Close()
		want := 2
		if strings.HasSuffix(tail, "}") {
			want = 3
		}
		if left, err := os.ReadFile(path); err != nil || len(again.all) != want || again.saved != want || again.all[0].Nodes[0].ID != "first" || !strings.HasSuffix(string(left), "}\n") || strings.Count(string(left), "\n") != want+1 {
			t.Errorf("after %q: %d additions, and the file %q, %v", tail, len(again.all), left, err)
		}
	}
}
