package sample

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/testneed"
)

// benchGraph has uniformly random edges: the worst case for caches.
func benchGraph(nodes, degree int) *graphops.Graph {
	r := rand.New(rand.NewPCG(1, 1))
	g := &graphops.Graph{Indptr: make([]int64, nodes+1), Indices: make([]int32, 0, nodes*degree)}
	for v := range nodes {
		from := len(g.Indices)
		for range r.IntN(2*degree + 1) {
			g.Indices = append(g.Indices, int32(r.IntN(nodes)))
		}
		slices.Sort(g.Indices[from:])
		g.Indptr[v+1] = int64(len(g.Indices))
	}
	return g
}

// benchData holds a graph and its training nodes.
type benchData struct {
	name  string
	load  func(b *testing.B) (*graphops.Graph, []int32)
	picks []Fanouts
}

var benchGraphs = []benchData{
	{"uniform", func(*testing.B) (*graphops.Graph, []int32) {
		g := benchGraph(1<<20, 15)
		ids := make([]int32, g.NumNodes())
		for i := range ids {
			ids[i] = int32(i)
		}
		return g, ids
	}, []Fanouts{{15, 10, 5}, {25, 10}, {-1, 10}}},
	{"arxiv", func(b *testing.B) (*graphops.Graph, []int32) {
		dir := filepath.Join(b.TempDir(), "arxiv")
		if _, err := convert.Convert(context.Background(), testneed.RealData(b, "ogbn_arxiv/graphsaint"), dir, convert.Options{Undirected: true}); err != nil {
			b.Fatal(err)
		}
		return opened(b, dir)
	}, []Fanouts{{15, 10, 5}}},
	{"products", func(b *testing.B) (*graphops.Graph, []int32) {
		dir := os.Getenv("GNB_PRODUCTS")
		if dir == "" {
			b.Skip("GNB_PRODUCTS names no dataset directory of a graph as large as ogbn-products")
		}
		return opened(b, dir)
	}, []Fanouts{{15, 10, 5}}},
}

func opened(b *testing.B, dir string) (*graphops.Graph, []int32) {
	d, err := dataset.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	for i := 0; i < len(d.Graph.Indices); i += 1024 { // reads the file into memory
		benchSink += d.Graph.Indices[i]
	}
	return d.Graph, d.Splits["train"]
}

var benchSink int32

// Batches of 1024 seeds. Besides the mean rate, it reports the time of the fastest batch and the
// processor time per batch, which other programs disturb less, and the share of that time that
// random accesses alone take, measured over the same addresses by loops that do nothing else.
func BenchmarkSample(b *testing.B) {
	for _, data := range benchGraphs {
		b.Run(data.name, func(b *testing.B) {
			g, train := data.load(b)
			ids := EpochOrder(1, 0, train)
			for _, fanouts := range data.picks {
				for _, threads := range []int{1, 2} {
					b.Run(fmt.Sprintf("fanouts=%v/threads=%d", fanouts, threads), func(b *testing.B) {
						benchSample(b, g, ids, Config{Picker: fanouts, Seed: 1, Threads: threads})
					})
				}
			}
			b.Run("fanouts=[15 10 5]/threads=2/transposed", func(b *testing.B) {
				benchSample(b, g, ids, Config{Picker: Fanouts{15, 10, 5}, Seed: 1, Threads: 2, Transpose: true})
			})
		})
	}
}

func benchSample(b *testing.B, g *graphops.Graph, ids []int32, c Config) {
	s, err := New(g, c)
	if err != nil {
		b.Fatal(err)
	}
	best := benchBatches(b, s, ids)
	floor := math.Inf(1)
	for step := range 20 {
		batch, err := s.Sample(2, step, Seeds{IDs: benchSeeds(ids, step)})
		if err != nil {
			b.Fatal(err)
		}
		floor = min(floor, accesses(g, batch, c.Threads).Seconds())
		batch.Release()
	}
	b.ReportMetric(100*floor/best, "%of-random-access")
}

func benchSeeds(ids []int32, step int) []int32 { return ids[step*1024%(len(ids)-1023):][:1024] }

// benchBatches measures a sampler, and returns the seconds of its fastest batch.
func benchBatches(b *testing.B, s interface {
	Sample(epoch, step int, seeds Seeds) (*Batch, error)
}, ids []int32,
) (best float64) {
	for step := range 3 {
		batch, err := s.Sample(1, step, Seeds{IDs: benchSeeds(ids, step)})
		if err != nil {
			b.Fatal(err)
		}
		batch.Release()
	}
	b.ReportAllocs()
	edges, step := 0, 0
	best = math.Inf(1)
	before := cpuSeconds()
	for b.Loop() {
		start := time.Now()
		batch, err := s.Sample(0, step, Seeds{IDs: benchSeeds(ids, step)})
		if err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start).Seconds())
		edges += batch.Edges()
		batch.Release()
		step++
	}
	b.ReportMetric(1e3*(cpuSeconds()-before)/float64(b.N), "cpu-ms")
	b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
	b.ReportMetric(float64(edges)/float64(b.N)/1e3, "kedges/batch")
	b.ReportMetric(1e3*best, "fastest-ms")
	return best
}

// Two ranks, each a goroutine with one thread, sample a batch of 1024 seeds together. It compares
// the processor time of both with that of one Sampler.
func BenchmarkCooperative(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	g, train := benchGraphs[1].load(b)
	ids := EpochOrder(1, 0, train)
	c := Config{Picker: Fanouts{15, 10, 5}, Seed: 1, Threads: 1, Transpose: true}
	seeds := func(step int) []int32 { return ids[step*1024%(len(ids)-1023):][:1024] }
	b.Run("alone", func(b *testing.B) { benchSample(b, g, ids, c) })
	together := func(b *testing.B, turns bool) {
		var wires [2]chan []byte
		for r := range wires {
			wires[r] = make(chan []byte, 2)
		}
		rank := func(r int) *Cooperative {
			s, err := NewCooperative(g, c, Peers{Rank: r, World: 2, Sums: true, Turns: turns, AllToAll: func(send [][]byte) ([][]byte, error) {
				wires[1-r] <- slices.Clone(send[1-r])
				got := make([][]byte, 2)
				got[1-r] = <-wires[r]
				return got, nil
			}})
			if err != nil {
				b.Fatal(err)
			}
			s.Foresee(0, 0, math.MaxInt32, func(step int) []int32 { return seeds(step) })
			return s
		}
		ranks := []*Cooperative{rank(0), rank(1)}
		sample := func(step int) (took time.Duration) {
			start := time.Now()
			var wg sync.WaitGroup
			for _, s := range ranks {
				wg.Go(func() {
					batch, err := s.Sample(0, step, Seeds{IDs: seeds(step)})
					if err != nil {
						b.Error(err)
						return
					}
					batch.Release()
				})
			}
			wg.Wait()
			return time.Since(start)
		}
		for step := range 3 {
			sample(step)
		}
		b.ReportAllocs()
		step, best := 0, math.Inf(1)
		before := cpuSeconds()
		for b.Loop() {
			best = min(best, sample(step).Seconds())
			step++
		}
		b.ReportMetric(1e3*(cpuSeconds()-before)/float64(b.N), "cpu-ms")
		b.ReportMetric(1e3*best, "fastest-ms")
	}
	b.Run("together", func(b *testing.B) { together(b, false) })
	b.Run("in turns", func(b *testing.B) { together(b, true) })
}

// cpuSeconds returns the processor time that the process has used.
func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// accesses returns the time of a batch's random accesses: the offsets of each expanded node, the
// source of each edge, and each source's entry in a table of all nodes.
func accesses(g *graphops.Graph, batch *Batch, threads int) time.Duration {
	var sources []int32
	var positions []int64
	for _, k := range batch.Blocks {
		positions = append(positions, k.EdgePos()...)
		for _, r := range k.Indices() {
			sources = append(sources, k.SrcIDs()[r])
		}
	}
	expanded := batch.Blocks[0].SrcIDs()[:batch.Blocks[0].NumDst]
	table := make([]int32, g.NumNodes())
	for i := range table {
		table[i] = 1
	}
	evict := make([]int64, 1<<19) // displaces the batch's data from the cores' caches
	for i := range evict {
		evict[i] = 1
	}
	const grain = 2048
	sums := make([]int64, max(len(positions), 1))
	start := time.Now()
	parallel.For(threads, len(expanded), grain, func(lo, hi int) {
		sum := int64(0)
		for _, v := range expanded[lo:hi] {
			sum += g.Indptr[v]
		}
		sums[lo] = sum
	})
	parallel.For(threads, len(positions), grain, func(lo, hi int) {
		sum := int32(0)
		for _, p := range positions[lo:hi] {
			sum += g.Indices[p]
		}
		sums[lo] = int64(sum)
	})
	parallel.For(threads, len(sources), grain, func(lo, hi int) {
		sum := int32(0)
		for _, v := range sources[lo:hi] {
			sum += table[v]
		}
		sums[lo] = int64(sum)
	})
	return time.Since(start)
}

func BenchmarkUniform(b *testing.B) {
	for _, c := range [][2]int{{20, 5}, {100, 15}, {1000, 40}, {1000, 200}} {
		b.Run(fmt.Sprintf("n=%d/k=%d", c[0], c[1]), func(b *testing.B) {
			h := Hop{seed: 1}
			var out []int32
			for b.Loop() {
				h.At(int32(len(out)))
				out = h.Uniform(c[0], c[1], out[:0])
			}
			b.ReportMetric(float64(b.N*c[1])/b.Elapsed().Seconds()/1e6, "Mpicks/s")
		})
	}
}

// A divided sampler whose two owners answer in the same process, each with a random half of the
// nodes, beside a sampler of the whole graph: the cost of requests and replies without a network, on
// one processor.
func BenchmarkDivided(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, data := range benchGraphs {
		b.Run(data.name, func(b *testing.B) {
			g, train := data.load(b)
			ids := EpochOrder(1, 0, train)
			d := Division{Nodes: g.NumNodes(), Owners: 2, Part: make([]int32, g.NumNodes()), OwnerOf: []int{0, 1}}
			for v := range d.Part {
				d.Part[v] = int32(Owner(int32(v), 2))
			}
			a := []*Answerer{NewAnswerer(RowsOf(g), AnswererOptions{Threads: 1}), NewAnswerer(RowsOf(g), AnswererOptions{Threads: 1})}
			replies := make([]HopReply, 2)
			var q HopRequest
			var r HopReply
			var wire []byte
			d.Ask = func(requests []HopRequest) ([]HopReply, error) {
				if err := a[0].Answer(&requests[0], &replies[0]); err != nil {
					return nil, err
				}
				wire = requests[1].Append(wire[:0]) // the second owner is on another machine
				if err := q.Decode(wire); err != nil {
					return nil, err
				}
				if err := a[1].Answer(&q, &r); err != nil {
					return nil, err
				}
				wire = r.Append(wire[:0])
				return replies, replies[1].Decode(wire)
			}
			c := Config{Picker: Fanouts{15, 10, 5}, Seed: 1, Threads: 1}
			s, err := NewDivided(d, c)
			if err != nil {
				b.Fatal(err)
			}
			b.Run("whole", func(b *testing.B) { benchSample(b, g, ids, c) })
			b.Run("divided", func(b *testing.B) { benchBatches(b, s, ids) })
		})
	}
}
