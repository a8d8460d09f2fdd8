package divided

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Far gets what parts that are at servers hold ([dataset.Parts].Servers). Package gnb/remote
// implements it. Its methods are safe for concurrent use.
type Far interface {
	// Rows writes the dense features of nodes to dst, in their order and in the stored type,
	// little-endian.
	Rows(ctx context.Context, nodes []int32, dst []byte) error
	// SparseRows sets dst to the sparse features of nodes, in the memory of its slices.
	SparseRows(ctx context.Context, nodes []int32, dst *dataset.Sparse) error
	// Labels writes the labels of nodes to dst: an int32 each, little-endian, or an int8 for each class.
	Labels(ctx context.Context, nodes []int32, dst []byte) error
	// Events returns the list of events: positions of edges in the whole graph, nil if there are none.
	Events(ctx context.Context) ([]int64, error)
	// Division describes the graph to one sampler, which asks for edges where they are.
	Division(ctx context.Context) (sample.Division, error)
	Close() error
}

var openFar atomic.Pointer[func(ctx context.Context, address string) (Far, error)]

// RegisterFar sets the function with which this program reaches servers. Package gnb/remote calls it
// from an init function.
func RegisterFar(open func(ctx context.Context, address string) (Far, error)) { openFar.Store(&open) }

// IsFar reports whether the parts of a dataset are at servers.
func IsFar(ds *dataset.Dataset) bool { return Is(ds) && ds.Meta.Parts.Servers != "" }

// far is a book's connection to servers, opened at its first use.
type far struct {
	once    sync.Once
	ctx     context.Context // of the book; ends all requests
	end     context.CancelFunc
	to      Far
	err     error
	answers []farAnswers // by part
}

// farAnswers are the labels of a part's own nodes; one of the two.
type farAnswers struct {
	once   sync.Once
	labels []int32
	multi  *dataset.Multi
	err    error
}

var errClosed = errors.New("divided: the dataset was closed")

// Far returns the connection to the servers that have the parts, and the context of the book's
// requests, which ends when the book is closed.
func (b *Book) Far() (context.Context, Far, error) {
	f := b.far
	f.once.Do(func() {
		f.answers = make([]farAnswers, len(b.parts))
		f.ctx, f.end = context.WithCancel(context.Background())
		f.to, f.err = reach(f.ctx, b.ds)
	})
	return f.ctx, f.to, f.err
}

// reach connects to the servers that have the parts of a dataset.
func reach(ctx context.Context, ds *dataset.Dataset) (Far, error) {
	open := openFar.Load()
	switch {
	case !IsFar(ds):
		return nil, fmt.Errorf("divided: the parts of %s are not at servers", ds.Name())
	case open == nil:
		return nil, fmt.Errorf("divided: the parts of %s are at %s, which this program cannot reach; add\n\timport _ \"github.com/graphnb/graphnb/gnb/remote\"", ds.Name(), ds.Meta.Parts.Servers)
	}
	if err := CheckServers(ds); err != nil {
		return nil, err
	}
	return (*open)(ctx, ds.Meta.Parts.Servers)
}

// closeFar ends requests in progress and closes the connection.
func (b *Book) closeFar() error {
	f := b.far
	f.once.Do(func() { f.err = errClosed })
	if f.end != nil {
		f.end()
	}
	if f.to != nil {
		return f.to.Close()
	}
	return nil
}

// Answers returns the labels of a part's own nodes, or their rows of several labels: those of the part
// or, if it is at servers, what these send when they are first asked.
func (b *Book) Answers(part int) ([]int32, *dataset.Multi, error) {
	if !IsFar(b.ds) {
		p, err := b.Part(part)
		if err != nil {
			return nil, nil, err
		}
		return p.Labels, p.Multi, nil
	}
	ctx, to, err := b.Far()
	if err != nil {
		return nil, nil, err
	}
	a := &b.far.answers[part]
	a.once.Do(func() {
		own := b.ownOf(part)
		size := 4
		if b.ds.Meta.MultiLabel {
			size = b.ds.Classes()
		}
		raw := make([]byte, size*len(own))
		if a.err = to.Labels(ctx, own, raw); a.err != nil {
			return
		}
		if b.ds.Meta.MultiLabel {
			a.multi = &dataset.Multi{Rows: len(own), Cols: size, Data: make([]int8, len(raw))}
			for i, x := range raw {
				a.multi.Data[i] = int8(x)
			}
			return
		}
		a.labels = make([]int32, len(own))
		for i := range a.labels {
			a.labels[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	})
	return a.labels, a.multi, a.err
}

// Ranges returns a book of the same dataset, whose parts are at servers, divided into n ranges of ids. It
// shares the connection of b, which has the labels.
func (b *Book) Ranges(n int) *Book {
	nodes := b.ds.Nodes()
	r := &Book{ds: b.ds, of: make([]int32, nodes), rows: make([]int32, nodes), own: make([]int, n), parts: make([]slot, n), far: b.far}
	for v := range nodes {
		p := v * n / nodes
		r.of[v], r.rows[v] = int32(p), int32(r.own[p])
		r.own[p]++
	}
	return r
}

// ownOf lists the own nodes of a part, ascending.
func (b *Book) ownOf(part int) []int32 {
	own := make([]int32, 0, b.own[part])
	for v, p := range b.of {
		if int(p) == part {
			own = append(own, int32(v))
		}
	}
	return own
}

// farPart makes a part from the in-edges of its nodes: those of the whole graph if it is here, else
// those that the servers send. It has no features and labels.
func (b *Book) farPart(i int) (*dataset.Dataset, error) {
	own := b.ownOf(i)
	edges, err := b.inEdges(own)
	if err != nil {
		return nil, err
	}
	var halo []int32
	total := 0
	for k := range own {
		row := edges(k)
		total += len(row.Sources)
		for _, u := range row.Sources {
			if b.PartOf(u) != i {
				halo = append(halo, u)
			}
		}
	}
	slices.Sort(halo)
	halo = slices.Clip(slices.Compact(halo))
	n := len(own) + len(halo)
	g := &graphops.Graph{Indptr: make([]int64, 1, n+1), Indices: make([]int32, 0, total)}
	var data graphops.EdgeData
	data.SetLen(b.ds.EdgeShape(), total)
	first := make([]int64, len(own))
	for k := range own {
		row := edges(k)
		first[k] = row.First
		for _, u := range row.Sources {
			at := int(b.rows[u])
			if b.PartOf(u) != i {
				at, _ = slices.BinarySearch(halo, u)
				at += len(own)
			}
			g.Indices = append(g.Indices, int32(at))
		}
		if row.Edges != nil {
			data.CopyRange(int(g.Indptr[k]), row.Edges, int(row.At), int(row.At)+len(row.Sources))
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	for range halo {
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	ds := &dataset.Dataset{
		Graph: g.WithEdges(data), Splits: map[string][]int32{}, Meta: b.ds.Meta,
		Arrays: map[string]dataset.Array{arrayNodes: {I32: slices.Concat(own, halo)}, arrayFirstEdge: {I64: first}},
	}
	ds.Meta.NodeTypes, ds.Meta.Relations = nil, nil
	ds.Meta.Parts, ds.Meta.Part, ds.Meta.NumNodes = nil, &dataset.PartOf{Index: i, Own: len(own)}, n
	return ds, nil
}

// inEdges returns the in-edges of each of the nodes own, under the ids of the whole graph.
func (b *Book) inEdges(own []int32) (func(k int) sample.Row, error) {
	if g := b.ds.Graph; g != nil {
		rows := sample.RowsOf(g)
		return func(k int) sample.Row {
			row, _ := rows.Row(own[k])
			return row
		}, nil
	}
	ctx, to, err := b.Far()
	if err != nil {
		return nil, err
	}
	s, err := allInEdges(ctx, to)
	if err != nil {
		return nil, err
	}
	return inEdgesBy(s, own)
}

// allInEdges returns a sampler that takes all in-edges of nodes from servers.
func allInEdges(ctx context.Context, to Far) (*sample.Divided, error) {
	d, err := to.Division(ctx)
	if err != nil {
		return nil, err
	}
	return sample.NewDivided(d, sample.Config{Picker: sample.Fanouts{-1}})
}

// inEdgesBy returns the in-edges of each of the nodes own by a sampler that takes all.
func inEdgesBy(s *sample.Divided, own []int32) (func(k int) sample.Row, error) {
	batch, err := s.Sample(0, 0, sample.Seeds{IDs: own})
	if err != nil {
		return nil, err
	}
	block := batch.Blocks[0]
	ids, indptr, indices, at, data := block.SrcIDs(), block.Indptr(), block.Indices(), block.EdgePos(), block.OwnEdges()
	sources := make([]int32, len(indices))
	for e, s := range indices {
		sources[e] = ids[s]
	}
	return func(k int) (row sample.Row) {
		lo, hi := indptr[k], indptr[k+1]
		if row.Sources = sources[lo:hi]; hi > lo { // without edges, the position of the first is not read
			row.First = at[lo]
		}
		row.Edges, row.At = &data, lo
		return row
	}, nil
}
