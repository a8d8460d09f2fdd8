package dataset

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/internal/npy"
)

// WriteNPY writes x [rows, cols], row-major, as a NumPy file of float32, whole or
// not at all: aside, synced, renamed over what was there.
func WriteNPY(path string, rows, cols int, x []float32) (err error) {
	if len(x) != rows*cols {
		return fmt.Errorf("dataset: writing %s: [%d,%d] needs %d values and there are %d", path, rows, cols, rows*cols, len(x))
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("dataset: writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			err = fmt.Errorf("dataset: writing %s: %w", path, err)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err = w.Write(npy.EncodeHeader(npyFloat32, rows, cols)); err != nil {
		return err
	}
	buf := make([]byte, 0, 4<<10)
	for len(x) > 0 {
		n := min(len(x), 1<<10)
		buf = buf[:0]
		for _, v := range x[:n] {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
		if _, err = w.Write(buf); err != nil {
			return err
		}
		x = x[n:]
	}
	if err = w.Flush(); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
