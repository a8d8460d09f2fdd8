package runfile

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/multigpu"
)

// Output returns the file that workers write for a run's result, whose destination is the file to.
// It is a temporary file if to is a pipe, a device or this process's standard output, because
// /dev/stdout is another file in a worker, and a worker that waits for a pipe's reader looks like
// one that hangs. deliver copies the file to its destination, unless the run has failed with err,
// and removes it; interrupted is the error that it returns if it is interrupted.
func Output(to string, interrupted error) (write string, deliver func(ctx context.Context, err error) error, err error) {
	info, err := os.Stat(to)
	if err != nil || info.Mode().IsRegular() && !atomicfile.Standard(info) {
		return to, func(_ context.Context, err error) error { return err }, nil //nolint:nilerr // the destination does not exist yet
	}
	if info.IsDir() {
		return "", nil, fmt.Errorf("gnb: %s is a directory; Infer needs the name of a .npy file to write", to)
	}
	dir, err := os.MkdirTemp("", "gnb-infer-")
	if err != nil {
		return "", nil, fmt.Errorf("gnb: making a place for what is written to %s: %w", to, err)
	}
	write = filepath.Join(dir, "out.npy")
	return write, func(ctx context.Context, err error) error {
		if err != nil {
			_ = os.RemoveAll(dir)
			return err
		}
		ctx, stop := multigpu.Interruptible(ctx)
		defer stop()
		done := make(chan error, 1)
		go func() { // blocks until a pipe has a reader
			err := copyTo(to, write)
			_ = os.RemoveAll(dir) // remove it before the process ends
			done <- err
		}()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			_ = os.RemoveAll(dir)
			return fmt.Errorf("gnb: writing to %s was %w: no program read it", to, interrupted)
		}
	}, nil
}

func copyTo(to, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("gnb: %w", err)
	}
	defer f.Close()
	err = atomicfile.WriteWith(to, 0o644, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
	if err != nil {
		return fmt.Errorf("gnb: %w", err)
	}
	return nil
}
