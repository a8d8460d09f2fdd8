package gnb

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/multigpu"
)

// elsewhere has the workers write to a temporary file where Out is a pipe, a device or this
// process's standard output: /dev/stdout is another one in a worker, and a worker that waits for
// a pipe's reader looks like one that hangs. deliver brings the file to Out, unless the run has
// failed with err, and removes it.
func (a *inferArgs) elsewhere() (deliver func(ctx context.Context, err error) error, err error) {
	info, err := os.Stat(a.Out)
	if err != nil || info.Mode().IsRegular() && !atomicfile.Standard(info) {
		return func(_ context.Context, err error) error { return err }, nil //nolint:nilerr // nothing is there yet
	}
	if info.IsDir() {
		return nil, fmt.Errorf("gnb: %s is a directory; Infer needs the name of a .npy file to write", a.Out)
	}
	dir, err := os.MkdirTemp("", "gnb-infer-")
	if err != nil {
		return nil, fmt.Errorf("gnb: making a place for what is written to %s: %w", a.Out, err)
	}
	to := a.Out
	a.Out = filepath.Join(dir, "out.npy")
	return func(ctx context.Context, err error) error {
		if err != nil {
			_ = os.RemoveAll(dir)
			return err
		}
		ctx, stop := multigpu.Interruptible(ctx)
		defer stop()
		done := make(chan error, 1)
		go func() { // which waits for as long as nobody reads a pipe
			err := copyTo(to, filepath.Join(dir, "out.npy"))
			_ = os.RemoveAll(dir) // before the process may end
			done <- err
		}()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			_ = os.RemoveAll(dir)
			return fmt.Errorf("gnb: writing to %s was %w: nobody has read it", to, ErrInterrupted)
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
