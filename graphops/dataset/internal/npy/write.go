package npy

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// WriteFile writes a header and elements of 32 bits, which come in pieces, as a file, completely or not at
// all, and synced to disk. An error of pieces ends writing, and no file appears.
func WriteFile[T any](path string, header []byte, pieces func(write func(x []T) error) error, bits func(T) uint32) error {
	return atomicfile.WriteWith(path, 0o644, func(file io.Writer) error {
		w := bufio.NewWriterSize(file, 1<<20)
		if _, err := w.Write(header); err != nil {
			return err
		}
		buf := make([]byte, 0, 4<<10)
		err := pieces(func(x []T) error {
			for len(x) > 0 {
				n := min(len(x), 1<<10)
				buf = buf[:0]
				for _, v := range x[:n] {
					buf = binary.LittleEndian.AppendUint32(buf, bits(v))
				}
				if _, err := w.Write(buf); err != nil {
					return err
				}
				x = x[n:]
			}
			return nil
		})
		if err != nil {
			return err
		}
		return w.Flush()
	})
}
