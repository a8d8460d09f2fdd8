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

// Output is the file that workers write where the result of a run goes to the file to: a temporary one where
// to is a pipe, a device or this process's standard output, because /dev/stdout is another one in a worker, and
// a worker that waits for a pipe's reader looks like one that hangs. deliver copies the file to to, unless the
// run has failed with err, and removes it; interrupted is the error of an interrupt meanwhile.
func Output(to string, interrupted error) (write string, deliver func(ctx context.Context, err error) error, err error) {
	info, err := os.Stat(to)
	if err != nil || info.Mode().IsRegular() && !atomicfile.Standard(info) {
		return to, func(_ context.Context, err error) error { return err }, nil //nolint:nilerr // nothing is there yet
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
		go func() { // which waits for as long as nobody reads a pipe
			err := copyTo(to, write)
			_ = os.RemoveAll(dir) // before the process may end
			done <- err
		}()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			_ = os.RemoveAll(dir)
			return fmt.Errorf("gnb: writing to %s was %w: nobody has read it", to, interrupted)
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
