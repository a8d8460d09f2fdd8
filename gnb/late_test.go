package gnb

import (
	"encoding/json"
	"math"
	"testing"
)

// A loss that Step returns can be stored and read later, like a float64.
func TestStepLossIsKept(t *testing.T) {
	kept := []StepLoss{{mean: 0.25}, {mean: math.NaN()}}
	raw, err := json.Marshal(&kept)
	if err != nil || string(raw) != "[0.25,null]" {
		t.Fatalf("%s, %v", raw, err)
	}
	var back []StepLoss
	if err := json.Unmarshal(raw, &back); err != nil || len(back) != 2 || back[0].Mean() != 0.25 || !math.IsNaN(back[1].Mean()) {
		t.Errorf("reading the stored loss gave %v, %v", back, err)
	}
	var l StepLoss
	if err := json.Unmarshal([]byte(`"a"`), &l); err == nil {
		t.Error("a text was accepted as a loss")
	}
}
