package bulk

import (
	"strings"
	"testing"

	"google.golang.org/grpc/mem"
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
			t.Fatalf("%d bytes became %+v", len(b), q)
		}
	})
}

// The codec takes frames only; other services keep theirs.
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
