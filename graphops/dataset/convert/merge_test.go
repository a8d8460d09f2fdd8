package convert

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// Every reader merges equal edges before weights that are all 1 are dropped, and says how many it merged.
func TestMergeFirst(t *testing.T) {
	ids := []int64{0, 0, 0, 1, 1, 1, 1, 2} // 0→1 three times, 1→2 once
	ones := []float64{1, 1, 1, 1}
	for name, src := range map[string]func(t *testing.T) string{
		"edgelist": func(t *testing.T) string { return one(t, "g.txt", "0 1 1\n0 1 1\n0 1 1\n1 2 1\n") },
		"dimacs":   func(t *testing.T) string { return one(t, "g.gr", "p sp 3 4\na 1 2 1\na 1 2 1\na 1 2 1\na 2 3 1\n") },
		"csv": func(t *testing.T) string {
			return putFile(t, map[string]string{"nodes.csv": "id,f\na,1\nb,2\nc,3\n", "edges.csv": "source,target,weight\na,b,1\na,b,1\na,b,1\nb,c,1\n"})
		},
		"numpy": func(t *testing.T) string {
			return putFile(t, map[string]string{"edge_index.npy": npyFile("<i8", "2, 4", ids), "edge_weight.npy": npyFile("<f8", "4,", ones)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			d, _ := converted(t, src(t), Options{Note: func(s string) { notes = append(notes, s) }})
			if !slices.Equal(d.Graph.EdgeWeights, []float32{3, 1}) {
				t.Errorf("the weights are %v, want 3 and 1", d.Graph.EdgeWeights)
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, "merged 2 of 4 edges into an earlier equal one") {
				t.Errorf("the notes are %q", all)
			}
		})
	}
	t.Run("memory", func(t *testing.T) {
		dst := filepath.Join(t.TempDir(), "d")
		_, err := WriteTables(t.Context(), dst, Tables{Nodes: 3, Src: []int32{0, 0, 0, 1}, Dst: []int32{1, 1, 1, 2}, Weights: []float32{1, 1, 1, 1}}, Options{Name: "d"})
		if err != nil {
			t.Fatal(err)
		}
		d, err := dataset.Open(dst)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if !slices.Equal(d.Graph.EdgeWeights, []float32{3, 1}) {
			t.Errorf("the weights are %v, want 3 and 1", d.Graph.EdgeWeights)
		}
	})
}

// The count of repeats is that of rows: of an undirected graph, a pair in both directions is listed once too often.
func TestMergedCount(t *testing.T) {
	for _, c := range []struct {
		name, rows string
		undirected bool
		want       string
	}{
		{"none", "0 1\n1 2\n", false, ""},
		{"directed", "0 1\n1 0\n0 1\n", false, "merged 1 of 3 edges into an earlier equal one: each is kept once"},
		{"undirected", "0 1\n1 0\n0 1\n2 2\n2 2\n", true, "merged 3 of 5 edges into an earlier equal one or its reverse"},
		{"weights", "0 1 2\n0 1 3\n", false, "their weights are added"},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := ""
			converted(t, one(t, "g.txt", c.rows), Options{Undirected: c.undirected, Note: func(s string) { said += fmt.Sprintln(s) }})
			if c.want == "" && strings.Contains(said, "merged") || !strings.Contains(said, c.want) {
				t.Errorf("said %q, want %q", said, c.want)
			}
		})
	}
}
