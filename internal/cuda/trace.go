package cuda

import (
	"fmt"
	"os"
	"sync"
)

// trace is a file with one line, in the order of submission, for each thing that a device is asked to
// do and each wait of the host:
//
//	launch compute spmm_f32
//	submit compute all-reduce by NCCL
//	wait compute 26     for the first 26 launches of the stream
//	fetch copy 4096     the host waits for 4096 bytes
//	memory taking 2 MB  or giving back, for which the driver waits for the device
//	memory most 4096 graph  the most bytes of a use, when the device is closed
//
// If the host waits with little further work submitted, the device is idle until the host submits more.
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

// line writes a line, unless t is nil. It ignores errors, because the trace is only for reading.
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
