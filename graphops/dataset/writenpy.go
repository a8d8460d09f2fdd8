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
func WriteNPY(path string, rows, cols int, x []float32) error {
	if len(x) != rows*cols {
		return fmt.Errorf("dataset: writing %s: [%d,%d] needs %d values and there are %d", path, rows, cols, rows*cols, len(x))
	}
	return writeNPY(path, npy.EncodeHeader(npyFloat32, rows, cols), x, math.Float32bits)
}

// WriteIDs writes ids, such as the part of each node, as a NumPy file of int32
// [len(ids)], whole or not at all.
func WriteIDs(path string, ids []int32) error {
	return writeNPY(path, npy.EncodeHeader(npyInt32, len(ids)), ids, func(v int32) uint32 { return uint32(v) })
}

func writeNPY[T any](path string, header []byte, x []T, bits func(T) uint32) (err error) {
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
	if _, err = w.Write(header); err != nil {
		return err
	}
	buf := make([]byte, 0, 4<<10)
	for len(x) > 0 {
		n := min(len(x), 1<<10)
		buf = buf[:0]
		for _, v := range x[:n] {
			buf = binary.LittleEndian.AppendUint32(buf, bits(v))
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
