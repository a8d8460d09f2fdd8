package deploy

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/graphnb/graphnb/internal/parallel"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumStep is the piece of a file whose checksum one thread computes.
const sumStep = 1 << 20

// sumOf is the checksum of a file: the CRC-32C of those of its pieces of 1 MiB, little-endian. It is false if ctx ends first.
func sumOf(ctx context.Context, data []byte, threads int) (sum string, ok bool) {
	pieces := (len(data) + sumStep - 1) / sumStep
	sums := make([]byte, 4*pieces)
	parallel.For(threads, pieces, 1, func(lo, hi int) {
		for i := lo; i < hi && ctx.Err() == nil; i++ {
			binary.LittleEndian.PutUint32(sums[4*i:], crc32.Checksum(data[i*sumStep:min((i+1)*sumStep, len(data))], castagnoli))
		}
	})
	return fmt.Sprintf("%08x", crc32.Checksum(sums, castagnoli)), ctx.Err() == nil
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}
