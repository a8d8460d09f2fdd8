package report_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Rows that vary along one direction, a little along a second one, and hardly along the others.
func TestProjectFindsTheDirections(t *testing.T) {
	const n, cols = 300, 8
	r := rand.New(rand.NewPCG(5, 6))
	var a, b [cols]float64 // orthogonal
	for c := range cols {
		a[c] = 1 / math.Sqrt(cols)
		b[c] = []float64{1, -1}[c%2] / math.Sqrt(cols)
	}
	ds := &dataset.Dataset{Graph: graph(t, n), Meta: dataset.Metadata{Name: "x", NumClasses: 2}}
	rows := &dataset.Matrix{Rows: n, Cols: cols}
	var along []float64
	for v := range n {
		x, y := 10*r.NormFloat64(), 3*r.NormFloat64()
		along = append(along, x)
		for c := range cols {
			rows.F32 = append(rows.F32, float32(100+x*a[c]+y*b[c]+0.01*r.NormFloat64()))
		}
		ds.Labels = append(ds.Labels, int32(v%3)-1)
	}
	ds.Describe()
	p, err := report.Project(rows, ds, report.ProjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Explained; e[0] < .85 || e[0] > .97 || e[0]+e[1] < .999 || e[0]+e[1] > 1+1e-9 {
		t.Errorf("the components explain %v", e)
	}
	mean := 0.0
	for _, x := range along {
		mean += x / n
	}
	for v, x := range p.X {
		if math.Abs(x-(along[v]-mean)) > 0.5 { // a has positive elements, so the sign is this one
			t.Fatalf("node %d is at %v, want about %v", v, x, along[v]-mean)
		}
	}
	if _, err := p.Figure().PNG(); err != nil {
		t.Error(err)
	}
	some, err := report.Project(rows, ds, report.ProjectOptions{Nodes: []int32{3, 1, 2}, Quiet: true})
	if err != nil || len(some.X) != 3 || !strings.Contains(some.String(), "3 nodes") {
		t.Errorf("some nodes: %v, %v", some, err)
	}
}

func TestProjectMistakes(t *testing.T) {
	ds, rows := small(t)
	try := func(rows *dataset.Matrix, ds *dataset.Dataset, o report.ProjectOptions, want string) {
		t.Helper()
		if _, err := report.Project(rows, ds, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	try(nil, ds, report.ProjectOptions{}, "needs rows")
	try(&dataset.Matrix{Rows: 3, Cols: 2, F32: make([]float32, 6)}, ds, report.ProjectOptions{}, "3 rows and small has 7 nodes")
	try(&dataset.Matrix{Rows: 7, Cols: 1, F32: make([]float32, 7)}, ds, report.ProjectOptions{}, "needs two columns")
	try(rows, ds, report.ProjectOptions{Nodes: []int32{1, 7}}, "has node 7")
	try(rows, ds, report.ProjectOptions{Nodes: []int32{1}}, "needs two nodes")
	rows.F32[4] = float32(math.Inf(1))
	try(rows, ds, report.ProjectOptions{}, "row 2 is not finite in column 0")
	// Equal rows have no direction.
	if p, err := report.Project(&dataset.Matrix{Rows: 7, Cols: 3, F32: make([]float32, 21)}, ds, report.ProjectOptions{}); err != nil || p.Explained != [2]float64{} {
		t.Errorf("equal rows: %v, %v", p, err)
	}
}
