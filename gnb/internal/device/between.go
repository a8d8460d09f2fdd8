package device

import (
	"slices"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Between returns a function that keeps the rows between two layers of a layer-wise evaluation on the devices of all ranks,
// in place of the matrix rows of all nodes in host memory: for a large graph, copying them there and back takes longer than
// the layers. Each rank computes its [sample.Share] of the rows; share then sends it to the other devices. Both functions
// are nil unless all ranks have room and onHost returns false. Without a device, Between returns nil.
func Between(d Device, c collective.Comm, site collective.Site, onHost func() bool) func(rows []float32, cols int) (share, release func(), err error) {
	if d == nil {
		return nil
	}
	return func(rows []float32, cols int) (share, release func(), err error) {
		ok := false
		if !onHost() {
			release, ok = d.Room(rows)
		}
		if c.Size() > 1 {
			mine := []byte{0}
			if ok {
				mine[0] = 1
			}
			all, err := c.AllGather(site, mine)
			if err != nil || slices.ContainsFunc(all, func(other []byte) bool { return other[0] == 0 }) {
				if ok {
					release()
				}
				return nil, nil, err
			}
		}
		if !ok {
			return nil, nil, nil
		}
		if c.Size() == 1 {
			return func() {}, release, nil
		}
		return func() {
			for r := range c.Size() {
				lo, hi := sample.Share(len(rows)/cols, r, c.Size())
				d.broadcast(rows[lo*cols:hi*cols], r)
			}
		}, release, nil
	}
}
