package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/gemm"
)

// normals are n normal random values.
func normals(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

type gemmResult struct {
	timed
	GFLOPS float64 `json:"gflops"`
	Peak   float64 `json:"peak_gflops,omitempty"`
	Share  float64 `json:"share,omitempty"`
}

// of describes the share of the machine's limit that a rate reaches, "" if the limit was not
// measured.
func of(share float64, unit string, limit float64) string {
	if limit == 0 {
		return ""
	}
	return fmt.Sprintf(", %.0f %% of the machine's %.1f %s", 100*share, limit, unit)
}

func benchGEMM(_ context.Context, args []string, out *cli.Output) error {
	var t timing
	fs := benchFlags(out, "gemm", "Multiplies float32 matrices, C [m,n] = A [m,k] · B [k,n]. A layer's product has --trans-b (the weight is stored [out, in]), the gradient of its weight --trans-a, with k the number of rows.", &t)
	m := fs.Int("m", 1024, "rows of C")
	n := fs.Int("n", 1024, "columns of C")
	k := fs.Int("k", 1024, "columns of A, rows of B")
	transA := fs.Bool("trans-a", false, "A is stored transposed, [k,m]")
	transB := fs.Bool("trans-b", false, "B is stored transposed, [n,k]")
	if err := t.parse(out, fs, args); err != nil {
		return err
	}
	if *m < 1 || *n < 1 || *k < 1 || *m > 1<<24 || *n > 1<<24 || *k > 1<<24 {
		return cli.Usagef("--m, --n and --k must lie in [1, 16777216]")
	}
	if most := max(*m**n, *m**k, *k**n); most > 1<<31 {
		return cli.Usagef("a matrix of this size has %d elements, %s; at most 2^31 are supported", most, phrase.Bytes(int64(most)<<2))
	}
	if err := machine.Room("three matrices of these sides", 4*float64(*m**n+*m**k+*k**n)); err != nil {
		return err
	}
	a := gemm.Operand{Data: normals(*m * *k), Stride: *k, Trans: *transA}
	b := gemm.Operand{Data: normals(*k * *n), Stride: *n, Trans: *transB}
	if *transA {
		a.Stride = *m
	}
	if *transB {
		b.Stride = *k
	}
	c := make([]float32, *m**n)
	terms, o := []gemm.Term{{K: *k, A: a, B: b}}, gemm.Options{Threads: t.threads}
	r := t.run(func() { gemm.Multiply(*m, *n, c, *n, terms, o) })
	res := gemmResult{timed: r, GFLOPS: 2 * float64(*m) * float64(*n) * float64(*k) / r.Median / 1e9}
	if t.limits {
		res.Peak = gemm.PeakGFLOPS(t.threads)
		res.Share = res.GFLOPS / res.Peak
	}
	out.Result(res)
	out.Printf("%d × %d × %d on %d threads: %.3f ms, %.1f GFLOP/s%s\n", *m, *n, *k, t.threads, r.Median*1e3, res.GFLOPS, of(res.Share, "GFLOP/s", res.Peak))
	return nil
}

// rateResult is the result of a benchmark that is limited by reads of random rows.
type rateResult struct {
	timed
	GBs   float64 `json:"gb_per_second"`
	Limit float64 `json:"random_row_gb_per_second,omitempty"`
	Share float64 `json:"share,omitempty"`
}

func (t *timing) rate(r timed, bytes float64, rowBytes int) rateResult {
	res := rateResult{timed: r, GBs: bytes / r.Median / 1e9}
	if t.limits {
		res.Limit = randomRowGBs(r.Threads, rowBytes)
		res.Share = res.GBs / res.Limit
	}
	return res
}

func benchSpMM(ctx context.Context, args []string, out *cli.Output) error {
	var t timing
	fs := benchFlags(out, "spmm", "Computes the mean over the in-neighbours of every node of a graph, y [nodes, columns], or with --backward the gradient of that. The rate counts the rows read, one per edge; the limit is the rate of random rows of the same length in memory. A graph whose rows fit into the caches can exceed it.", &t)
	spec := fs.String("dataset", "rmat?scale=17&degree=16", "dataset with the graph")
	columns := fs.Int("columns", 128, "columns of the matrix")
	backward := fs.Bool("backward", false, "time the gradient instead of the mean")
	if err := t.parse(out, fs, args); err != nil {
		return err
	}
	if *columns < 1 || *columns > 1<<16 {
		return cli.Usagef("--columns is %d; it must lie in [1, 65536]", *columns)
	}
	ds, err := options.Load(ctx, out, *spec)
	if err != nil {
		return err
	}
	defer ds.Close()
	g := ds.Graph
	if err := machine.Room("two matrices of all nodes", 8*float64(g.NumNodes())*float64(*columns)); err != nil {
		return err
	}
	block, be := g.Block(), nn.NewFwd(nn.Config{Threads: t.threads}).Backend()
	in, res := ops.HostBuffer(normals(g.NumNodes()**columns)), ops.HostBuffer(make([]float32, g.NumNodes()**columns))
	r := t.run(func() {
		if *backward {
			be.SpMMGrad(tensor.Mean, res, in, ops.Buffer{}, block, *columns, false)
		} else {
			be.SpMM(tensor.Mean, res, ops.Buffer{}, block, in, *columns)
		}
	})
	bytes := 4 * float64(*columns) * float64(g.NumEdges())
	rate := t.rate(r, bytes, 4**columns)
	out.Result(struct {
		rateResult
		Nodes int     `json:"nodes"`
		Edges int64   `json:"edges"`
		Rate  float64 `json:"edges_per_second"`
	}{rate, g.NumNodes(), g.NumEdges(), float64(g.NumEdges()) / r.Median})
	out.Printf("mean of %d edges × %d columns on %d threads: %.3f ms, %.1f GB/s of rows%s\n", g.NumEdges(), *columns, t.threads, r.Median*1e3, rate.GBs, of(rate.Share, "GB/s of random rows", rate.Limit))
	return nil
}
