//go:build cuda && linux && cgo

package e2e

import (
	"fmt"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A layer-wise evaluation keeps the rows between layers on the devices, whose ranks send their rows to each other, and
// gives the CPU's metrics.
func TestRowsStayBetweenLayers(t *testing.T) {
	testneed.NotShort(t, "it takes seconds on the interpreter")
	const nodes, hidden = 3000, 64
	ds := load(t, fmt.Sprintf("planted?nodes=%d&classes=4&features=8&degree=4&noise=2", nodes))
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: hidden, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{2, 2, 2}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 500, Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "full"}, LaunchOptions: gnb.LaunchOptions{Seed: 1, VirtualRanks: 2, Workers: 1, Device: "cpu", CheckpointEvery: -1}}
	_, _, want, err := trained(t, ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Device = "cuda"
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			log := cluster(t, n, machine{})
			o.Workers = n
			_, _, got, err := trained(t, ds, gnb.SAGE, o)
			if err != nil {
				t.Fatal(err)
			}
			if d := got.ValAccuracy() - want.ValAccuracy(); d < -0.005 || d > 0.005 {
				t.Errorf("the accuracy is %.4f, on the CPU %.4f", got.ValAccuracy(), want.ValAccuracy())
			}
			for _, l := range devices(t, log) { // a layer's rows have 4·nodes·hidden bytes
				if read := number(t, l, "read_bytes"); read > 4*nodes*hidden/n {
					t.Errorf("%d bytes were copied to the host, more than a rank's rows of a layer", read)
				}
			}
		})
	}
}
