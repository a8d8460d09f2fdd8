package collective

import (
	"encoding/binary"
	"fmt"
	"math"
)

// SumFloat64 replaces v, equally long on every rank, by its sum over ranks, added in the order of ranks,
// so that every rank has the same bits. It fails on every rank if the lengths differ. It gathers the
// values of all ranks, 8·len(v)·Size() bytes, and is meant for a few of them. Collective.
func SumFloat64(c Comm, s Site, v []float64) error {
	mine := make([]byte, 0, 8*len(v))
	for _, x := range v {
		mine = binary.LittleEndian.AppendUint64(mine, math.Float64bits(x))
	}
	all, err := c.AllGather(s, mine)
	if err != nil {
		return err
	}
	for rank, b := range all {
		if len(b) != len(all[0]) {
			return fmt.Errorf("collective: a sum at %v: %d values on rank 0 and %d on rank %d; every rank must pass equally many", s, len(all[0])/8, len(b)/8, rank)
		}
	}
	clear(v)
	for _, b := range all {
		for i := range v {
			v[i] += math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	return nil
}
