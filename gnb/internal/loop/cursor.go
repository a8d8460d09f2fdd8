package loop

// Cursor is where a program is. The zero value is the start of a run.
//
// Pos is the last boundary. After a resume the program is behind it, until it has repeated the
// statements of the epoch up to the checkpoint; the cursor counts both.
type Cursor struct {
	Pos  Position
	Sums Sums

	done    Position // of the checkpoint that the run resumed from
	epoch   int      // the program's own
	loops   int      // of the epoch that the program entered so far
	bare    int      // steps of the epoch that the program made outside of loops
	inEpoch bool
	before  int64 // steps of the run before the epoch

	// EpochsAt is the source line of the loop over epochs, "" before it begins; LoopAt is that of
	// the loop over batches that the program is in, "" outside of one.
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

// LeaveEpoch ends the statements of an epoch, whose sums stay until [Cursor.EndEpoch].
func (c *Cursor) LeaveEpoch() { c.inEpoch = false }

// EndEpoch moves to the boundary after an epoch: next is the epoch to continue with, and ended the
// number of epochs begun where the program left the loop over epochs early, else 0.
func (c *Cursor) EndEpoch(next, ended int) {
	c.Pos, c.Sums = Position{Epoch: next, Total: c.Pos.Total, Ended: ended}, Sums{}
	c.countFrom(next)
}

// EndEpochs ends the loop over epochs.
func (c *Cursor) EndEpochs() { c.countFrom(c.Pos.Epoch) }

// countFrom counts loops and steps from 0 in a new epoch; what comes before the loop over epochs
// counts as part of the first epoch.
func (c *Cursor) countFrom(e int) {
	if e != c.epoch {
		c.epoch, c.loops, c.bare = e, 0, 0
	}
}

// EpochSteps is the number of steps since [Cursor.EnterEpoch].
func (c *Cursor) EpochSteps() int { return int(c.Pos.Total - c.before) }

// EnterLoop begins the epoch's next loop over batches, of steps steps, and returns the step to
// begin with. all is true where the whole loop was done before the checkpoint.
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

// SkipStep reports whether the next step outside of loops was done before the checkpoint, and counts
// it if so.
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

// Draw is the epoch and step of the random draws, such as dropout, of a batch that no loop made: they
// are the program's own, so that a repeated statement draws what it drew before.
func (c *Cursor) Draw() (epoch, step int) { return c.epoch, c.Pos.InAll + c.bare }
