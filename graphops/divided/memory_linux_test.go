package divided_test

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Dividing a graph takes memory for pieces of what its edges have, not for those of a part: here the largest part has
// 100 MB of features and times of edges. Every edge keeps what it has.
func TestWriteMemory(t *testing.T) {
	testneed.NotShort(t, "it divides 110 MB of edge features")
	const nodes, degree, cols = 11_000, 40, 60
	dir := t.TempDir()
	writeEdges(t, dir+"/whole", nodes, degree, cols)
	ds, err := dataset.Open(dir + "/whole")
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	of := make([]int32, nodes)
	for v := range of {
		if v%11 == 3 {
			of[v] = 1
		}
	}
	debug.FreeOSMemory()
	before := resident(t)
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(time.Millisecond):
				most = max(most, resident(t))
			}
		}
	}()
	err = divided.Write(t.Context(), filepath.Join(dir, "parts"), ds, of, 2, divided.Options{})
	close(stop)
	took := <-peak - before
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("dividing took %d MB", took>>20)
	if largest := int64(nodes) * 10 / 11 * degree * (4*cols + 8); took > largest/2 {
		t.Errorf("dividing took %d MB of memory, and what the edges of the largest part have is %d MB", took>>20, largest>>20)
	}
	for p := range 2 {
		part, err := dataset.OpenPart(dataset.PartDir(filepath.Join(dir, "parts"), p))
		if err != nil {
			t.Fatal(err)
		}
		defer part.Close()
		own := 0
		for v := range int32(nodes) {
			if int(of[v]) != p {
				continue
			}
			to, from := part.Graph.Indptr[own], ds.Graph.Indptr[v]
			own++
			if !slices.Equal(part.Graph.EdgeTimes[to:to+degree], ds.Graph.EdgeTimes[from:from+degree]) ||
				!slices.Equal(part.Graph.EdgeFeatures.F32[to*cols:(to+degree)*cols], ds.Graph.EdgeFeatures.F32[from*cols:(from+degree)*cols]) {
				t.Fatalf("part %d: the edges of node %d have other features or times", p, v)
			}
		}
	}
}

// writeEdges writes a dataset whose nodes have degree in-edges with features and times.
func writeEdges(t *testing.T, dir string, nodes, degree, cols int) {
	t.Helper()
	g := &graphops.Graph{Indptr: []int64{0}}
	x := &graphops.EdgeFeatures{Cols: cols, F32: make([]float32, nodes*degree*cols)}
	for i := range x.F32 {
		x.F32[i] = float32(i % 1_000_003)
	}
	var times []int64
	for v := range nodes {
		for k := range degree {
			g.Indices, times = append(g.Indices, int32((v+k*(nodes/degree))%nodes)), append(times, int64(v*k))
		}
		slices.Sort(g.Indices[v*degree:])
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	if err := dataset.Write(dir, &dataset.Dataset{Graph: g.WithEdgeData(x, times), Splits: map[string][]int32{}, Meta: dataset.Metadata{Name: "edges"}}); err != nil {
		t.Fatal(err)
	}
}

// resident is the memory of this process without pages of files.
func resident(t *testing.T) int64 {
	own, _, err := machine.Resident(os.Getpid())
	if err != nil {
		t.Error(err)
	}
	return own
}
