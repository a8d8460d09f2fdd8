package flight

import (
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/internal/mapped"
)

// maxRow is the largest size of a row in bytes: a record batch has at least one, and must fit a message.
const maxRow = bulk.MaxFrame

// rowBytes is about the size of a row.
func (r *request) rowBytes() (n int64) {
	for _, c := range r.columns {
		n += int64(c.bytes)
	}
	return n
}

// span returns the rows of a part that the nodes from ≤ id < to have: nodes, or their in-edges.
func (r *request) span(p *piece, from, to int32) (lo, hi int64) {
	lo, hi = int64(p.row(from)), int64(p.row(to))
	if r.Table == edgesTable {
		return p.graph.Indptr[lo], p.graph.Indptr[hi]
	}
	return lo, hi
}

// size returns the rows and about the bytes of a range of a part.
func (r *request) size(p *piece, from, to int32) (rows, bytes int64) {
	lo, hi := r.span(p, from, to)
	return hi - lo, (hi - lo) * r.rowBytes()
}

// cut returns the end of the longest range of about that many bytes that begins at from; it has a node at least.
func (r *request) cut(p *piece, from int32, bytes int64) int32 {
	n := sort.Search(int(r.to-from), func(n int) bool {
		_, size := r.size(p, from, from+int32(n)+1)
		return size > bytes
	})
	return from + int32(max(1, n))
}

// DoGet sends the rows of a ticket.
func (s *Server) DoGet(t *flight.Ticket, g flight.FlightService_DoGetServer) error {
	r, err := s.parse(t.GetTicket())
	if err != nil {
		return err
	}
	w := ipc.NewWriterWithPayloadWriter(payloads{g}, ipc.WithSchema(r.schema))
	err = mapped.Guard(func() error {
		for _, p := range r.parts {
			if err := r.send(p, w, g); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = w.Close() // sends the schema if there was no row
	}
	return err
}

// send sends the rows of a part in record batches of at most a message each.
func (r *request) send(p *piece, w *ipc.Writer, g grpc.ServerStream) error {
	lo, hi := r.span(p, r.from, r.to)
	for lo < hi {
		if err := g.Context().Err(); err != nil {
			return status.FromContextError(err).Err()
		}
		next, err := r.batchEnd(p, lo, hi)
		if err != nil {
			return err
		}
		columns := make([]arrow.Array, len(r.columns))
		for i, c := range r.columns {
			columns[i] = array.MakeFromData(c.values(p, lo, next))
		}
		if err := w.Write(array.NewRecordBatch(r.schema, columns, next-lo)); err != nil {
			return err
		}
		lo = next
	}
	return nil
}

// batchEnd returns the row after those of the record batch that begins with row lo.
func (r *request) batchEnd(p *piece, lo, hi int64) (int64, error) {
	const room = bulk.MaxFrame - 64<<10 // for the header, and the padding of each buffer
	fixed, lists := int64(0), int64(0)
	for _, c := range r.columns {
		switch c.field.Name {
		case "feature_indices", "feature_values":
			lists++
			fixed += 4
		default:
			fixed += int64(c.bytes)
		}
	}
	n := min(hi-lo, max(1, room/max(1, fixed)))
	if lists > 0 {
		indptr := p.sparse.Indptr[lo-p.base:]
		n = int64(sort.Search(int(n), func(n int) bool {
			rows := int64(n) + 1
			return rows*fixed+4*lists*(indptr[rows]-indptr[0]) > room
		}))
		if n == 0 {
			fixed += 4 * lists * (indptr[1] - indptr[0])
			n = 1
		}
	}
	if n == 1 && fixed > maxRow {
		return 0, status.Errorf(codes.ResourceExhausted, "flight: a row has %d bytes, and a record batch at most %d; choose other columns", fixed, maxRow)
	}
	return lo + n, nil
}

// payloads sends the messages of an Arrow stream. It copies the columns, which may be in mapped files, once: into a
// buffer that has the encoding of flight.FlightData.
type payloads struct{ g grpc.ServerStream }

func (payloads) Start() error { return nil }
func (payloads) Close() error { return nil }

// The numbers of FlightData's fields in Flight.proto.
const (
	dataHeader protowire.Number = 2
	dataBody   protowire.Number = 1000
)

func (w payloads) WritePayload(p ipc.Payload) error {
	meta := p.Meta()
	defer meta.Release()
	var size counter
	if err := p.SerializeBody(&size); err != nil {
		return err
	}
	head := protowire.AppendTag(nil, dataHeader, protowire.BytesType)
	head = protowire.AppendBytes(head, meta.Bytes())
	head = protowire.AppendTag(head, dataBody, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(size))
	pool := mem.DefaultBufferPool()
	b := pool.Get(len(head) + int(size))
	out := filler{(*b)[:copy(*b, head)]}
	// The writer of the stream turns panics into errors, so the fault of a mapped file is caught here.
	if err := mapped.Guard(func() error { return p.SerializeBody(&out) }); err != nil {
		pool.Put(b)
		return err
	}
	return w.g.SendMsg(&bulk.Frame{Out: mem.BufferSlice{mem.NewBuffer(b, pool)}})
}

// counter counts the bytes written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// filler appends to memory that is large enough.
type filler struct{ b []byte }

func (f *filler) Write(b []byte) (int, error) {
	f.b = append(f.b, b...)
	return len(b), nil
}
