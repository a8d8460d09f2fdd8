package dataset_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

func ExampleKarate() {
	d := dataset.Karate()
	fmt.Println(d)
	fmt.Println("friends of the instructor:", d.Graph.InNeighbors(0))
	// Output:
	// karate: 34 nodes, 156 edges, 34 features, 2 classes; train 6, val 8, test 20; 5.7 KiB in memory
	// friends of the instructor: [1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31]
}

// A program's own arrays are written as a dataset directory, which NumPy can read too.
func ExampleWrite() {
	g, err := graphops.FromEdges(3, []int32{0, 1}, []int32{1, 2}, graphops.BuildOptions{Undirected: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := &dataset.Dataset{
		Graph:    g,
		Features: &dataset.Matrix{Rows: 3, Cols: 2, F32: []float32{1, 0, 0, 1, 1, 1}},
		Labels:   []int32{0, 1, -1},
		Splits:   map[string][]int32{"train": {0, 1}, "test": {2}},
		Meta:     dataset.Metadata{Name: "path", NumClasses: 2, Undirected: true, Licence: "CC0-1.0"},
	}
	tmp, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "path")
	if err := dataset.Write(dir, d); err != nil {
		fmt.Println(err)
		return
	}
	opened, err := dataset.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer opened.Close()
	fmt.Println(strings.ReplaceAll(opened.String(), tmp, "…"))
	fmt.Println(opened.Check(context.Background()))
	// Output:
	// path: 3 nodes, 4 edges, 2 features, 2 classes; train 2, test 1; 96 B in …/path
	// <nil>
}

// Arrays that NumPy wrote are read with their shape, whatever their type.
func ExampleReadArray() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "parts.npy")
	if err := dataset.WriteIDs(path, []int32{2, 0, 1}); err != nil { // numpy.save writes the same
		fmt.Println(err)
		return
	}
	shape, values, err := dataset.ReadArray[int64](path)
	fmt.Println(shape, values, err)
	// Output: [3] [2 0 1] <nil>
}

func ExampleMatrix_Gather() {
	x := dataset.Matrix{Rows: 3, Cols: 2, F32: []float32{1, 2, 3, 4, 5, 6}}
	rows := make([]float32, 4)
	x.Gather(rows, []int32{2, 0}, 0)
	fmt.Println(rows)
	// Output: [5 6 1 2]
}
