package load

import (
	"encoding/json"
	"math"
	"testing"
)

// A figure that the machine does not provide is null in JSON, and unknown after reading it.
func TestUnknownInJSON(t *testing.T) {
	text, err := json.Marshal([]Value{1.5, Value(math.NaN()), Value(math.Inf(1))})
	if err != nil || string(text) != "[1.5,null,null]" {
		t.Fatalf("%s, %v", text, err)
	}
	var back []Value
	if err := json.Unmarshal(text, &back); err != nil || back[0] != 1.5 || back[1].Known() || back[2].Known() {
		t.Errorf("%v, %v", back, err)
	}
}

func TestMemoryOf(t *testing.T) {
	g := GPU{Processes: []Process{{Memory: 1}, {Memory: 2, Run: "a"}, {Memory: 4, Run: "b"}, {Memory: Value(math.NaN()), Run: "b"}}}
	for run, want := range map[string]Value{"": 6, "a": 2, "b": 4} {
		if got := g.MemoryOf(run); got != want {
			t.Errorf("run %q has %v, want %v", run, got, want)
		}
	}
	if got := g.MemoryOf("c"); got.Known() {
		t.Errorf("a run without workers has %v", got)
	}
}
