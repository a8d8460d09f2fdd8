package cuda

import (
	"fmt"
	"os"
	"sync"
)

// trace is a file that says, a line each and in the order of asking, what a device is asked for and where the
// host waits for it:
//
//	launch compute spmm_f32
//	submit compute all-reduce by NCCL
//	wait compute 26     for work after which 26 launches were asked of the stream
//	fetch copy 4096     bytes that the host asked for, and waits for
//	memory taking 2 MB  or giving it back, for which the driver waits for the device
//
// Waiting where little was asked for since leaves the device idle until the host has asked for more.
type trace struct {
	mu sync.Mutex
	f  *os.File
}

func openTrace(name string) (*trace, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cuda: opening the trace that GNB_CUDA_TRACE names: %w", err)
	}
	return &trace{f: f}, nil
}

// line writes a line, unless t is nil. What cannot be written is lost: it is for people.
func (t *trace) line(format string, args ...any) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.f, format+"\n", args...)
}

func (t *trace) close() error {
	if t == nil {
		return nil
	}
	return t.f.Close()
}
