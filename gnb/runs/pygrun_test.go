//go:build fixtures

package runs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/expect"
)

// TestPyGRunsTheLines trains each case, runs the lines of ModelInfo.PyG in PyG with the best weights of the run, compares
// PyG's outputs with those of gnb.Infer, and writes testdata/pyg. It needs a Python with torch_geometric and safetensors
// (FIXTURES_PYTHON, which make fixtures sets).
func TestPyGRunsTheLines(t *testing.T) {
	python := os.Getenv("FIXTURES_PYTHON")
	if python == "" {
		t.Fatal("set FIXTURES_PYTHON to a Python with torch_geometric and safetensors; make fixtures does")
	}
	type input struct {
		Lines                    string
		Nodes                    int
		X, EdgeFeatures, Weights []float32
		Src, Dst                 []int32
	}
	dir, cases, inputs, ours := t.TempDir(), map[string]pygCase{}, map[string]input{}, map[string][]float32{}
	for name, c := range pygTrained {
		ds, o := pygData(t, c.edges), c.o
		o.Quiet, o.RunDir, o.Epochs, o.Hidden, o.Batch, o.Workers, o.Threads = true, filepath.Join(dir, name), 10, 8, 16, 1, 1
		run, err := gnb.Train(t.Context(), ds, c.model, o)
		if err != nil {
			t.Fatal(err)
		}
		out, err := gnb.Infer(t.Context(), run, ds, filepath.Join(dir, name+".npy"), gnb.InferOptions{Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		logits, err := out.Logits()
		if err != nil {
			t.Fatal(err)
		}
		lines, err := run.Result.Model.PyG(run.BestWeights())
		if err != nil {
			t.Fatal(err)
		}
		in := input{Lines: lines, Nodes: ds.Nodes(), X: ds.Features.F32, Weights: ds.Graph.EdgeWeights}
		for v := range int32(ds.Nodes()) {
			for _, u := range ds.Graph.InNeighbors(v) {
				in.Src, in.Dst = append(in.Src, u), append(in.Dst, v)
			}
		}
		if f := ds.Graph.EdgeFeatures; f != nil {
			in.EdgeFeatures = f.F32
		}
		inputs[name], ours[name] = in, logits.F32
		cases[name] = pygCase{Model: *run.Result.Model, Lines: strings.Replace(lines, run.BestWeights(), "best.safetensors", 1)}
		weights, err := os.ReadFile(run.BestWeights())
		if err == nil {
			err = os.WriteFile(filepath.Join("testdata/pyg", name+".safetensors"), weights, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(inputs)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "cases.json"), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-W", "ignore", "testdata/pyg.py", dir)
	cmd.Stderr = os.Stderr
	raw, err = cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var outputs map[string][]float64
	if err := json.Unmarshal(raw, &outputs); err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		c.Logits = outputs[name]
		expect.Near(t, name, ours[name], c.Logits, 1e-5, 1e-5)
		cases[name] = c
	}
	raw, err = json.MarshalIndent(cases, "", " ")
	if err == nil {
		err = os.WriteFile("testdata/pyg.json", append(raw, '\n'), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}
