//go:build cuda && linux && cgo

package e2e

import (
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A step of a GCN on sampled batches reads no block on the host, just as one of SAGE, and its losses are the CPU's, with 1 and 2
// devices. Graphs with self-loops of their own or with weights have blocks with self-loops, which the host makes.
func TestGCNStaysOnDevices(t *testing.T) {
	testneed.NotShort(t, "it takes seconds on the interpreter")
	plain := load(t, "planted?nodes=1200&classes=4&features=24&degree=8&noise=2")
	looped := *plain
	looped.Graph = plain.Graph.AddSelfLoops(1)
	for _, c := range []struct {
		name    string
		data    *gnb.Dataset
		devices int
		hidden  int
		onHost  bool
	}{
		{"more columns", plain, 1, 32, false},
		{"fewer columns", plain, 2, 8, false},
		{"own self-loops", &looped, 1, 8, true},
		{"weights", weighted(plain), 1, 8, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := gnb.TrainOptions{Hidden: c.hidden, Fanouts: []int{6, 4}, Batch: 200, Epochs: 3, Eval: "none", Seed: 1, VirtualRanks: 2, Workers: 1, Device: "cpu", CheckpointEvery: -1}
			want, _, _, err := trained(t, c.data, gnb.GCN, o)
			if err != nil {
				t.Fatal(err)
			}
			o.Device, o.Workers = "cuda", c.devices
			on := func(m gnb.AnyModel) (losses []float64, read int) {
				log := cluster(t, c.devices, machine{})
				losses, _, _, err := trained(t, c.data, m, o)
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range devices(t, log) {
					read += number(t, l, "read_bytes")
				}
				return losses, read
			}
			got, read := on(gnb.GCN)
			same(t, got, want)
			if _, least := on(gnb.SAGE); (read > least+16<<10) != c.onHost {
				t.Errorf("%d bytes were copied to the host, and %d with SAGE", read, least)
			}
		})
	}
}
