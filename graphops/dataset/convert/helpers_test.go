package convert

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// one writes one file and returns its path.
func one(t testing.TB, name, text string) string {
	t.Helper()
	return filepath.Join(putFile(t, map[string]string{name: text}), name)
}

func gz(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // cannot fail: writes into memory
	_ = w.Close()
	return b.String()
}

// npyFile returns a .npy file; values is a slice of numbers.
func npyFile(descr, shape string, values any) string {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	dict += strings.Repeat(" ", 63-(10+len(dict))%64) + "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(dict))))
	b.WriteString(dict)
	if err := binary.Write(&b, binary.LittleEndian, values); err != nil {
		panic(err)
	}
	return b.String()
}

// npzFile returns a .npz file of the arrays.
func npzFile(arrays map[string]string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range arrays {
		f, err := w.Create(name + ".npy")
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

// converted converts src and opens the result.
func converted(t testing.TB, src string, o Options) (d *dataset.Dataset, stats Stats) {
	t.Helper()
	d = testConverted(t, func(dst string) (err error) {
		stats, err = Convert(t.Context(), src, dst, o)
		return err
	})
	if stats.Nodes != d.Nodes() || stats.Edges != d.Edges() || stats.Features != d.FeatureDim() || stats.Classes != d.Classes() {
		t.Errorf("stats are %+v of %s", stats, d)
	}
	return d, stats
}

// refused converts src and expects a one-line error that contains all words, and no destination.
func refused(t *testing.T, src string, o Options, words ...string) {
	t.Helper()
	testRefused(t, src, func(dst string) error {
		_, err := Convert(t.Context(), src, dst, o)
		return err
	}, words...)
}

// The hand graph: 0→1, 0→2, 1→2, 2→3, and node 4 without edges in formats that store the number of
// nodes.
var handEdges = [][2]int32{{0, 1}, {0, 2}, {1, 2}, {2, 3}}

func handGraph(t testing.TB, nodes int, undirected bool) *graphops.Graph {
	t.Helper()
	var src, dst []int32
	for _, e := range handEdges {
		src, dst = append(src, e[0]), append(dst, e[1])
	}
	g, err := graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{Undirected: undirected})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func sameGraph(t testing.TB, got, want *graphops.Graph) {
	t.Helper()
	if !slices.Equal(got.Indptr, want.Indptr) || !slices.Equal(got.Indices, want.Indices) {
		t.Errorf("the graph is %v %v, want %v %v", got.Indptr, got.Indices, want.Indptr, want.Indices)
	}
}

// realData returns the path of a file or folder of the public data, or skips the test.
func realData(t testing.TB, name string) string {
	t.Helper()
	return testneed.RealData(t, name)
}
