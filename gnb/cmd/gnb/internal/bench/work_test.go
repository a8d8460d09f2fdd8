package bench

import (
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// The work of a batch equals a count by hand.
func TestSageWork(t *testing.T) {
	hops := hopSizes{{Dst: 2, Src: 5, Edges: 4}, {Dst: 5, Src: 11, Edges: 9}}
	w := sageWork(hops, gnb.ModelConfig{In: 3, Hidden: 7, Out: 2, Layers: 2})
	// First layer: 5 rows of 2·3 columns times [6, 7], forward and for the weights; then 2 rows of 2·7
	// times [14, 2], and for the input as well.
	if want := 2.0*2*5*6*7 + 3.0*2*2*14*2; w.FLOP != want {
		t.Errorf("%v flop, want %v", w.FLOP, want)
	}
	if want := 4.0 * 3 * (9 + 5); w.RandomBytes != want {
		t.Errorf("%v random bytes, want %v", w.RandomBytes, want)
	}
	if want := 4.0 * (2*5*6 + 4*5*7 + 4*2*14); w.StreamBytes != want {
		t.Errorf("%v streamed bytes, want %v", w.StreamBytes, want)
	}
	l := limits{GFLOPS: 2, CopyGBs: 4, RandomGBs: 5}
	if got, want := (work{FLOP: 2e9, RandomBytes: 10e9, StreamBytes: 2e9}).seconds(l), 3.5; got != want {
		t.Errorf("floor %v s, want %v", got, want)
	}
}

func TestWholeGraphWork(t *testing.T) {
	g, err := graphops.FromEdges(3, []int32{0, 1, 2, 0}, []int32{1, 2, 0, 2}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ds := &dataset.Dataset{Graph: g}
	s := gnb.ModelConfig{In: 3, Hidden: 7, Out: 2, Layers: 2}
	// Both products of a layer, 3 rows by [3, 7], then by [7, 2]; the edges' rows of the narrower side.
	once := work{FLOP: 4*3*3*7 + 4*3*7*2, RandomBytes: 4*4*3 + 4*4*2, StreamBytes: 4 * 3 * (3 + 7 + 7 + 2)}
	got := wholeGraphWork(ds, s, false)
	if got.Arithmetic = ""; got != once {
		t.Errorf("inference %+v, want %+v", got, once)
	}
	got = wholeGraphWork(ds, s, true)
	want := work{FLOP: 2*4*3*3*7 + 3*4*3*7*2, RandomBytes: 4*4*3 + 2*4*4*2, StreamBytes: 3 * once.StreamBytes}
	if got.Arithmetic = ""; got != want {
		t.Errorf("training %+v, want %+v", got, want)
	}
}
