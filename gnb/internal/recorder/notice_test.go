package recorder

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
)

// feedWatch returns the sentences about a run of five classes whose epochs have the given losses, in steps of four an epoch.
func feedWatch(t *testing.T, program, metric string, losses []float64) (said []string) {
	t.Helper()
	var w lossWatch
	w.model(runs.Config{Program: program, Args: json.RawMessage("{}")}, metric, &runs.ModelInfo{Config: nn.ModelConfig{Out: 5}})
	total := int64(0)
	take := func(e runs.Event) {
		if text := w.see(e); text != "" {
			said = append(said, text)
		}
	}
	for _, loss := range losses {
		e := runs.Event{Kind: runs.KindSteps}
		for range 4 {
			total++
			e.Records = append(e.Records, runs.Step{Total: total, Loss: loss, LR: 0.25})
		}
		take(e)
		take(runs.Event{Kind: runs.KindEpoch, Loss: loss})
	}
	return said
}

func TestLossWatch(t *testing.T) {
	ln5 := math.Log(5)
	flat := []float64{ln5, 1.005 * ln5, 0.995 * ln5, ln5, ln5, ln5, ln5, ln5}
	growing := []float64{1.5, 1.4, 1.6, 3, 5, 9, 20, 40, 80, 80, 80, 80}
	for name, c := range map[string]struct {
		program, metric string
		losses          []float64
		want            string
	}{
		"falls":               {"gnb.train", "", []float64{1.6, 1.2, 1, 0.8, 0.5, 0.4, 0.3}, ""},
		"falls through":       {"gnb.train", "", []float64{2, ln5, 1.59, 1.4, 1, 1, 1}, ""},
		"stands for 16 steps": {"gnb.train", "", []float64{ln5, ln5, ln5, ln5, 1.4, 1.2}, ""},
		"stands elsewhere":    {"gnb.train", "", []float64{1.3, 1.3, 1.3, 1.3, 1.3}, ""},
		"stands":              {"gnb.train", "accuracy", flat, "about ln(5) = 1.61, for 5 epochs"},
		"a program's":         {"mine", "", flat, "about ln(5) = 1.61, for 5 epochs"},
		"several labels":      {"gnb.train", "auc", flat, ""},
		"of links":            {"gnb.links.train", "", flat, ""},
		"grows":               {"gnb.train", "", growing, "the learning rate (0.25) is probably too high"},
		"grows from nothing":  {"gnb.train", "", []float64{0.01, 0.01, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5}, ""},            // far below guessing
		"grows at once":       {"gnb.train", "", []float64{1.6, 800, 300, 100, 60, 50, 40}, "has grown from 1.61 to"}, // a rate of 1 to 30
		"settles high":        {"gnb.train", "", []float64{1.6, 9, 5, 4, 3, 2.5, 2}, ""},
		"begins high":         {"gnb.train", "", []float64{20, 30, 20, 15, 15, 12, 10}, ""}, // large weights
		"links grow":          {"gnb.links", "", []float64{0.7, 0.7, 0.7, 0.7, 5, 5, 5, 5}, "diverges"},
		"links fall late":     {"gnb.links", "", []float64{0.7, 20, 20, 20, 15, 10}, ""},
		"one wild step":       {"gnb.train", "", []float64{1.5, 1.4, 1.5, 1.4, 5, 1.4, 1.3}, ""},
		"not a number":        {"gnb.train", "", []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()}, ""},
		"infinite":            {"gnb.train", "", []float64{1, 1, 1, 1, math.Inf(1), math.Inf(1)}, "diverges"},
	} {
		said := feedWatch(t, c.program, c.metric, c.losses)
		if c.want == "" && len(said) > 0 || c.want != "" && (len(said) != 1 || !strings.Contains(said[0], c.want)) {
			t.Errorf("%s: said %q, want once %q", name, said, c.want)
		}
	}
}

// A recorder says what it finds as a line that the program might have printed, once.
func TestTheRecorderSaysThatALossStands(t *testing.T) {
	var said []string
	rec, err := New(&runs.Run{Config: runs.Config{Program: "gnb.train", Args: json.RawMessage("{}"), Workers: 1}}, Options{Quiet: true, Observe: func(e runs.Event) {
		if e.Kind == runs.KindPrint {
			said = append(said, e.Text)
		}
	}}, 0, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	rec.Observe(runs.Event{Kind: runs.KindModel, Model: &runs.ModelInfo{Config: nn.ModelConfig{Out: 2}}})
	for epoch := range 6 {
		for step := range int64(10) {
			rec.Observe(runs.Event{Kind: runs.KindSteps, Records: []runs.Step{{Total: 10*int64(epoch) + step + 1, Loss: math.Ln2}}})
		}
		rec.Observe(runs.Event{Kind: runs.KindEpoch, Epoch: epoch, Loss: math.Ln2})
	}
	if err := rec.Close(nil); err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "ln(2)") {
		t.Errorf("the recorder said %q", said)
	}
}
