package plane

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
)

// Rows of sparse features that were written with room for the longest one are read as they were, with values and without,
// empty ones too. Rows that no rank of the same division can have sent are errors.
func TestSparseBook(t *testing.T) {
	for _, ones := range []bool{false, true} {
		ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 60, Features: 5})
		if err != nil {
			t.Fatal(err)
		}
		x := &dataset.Sparse{Rows: 60, Cols: 20, Indptr: []int64{0}}
		for v := range 60 {
			for c := range v % 6 {
				x.Indices, x.Values = append(x.Indices, int32(3*c)), append(x.Values, float32(v+c))
			}
			x.Indptr = append(x.Indptr, int64(len(x.Indices)))
		}
		if ones {
			x.Values = nil
		}
		ds.Features, ds.SparseFeatures = nil, x
		of := make([]int32, 60)
		for v := range of {
			of[v] = int32(v % 2)
		}
		dir := filepath.Join(t.TempDir(), "parts")
		if err := divided.Write(t.Context(), dir, ds, of, 2, divided.Options{}); err != nil {
			t.Fatal(err)
		}
		book, err := divided.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer book.Close()
		own := NewSparseBook(book, []bool{true, true}, 5, 2)
		if !own.Has(59) || own.Has(60) || NewSparseBook(book, []bool{true, false}, 5, 2).Has(1) {
			t.Error("nodes of parts that are here, and others, are taken for each other")
		}
		var m, again dataset.Matrix
		var got, want dataset.Sparse
		for _, ids := range [][]int32{{}, {0, 6}, {5, 59, 1, 4, 0, 11}} {
			rows := own.Reset(&m, len(ids))
			for i := range rows {
				rows[i] = 0xff // what is not written is not read
			}
			if err := own.Gather(rows, ids); err != nil {
				t.Fatal(err)
			}
			packed, full := own.pack(slices.Clone(rows)), own.Reset(&again, len(ids))
			if words := len(ids) + elements(x, ids)*map[bool]int{false: 2, true: 1}[ones]; len(packed) != 4*words {
				t.Errorf("rows %v take %d bytes on their way, want %d words", ids, len(packed), words)
			}
			by := &Exchange{Own: own, RowBytes: own.RowBytes(), Counts: &Counts{}}
			if err := by.check(1, packed, len(ids)); err != nil || by.Counts.Rows().Bytes != int64(len(packed)-len(rows)) {
				t.Errorf("rows %v on their way: %v, %+v", ids, err, by.Counts.Rows())
			}
			for what, err := range map[string]error{
				"too few": by.check(1, packed, len(ids)+1), "too many": by.check(1, append(slices.Clone(packed), 0, 0, 0, 0), len(ids)), "a longer one": by.check(1, slices.Concat([]byte{9, 0, 0, 0}, make([]byte, 72), packed), len(ids)+1),
			} {
				if err == nil || !strings.Contains(err.Error(), "rank 1 answered a request for") {
					t.Errorf("rows %v, %s: %v", ids, what, err)
				}
			}
			for i, rest := 0, packed; i < len(ids); i++ {
				for n := range rest {
					if k, err := own.packed(rest[:n]); (err == nil) != (k > 0) || k > n {
						t.Fatalf("%d bytes of rows %v begin with a row of %d, or %v", n, ids, k, err)
					}
				}
				n, err := own.packed(rest)
				if err != nil {
					t.Fatal(err)
				}
				own.unpack(full[i*own.RowBytes():(i+1)*own.RowBytes()], rest[:n])
				rest = rest[n:]
			}
			if err := own.Decode(&got, full); err != nil {
				t.Fatal(err)
			}
			x.Gather(ids, &want, 1)
			if got.Rows != len(ids) || got.Cols != 20 || !slices.Equal(got.Indptr, want.Indptr) || !slices.Equal(got.Indices, want.Indices) || !slices.Equal(got.Values, want.Values) || (got.Values == nil) != ones {
				t.Errorf("rows %v are %+v, want %+v", ids, got, want)
			}
		}
		rows := own.Reset(&m, 2)
		if err := own.Gather(rows, []int32{5, 4}); err != nil {
			t.Fatal(err)
		}
		words := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows)/4)
		for _, damage := range []struct {
			at   int
			word int32
		}{{0, 6}, {0, -1}, {1, 20}, {1, -1}, {own.words(), 1 << 30}} {
			old := words[damage.at]
			words[damage.at] = damage.word
			if n, err := own.packed(rows); damage.at == 0 && err == nil {
				t.Errorf("a row of %d elements is one of %d bytes", damage.word, n)
			}
			if err := own.Decode(&got, rows); err == nil {
				t.Errorf("a row whose word %d is %d is read as %v", damage.at, damage.word, reflect.ValueOf(got))
			}
			words[damage.at] = old
		}
		short := NewSparseBook(book, []bool{true, true}, 2, 1)
		rows = short.Reset(&m, 1)
		if err := short.Gather(rows, []int32{5}); err != nil {
			t.Fatal(err)
		}
		if short.Decode(&got, rows) == nil {
			t.Error("a row that is longer than the longest one is read")
		}
	}
}

// elements is the number of elements of some rows.
func elements(x *dataset.Sparse, ids []int32) (n int) {
	for _, v := range ids {
		n += int(x.Indptr[v+1] - x.Indptr[v])
	}
	return n
}
