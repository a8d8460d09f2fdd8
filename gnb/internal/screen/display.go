package screen

import (
	"fmt"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// Display receives a notebook's output. The kernel implements it; a test sets its own in
// Options.Display and receives the same output as a notebook.
//
// Calls come from one goroutine per sink. A call may block: of the sink's methods only Close waits
// for it, for a bounded time.
type Display interface {
	// Send shows d as a new output, or in place of the output with the same DisplayID. The sink
	// does not use d afterwards.
	Send(d *protocol.DisplayData) error
	// Sync returns when everything sent has reached the notebook.
	Sync() error
}

// kernel is the GoNB kernel that runs the cell.
type kernel struct{}

func (kernel) Send(d *protocol.DisplayData) error {
	gonbui.SendData(d)
	return kernelError()
}

func (kernel) Sync() error {
	// gonbui.Sync waits forever once the pipe is broken.
	if err := kernelError(); err != nil {
		return err
	}
	gonbui.Sync()
	return kernelError()
}

func kernelError() error {
	if err := gonbui.Error(); err != nil {
		return fmt.Errorf("the notebook's display pipe is broken, so the cell shows nothing more (a run continues): %w", err)
	}
	return nil
}
