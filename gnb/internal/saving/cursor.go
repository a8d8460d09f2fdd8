package saving

// Cursor tracks the position of a program. The zero value is the start of a run.
//
// Pos is the last boundary. After a resume the program is at an earlier point until it has
// repeated the epoch's statements up to the checkpoint; the cursor counts both positions.
type Cursor struct {
	Pos  Position
	Sums Sums

	done    Position // position of the checkpoint from which the run resumed
	epoch   int      // the program's own
	loops   int      // loops of the epoch that the program has entered so far
	bare    int      // steps of the epoch that the program ran outside loops
	inEpoch bool
	before  int64 // the run's steps before the epoch

	// EpochsAt is the source line of the loop over epochs, "" before it starts. LoopAt is the
	// source line of the current loop over batches, "" outside such loops.
	EpochsAt, LoopAt string
}

// Resume continues from a checkpoint.
func (c *Cursor) Resume(at Position, s Sums) { c.Pos, c.done, c.Sums = at, at, s }

// InLoop reports whether the program is in a loop over batches.
func (c *Cursor) InLoop() bool { return c.LoopAt != "" }

// InEpoch reports whether the program is in its loop over epochs.
func (c *Cursor) InEpoch() bool { return c.inEpoch }

// EnterEpoch begins epoch e of the loop over epochs.
func (c *Cursor) EnterEpoch(e int) {
	c.countFrom(e)
	c.inEpoch, c.before = true, c.Pos.Total
}

// LeaveEpoch ends the statements of an epoch; its sums remain until [Cursor.EndEpoch].
func (c *Cursor) LeaveEpoch() { c.inEpoch = false }

// EndEpoch moves to the boundary after an epoch: next is the epoch to continue with, and ended the
// number of epochs started if the program left the loop over epochs early, else 0.
func (c *Cursor) EndEpoch(next, ended int) {
	c.Pos, c.Sums = Position{Epoch: next, Total: c.Pos.Total, Ended: ended}, Sums{}
	c.countFrom(next)
}

// EndEpochs ends the loop over epochs.
func (c *Cursor) EndEpochs() { c.countFrom(c.Pos.Epoch) }

// countFrom counts loops and steps from 0 in a new epoch. Steps before the loop over epochs count
// as part of the first epoch.
func (c *Cursor) countFrom(e int) {
	if e != c.epoch {
		c.epoch, c.loops, c.bare = e, 0, 0
	}
}

// EpochSteps returns the number of steps since [Cursor.EnterEpoch].
func (c *Cursor) EpochSteps() int { return int(c.Pos.Total - c.before) }

// EnterLoop starts the epoch's next loop over batches, with the given number of steps, and returns
// the first step to run. all is true if the whole loop was done before the checkpoint.
func (c *Cursor) EnterLoop(steps int) (first int, all bool) {
	loop := c.loops
	c.loops++
	switch {
	case c.epoch < c.done.Epoch, c.epoch == c.done.Epoch && loop < c.done.Loop:
		return 0, true
	case c.epoch == c.done.Epoch && loop == c.done.Loop:
		return min(c.done.Step, steps), false
	}
	return 0, false
}

// EndIteration counts an iteration of a loop over batches.
func (c *Cursor) EndIteration() {
	c.Pos.Step++
	c.Pos.InAll++
}

// EndLoop moves to the boundary after a loop over batches.
func (c *Cursor) EndLoop() { c.Pos.Loop, c.Pos.Step = c.loops, 0 }

// SkipStep reports whether the next step outside loops was done before the checkpoint; if so it
// counts the step.
func (c *Cursor) SkipStep() bool {
	if c.InLoop() || c.epoch > c.done.Epoch || c.epoch == c.done.Epoch && c.bare >= c.done.Bare {
		return false
	}
	c.bare++
	return true
}

// EndBareStep counts a step outside of loops.
func (c *Cursor) EndBareStep() {
	c.bare++
	c.Pos.Bare++
}

// Draw returns the epoch and step for the random draws, such as dropout, of a batch that no loop
// made. They are the program's current ones, so that a repeated statement makes the same draws.
func (c *Cursor) Draw() (epoch, step int) { return c.epoch, c.Pos.InAll + c.bare }
