//go:build cuda && linux && cgo

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Features in float16 stay in float16 on the device, wherever they are placed, and take half the
// memory. Losses and metrics have the same bits as those of the same numbers in float32 on the
// device, which match the CPU's (TestModels compares them for each model). This holds in sampled training and in evaluation with all
// neighbours, for models that aggregate rows first and for models that transform rows first.
func TestFloat16Features(t *testing.T) {
	testneed.NotShort(t, "it trains six times on the interpreter")
	made := load(t, "planted?nodes=300&classes=4&features=36&degree=5")
	half, err := made.Features.Float16()
	if err != nil {
		t.Fatal(err)
	}
	dirs := map[string]*gnb.Dataset{}
	for name, x := range map[string]*dataset.Matrix{"f16": half, "f32": half.Float32()} {
		d := *made
		d.Features = x
		dir := filepath.Join(t.TempDir(), name)
		if err := dataset.Write(dir, &d); err != nil {
			t.Fatal(err)
		}
		dirs[name] = load(t, dir)
	}
	if !dirs["f16"].Features.Half() || dirs["f32"].Features.Half() {
		t.Fatal("the features are not stored in the types that the test wrote")
	}
	type result struct {
		losses []float64
		val    float64
	}
	run := func(t *testing.T, model gnb.AnyModel, data, device string, env map[string]string) (r result, text string) {
		t.Helper()
		cluster(t, 1, machine{})
		for k, v := range env {
			t.Setenv(k, v)
		}
		o := gnb.TrainOptions{
			ModelOptions:     gnb.ModelOptions{Hidden: 8, Dropout: 0.5},
			SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{3, 2}},
			OptimizerOptions: gnb.OptimizerOptions{Batch: 60, Epochs: 2},
			LaunchOptions: gnb.LaunchOptions{
				Workers:         1,
				Quiet:           true,
				Device:          device,
				Resume:          gnb.Never,
				CheckpointEvery: -1,
				Events: func(e runs.Event) {
					if e.Kind == "epoch" {
						r.losses = append(r.losses, e.Loss)
					}
					text += e.Text + "\n"
				},
			},
		}
		got, err := gnb.Train(t.Context(), dirs[data], model, o)
		if err != nil {
			t.Fatal(err)
		}
		r.val = got.Value("val_accuracy")
		return r, text
	}
	for name, model := range map[string]gnb.AnyModel{"sage": gnb.SAGE, "gcn": gnb.GCN, "mlp": gnb.MLP} {
		wide, _ := run(t, model, "f32", "cuda", nil)
		if name == "sage" {
			cpu, _ := run(t, model, "f16", "cpu", nil)
			same(t, wide.losses, cpu.losses)
		}
		for _, place := range []string{"device", "cached", "pinned", "staged"} {
			if name != "sage" && place != "device" {
				continue
			}
			t.Run(name+", "+place, func(t *testing.T) {
				env := map[string]string{"GNB_CUDA_FEATURES": place}
				if place == "cached" {
					env["GNB_CUDA_MEMORY"] = "1MB"
				}
				got, text := run(t, model, "f16", "cuda", env)
				if !slices.Equal(got.losses, wide.losses) || got.val != wide.val {
					t.Errorf("%v, want the float32 result %v", got, wide)
				}
				if !strings.Contains(text, "features of 300 nodes in float16 (21.1 KiB)") {
					t.Errorf("the run does not say where the features are: %s", text)
				}
			})
		}
	}
}

// TF32 is available from cuBLAS, on request. On the CPU and without cuBLAS it is an error.
func TestTF32(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	ds := load(t, "karate")
	cluster(t, 1, machine{})
	o := small
	o.Precision, o.Device, o.Workers = "tf32", "cuda", 1
	losses, text, err := train(t, ds, o)
	if err != nil || !strings.Contains(text, "in tf32") {
		t.Fatalf("%v: %s", err, text)
	}
	o.Precision = "float32"
	exact, _, err := train(t, ds, o)
	if err != nil || slices.Equal(losses, exact) {
		t.Errorf("error %v; the losses equal those of float32: %v", err, losses)
	}
	for i := range exact { // TF32 rounds a factor by a relative 2^-11 at most
		if d := losses[i] - exact[i]; !(d < 5e-3 && d > -5e-3) {
			t.Errorf("epoch %d has loss %v, want about %v as in float32", i, losses[i], exact[i])
		}
	}
	o.Precision, o.Device = "tf32", "cpu"
	if _, _, err := train(t, ds, o); err == nil || !strings.Contains(err.Error(), `"tf32" is arithmetic of GPUs`) {
		t.Errorf("on the CPU: %v", err)
	}
	t.Setenv("GNB_LIBCUBLAS", "/nowhere/libcublas.so")
	o.Device = "cuda"
	if _, _, err := train(t, ds, o); err == nil || !strings.Contains(err.Error(), "cublas") {
		t.Errorf("without cuBLAS: %v", err)
	}
}
