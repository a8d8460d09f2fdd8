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
	plain := load(t, "planted?nodes=500&classes=4&features=24&degree=8&noise=2")
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
		{gnb.GATv2, weighted(plain), 2, "none"},
		{gnb.GATv2, &looped, 1, "none"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			o := gnb.TrainOptions{Hidden: 8, Heads: 2, Dropout: 0.3, Fanouts: []int{6, 4}, Batch: 60, Eval: c.eval, Seed: 1, VirtualRanks: 2, Workers: 1, CheckpointEvery: -1}
			if copied := longer(t, c.data, c.model, o, c.devices); copied > 140<<10 { // 205 kB or more if the host made each block
				t.Errorf("two more epochs copied %d bytes to the host", copied)
			}
		})
	}
}
