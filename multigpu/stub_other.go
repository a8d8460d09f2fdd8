//go:build !linux

package multigpu

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

func startProcesses(ctx context.Context, s Spec, job json.RawMessage) (*Group, error) {
	if s.World != 1 {
		return nil, fmt.Errorf("multigpu: a run of %d workers on %s; worker processes need Linux (or WSL2): here a run has one worker, inside the process", s.World, runtime.GOOS)
	}
	return startInProcess(ctx, s, job)
}

func enterWorker(rank int) {
	fmt.Fprintf(os.Stderr, "multigpu: rank %d was started as a worker process, which %s does not have\n", rank, runtime.GOOS)
	os.Exit(1)
}

func pssOf(int) int64 { return 0 }
