//go:build linux || darwin

package tensor_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// If a mapped file faults while a table is read, the result is an error that names the file, for
// every kernel and goroutine.
func TestFaultsInMappedTablesAreErrors(t *testing.T) {
	defer parallel.ShareFrom(parallel.ShareFrom(1))
	const rows, cols = 4000, 40
	path := filepath.Join(t.TempDir(), "features")
	if err := os.WriteFile(path, make([]byte, 4*rows*cols), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := mapped.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := os.Truncate(path, int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	table := unsafe.Slice((*float32)(unsafe.Pointer(&file.Bytes()[0])), rows*cols)
	ids := make([]int32, rows)
	h := graphops.HostBlock{NumDst: rows, NumSrc: rows, Indptr: make([]int64, 1, rows+1), Indices: make([]int32, 0, 2*rows)}
	for v := range rows {
		ids[v] = int32(v)
		h.Indices = append(h.Indices, int32(v/2), int32(rows-1-v/2))
		h.Indptr = append(h.Indptr, int64(len(h.Indices)))
	}
	b := h.Block()
	weights := slices.Repeat([]float32{0.5}, 2*rows)
	reads := map[string]func(f *tensor.Fwd){
		"Aggregate of rows":     func(f *tensor.Fwd) { f.Aggregate(b, f.RowsInput(table, cols, ids, nil), tensor.Mean) },
		"Dst of rows":           func(f *tensor.Fwd) { f.Dst(b, f.RowsInput(table, cols, ids, nil)).Data() },
		"Aggregate of a matrix": func(f *tensor.Fwd) { f.Aggregate(b, f.Input(rows, cols, table, nil), tensor.Mean) },
		"Max":                   func(f *tensor.Fwd) { f.Aggregate(b, f.Input(rows, cols, table, nil), tensor.Max) },
		"AggregateWeighted":     func(f *tensor.Fwd) { f.AggregateWeighted(b, f.Input(rows, cols, table, nil), weights, tensor.Sum) },
		"MatMul": func(f *tensor.Fwd) {
			f.MatMul(f.Input(rows, cols, table, nil), f.Input(cols, 3, weights[:3*cols], nil)).Data()
		},
		"Add":        func(f *tensor.Fwd) { f.Add(f.Input(rows, cols, table, nil), f.Input(rows, cols, table, nil)) },
		"LogSoftmax": func(f *tensor.Fwd) { f.LogSoftmax(f.Input(rows, cols, table, nil)) },
	}
	for p := simd.Go; p <= simd.Best(); p++ {
		t.Run(p.String(), func(t *testing.T) {
			defer simd.Use(simd.Use(p))
			for threads := 1; threads <= 3; threads++ {
				for name, read := range reads {
					err := mapped.Guard(func() error {
						read(tensor.NewFwd(tensor.Config{Threads: threads}))
						return nil
					})
					var fault *mapped.Fault
					if !errors.As(err, &fault) || fault.File != path || fault.Offset < int64(os.Getpagesize()) {
						t.Errorf("%s on %d threads: %v, want a fault of %s behind its first page", name, threads, err, path)
					}
				}
			}
		})
	}
}
