package bulk

import (
	"strings"
	"testing"

	"google.golang.org/grpc/mem"

	"github.com/graphnb/graphnb/graphops/dataset"
)

func FuzzRowsRequest(f *testing.F) {
	q := RowsRequest{What: Labels, Nodes: []int32{1, -1, 1 << 30}}
	f.Add(q.Append(nil))
	f.Add([]byte("ROW1\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var q RowsRequest
		if q.Decode(b) != nil {
			return
		}
		if 4*len(q.Nodes) > len(b) || string(q.Append(nil)) != string(b) {
			t.Fatalf("%d bytes were decoded as %+v", len(b), q)
		}
	})
}

func FuzzSparse(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x80\x3f"), 1, true)
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x80\x3f"), 1, false)
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"), 1, true)
	f.Fuzz(func(t *testing.T, b []byte, rows int, ones bool) {
		if rows < 0 || rows > 1<<20 {
			return
		}
		var m dataset.Sparse
		if DecodeSparse(b, rows, 40, ones, &m) != nil {
			return
		}
		if err := m.Validate(); err != nil || SparseBytes(rows, int64(len(m.Indices)), ones) != int64(len(b)) || m.Rows != rows || (m.Values == nil) != ones {
			t.Fatalf("%d bytes were decoded as %+v (%v)", len(b), m, err)
		}
	})
}

// The codec accepts only frames; other services keep their own codec.
func TestCodec(t *testing.T) {
	var c codec
	if _, err := c.Marshal("text"); err == nil || !strings.Contains(err.Error(), "not a string") {
		t.Error(err)
	}
	if err := c.Unmarshal(nil, "text"); err == nil || !strings.Contains(err.Error(), "not a string") {
		t.Error(err)
	}
	f := Frame{Data: make([]byte, 1, 100)}
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer("ab"), mem.SliceBuffer("c")}, &f); err != nil || string(f.Data) != "abc" {
		t.Errorf("%q, %v", f.Data, err)
	}
}
