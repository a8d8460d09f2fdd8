package plan

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/machine"
)

// A run whose GPUs have much memory passes, one that is near the limit gets a warning, and one that certainly does not fit an
// error, with the sizes.
func TestCheckOfGPUs(t *testing.T) {
	j := job(t)
	j.GPU, j.Eval = true, "none"
	p, err := Make(ForGPU(t.Context(), 1<<40), j)
	if err != nil || p.GPU.Fit != "fits" || p.GPU.Graph != onTheGPU || p.GPU.Features != onTheGPU || p.StepSeconds != 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	need := int64(0)
	for _, i := range p.GPU.Parts {
		if i.Name != gapsItem && i.Name != "workspace of matrix products" {
			need += i.Bytes
		}
	}
	for _, c := range []struct {
		times float64
		want  string
	}{{3, ""}, {1.06, "warning"}, {0.6, "error"}} {
		free := int64(c.times * float64(need) * 16 / 15) // a fifteenth more is for products
		warning, err := j.fits(ForGPU(t.Context(), free*20/19), machine.Memory{Free: 1 << 40, Total: 1 << 40})
		got := ""
		switch {
		case err != nil:
			got, warning = "error", err.Error()
		case warning != "":
			got = "warning"
		}
		if got != c.want {
			t.Errorf("with %.2f of what it needs: %q, want %q", c.times, warning, c.want)
		}
		if got != "" && (!strings.Contains(warning, "of each worker's GPU (") || !strings.Contains(warning, "are free there, of which a worker takes up to ") || !strings.Contains(warning, "GNB_CUDA_FEATURES=pinned")) {
			t.Errorf("%q lacks the sizes or the advice", warning)
		}
	}
}

// Where a GPU has no room for the dataset it stays on the host, and the environment decides before that.
func TestPlacesOnGPUs(t *testing.T) {
	j := job(t)
	j.GPU = true
	graph := 8*int64(j.Data.Nodes()+1) + 4*j.Data.Edges()
	features := int64(j.Data.Nodes()) * rowBytes(j.Data)
	for _, c := range []struct {
		limit, pin      int64
		env             [2]string
		graph, features string
	}{
		{4 * (graph + features), 1 << 40, [2]string{}, onTheGPU, onTheGPU},
		{2*graph + features, 1 << 40, [2]string{}, onTheGPU, "cached"},
		{2*graph + features, 0, [2]string{}, onTheGPU, onTheHost},
		{graph, 1 << 40, [2]string{}, "pinned", "cached"},
		{graph, 0, [2]string{}, onTheHost, onTheHost},
		{4 * (graph + features), 1 << 40, [2]string{"staged", "pinned"}, onTheHost, "pinned"},
	} {
		t.Setenv("GNB_CUDA_GRAPH", c.env[0])
		t.Setenv("GNB_CUDA_FEATURES", c.env[1])
		g := GPU{Limit: c.limit}
		if j.place(&g, c.pin); g.Graph != c.graph || g.Features != c.features {
			t.Errorf("%+v: the graph is placed %q and the features %q", c, g.Graph, g.Features)
		}
		if (g.Graph == onTheGPU) != (g.graph > 0) || (g.Features == onTheGPU || g.Features == "cached") != (g.features > 0) {
			t.Errorf("%+v: %d bytes of the graph and %d of the features are on the GPU", c, g.graph, g.features)
		}
	}
}

// What only the host samples takes no sampler on the GPU.
func TestSamplersOnGPUs(t *testing.T) {
	j := job(t)
	for name, c := range map[string]struct {
		change func(j *Job)
		there  bool
	}{
		"uniform":       {func(*Job) {}, true},
		"weighted":      {func(j *Job) { j.Picker = sample.Weighted{Fanouts: sample.Fanouts{3}} }, true},
		"labor":         {func(j *Job) { j.Picker = sample.Labor{Fanouts: sample.Fanouts{3}} }, true},
		"poisson":       {func(j *Job) { j.Picker = sample.Labor{Fanouts: sample.Fanouts{3}, Poisson: true} }, false},
		"by relation":   {func(j *Job) { j.Picker = &sample.RelationFanouts{} }, false},
		"cooperative":   {func(j *Job) { j.Workers, j.Cooperative = 2, true }, false},
		"graph on host": {func(j *Job) { j.at.Graph = onTheHost }, false},
	} {
		k := j
		c.change(&k)
		if s, _ := k.gpuSampler(true); (s != nil) != c.there {
			t.Errorf("%s: a sampler on the GPU is %v", name, s)
		}
	}
}
