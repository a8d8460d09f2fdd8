package predict_test

import (
	"fmt"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/graphops/datasets"
)

// One node of a graph of 200,000 nodes by a three-layer SAGE, known and new with ten edges, on one thread.
func BenchmarkOneNode(b *testing.B) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 200_000, Features: 128, Classes: 40})
	if err != nil {
		b.Fatal(err)
	}
	var o gnb.TrainOptions
	o.Quiet, o.Epochs, o.Batch, o.Layers, o.Hidden, o.Eval, o.RunDir = true, 1, 4096, 3, 256, "none", b.TempDir()
	run, err := gnb.Train(b.Context(), ds, gnb.SAGE, o)
	if err != nil {
		b.Fatal(err)
	}
	p := open(b, run, ds, predict.Options{Fanouts: []int{10, 10, 10}, Threads: 1})
	b.Run("known", func(b *testing.B) {
		v := int32(0)
		for b.Loop() {
			v = (v + 7919) % 200_000
			if _, err := p.Numbered(b.Context(), v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		a := predict.Additions{Nodes: []predict.Node{{ID: "n", Features: ds.Features.Row(3)}}}
		for v := range 10 {
			a.Edges = append(a.Edges, predict.Edge{Source: fmt.Sprint(17 * v), Target: "n"})
		}
		for b.Loop() {
			if _, err := p.New(b.Context(), a); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			q, err := predict.Open(b.Context(), run, ds, predict.Options{Quiet: true})
			if err != nil {
				b.Fatal(err)
			}
			_ = q.Close()
		}
	})
}
