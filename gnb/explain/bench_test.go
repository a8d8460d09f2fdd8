package explain_test

import (
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/explain"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/graphops/datasets"
)

// An explanation of a node with some fifty neighbours of some fifty each, by each method.
func BenchmarkExplain(b *testing.B) {
	ds, err := datasets.Load("planted?nodes=20000&classes=40&features=100&degree=50")
	if err != nil {
		b.Fatal(err)
	}
	o := options()
	o.Hidden, o.Epochs, o.Fanouts, o.RunDir = 128, 1, []int{5, 5}, b.TempDir()
	run, err := gnb.Train(b.Context(), ds, gnb.SAGE, o)
	if err != nil {
		b.Fatal(err)
	}
	p, err := predict.Open(b.Context(), run, ds, predict.Options{Threads: 1, Quiet: true})
	if err != nil {
		b.Fatal(err)
	}
	for _, method := range []explain.Method{explain.Gradients, explain.Mask} {
		b.Run(string(method), func(b *testing.B) {
			for b.Loop() {
				if _, err := explain.With(b.Context(), p, "100", explain.Options{Method: method}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
