//go:build cuda && linux && cgo

package e2e

import (
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A step of a GCN on sampled batches reads no block on the host, just as one of SAGE, and its losses are the CPU's, with 1 and 2
// devices. On graphs with self-loops of their own it reads the offsets of destinations, on weighted graphs the weights too.
// Only on graphs with both does the host make blocks with self-loops in each step.
func TestGCNStaysOnDevices(t *testing.T) {
	testneed.NotShort(t, "it takes seconds on the interpreter")
	plain := load(t, "planted?nodes=500&classes=4&features=24&degree=8&noise=2")
	looped := *plain
	looped.Graph = plain.Graph.AddSelfLoops(1)
	both := looped
	both.Graph = weighted(&looped).Graph
	for _, c := range []struct {
		name    string
		data    *gnb.Dataset
		devices int
		hidden  int
		most    int // bytes that two more epochs copy to the host; 0: not said
	}{
		{"more columns", plain, 1, 32, 10 << 10},
		{"fewer columns", plain, 2, 8, 10 << 10},
		{"own self-loops", &looped, 1, 8, 140 << 10},
		{"own self-loops, sums first", &looped, 2, 32, 140 << 10},
		{"weights", weighted(plain), 1, 8, 160 << 10},
		{"weights and self-loops", &both, 1, 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := gnb.TrainOptions{Hidden: c.hidden, Fanouts: []int{6, 4}, Batch: 60, Eval: "none", Seed: 1, VirtualRanks: 2, Workers: 1, CheckpointEvery: -1}
			if copied := longer(t, c.data, gnb.GCN, o, c.devices); c.most > 0 && copied > c.most {
				t.Errorf("two more epochs copied %d bytes to the host, more than %d", copied, c.most)
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
