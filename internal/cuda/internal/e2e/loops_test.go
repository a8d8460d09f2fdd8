//go:build cuda && linux && cgo

package e2e

import (
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

// After its first batches, a step of GAT or GATv2 reads no block on the host, with and without self-loops of the graph's own
// and in sampled evaluation. A step of a GCN reads none either, but the offsets of destinations on graphs with self-loops of
// their own, and on weighted graphs the weights too. Only on graphs with both does the host compute a factor for each edge.
// The losses are the CPU's, with 1 and 2 devices.
func TestSelfLoopsAreMadeOnDevices(t *testing.T) {
	testneed.NotShort(t, "it takes seconds on the interpreter")
	plain := load(t, "planted?nodes=500&classes=4&features=24&degree=8&noise=2")
	looped := *plain
	looped.Graph = plain.Graph.AddSelfLoops(1)
	gat := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Heads: 2, Dropout: 0.3}}
	sampled := gat
	sampled.Eval = "sampled"
	narrow, wide := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}}, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 32, Dropout: 0.5}}
	const few, offsets, weights = 10 << 10, 140 << 10, 160 << 10 // 205 kB or more if the host made each block
	for name, c := range map[string]struct {
		model   gnb.AnyModel
		data    *gnb.Dataset
		devices int
		o       gnb.TrainOptions
		most    int // bytes that two more epochs copy to the host; 0: more than weights
	}{
		"GAT":                             {gnb.GAT, plain, 1, sampled, offsets},
		"GAT, own self-loops":             {gnb.GAT, &looped, 2, gat, offsets},
		"GATv2, weights":                  {gnb.GATv2, weighted(plain), 2, gat, offsets},
		"GATv2, own self-loops":           {gnb.GATv2, &looped, 1, gat, offsets},
		"GCN, more columns":               {gnb.GCN, plain, 1, wide, few},
		"GCN, fewer columns":              {gnb.GCN, plain, 2, narrow, few},
		"GCN, own self-loops":             {gnb.GCN, &looped, 1, narrow, offsets},
		"GCN, own self-loops, sums first": {gnb.GCN, &looped, 2, wide, offsets},
		"GCN, weights":                    {gnb.GCN, weighted(plain), 1, narrow, weights},
		"GCN, weights and self-loops":     {gnb.GCN, weighted(&looped), 1, narrow, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.o
			o.Fanouts, o.Batch, o.Seed, o.VirtualRanks, o.Workers, o.CheckpointEvery = []int{6, 4}, 60, 1, 2, 1, -1
			if o.Eval == "" {
				o.Eval = "none"
			}
			switch copied := longer(t, c.data, c.model, o, c.devices); {
			case c.most > 0 && copied > c.most:
				t.Errorf("two more epochs copied %d bytes to the host, more than %d", copied, c.most)
			case c.most == 0 && copied <= weights:
				t.Errorf("two more epochs copied %d bytes to the host: where does it compute factors?", copied)
			}
		})
	}
}

// longer trains for one epoch and for three on devices, compares the losses with the CPU's, and returns how many more bytes
// the longer run copied to the host.
func longer(t *testing.T, data *gnb.Dataset, model gnb.AnyModel, o gnb.TrainOptions, gpus int) int {
	t.Helper()
	o.Epochs, o.Device = 3, "cpu"
	want, _, _, err := trained(t, data, model, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Device, o.Workers = "cuda", gpus
	var read [2]int
	for i, epochs := range []int{1, 3} {
		o.Epochs = epochs
		log := cluster(t, gpus, machine{})
		got, _, _, err := trained(t, data, model, o)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, want[:epochs])
		for _, l := range devices(t, log) {
			read[i] += number(t, l, "read_bytes")
		}
	}
	return read[1] - read[0]
}
