package saving

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
)

// program runs a training program of two epochs: a bare step, a loop of three steps, a bare step,
// and a loop of two steps. It stops after stop steps, as a killed run does. It returns the steps
// that it trained and the cursor at the last boundary.
func program(c *Cursor, stop int) (steps []string, at Cursor) {
	at = *c
	done := false
	step := func(text string) {
		if len(steps) == stop {
			done = true
		}
		if done {
			return
		}
		c.Pos.Total++
		c.Sums.Add(1, 1, 0, 1)
		steps = append(steps, text)
	}
	bare := func() {
		if done || c.SkipStep() {
			return
		}
		e, s := c.Draw()
		if step(fmt.Sprintf("bare %d/%d", e, s)); !done {
			c.EndBareStep()
			at = *c
		}
	}
	loop := func(n int) {
		first, all := c.EnterLoop(n)
		if all || done {
			return
		}
		for i := first; i < n && !done; i++ {
			if step(fmt.Sprintf("epoch %d loop %d step %d", c.Pos.Epoch, c.loops-1, i)); !done {
				c.EndIteration()
				at = *c
			}
		}
		if !done {
			c.EndLoop()
			at = *c
		}
	}
	for e := c.Pos.Epoch; e < 2 && !done; e++ {
		c.EnterEpoch(e)
		bare()
		loop(3)
		bare()
		loop(2)
		if c.LeaveEpoch(); !done {
			c.EndEpoch(e+1, 0)
			at = *c
		}
	}
	return steps, at
}

// A run that is stopped after any number of steps and resumed makes the steps of an uninterrupted
// run.
func TestResumeAtEveryStep(t *testing.T) {
	whole, end := program(&Cursor{}, -1)
	if len(whole) != 14 || end.Pos.Total != 14 {
		t.Fatalf("the whole run has %d steps %q, but %d are counted", len(whole), whole, end.Pos.Total)
	}
	for stop := range len(whole) + 1 {
		first, at := program(&Cursor{}, stop)
		raw, err := json.Marshal(at.Pos)
		if err != nil {
			t.Fatal(err)
		}
		var pos Position
		if err := json.Unmarshal(raw, &pos); err != nil {
			t.Fatal(err)
		}
		again := &Cursor{}
		again.Resume(pos, at.Sums)
		rest, resumed := program(again, -1)
		if got := slices.Concat(first, rest); !slices.Equal(got, whole) {
			t.Errorf("stopped after %d steps and resumed at %+v:\n%q, want\n%q", stop, pos, got, whole)
		}
		if resumed.Pos != end.Pos || resumed.Sums != end.Sums {
			t.Errorf("stopped after %d steps and resumed: the cursor ends at %+v, want %+v", stop, resumed.Pos, end.Pos)
		}
	}
}

func TestLeavingTheLoopOverEpochsEarly(t *testing.T) {
	var c Cursor
	c.EnterEpoch(0)
	c.Pos.Total++
	c.LeaveEpoch()
	c.EndEpoch(5, 1) // the loop over five epochs ends early, in its first
	if got := c.Pos.ReportedEpoch(); got != 0 {
		t.Errorf("a report after the loop belongs to epoch %d, want 0", got)
	}
	if c.Pos.Epoch != 5 || c.Pos.Total != 1 {
		t.Errorf("the run resumes at %+v, want epoch 5 after one step", c.Pos)
	}
	b, err := json.Marshal(c.Pos)
	if want := `{"epoch":5,"loop":0,"step":0,"bare":0,"in_epoch":0,"total":1,"ended":1}`; err != nil || string(b) != want {
		t.Errorf("the position is written as %s, %v; want %s", b, err, want)
	}
}

// A loop over batches may have fewer steps than at the time of the checkpoint, because options
// changed.
func TestALoopThatBecameShorter(t *testing.T) {
	var c Cursor
	c.Resume(Position{Step: 7, InAll: 7, Total: 7}, Sums{})
	if first, all := c.EnterLoop(5); first != 5 || all {
		t.Errorf("the loop begins at step %d (all %v), want 5 of 5", first, all)
	}
	if first, all := c.EnterLoop(5); first != 0 || all {
		t.Errorf("the next loop begins at step %d (all %v), want 0", first, all)
	}
}

func TestSums(t *testing.T) {
	var s Sums
	if !math.IsNaN(s.MeanLoss()) || !math.IsNaN(s.Accuracy()) {
		t.Errorf("before the first step: %v, %v; want NaN", s.MeanLoss(), s.Accuracy())
	}
	s.Add(3, 2, 1, 2)
	s.Add(1, 2, 1, 2)
	if s.MeanLoss() != 1 || s.Accuracy() != 0.5 {
		t.Errorf("loss %v and accuracy %v, want 1 and 0.5", s.MeanLoss(), s.Accuracy())
	}
}
