package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// memory is a DeviceMemory with room for a number of rows.
type memory struct {
	room, cols int
	rows       []byte
	err        error
}

func (m *memory) Room(rows, cols int, half bool) (int, error) {
	m.cols = cols
	m.rows = make([]byte, min(rows, m.room)*4*cols)
	return min(rows, m.room), m.err
}

func (m *memory) Put(first int, rows []byte) error {
	copy(m.rows[first*4*m.cols:], rows)
	return nil
}

// evens has the rows of even nodes; a row is the node's number. As a source it has all rows.
type evens struct{ onDisk }

func (evens) Has(v int32) bool { return v%2 == 0 }

func (e evens) Gather(dst []byte, ids []int32) error { return e.Rows(context.Background(), ids, dst) }

func (e evens) Rows(_ context.Context, ids []int32, dst []byte) error {
	for i, v := range ids {
		binary.LittleEndian.PutUint32(dst[i*e.RowBytes():], math.Float32bits(float32(v)))
	}
	return nil
}

// The rows that are read most stay on the GPU, as many as there is room for; a read of a row from elsewhere counts five times.
// Batches ask for the others alone.
func TestRowsOnDevice(t *testing.T) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 100, Features: 2, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	own := evens{onDisk{ds.Features}}
	for _, c := range []struct {
		size string
		room int
		want []int32
		note string
	}{
		{"4%", 100, []int32{3, 5, 92, 94}, "the GPU of rank 0 keeps the 4 rows that batches read most (32 B)"},
		{"16B", 100, []int32{5, 92}, "the GPU of rank 0 keeps the 2 rows"},
		{"3", 100, []int32{3, 5, 90, 92, 94}, "the GPU of rank 0 keeps the 5 rows"},
		{"4%", 1, []int32{92}, "the GPU of rank 0 keeps the 1 row that batches read most (8 B) (it has no room for the 4 rows that GPUCache \"4%\" means)"},
		{"50%", 0, nil, "no rows of features stay on the GPU of rank 0 (it has no room for the 5 rows that"},
	} {
		score := make([]float32, 100)
		score[92], score[94], score[90], score[5], score[3] = 100, 60, 20, 16, 13 // 5 and 3 count as 80 and 65
		d := &memory{room: c.room}
		said := ""
		f := &Fetcher{
			o: PlaneOptions{GPUCache: c.size}, team: teamOf(collective.NewSingle(), ds), data: ds, own: own, source: own,
			at: Place{Note: func(format string, args ...any) { said += fmt.Sprintf(format, args...) }},
		}
		if err := f.Stay(score, d); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(said, c.note) {
			t.Errorf("%s: %q, want %q", c.size, said, c.note)
		}
		var ids []int32
		for i := range len(d.rows) / 8 {
			ids = append(ids, int32(math.Float32frombits(binary.LittleEndian.Uint32(d.rows[8*i:]))))
		}
		if !slices.Equal(ids, c.want) {
			t.Errorf("%s: rows %v are on the device, want %v", c.size, ids, c.want)
		}
		for _, v := range c.want {
			if score[v] != 0 {
				t.Errorf("%s: node %d can be in the host's cache too", c.size, v)
			}
		}
		rest, places := f.split([]int32{7, 92, 8, 94, 7})
		at := map[int32]int32{}
		for i, v := range c.want {
			at[v] = int32(i)
		}
		if c.want == nil {
			if places != nil || len(rest) != 5 {
				t.Errorf("%v, %v without rows on the device", rest, places)
			}
			continue
		}
		n, where := int32(0), []int32{}
		for _, v := range []int32{7, 92, 8, 94, 7} {
			if i, ok := at[v]; ok {
				where = append(where, i)
				continue
			}
			where = append(where, int32(len(c.want))+n)
			n++
		}
		if r := f.Counts(); !slices.Equal(places, where) || len(rest) != int(n) || r.GPU != int64(5-n) || r.Copied != int64(8*n) {
			t.Errorf("%s: places %v, want %v; %d rows asked for, want %d; %+v", c.size, places, where, len(rest), n, *r)
		}
	}
	lost := errors.New("device lost")
	f := &Fetcher{o: PlaneOptions{GPUCache: "1"}, team: teamOf(collective.NewSingle(), ds), data: ds, own: own, source: own}
	if err := f.Stay(make([]float32, 100), &memory{err: lost}); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
}
