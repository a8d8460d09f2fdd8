package report

import (
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/phrase"

	"gonum.org/v1/gonum/mat"
)

// ProjectOptions configure [Project]. The zero value is a good default.
type ProjectOptions struct {
	Title string  // "" means the dataset's name
	Nodes []int32 // the nodes to project; nil means all
	Quiet bool    // show nothing in a cell
}

// Projection is the result of [Project].
type Projection struct {
	Nodes []int32
	// X and Y are the first two principal components of each of Nodes, in the order of Nodes.
	X, Y []float64
	// Explained is the share of the rows' variance along each of the two.
	Explained [2]float64

	title  string
	groups []int
	names  []string
}

// fitRows is the number of rows from which components are computed; of more, every k-th.
const fitRows = 50_000

// Project computes the first two principal components of rows [nodes, columns], such as a hidden layer's output
// ([gnb.InferOptions].Layer) or the features, and shows them in the current cell as points coloured by class. Components
// come from at most 50,000 rows, evenly spaced, by the eigenvectors of their covariance; the element of each vector with
// the largest magnitude is positive, so the result has no arbitrary sign. Time: rows · columns².
//
// Source: K. Pearson, "On lines and planes of closest fit to systems of points in space", Philosophical Magazine 2 (1901),
// doi:10.1080/14786440109462720.
func Project(rows *dataset.Matrix, ds *dataset.Dataset, o ProjectOptions) (*Projection, error) {
	switch {
	case rows == nil || ds == nil:
		return nil, errors.New("report: Project needs rows (gnb.Infer, Logits) and the dataset of their nodes")
	case rows.Rows != ds.Nodes():
		return nil, fmt.Errorf("report: there are %s and %s has %d nodes; they belong to different graphs", phrase.Count(rows.Rows, "row"), ds.Name(), ds.Nodes())
	case rows.Cols < 2:
		return nil, fmt.Errorf("report: the rows have %s; a projection to two components needs two columns or more", phrase.Count(rows.Cols, "column"))
	}
	p := &Projection{Nodes: o.Nodes, title: o.Title}
	if p.title == "" {
		p.title = ds.Name()
	}
	if p.Nodes == nil {
		p.Nodes = make([]int32, ds.Nodes())
		for v := range p.Nodes {
			p.Nodes[v] = int32(v)
		}
	}
	if len(p.Nodes) < 2 {
		return nil, fmt.Errorf("report: a projection needs two nodes or more, and there is %s", phrase.Count(len(p.Nodes), "node"))
	}
	for _, v := range p.Nodes {
		if v < 0 || int(v) >= ds.Nodes() {
			return nil, fmt.Errorf("report: ProjectOptions.Nodes has node %d, and %s has the nodes 0 to %d", v, ds.Name(), ds.Nodes()-1)
		}
	}
	if err := p.fit(rows.Float32()); err != nil {
		return nil, err
	}
	if ds.Labels != nil {
		for _, v := range p.Nodes {
			p.groups = append(p.groups, int(ds.Labels[v]))
		}
		p.names = ds.Meta.ClassNames
	}
	if o.Quiet {
		return p, nil
	}
	return p, p.Show()
}

// fit computes the components.
func (p *Projection) fit(rows *dataset.Matrix) error {
	step := max(1, (len(p.Nodes)+fitRows-1)/fitRows)
	cols := rows.Cols
	mean, count := make([]float64, cols), 0.0
	for i := 0; i < len(p.Nodes); i += step {
		for c, x := range rows.Row(int(p.Nodes[i])) {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return fmt.Errorf("report: row %d is not finite in column %d", p.Nodes[i], c)
			}
			mean[c] += float64(x)
		}
		count++
	}
	for c := range mean {
		mean[c] /= count
	}
	cov := mat.NewSymDense(cols, nil)
	const chunk = 2048
	data := make([]float64, 0, chunk*cols)
	add := func() {
		if len(data) > 0 {
			var part mat.SymDense
			part.SymOuterK(1, mat.NewDense(len(data)/cols, cols, data).T())
			cov.AddSym(cov, &part)
			data = data[:0]
		}
	}
	for i := 0; i < len(p.Nodes); i += step {
		for c, x := range rows.Row(int(p.Nodes[i])) {
			data = append(data, float64(x)-mean[c])
		}
		if len(data) == cap(data) {
			add()
		}
	}
	add()
	var eigen mat.EigenSym
	if !eigen.Factorize(cov, true) {
		return errors.New("report: the components could not be computed; the rows hold numbers too large for float64 sums of squares")
	}
	values := eigen.Values(nil) // ascending
	total := 0.0
	for _, v := range values {
		total += max(v, 0)
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	axes := [2][]float64{}
	for k := range axes {
		at := cols - 1 - k
		axes[k] = mat.Col(nil, at, &vectors)
		if total > 0 {
			p.Explained[k] = max(values[at], 0) / total
		}
		most := 0.0
		for _, x := range axes[k] {
			if math.Abs(x) > math.Abs(most) {
				most = x
			}
		}
		if most < 0 {
			for c := range axes[k] {
				axes[k][c] = -axes[k][c]
			}
		}
	}
	for _, v := range p.Nodes {
		x, y := 0.0, 0.0
		for c, e := range rows.Row(int(v)) {
			d := float64(e) - mean[c]
			x, y = x+d*axes[0][c], y+d*axes[1][c]
		}
		p.X, p.Y = append(p.X, x), append(p.Y, y)
	}
	return nil
}

// Figure returns the projection as a picture: nodes as points coloured by class, those without a label faint.
func (p *Projection) Figure() *figure.Figure {
	return figure.New(p.title).Note(p.note()).Scatter(figure.Scatter{
		Title: fmt.Sprintf("second component, %.0f %% of the variance", 100*p.Explained[1]),
		X:     p.X, Y: p.Y, Group: p.groups, Names: p.names,
		XLabel: fmt.Sprintf("first component, %.0f %%", 100*p.Explained[0]),
	})
}

func (p *Projection) note() string {
	return fmt.Sprintf("%s, principal components", phrase.Count(len(p.Nodes), "node"))
}

// Show shows the picture in the current cell; outside a notebook it does nothing.
func (p *Projection) Show() error { return p.Figure().Show() }

// String describes the projection in a line.
func (p *Projection) String() string {
	return phrase.Clean(fmt.Sprintf("%s: %s; the first two explain %.0f and %.0f %% of the variance", p.title, p.note(), 100*p.Explained[0], 100*p.Explained[1]))
}
