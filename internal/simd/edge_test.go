package simd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/fence"
)

// edge returns slices that touch an unreadable page: at their end or, with behind, at their
// beginning. Slices of one type and number share memory.
type edge struct {
	t      *testing.T
	behind bool
	lent   map[string]any
}

// edgeRows is the number of rows of the longest size that a slice can hold.
const edgeRows = 40

func lend[T any](e *edge, number, n int) []T {
	most := edgeRows * sizes[len(sizes)-1]
	key := fmt.Sprintf("%T %d", *new(T), number)
	all, ok := e.lent[key].([]T)
	switch {
	case ok:
	case e.behind:
		all = fence.SliceBehind[T](e.t, most)
	default:
		all = fence.Slice[T](e.t, most)
	}
	e.lent[key] = all
	if e.behind {
		return all[:n]
	}
	return all[most-n:]
}

// try fails the test if a call faults.
func (e *edge) try(name string, n int, call func()) {
	e.t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			e.t.Fatalf("%s of %d elements, the fence before them %v: %v", name, n, e.behind, r)
		}
	}()
	call()
}

// No kernel reads or writes an element outside of its slices, for any length. Other tests check the
// results.
func TestKernelsStayWithinTheirSlices(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		for _, behind := range []bool{false, true} {
			e := &edge{t: t, behind: behind, lent: map[string]any{}}
			for _, n := range sizes[1:] {
				e.streams(n)
				for _, ids := range []int{1, 3, edgeRows} {
					e.rows(n, ids)
				}
			}
		}
	})
}

func (e *edge) streams(n int) {
	f := func(i int) []float32 { return lend[float32](e, i, n) }
	o, x, y, z := f(0), f(1), f(2), f(3)
	bits := lend[byte](e, 0, (n+7)/8)
	c0, c1 := lend[uint32](e, 0, len(bits)), lend[uint32](e, 1, len(bits))
	step := AdamStep{Root: 1, Eps: 1e-8}
	e.try("Add", n, func() { Add(o, x) })
	e.try("Axpy", n, func() { Axpy(o, x, 2) })
	e.try("Scale", n, func() { Scale(o, x, 2) })
	e.try("ReLU", n, func() { ReLU(o, x) })
	e.try("LeakyReLU", n, func() { LeakyReLU(o, x, 0.1) })
	e.try("Exp", n, func() { Exp(o, x, 0) })
	e.try("Normal", n, func() { Normal(o, x, y) })
	e.try("Log1p", n, func() { Log1p(o, x) })
	e.try("Cosines", n, func() { Cosines(o, lend[float64](e, 0, n), lend[float64](e, 1, n), 3) })
	e.try("Greatest", n, func() { Greatest(x) })
	e.try("LogSoftmax", n, func() { LogSoftmax(o, x) })
	e.try("LogSumExp", n, func() { LogSumExp(x) })
	e.try("LogSumExpTop", n, func() { LogSumExpTop(x) })
	e.try("Sum", n, func() { Sum(x) })
	e.try("Dot", n, func() { Dot(x, y) })
	e.try("Finite", n, func() { Finite(x) })
	e.try("NotFinite", n, func() { NotFinite(x) })
	e.try("SGD", n, func() { SGD(o, x, 0.1, 1, 0) })
	e.try("Adam", n, func() { Adam(o, x, y, z, &step) })
	e.try("KeepReLU", n, func() { KeepReLU(o, x, bits, 2) })
	e.try("KeepReLU without bias", n, func() { KeepReLU(o, nil, bits, 2) })
	e.try("KeepBits", n, func() { KeepBits(bits, 1, [4]uint32{2, 0, 3, 4}, 1<<15) })
	e.try("KeepBitsAt", n, func() { KeepBitsAt(bits, 1, c0, c1, 3, 4, 1<<15) })
	cols, keep := lend[int32](e, 0, n), lend[byte](e, 1, n)
	e.try("KeepColumns", n, func() { KeepColumns(o, x, cols, keep, 2) })
	e.try("KeepColumns of ones", n, func() { KeepColumns(o, nil, cols, keep, 2) })
	e.try("Ascending", n, func() { Ascending([]int64{0, int64(n)}, lend[int32](e, 0, n), n) })
	e.try("Holds", n, func() { (&Rows{Data: x, Stride: n}).Holds(lend[int32](e, 0, n), n) })
	for _, on := range []bool{false, true} {
		e.try("Plus", n, func() { Plus(o, x, y, on) })
		e.try("Minus", n, func() { Minus(o, x, y, on) })
		e.try("Times", n, func() { Times(o, x, y, on) })
		e.try("ReLUGrad", n, func() { ReLUGrad(o, x, y, on) })
		e.try("LeakyReLUGrad", n, func() { LeakyReLUGrad(o, x, y, 0.1, on) })
		e.try("LogSoftmaxGrad", n, func() { LogSoftmaxGrad(o, x, y, on) })
		e.try("Mask", n, func() { Mask(o, x, bits, 2, on) })
		e.try("Momentum", n, func() { Momentum(o, x, y, 0.1, 1, 0, 0.9, on) })
	}
}

// rows tries the kernels that take rows, with n rows of a table whose last row and last id touch
// the unreadable page.
func (e *edge) rows(cols, n int) {
	const rows = 3
	table := &Rows{Data: lend[float32](e, 4, rows*cols), Stride: cols}
	ids, at, via := lend[int32](e, 0, n), lend[int32](e, 1, n), lend[int32](e, 2, rows)
	for i := range ids {
		ids[i], at[i] = int32(rows-1-i%rows), int32(i)
	}
	for i := range via {
		via[i] = int32(rows - 1 - i)
	}
	named := &Rows{Data: table.Data, Stride: cols, Via: via}
	o, arg, args := lend[float32](e, 0, cols), lend[uint32](e, 0, cols), lend[uint32](e, 1, rows*cols)
	w, out, gathered := lend[float32](e, 5, n), lend[float32](e, 6, n), lend[float32](e, 7, n*cols)
	for i := range w {
		w[i] = 1
	}
	half := &Rows{Half: lend[uint16](e, 0, rows*cols), Stride: cols}
	namedHalf := &Rows{Half: half.Half, Stride: cols, Via: via}
	e.try("FromHalf", cols, func() { FromHalf(o, half.Half[:cols]) })
	e.try("ToHalf", cols, func() { ToHalf(half.Half[:cols], o) })
	for i, t := range []*Rows{half, namedHalf} {
		e.try("SumRows of float16", cols, func() { SumRows(o, t, ids, n, 1, i > 0) })
		e.try("WeightedSumRows of float16", cols, func() { WeightedSumRows(o, t, ids, n, w, 1, at, i > 0) })
		e.try("GatherRows of float16", cols, func() { GatherRows(gathered, t, cols, ids) })
	}
	for _, on := range []bool{false, true} {
		t := table
		if on {
			t = named
		}
		e.try("SumRows", cols, func() { SumRows(o, t, ids, n, 1, on) })
		e.try("SumRows of the first of some ids", cols, func() { SumRows(o, t, ids, (n+1)/2, 1, on) })
		e.try("WeightedSumRows", cols, func() { WeightedSumRows(o, t, ids, n, w, 1, nil, on) })
		e.try("WeightedSumRows by place", cols, func() { WeightedSumRows(o, t, ids, n, w, 1, at, on) })
		e.try("SumRowsWhere", cols, func() { SumRowsWhere(o, table, ids, n, args, at, on) })
		e.try("GatherRows", cols, func() { GatherRows(gathered, t, cols, ids) })
		e.try("GatherRowsFar", cols, func() { GatherRowsFar(gathered, t, cols, ids) })
	}
	indptr, sums := lend[int64](e, 0, 4), lend[float32](e, 8, 3*cols)
	for i := range indptr {
		indptr[i] = int64(i * n / 3)
	}
	for _, on := range []bool{false, true} {
		e.try("SumSegments", cols, func() { SumSegments(sums, table, cols, indptr, ids, on, on) })
		e.try("WeightedSumSegments", cols, func() { WeightedSumSegments(sums, table, cols, indptr, ids, w, nil, on) })
		e.try("WeightedSumSegments by place", cols, func() { WeightedSumSegments(sums, table, cols, indptr, ids, w, at, on) })
	}
	y, dy, inv := lend[float32](e, 9, n*cols), lend[float32](e, 10, n*cols), lend[float32](e, 11, n)
	e.try("NormRows", cols, func() { NormRows(y, inv, gathered, cols, 1e-5) })
	for _, on := range []bool{false, true} {
		e.try("NormRowsGrad", cols, func() { NormRowsGrad(gathered, dy, y, inv, cols, on) })
	}
	e.try("ScatterSegments", cols, func() { ScatterSegments(table.Data, sums, cols, indptr, ids, nil) })
	e.try("ScatterSegments with weights", cols, func() { ScatterSegments(table.Data, sums, cols, indptr, ids, w) })
	e.try("Ascending", n, func() { Ascending(indptr, ids, rows) })
	e.try("MaxRows", cols, func() { MaxRows(o, arg, table, ids, n, 0) })
	e.try("MaxRows without arg", cols, func() { MaxRows(o, nil, table, ids, n, 0) })
	e.try("DotRows", cols, func() { DotRows(out, 1, o, table, ids, n) })
	edges := &TypedEdges{Types: lend[uint16](e, 1, n), Shares: w, Coef: []float32{2}, Bases: 1}
	e.try("TypedShares", n, func() { TypedShares(out, edges.Types, []int32{0}) })
	e.try("TypedEdges.Sum", cols, func() { edges.Sum(o, table, cols, ids, 0) })
	e.try("TypedEdges.SumBack", cols, func() { edges.SumBack(o, table, cols, ids, at, true) })
	e.try("TypedEdges.Dot", cols, func() { edges.Dot([]float64{0}, o, table, cols, ids, 0) })
}

// The list above contains every function.
func TestEdgesOfAllFunctions(t *testing.T) {
	without := map[string]bool{"Best": true, "Class": true, "Use": true, "CopyGBs": true, "RandomRowGBs": true, "QuickGBs": true}
	tried, err := os.ReadFile("edge_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ([A-Z]\w*)\(`)
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			f := string(m[1])
			if found++; !without[f] && !strings.Contains(string(tried), " "+f+"(") {
				t.Errorf("%s is not tested at the edge of a page: add it to streams or rows", f)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d functions were found", found)
	}
}
