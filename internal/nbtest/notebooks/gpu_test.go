package notebooks_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
	"github.com/graphnb/graphnb/internal/nvmlstat/fakenvml"
)

// The notebook about GPUs runs without one, too: its runs are on the CPU, and the monitor shows the GPU that a library in
// NVML's shape makes up. Its saved outputs are those of a real GPU.
func TestGPUNotebook(t *testing.T) {
	lib := fakenvml.Build(t)
	lib.Say("gpus 1")
	env := nbtest.Setup(t)
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/gpu.ipynb", nbtest.Options{Dir: dir, Env: append(lib.Env(), "GNB_SMALL=1", "GNB_RUNS="+filepath.Join(dir, "runs"))})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]float64{"accuracy": 35, "accuracy with bf16": 35, "accuracy of the residual model": 35} {
		if a := percent(t, r, name); a < least {
			t.Errorf("%s: %v %%", name, a)
		}
	}
	for _, want := range []string{
		`GPU 0: NVIDIA Fake 0, \d+ GiB`, `cpu +[\d.]+ ms a step of 1000 seeds`, `auto +[\d.]+ ms a step`, `GPU 0: \d+ processes, [\d.]+ GiB in use`,
	} {
		if !regexp.MustCompile(want).MatchString(r.Stdout()) {
			t.Errorf("the cells did not write %q:\n%s", want, r.Stdout())
		}
	}
}
