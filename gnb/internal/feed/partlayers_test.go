package feed

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// sends is a Comm in which rank 1 sends n bytes to rank 0.
type sends struct {
	collective.Comm
	n int
}

func (c sends) AllToAll(_ collective.Site, send [][]byte) ([][]byte, error) {
	return [][]byte{send[0], make([]byte, c.n)}, nil
}

// If another rank sends too few rows, rank 0 reports an error and writes no zeros in their place.
func TestPieceNeedsAllRows(t *testing.T) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 60, Features: 5})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "parts")
	of := make([]int32, ds.Nodes())
	for v := range of {
		of[v] = int32(v % 2)
	}
	if err := divided.Write(t.Context(), dir, ds, of, 2, divided.Options{}); err != nil {
		t.Fatal(err)
	}
	book, err := divided.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	p, err := NewParts(book.Dataset(), 0, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const cols = 3
	r := &PartRows{Cols: cols, p: p, rows: [][]float32{make([]float32, 30*cols), nil}}
	for n, want := range map[int]string{
		5 * 4 * cols: "", 4 * 4 * cols: "rank 1 sent too few rows", 5*4*cols - 1: "rank 1 sent too few rows", 0: "rank 1 sent too few rows", 6 * 4 * cols: "rank 1 sent 12 bytes more",
	} {
		rows, err := r.piece(sends{n: n}, collective.Site{}, 0, 10)
		if want == "" && (err != nil || len(rows) != 10*cols) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes: %d elements, error %v", n, len(rows), err)
		}
	}
}
