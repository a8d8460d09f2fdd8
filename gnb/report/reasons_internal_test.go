package report

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// told answers questions with fixed scores, by node.
type told struct {
	nodes int
	all   map[int32]*Answer
	asked map[int32]Question
}

func (t *told) Size() (int, uint64) { return t.nodes, 7 }

func (t *told) Explain(_ context.Context, _ *runs.Run, _ *gnb.Dataset, all []Question, use func(int, *Answer) error) ([]string, error) {
	for i, q := range all {
		t.asked[q.Node] = q
		if err := use(i, t.all[q.Node]); err != nil {
			return nil, err
		}
	}
	return []string{"as told"}, nil
}

// Reasons are means over the answers of each predicted class; wrong answers are asked against the true class and right ones against the
// second, and their pulls are told apart by the labels of neighbours. By hand, of five nodes in three classes.
func TestReasonsByHand(t *testing.T) {
	// In-neighbours: 0 of 3 and 4; 1 of 0; 2 of 0 and 1; 3 of none; 4 (no label) of 0.
	g, err := graphops.FromEdges(5, []int32{3, 4, 0, 0, 1, 0}, []int32{0, 0, 1, 2, 2, 4}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ds := &dataset.Dataset{
		Graph: g, Labels: []int32{0, 1, 2, 1, -1}, Splits: map[string][]int32{"test": {0, 1, 2, 3, 4}},
		Meta: dataset.Metadata{Name: "hand", NumClasses: 3, ClassNames: []string{"a", "b", "c"}},
	}
	ds.Describe()
	logits := &dataset.Matrix{Rows: 5, Cols: 3, F32: []float32{
		1, 5, 2, // node 0 is a, and b is said
		0, 5, 2, // right: b, then c
		1, 0, 5, // right: c, then a
		3, 2, 1, // node 3 is b, and a is said
		1, 1, 1,
	}}
	of := func(x, y float64, nodes ...NodeScore) *Answer {
		return &Answer{Columns: []ColumnScore{{Name: "x", Score: x}, {Name: "y", Type: "t", Score: y}}, Nodes: nodes}
	}
	stub := &told{nodes: 9, asked: map[int32]Question{}, all: map[int32]*Answer{
		0: of(1, -4, NodeScore{0, 1}, NodeScore{3, 10}, NodeScore{4, 100}),
		1: of(3, 0.5, NodeScore{1, 2}, NodeScore{0, 20}),
		2: of(-2, 8, NodeScore{2, 4}, NodeScore{0, 40}, NodeScore{1, 400}),
	}}
	r, err := New(ds, logits, Options{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.explain(t.Context(), nil, r.nodesOf, Options{Explain: stub, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	for v, want := range map[int32]Question{0: {0, 1, 0}, 1: {1, 1, 2}, 2: {2, 2, 0}, 3: {3, 0, 1}} {
		if stub.asked[v] != want {
			t.Errorf("node %d: asked %+v, want %+v", v, stub.asked[v], want)
		}
	}
	x := r.Reasons
	if len(stub.asked) != 4 || x.Nodes != 3 || x.LeftOut != 1 || x.Seed != 7 || len(x.Classes) != 2 {
		t.Fatalf("asked %d, and %+v", len(stub.asked), x)
	}
	b := x.Classes[0] // nodes 0 and 1
	if b.Class != "b" || b.Nodes != 2 || b.Columns[0] != (ColumnReasons{"y", "t", -1.75, 2.25}) || b.Columns[1] != (ColumnReasons{"x", "", 2, 2}) {
		t.Errorf("the class b: %+v", b)
	}
	e := x.Errors
	if e.Wrong != 1 || e.Right != 2 || e.WrongDisagree != 1 || e.RightDisagree != 1 || e.Columns[0] != (ErrorColumn{"y", "t", -4, 4.25}) {
		t.Errorf("errors: %+v", e)
	}
	// Of node 0, node 3 is of the predicted class b, and node 4 has no label. Of node 1, node 0 is of a, which is neither b nor c; of
	// node 2, node 0 is of the second class a, and node 1 of b.
	want := []Pull{
		{"the node itself", 1, 3},
		{"neighbours of the predicted class", 10, 0},
		{"neighbours of the other class", 0, 20},
		{"neighbours of further classes", 0, 210},
		{"neighbours without a label", 100, 0},
	}
	for i, p := range e.From {
		if p != want[i] {
			t.Errorf("pull %d is %+v, want %+v", i, p, want[i])
		}
	}
	text := r.String()
	for _, w := range []string{"columns that matter, by 3 nodes of the split, drawn by seed 7; 1 more have too many edges around them; as told", "where errors come from", "pull to the predicted class by neighbours without a label", "t:y"} {
		if !strings.Contains(text, w) {
			t.Errorf("the text has no %q:\n%s", w, text)
		}
	}
	file := filepath.Join(t.TempDir(), "r.html")
	if err := r.WriteHTML(file); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if n := strings.Count(string(page), "<img "); err != nil || n != 2 || !strings.Contains(string(page), "where errors come from") {
		t.Errorf("the page has %d pictures, %v", n, err)
	}

	small := &told{nodes: 2, asked: map[int32]Question{}, all: stub.all}
	if err := r.explain(t.Context(), nil, r.nodesOf, Options{Explain: small, Quiet: true}); err != nil || len(small.asked) != 2 {
		t.Errorf("a sample of two: %v, %v", small.asked, err)
	}
	none := &told{nodes: 3, asked: map[int32]Question{}}
	if err := r.explain(t.Context(), nil, r.nodesOf, Options{Explain: none, Quiet: true}); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("no node explained: %v", err)
	}
	if _, err := New(ds, logits, Options{Explain: stub}); err == nil || !strings.Contains(err.Error(), "report.Of") {
		t.Errorf("explained without a run: %v", err)
	}
	if math.IsNaN(x.Errors.From[0].Wrong) {
		t.Error("not a number")
	}
}
