package gnb_test

import (
	"bytes"
	"context"
	"math"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// rowsInFile returns the learned rows in a file of weights.
func rowsInFile(t *testing.T, path string) []float32 {
	t.Helper()
	ts, _, err := safetensors.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range ts {
		if x.Name == "node_embedding.weight" {
			return x.F32
		}
	}
	t.Fatal("there are no learned rows")
	return nil
}

// A bound on the gradient's norm bounds learned rows too: with a bound far below the optimiser's epsilon they hardly
// move. The norm, and so the weights, are the same for any number of workers.
func TestClipBoundsLearnedRows(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=600&classes=3&features=8"))
	moved := func(clip float64, workers, virtual int) (most float64, weights []byte) {
		o := small()
		o.Embedding, o.Eval, o.ClipNorm, o.Workers, o.VirtualRanks = 5, "none", clip, workers, virtual
		after, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
		if err != nil {
			t.Fatal(err)
		}
		o.LR, o.Epochs = 1e-30, 1 // no weight moves
		before, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
		if err != nil {
			t.Fatal(err)
		}
		a, b := rowsInFile(t, before.Weights()), rowsInFile(t, after.Weights())
		for i := range a {
			most = max(most, math.Abs(float64(a[i]-b[i])))
		}
		return most, numbersIn(t, after.Weights())
	}
	free, _ := moved(0, 1, 1)
	bound, _ := moved(1e-12, 1, 1)
	if bound > 1e-3*free {
		t.Errorf("learned rows moved by %v with a bound and by %v without", bound, free)
	}
	_, want := moved(0.01, 1, 4)
	for _, c := range [][2]int{{2, 2}, {4, 1}} {
		if _, got := moved(0.01, c[0], c[1]); !bytes.Equal(got, want) {
			t.Errorf("%d workers with %d virtual ranks have other weights than one with 4", c[0], c[1])
		}
	}
}
