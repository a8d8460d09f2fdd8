//go:build cuda && linux && cgo

package e2e

import (
	"fmt"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

// After its first batches, a step of GAT or GATv2 reads no block on the host, with and without self-loops of the graph's own
// and in sampled evaluation; the losses are the CPU's, with 1 and 2 devices.
func TestGATStaysOnDevices(t *testing.T) {
	testneed.NotShort(t, "it takes seconds on the interpreter")
	plain := load(t, "planted?nodes=800&classes=4&features=24&degree=8&noise=2")
	looped := *plain
	looped.Graph = plain.Graph.AddSelfLoops(1)
	for i, c := range []struct {
		model   gnb.AnyModel
		data    *gnb.Dataset
		devices int
		eval    string
	}{
		{gnb.GAT, plain, 1, "sampled"},
		{gnb.GAT, &looped, 2, "none"},
		{gnb.GATv2, plain, 2, "none"},
		{gnb.GATv2, &looped, 1, "none"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			o := gnb.TrainOptions{Hidden: 8, Heads: 2, Dropout: 0.3, Fanouts: []int{6, 4}, Batch: 100, Epochs: 2, Eval: c.eval, Seed: 1, VirtualRanks: 2, Workers: 1, Device: "cpu", CheckpointEvery: -1}
			want, _, _, err := trained(t, c.data, c.model, o)
			if err != nil {
				t.Fatal(err)
			}
			o.Device, o.Workers = "cuda", c.devices
			on := func(epochs int) (losses []float64, read int) {
				log := cluster(t, c.devices, machine{})
				o.Epochs = epochs
				losses, _, _, err := trained(t, c.data, c.model, o)
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range devices(t, log) {
					read += number(t, l, "read_bytes")
				}
				return losses, read
			}
			got, read := on(2)
			same(t, got, want)
			if _, longer := on(6); longer-read > 250<<10 { // 650 kB or more if the host made each block
				t.Errorf("two epochs copied %d bytes to the host, and six %d", read, longer)
			}
		})
	}
}
