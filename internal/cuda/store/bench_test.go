//go:build cuda && linux && cgo

package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/backend"
)

// BenchmarkGather measures gathering the rows of a batch from each place, on a real device: 100
// features of 2.4 million nodes (or GNB_BENCH_NODES), the size of ogbn-products, of which a batch
// reads a fifth. The cache holds the nodes with the most out-edges in a graph.
func BenchmarkGather(b *testing.B) {
	d, err := cuda.Open(cuda.Options{})
	if errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.NoDevice) {
		b.Skip(err)
	}
	ok(b, err)
	defer func() { ok(b, d.Close()) }()
	be, err := backend.New(d, nil)
	ok(b, err)
	defer be.Close()
	nodes := 2_400_000
	if s := os.Getenv("GNB_BENCH_NODES"); s != "" {
		nodes, err = strconv.Atoi(s)
		ok(b, err)
	}
	const cols = 100
	x, g := make([]float32, nodes*cols), ring(nodes)
	r := rand.New(rand.NewPCG(1, 1))
	var ids []int32
	for v := range nodes {
		if r.Float64() < .2 {
			ids = append(ids, int32(v))
		}
	}
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	at, err := d.Alloc(cuda.Workspace, 4*int64(len(ids)))
	ok(b, err)
	defer at.Free()
	ok(b, cuda.CopyIn(d.Compute, at.Ptr, ids))
	onDevice := ops.Rows{N: len(ids), Of: &graphops.Block{NumSrc: len(ids), Dev: &cuda.BlockArrays{Indptr: at.Ptr, SrcIDs: at.Ptr}}}
	out := be.Alloc(len(ids) * cols)
	defer be.Free(out)
	for _, half := range []bool{false, true} {
		in, _ := stored(x, half)
		for _, place := range []Place{Device, Cached, Pinned, Staged} {
			b.Run(fmt.Sprint(place, "/f16 ", half), func(b *testing.B) {
				f, err := PutFeatures(d, in, nodes, cols, FeatureOptions{Place: place, Graph: g, CacheBytes: 4*int64(nodes) + 2*int64(nodes)*cols})
				ok(b, err)
				defer func() { ok(b, f.Close()) }()
				st, err := f.Stager()
				ok(b, err)
				rows := onDevice
				if place == Staged { // staging checks the ids on the host
					rows = ops.Rows{N: len(ids), IDs: ids}
				}
				f.Share(be)
				defer be.Drop(in.F32)
				defer be.DropHalf(in.F16)
				one := func() {
					staged, err := st.Prepare(nil, ids)
					ok(b, err)
					staged.Use(be)
					table, _ := be.Kept(in.F32)
					if half {
						table, _ = be.KeptHalf(in.F16)
					}
					be.GatherRows(out, table, rows, cols)
					staged.Done()
					ok(b, d.Compute.Sync())
				}
				one()
				n := 0
				for b.Loop() {
					one()
					n++
				}
				bytes := float64(n) * float64(len(ids)) * float64(int(f.width())+4*cols+8)
				b.ReportMetric(bytes/b.Elapsed().Seconds()/1e9, "GB/s")
			})
		}
	}
}
