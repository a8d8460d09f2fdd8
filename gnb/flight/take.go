package flight

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// takeIn has the tables that came in and are not built yet. Each stream is a file of an Arrow stream.
type takeIn struct {
	dir      string
	most     int64 // bytes
	threads  int
	building chan struct{} // has an entry while a graph is built

	mu      sync.Mutex
	used    int64 // bytes
	uploads map[string]*upload
}

// upload is the tables of one name. The mutex of takeIn guards it.
type upload struct {
	name   string
	dir    *atomicfile.Dir
	tables map[string]*uploadTable
	open   int // streams
	next   int // number of the next stream
	busy   bool
	last   time.Time // when something last came
}

// uploadTable is a table of an upload.
type uploadTable struct {
	layout *layout
	files  []string
	rows   int64
	cost   int64
}

const (
	// maxUploads bounds the names that are taken in and not built; when there are so many, those that nothing came for
	// in staleUpload are removed.
	maxUploads  = 16
	staleUpload = time.Hour
	// uploadDir is the base of the names of temporary directories.
	uploadDir = "flight-upload"
)

func newTakeIn(o Options) (*takeIn, error) {
	dir, err := filepath.Abs(o.TakeIn)
	if err == nil {
		err = atomicfile.MkdirAll(dir, 0o777)
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(dir)
	}
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a directory")
	}
	if err != nil {
		return nil, fmt.Errorf("flight: the directory for tables to take in, %s: %w", o.TakeIn, err)
	}
	return &takeIn{dir: dir, most: o.TakeInBytes, threads: o.Threads, building: make(chan struct{}, 1), uploads: map[string]*upload{}}, nil
}

func (t *takeIn) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, u := range t.uploads {
		u.dir.Remove()
	}
	t.uploads = map[string]*upload{}
}

// taken refuses the name of a dataset that exists.
func (t *takeIn) taken(name string) error {
	if err := convert.CheckName(name); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if _, err := os.Lstat(filepath.Join(t.dir, name)); err == nil {
		return status.Errorf(codes.AlreadyExists, "flight: there is a dataset %s already; choose another name", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return failed(err)
	}
	return nil
}

// stream is one stream of a table, that is coming in.
type stream struct {
	t      *takeIn
	u      *upload
	layout *layout
	path   string
	file   *os.File
	buffer *bufio.Writer
	w      *ipc.Writer
	rows   int64
	cost   int64
}

// begin begins a stream of a table of that name.
func (t *takeIn) begin(name string, l *layout, schema *arrow.Schema) (*stream, error) {
	if err := t.taken(name); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.uploads[name]
	switch {
	case u == nil:
		t.removeStale()
		if len(t.uploads) >= maxUploads {
			return nil, status.Errorf(codes.ResourceExhausted, "flight: the tables of %d datasets wait to be built; build or discard some", len(t.uploads))
		}
		dir, err := atomicfile.NewDir(t.dir, uploadDir)
		if err != nil {
			return nil, failed(err)
		}
		u = &upload{name: name, dir: dir, tables: map[string]*uploadTable{}}
		t.uploads[name] = u
	case u.busy:
		return nil, status.Errorf(codes.FailedPrecondition, "flight: %s is being built; wait for that, or choose another name", name)
	}
	if old := u.tables[l.table]; old != nil {
		if err := l.same(old.layout); err != nil {
			return nil, invalid("%s of %s: %v", l.table, name, err)
		}
	}
	path := filepath.Join(u.dir.Path, fmt.Sprintf("%s-%d.arrows", l.table, u.next))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, failed(err)
	}
	u.next++
	u.open++
	u.last = time.Now()
	buffer := bufio.NewWriterSize(f, 256<<10)
	return &stream{t: t, u: u, layout: l, path: path, file: f, buffer: buffer, w: ipc.NewWriter(buffer, ipc.WithSchema(schema))}, nil
}

// removeStale removes the uploads that nothing came for in a long time, when there are many.
func (t *takeIn) removeStale() {
	for _, u := range t.uploads {
		if len(t.uploads) >= maxUploads && u.open == 0 && !u.busy && time.Since(u.last) > staleUpload {
			t.remove(u)
		}
	}
}

// remove removes an upload. The caller holds the mutex.
func (t *takeIn) remove(u *upload) {
	for _, table := range u.tables {
		t.used -= table.cost
	}
	u.dir.Remove()
	delete(t.uploads, u.name)
}

// add checks a record batch and stores it.
func (s *stream) add(b arrow.RecordBatch) error {
	var err error
	if s.layout.table == nodesTable {
		_, err = s.layout.nodes(b)
	} else {
		_, err = s.layout.edges(b)
	}
	if err != nil {
		return invalid("%s of %s: %v", s.layout.table, s.u.name, err)
	}
	cost := b.NumRows() * s.layout.rowCost()
	s.t.mu.Lock()
	if s.t.used+cost > s.t.most {
		s.t.mu.Unlock()
		return status.Errorf(codes.ResourceExhausted, "flight: the tables that were taken in and are not built take more than %d bytes; build or discard some, or start the server with a larger --take-in-bytes", s.t.most)
	}
	s.t.used += cost
	s.cost += cost
	s.rows += b.NumRows()
	s.u.last = time.Now()
	s.t.mu.Unlock()
	err = s.w.Write(b)
	if err != nil && !isSystem(err) { // the library found that the arrays contradict each other
		return invalid("%s of %s: %v", s.layout.table, s.u.name, errBatch)
	}
	return failed(err)
}

// end ends a stream: it counts if err is nil, and is as if it had never come otherwise.
func (s *stream) end(err error) error {
	if err == nil {
		err = failed(errors.Join(s.w.Close(), s.buffer.Flush()))
	}
	if e := s.file.Close(); err == nil {
		err = failed(e)
	}
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.u.open--
	table := s.u.tables[s.layout.table]
	if err == nil && table != nil { // another stream may have been the first meanwhile
		if e := s.layout.same(table.layout); e != nil {
			err = invalid("%s of %s: %v", s.layout.table, s.u.name, e)
		}
	}
	if err != nil {
		_ = os.Remove(s.path)
		s.t.used -= s.cost
		if len(s.u.tables) == 0 && s.u.open == 0 && s.t.uploads[s.u.name] == s.u {
			s.t.remove(s.u)
		}
		return err
	}
	if table == nil {
		table = &uploadTable{layout: s.layout}
		s.u.tables[s.layout.table] = table
	}
	table.files = append(table.files, s.path)
	table.rows += s.rows
	table.cost += s.cost
	return nil
}

// hold takes an upload for a build, or to discard it, so that no stream is added meanwhile.
func (t *takeIn) hold(name string) (*upload, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.uploads[name]
	switch {
	case u == nil:
		return nil, status.Errorf(codes.NotFound, "flight: nothing was taken in for %.120q", name)
	case u.busy:
		return nil, status.Errorf(codes.FailedPrecondition, "flight: %s is being built already", name)
	case u.open > 0:
		return nil, status.Errorf(codes.FailedPrecondition, "flight: %d streams of tables of %s have not ended yet", u.open, name)
	}
	u.busy = true
	return u, nil
}

// BuildRequest is the body of the action "build", as JSON.
type BuildRequest struct {
	// Name is the name of the dataset, the first word of the descriptors' path.
	Name string `json:"name"`
	// Undirected adds the opposite of each edge.
	Undirected bool `json:"undirected,omitempty"`
	// OverlappingSplits allows nodes in two of train, val and test.
	OverlappingSplits bool `json:"overlapping_splits,omitempty"`
	// FeatureType is the stored type of features: "f32", "f16", or "" for the type that came.
	FeatureType string `json:"feature_type,omitempty"`
	// Seed is the random seed of the splits of a dataset that came without.
	Seed uint64 `json:"seed,omitempty"`
}

// build makes a dataset of an upload, which is removed if that succeeds.
func (t *takeIn) build(ctx context.Context, q BuildRequest) (convert.Stats, error) {
	if err := t.taken(q.Name); err != nil {
		return convert.Stats{}, err
	}
	select {
	case t.building <- struct{}{}:
		defer func() { <-t.building }()
	case <-ctx.Done():
		return convert.Stats{}, status.FromContextError(ctx.Err()).Err()
	}
	u, err := t.hold(q.Name)
	if err != nil {
		return convert.Stats{}, err
	}
	stats, err := t.write(ctx, u, q)
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.busy, u.last = false, time.Now(); err == nil {
		t.remove(u)
		return stats, nil
	}
	switch _, ok := status.FromError(err); {
	case ok:
	case ctx.Err() != nil:
		err = status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, fs.ErrExist):
		err = status.Error(codes.AlreadyExists, err.Error())
	case isSystem(err):
		err = failed(err)
	default:
		err = status.Error(codes.InvalidArgument, err.Error())
	}
	return stats, err
}

// write reads the tables of an upload and writes the dataset.
func (t *takeIn) write(ctx context.Context, u *upload, q BuildRequest) (convert.Stats, error) {
	edges := u.tables[edgesTable]
	if edges == nil || edges.rows == 0 {
		return convert.Stats{}, status.Errorf(codes.FailedPrecondition, "flight: no edges of %s were taken in; send the table edges first", q.Name)
	}
	tables := convert.Tables{Splits: map[string][]int32{}, Source: "taken in over Arrow Flight"}
	most := int32(-1)
	tables.Src, tables.Dst = make([]int32, 0, edges.rows), make([]int32, 0, edges.rows)
	l := edges.layout
	l.lost = 0
	if l.weight >= 0 {
		tables.Weights = make([]float32, 0, edges.rows)
	}
	if l.time >= 0 {
		tables.EdgeTimes = make([]int64, 0, edges.rows)
	}
	if l.features >= 0 {
		tables.EdgeFeatures = &graphops.EdgeFeatures{Cols: l.width}
		if n := int(edges.rows) * l.width; l.element == arrow.FLOAT16 {
			tables.EdgeFeatures.F16 = make([]uint16, 0, n)
		} else {
			tables.EdgeFeatures.F32 = make([]float32, 0, n)
		}
	}
	err := edges.each(ctx, func(b arrow.RecordBatch) error {
		r, err := l.edges(b)
		if err != nil {
			return err
		}
		for i := range r.src {
			tables.Src, tables.Dst = append(tables.Src, int32(r.src[i])), append(tables.Dst, int32(r.dst[i]))
			most = max(most, int32(r.src[i]), int32(r.dst[i]))
		}
		tables.Weights, tables.EdgeTimes = append(tables.Weights, r.weight...), append(tables.EdgeTimes, r.time...)
		if x := tables.EdgeFeatures; x != nil {
			x.F32, x.F16 = append(x.F32, r.f32...), append(x.F16, r.f16...)
		}
		return nil
	})
	if err != nil {
		return convert.Stats{}, err
	}
	nodes := u.tables[nodesTable]
	if nodes == nil {
		return convert.Stats{}, status.Errorf(codes.FailedPrecondition, "flight: no nodes of %s were taken in; send the table nodes first, at least its column id", q.Name)
	}
	if int64(most) >= nodes.rows {
		return convert.Stats{}, invalid("an edge of %s names the node %d, but the table nodes has %d rows, so the nodes are 0 to %d", q.Name, most, nodes.rows, nodes.rows-1)
	}
	nodes.layout.lost = 0
	if err := nodes.gather(ctx, &tables); err != nil {
		return convert.Stats{}, err
	}
	tables.Notices = slices.Concat(l.notices(), nodes.layout.notices())
	return convert.WriteTables(ctx, filepath.Join(t.dir, q.Name), tables, convert.Options{
		Name: q.Name, Undirected: q.Undirected, OverlappingSplits: q.OverlappingSplits, FeatureType: q.FeatureType, Seed: q.Seed, Threads: t.threads,
	})
}

// gather reads the rows of nodes, in any order, into arrays by id.
func (n *uploadTable) gather(ctx context.Context, to *convert.Tables) error {
	l, rows := n.layout, int(n.rows)
	to.Nodes = rows
	seen := make([]uint64, (rows+63)/64)
	if l.features >= 0 {
		to.Features = &dataset.Matrix{Rows: rows, Cols: l.width}
		if l.element == arrow.FLOAT16 {
			to.Features.F16 = make([]uint16, rows*l.width)
		} else {
			to.Features.F32 = make([]float32, rows*l.width)
		}
	}
	if l.label >= 0 {
		to.Labels = make([]int32, rows)
	}
	if l.labels >= 0 {
		to.MultiLabels = &dataset.Multi{Rows: rows, Cols: l.classes, Data: make([]int8, rows*l.classes)}
	}
	err := n.each(ctx, func(b arrow.RecordBatch) error {
		r, err := l.nodes(b)
		if err != nil {
			return err
		}
		for i, id := range r.id {
			switch {
			case id >= int64(rows):
				return invalid("the id %d is out of range: the table nodes has %d rows, so the ids are 0 to %d, each once", id, rows, rows-1)
			case seen[id/64]>>(id%64)&1 != 0:
				return invalid("two rows of the table nodes have the id %d; the ids are 0 to %d, each once", id, rows-1)
			}
			seen[id/64] |= 1 << (id % 64)
			v := int(id)
			if r.f16 != nil {
				copy(to.Features.F16[v*l.width:(v+1)*l.width], r.f16[i*l.width:])
			} else if r.f32 != nil {
				copy(to.Features.F32[v*l.width:(v+1)*l.width], r.f32[i*l.width:])
			}
			if to.Labels != nil {
				to.Labels[v] = int32(r.label[i])
			}
			if to.MultiLabels != nil {
				copy(to.MultiLabels.Row(v), r.multi[i*l.classes:])
			}
			for k, names := range r.split {
				if names[i] != "" {
					n.split(to, l.splits[k], names[i], int32(v))
				}
			}
			for k, mask := range r.mask {
				if mask[i] {
					n.split(to, l.masks[k], "", int32(v))
				}
			}
		}
		return nil
	})
	for _, ids := range to.Splits {
		slices.Sort(ids)
	}
	return err
}

// split adds a node to the split that a column names.
func (n *uploadTable) split(to *convert.Tables, column int, name string, v int32) {
	base, set, further := strings.Cut(n.layout.names[column], "@")
	if name == "" {
		name = strings.TrimSuffix(base, "_mask")
	}
	if further {
		name += "@" + set
	}
	to.Splits[name] = append(to.Splits[name], v)
}

// each reads the record batches of a table's streams.
func (n *uploadTable) each(ctx context.Context, visit func(arrow.RecordBatch) error) error {
	for _, path := range n.files {
		if err := eachOf(ctx, path, visit); err != nil {
			return err
		}
	}
	return nil
}

func eachOf(ctx context.Context, path string, visit func(arrow.RecordBatch) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := ipc.NewReader(bufio.NewReaderSize(f, 256<<10))
	if err != nil {
		return status.Errorf(codes.Internal, "flight: reading %s: %v", path, err)
	}
	defer r.Release()
	for r.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(r.RecordBatch()); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return status.Errorf(codes.Internal, "flight: reading %s: %v", path, err)
	}
	return nil
}

// isSystem reports whether the operating system refused something.
func isSystem(err error) bool {
	var path *fs.PathError
	var number syscall.Errno
	return errors.As(err, &path) || errors.As(err, &number)
}

// failed is the status of an error of the server's files.
func failed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return status.Error(codes.ResourceExhausted, "flight: the server's disk is full: "+err.Error())
	}
	return status.Error(codes.Internal, "flight: "+err.Error())
}
