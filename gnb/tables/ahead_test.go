package tables

import (
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// numbered is a table of whole numbers, in one batch.
type numbered struct {
	names   []string
	columns []any
}

func (n numbered) Columns() ([]string, iter.Seq[[]any]) {
	return n.names, slices.Values([][]any{n.columns})
}

// Parquet files of several batches, which are read ahead while ids of whole numbers are looked up, make the dataset that CSV
// files make; and a defect in any batch ends both the reading and the goroutine that reads ahead.
func TestReadAhead(t *testing.T) {
	const n = 3*batchRows + 100
	files := func(dir string, edit func(ids, src, dst []int64)) (parquet, text Files) {
		var ids, labels, src, dst []int64
		for i := range int64(n) {
			ids, labels = append(ids, (i*7919)%n*11+5), append(labels, i%3)
			src, dst = append(src, (i*31)%n*11+5), append(dst, (i*i)%n*11+5)
		}
		if edit != nil {
			edit(ids, src, dst)
		}
		var nodes, edges strings.Builder
		nodes.WriteString("id,label\n")
		edges.WriteString("source,target\n")
		for i := range ids {
			fmt.Fprintf(&nodes, "%d,%d\n", ids[i], labels[i])
			fmt.Fprintf(&edges, "%d,%d\n", src[i], dst[i])
		}
		write(t, dir, map[string]string{"nodes.csv": nodes.String(), "edges.csv": edges.String()})
		for name, of := range map[string]numbered{"nodes": {[]string{"id", "label"}, []any{ids, labels}}, "edges": {[]string{"source", "target"}, []any{src, dst}}} {
			if err := Write(filepath.Join(dir, name+".parquet"), of); err != nil {
				t.Fatal(err)
			}
		}
		return Of(dir+"/nodes.parquet", dir+"/edges.parquet"), Of(dir+"/nodes.csv", dir+"/edges.csv")
	}
	dir := t.TempDir()
	parquet, text := files(dir, nil)
	a, b := read(t, dir+"/a", parquet, Options{Seed: 3}), read(t, dir+"/b", text, Options{Seed: 3})
	if x, y := arrays(t, a), arrays(t, b); x != y {
		t.Errorf("Parquet makes %s, and CSV %s", x, y)
	}
	before := runtime.NumGoroutine()
	for want, edit := range map[string]func(ids, src, dst []int64){
		"is that of row 6 too":             func(ids, _, _ []int64) { ids[2*batchRows+9] = ids[5] },
		"nodes.parquet: row 3":             func(ids, _, _ []int64) { ids[2] = ids[0] },
		`the target "7" is the id of no`:   func(_, _, dst []int64) { dst[batchRows+1] = 7 },
		"edges.parquet: row 1: the source": func(_, src, _ []int64) { src[0] = -4 },
	} {
		dir := t.TempDir()
		parquet, _ := files(dir, edit)
		if _, err := Read(t.Context(), dir+"/ds", parquet, Options{Quiet: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d goroutines are left, and there were %d", runtime.NumGoroutine(), before)
}
