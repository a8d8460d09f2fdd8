//go:build cuda && linux && cgo

package e2e

import (
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// smallGraphs are rings of 3 to 8 nodes with features of edges, whose class is whether their size is even and whose target is
// their size. The last one has no nodes.
func smallGraphs(t *testing.T, labels bool) *gnb.Dataset {
	t.Helper()
	const n = 41
	var src, dst []int32
	at := []int64{0}
	var x []float32
	g := &dataset.Dataset{Splits: map[string][]int32{}, Meta: dataset.Metadata{NumClasses: 2}, Targets: &dataset.Matrix{Rows: n, Cols: 1}}
	for i := range n {
		size := int32(3 + i%6)
		if i == n-1 {
			size = 0
		}
		for v := range size {
			src, dst = append(src, int32(at[i])+v), append(dst, int32(at[i])+(v+1)%size)
			x = append(x, 1, float32(v)/8)
		}
		at = append(at, at[i]+int64(size))
		g.Labels = append(g.Labels, size%2)
		g.Targets.F32 = append(g.Targets.F32, float32(size))
		split := []string{"train", "train", "val", "test"}[i%4]
		g.Splits[split] = append(g.Splits[split], int32(i))
	}
	if labels {
		g.Targets = nil
	} else {
		g.Labels, g.Meta.NumClasses = nil, 0
	}
	graph, err := graphops.FromEdges(int(at[n]), src, dst, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	ds := &gnb.Dataset{Graph: graph, Features: &dataset.Matrix{Rows: int(at[n]), Cols: 2, F32: x}, GraphOffsets: at, Graphs: g, Splits: map[string][]int32{}}
	ds.Meta.Name, ds.Meta.Undirected = "small", true
	ds.Describe()
	return ds
}

// Whole graphs train on devices with the CPU's losses and outputs within 1e-5, on one device and several, among which four
// virtual ranks divide, and whatever pools the rows of nodes.
func TestGraphs(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	for _, c := range []struct {
		name, pool string
		labels     bool
		gpus       []int
	}{{"labels", "mean", true, []int{1, 2}}, {"numbers by attention", "attention", false, []int{1}}, {"numbers by maxima", "max", false, []int{2}}} {
		t.Run(c.name, func(t *testing.T) {
			ds := smallGraphs(t, c.labels)
			train := func(device string, workers int) (losses []float64, run *runs.Run) {
				var o graphs.Options
				o.Hidden, o.Layers, o.Batch, o.Epochs, o.Quiet, o.VirtualRanks, o.LR, o.Pool, o.Dropout = 8, 2, 8, 2, true, 4/workers, 0.01, c.pool, 0.2
				o.Norm = "layer" // before a batch norm, Adam turns the rounding of a bias's gradient, which is 0, into steps
				o.Device, o.Resume = device, gnb.Never
				if device == "cpu" {
					o.Workers = workers
				}
				o.Events = func(e runs.Event) {
					if e.Kind == runs.KindEpoch {
						losses = append(losses, e.Loss)
					}
				}
				run, err := graphs.Train(t.Context(), ds, o)
				if err != nil {
					t.Fatal(err)
				}
				return losses, run
			}
			infer := func(run *runs.Run, device string) []float32 {
				a, err := graphs.Infer(t.Context(), run, ds, graphs.InferOptions{InferOptions: gnb.InferOptions{Quiet: true, Device: device, Final: true}})
				if err != nil {
					t.Fatal(err)
				}
				return a.Rows.F32
			}
			want, cpu := train("cpu", 1)
			rows := infer(cpu, "cpu")
			for _, gpus := range c.gpus {
				cluster(t, gpus, machine{})
				got, run := train("cuda", gpus)
				if run.Config.Device != "cuda" || run.Config.Workers != gpus {
					t.Fatalf("the run had %d workers on %s", run.Config.Workers, run.Config.Device)
				}
				near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(1, math.Abs(b)) }
				if !slices.EqualFunc(got, want, near) {
					t.Errorf("%d devices: the losses are %v, on the CPU %v", gpus, got, want)
				}
				if !slices.EqualFunc(infer(run, "cuda"), rows, func(a, b float32) bool { return math.Abs(float64(a-b)) <= 1e-3 }) {
					t.Errorf("%d devices: graphs have other outputs than on the CPU", gpus)
				}
			}
		})
	}
}
