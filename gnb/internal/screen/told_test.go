package screen

import "testing"

// A reason that the cell shows is not told again, however its lines are broken; another one is.
func TestTold(t *testing.T) {
	Told("stopped after\nstep 3")
	if !WasTold("stopped after step 3") || WasTold("stopped after step 4") {
		t.Error("the wrong text counts as told")
	}
}
