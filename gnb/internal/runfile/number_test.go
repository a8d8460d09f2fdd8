package runfile

import (
	"encoding/json"
	"math"
	"testing"
)

func TestNumbersThroughJSON(t *testing.T) {
	for _, c := range []struct {
		x    float64
		text string
	}{
		{0, "0"},
		{0.1, "0.1"},
		{-2.5, "-2.5"},
		{1e300, "1e+300"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{math.NaN(), "null"},
		{math.Inf(1), "null"},
		{math.Inf(-1), "null"},
	} {
		b, err := json.Marshal(Number(c.x))
		if err != nil || string(b) != c.text {
			t.Errorf("%v is written as %s, %v; want %s", c.x, b, err, c.text)
		}
		var back Number
		if err := json.Unmarshal(b, &back); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		want := c.x
		if c.text == "null" {
			want = math.NaN()
		}
		if math.Float64bits(float64(back)) != math.Float64bits(want) {
			t.Errorf("%s is read as %v, want %v", b, back, want)
		}
	}
	var x Number
	if json.Unmarshal([]byte(`"one"`), &x) == nil {
		t.Error("a text was accepted as a number")
	}
}
