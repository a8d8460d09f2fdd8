package nn

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/graphnb/graphnb/internal/expect"
)

// golden is testdata/pytorch.json, written by testdata/pytorch.py: results of PyTorch and PyTorch
// Geometric.
type golden struct {
	Layers map[string]struct {
		Y, DX         []float64
		Params, Grads map[string]goldenTensor
	}
	Model struct {
		Y             []float64
		Loss          float64
		Labels        []int32
		Params, Grads map[string]goldenTensor
	}
}

type goldenTensor struct {
	Shape []int
	Data  []float64
}

func readGolden(t *testing.T) *golden {
	t.Helper()
	raw, err := os.ReadFile("testdata/pytorch.json")
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{}
	if err := json.Unmarshal(raw, g); err != nil {
		t.Fatal(err)
	}
	return g
}

// pyValues returns the numbers that values of pytorch.py returns.
func pyValues(n, k int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((i*37+k*11)%29-14) / 8
	}
	return x
}

// fromPython loads parameters by their names and shapes in PyTorch.
func fromPython(t *testing.T, model any, params map[string]goldenTensor) *Params {
	t.Helper()
	p := mustCollect(t, model)
	values := map[string]Value{}
	for name, v := range params {
		data := make([]float32, len(v.Data))
		for i, x := range v.Data {
			data[i] = float32(x)
		}
		values[name] = Value{v.Shape, data}
	}
	if err := p.Load(values); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSAGEIsPyG(t *testing.T) {
	t.Parallel()
	py := readGolden(t)
	g := testGraph(t)
	n := g.NumNodes()
	for _, v := range sageVariants {
		want, ok := py.Layers[v.name]
		if !ok {
			t.Errorf("pytorch.json has no layer %q", v.name)
			continue
		}
		c := NewSAGEWith(5, 3, v.o)
		p := fromPython(t, c, want.Params)
		f := NewFwd(Config{Grad: true})
		h := f.Leaf(n, 5, pyValues(n*5, 0), nil)
		y := c.Forward(f, g.Block(), h)
		expect.Near(t, v.name, y.Data(), want.Y, 1e-5, 1e-5)
		if err := f.SumAll(f.Mul(y, f.Input(n, 3, pyValues(n*3, 5), nil))).Backward(); err != nil {
			t.Fatal(err)
		}
		for _, e := range p.List() {
			expect.Near(t, v.name+" "+e.Name, e.G, want.Grads[e.Name].Data, 1e-5, 1e-5)
		}
		if v.o.Aggr != Max {
			// PyTorch divides the gradient of equal maxima among them. Here it goes to the first,
			// so the comparison leaves out max where the graph's duplicate edge makes maxima equal.
			expect.Near(t, v.name+" input", h.Grad(), want.DX, 1e-5, 1e-5)
		}
	}
}

func TestModelIsPyG(t *testing.T) {
	t.Parallel()
	py := readGolden(t)
	g := testGraph(t)
	m := NewSAGEModel(ModelConfig{In: 5, Hidden: 4, Out: 3, Layers: 3})
	p := fromPython(t, m, py.Model.Params)
	f := NewFwd(Config{Grad: true})
	y := Forward(m, f, FullGraph(g, 3), f.Input(8, 5, pyValues(40, 0), nil))
	expect.Near(t, "output", y.Data(), py.Model.Y, 1e-4, 1e-5) // values are up to 100
	l := CrossEntropy(y, py.Model.Labels)
	expect.Near(t, "loss", l.Sum.Data(), []float64{py.Model.Loss}, 1e-4, 1e-5)
	l.Backward()
	for _, e := range p.List() {
		expect.Near(t, e.Name, e.G, py.Model.Grads[e.Name].Data, 1e-4, 1e-4)
	}
}
