package flight_test

import (
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/flight"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

//go:embed testdata/client.py
var clientProgram string

// Arrow's own Python library reads the tables, queries them in DuckDB, and sends them back, with the commands of
// docs/serve.md.
func TestPython(t *testing.T) {
	python := testneed.PythonWith(t, "pyarrow.flight, duckdb")
	ds := graph(t, 900)
	ds.Labels[5] = -1
	dir := t.TempDir()
	addr, _ := start(t, ds, serve.Options{Token: "secret"}, flight.Options{TakeIn: dir, EndpointBytes: 10_000})
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "serve.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(clientProgram, "\n") { // the page shows the lines of the program
		if strings.HasSuffix(line, "  # docs") && !strings.Contains(string(page), strings.TrimSpace(strings.TrimSuffix(line, "  # docs"))) {
			t.Errorf("docs/serve.md lacks %q", line)
		}
	}
	cmd := exec.Command(python, "-c", clientProgram, addr)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var got struct {
		Nodes, Edges, Train, Features, Null int
		Sum                                 float64
		Slice                               []int
		Hub                                 []int
		Token, Range                        string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sum := 0.0
	for _, x := range ds.Features.F32 {
		sum += float64(x)
	}
	if got.Nodes != 900 || got.Edges != int(ds.Edges()) || got.Train != len(ds.Splits["train"]) || got.Features != 12 || got.Null != 1 || got.Sum < sum-1e-3 || got.Sum > sum+1e-3 {
		t.Errorf("Python has %+v; the features' sum is %v", got, sum)
	}
	if len(got.Slice) != 90 || got.Slice[0] != 10 || got.Slice[89] != 99 {
		t.Errorf("the slice is %v", got.Slice)
	}
	degrees := ds.Graph.InDegrees()
	if most := slices.Max(degrees); len(got.Hub) != 2 || got.Hub[1] != int(most) || degrees[got.Hub[0]] != most {
		t.Errorf("DuckDB's node of the most in-edges is %v; it has %d", got.Hub, most)
	}
	if !strings.Contains(got.Token, "no token") || !strings.Contains(got.Range, "the range 0 to 901") {
		t.Errorf("the refusals are %q and %q", got.Token, got.Range)
	}
	copied, err := dataset.Open(filepath.Join(dir, "copy"))
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	n1, e1 := wanted(ds, allNodes(ds))
	n2, e2 := wanted(copied, allNodes(copied))
	same(t, "nodes from Python", n2, n1)
	same(t, "edges from Python", e2, e1)
}
