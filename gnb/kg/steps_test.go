package kg_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The losses of the first ten steps on UMLS are those of the same models in PyTorch, which start from the same
// weights and take the same batches, negatives and messages: see testdata/steps.py.
func TestStepsArePyTorch(t *testing.T) {
	testneed.NotShort(t, "it trains several times on UMLS")
	ds := converted(t, "umls")
	raw, err := os.ReadFile("testdata/steps.json")
	if err != nil {
		t.Fatal(err)
	}
	var py struct {
		Cases []struct {
			Encoder, Decoder, Loss string
			Losses                 []float64
		}
	}
	if err := json.Unmarshal(raw, &py); err != nil {
		t.Fatal(err)
	}
	if len(py.Cases) != 7 {
		t.Fatalf("steps.json has %d cases, want 7; run scripts/fixtures.sh", len(py.Cases))
	}
	for _, c := range py.Cases {
		o := options(t, kg.Options{
			OptimizerOptions:  gnb.OptimizerOptions{Epochs: 2, Batch: 256, LR: 0.01},
			EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
			LaunchOptions:     gnb.LaunchOptions{Workers: 1, Seed: 1},
			Decoder:           c.Decoder,
			Loss:              c.Loss,
			Negatives:         4,
			Of:                kge.Options{Height: 4, Channels: 3, InputDropout: -1, FeatureDropout: -1, HiddenDropout: -1},
		})
		if c.Encoder != "" {
			o.Encoder = kg.EncoderOptions{Name: c.Encoder}
		}
		o.Dim = 24
		run, err := kg.Train(t.Context(), ds, o)
		if err != nil {
			t.Fatalf("%s %s %s: %v", c.Encoder, c.Decoder, c.Loss, err)
		}
		got, err := run.Losses()
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Losses) != 10 || len(got) < 10 {
			t.Fatalf("%s %s %s: %d losses, PyTorch has %d", c.Encoder, c.Decoder, c.Loss, len(got), len(c.Losses))
		}
		for i, want := range c.Losses {
			if !(math.Abs(got[i]-want) <= 1e-5) {
				t.Errorf("%s %s %s: the loss of step %d is %v, PyTorch's is %v", c.Encoder, c.Decoder, c.Loss, i, got[i], want)
			}
		}
	}
}
