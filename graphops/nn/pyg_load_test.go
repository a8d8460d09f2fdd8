//go:build fixtures

package nn

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/expect"
)

// pygPython returns a Python with torch and torch_geometric: FIXTURES_PYTHON, or the one that
// scripts/fixtures.sh installed. Only the tests under this build tag need these packages, which
// take 1 GB.
func pygPython(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("FIXTURES_PYTHON"); p != "" {
		return p
	}
	p, err := filepath.Abs("../../build/fixtures/bin/python3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("%s is not there; make fixtures makes it, or set FIXTURES_PYTHON to a Python with torch_geometric", p)
	}
	return p
}

// Weights trained here load into PyG with the same names and shapes and predict the same classes
// there.
func TestPyGLoadsOurWeights(t *testing.T) {
	t.Parallel()
	python := pygPython(t)
	const n, in, out = 120, 6, 4
	g, x := planted(t, n), expect.Normal(n*in, 1)
	labels, dst := make([]int32, n), []int32{}
	for v := range labels {
		labels[v] = int32(Argmax(x[v*in : v*in+out]))
		for range g.InDegree(int32(v)) {
			dst = append(dst, int32(v))
		}
	}
	s := ModelConfig{In: in, Hidden: 16, Out: out, Layers: 2, Heads: 4}
	batch, layer := s, s
	batch.Norm, layer.Norm = "batch", "layer"
	models := map[string]Model{"sage": NewSAGEModel(batch), "gcn": NewGCNModel(layer), "gat": NewGATModel(s), "gin": NewGINModel(batch)}
	dir, want, near := t.TempDir(), map[string][]int32{}, map[string][]bool{}
	f := NewFwd(Config{})
	for name, m := range models {
		p := mustCollect(t, m)
		p.Init(3)
		adam := optim.NewAdam(optim.AdamOptions{LR: 0.01})
		blocks := FullGraph(g, 2)
		for step := range 30 {
			f.Reset(Config{Train: true, Step: step})
			l := CrossEntropy(Forward(m, f, blocks, f.Input(n, in, x, &Space{})), labels)
			p.ZeroGrad()
			l.Backward()
			adam.Step(p.Flat(), p.Grad(), 1/float32(l.Weight))
		}
		f.Reset(Config{})
		y := Forward(m, f, blocks, f.Input(n, in, x, &Space{})).Data()
		for r := range n {
			row := y[r*out : (r+1)*out]
			best := Argmax(row)
			want[name] = append(want[name], int32(best))
			tie := false // if logits are closer than rounding, either class is right
			for c, v := range row {
				tie = tie || c != best && row[best]-v < 1e-4
			}
			near[name] = append(near[name], tie)
		}
		var ts []safetensors.Tensor
		for _, e := range p.List() {
			ts = append(ts, safetensors.Tensor{Name: e.Name, Shape: e.Shape(), F32: e.W})
		}
		if err := safetensors.WriteFile(filepath.Join(dir, name+".safetensors"), ts, nil); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(map[string]any{"nodes": n, "in": in, "src": g.Indices, "dst": dst, "x": x})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "graph.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-W", "ignore", "testdata/pyg_load.py", dir)
	cmd.Stderr = os.Stderr
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("pyg_load.py: %v", err)
	}
	var got map[string][]int32
	if err := json.Unmarshal(said, &got); err != nil {
		t.Fatal(err)
	}
	for name := range models {
		for v, c := range want[name] {
			if len(got[name]) != n || got[name][v] != c && !near[name][v] {
				t.Errorf("%s: PyG predicts %v, we predict %v", name, got[name], want[name])
				break
			}
		}
	}
}
