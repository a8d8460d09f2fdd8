package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
)

// store is the data that a server has: a whole dataset, as one part, or some parts of a divided one.
type store struct {
	ds     *dataset.Dataset
	book   *divided.Book   // nil for a whole dataset
	parts  []*divided.Part // by part; nil for those of other servers
	here   []int           // the parts that are not nil
	rows   sample.Rows
	digest string
	all    dataset.Digests
	in     []int32 // in-degrees
	arrays map[string][]byte
	half   bool
	// sizes of a node's features and labels in bytes
	rowBytes, labelBytes int
	// largest is the largest number of elements of a node's sparse features; -1 if they are dense.
	largest int
	// of a whole dataset, with the features of each type
	types     []dataset.NodeType
	relations []graphops.Relation
	edgeDims  []int // features of each relation's edges, nil: all have as many
}

func newStore(ctx context.Context, ds *dataset.Dataset, parts []int) (*store, error) {
	d := &store{ds: ds, arrays: map[string][]byte{}, largest: -1}
	var err error
	switch {
	case divided.Is(ds) && ds.Meta.Parts.Servers != "":
		return nil, fmt.Errorf("serve: the parts of %s are at servers; take their address, or serve a copy (%s)", ds.Name(), ds.Meta.Parts.WithCopy("all"))
	case divided.Is(ds):
		err = d.openParts(parts)
	case parts != nil:
		return nil, fmt.Errorf("serve: %s is not divided, so it has no parts to choose; leave Parts out", ds.Name())
	case ds.Graph == nil:
		return nil, errors.New("serve: " + ds.WhyNoGraph())
	case ds.Graphs != nil || ds.Targets != nil || ds.EdgeAnswers != nil:
		return nil, fmt.Errorf("serve: %s has targets or many graphs, which servers do not send yet; train on the dataset's directory", ds.Name())
	case ds.NodeTimes != nil:
		return nil, fmt.Errorf("serve: %s has times of nodes, which servers do not send yet; train on the dataset's directory", ds.Name())
	case len(ds.Meta.Questions) > 0:
		return nil, fmt.Errorf("serve: %s has answers about nodes over time, which servers do not send yet; train on the dataset's directory, or convert it without them (Questions, --questions)", ds.Name())
	case len(ds.EdgeSplits) > 0:
		return nil, fmt.Errorf("serve: %s has splits of edges, which servers do not send yet; train on the dataset's directory", ds.Name())
	default:
		if err := ds.CheckZeroEvents("servers"); err != nil {
			return nil, fmt.Errorf("serve: %w", err)
		}
		if d.ds, _, err = ds.WithoutZeroWeights(); err == nil {
			ds, err = d.ds, d.whole()
		}
	}
	if err != nil {
		return nil, err
	}
	all, err := ds.Digests(ctx, nil)
	if err != nil {
		return nil, err
	}
	d.all, d.digest = all, all.Whole
	if g := ds.Graph; g != nil {
		d.arrays[bulk.IndptrArray], d.arrays[bulk.IndicesArray] = raw(g.Indptr), raw(g.Indices)
		data := g.EdgeData()
		all := map[string][]byte{bulk.WeightsArray: raw(data.Weights), bulk.TimesArray: raw(data.Times), bulk.TypesArray: raw(data.Types)}
		if x := data.Features; x != nil && x.Half() {
			all[bulk.EdgesArray] = raw(x.F16)
		} else if x != nil {
			all[bulk.EdgesArray] = raw(x.F32)
		}
		for _, name := range bulk.EdgeArrays(data.Shape()) {
			d.arrays[name] = all[name]
		}
	}
	if ds.Events != nil {
		d.arrays[bulk.EventsArray] = raw(ds.Events)
	}
	for name, ids := range ds.Splits {
		d.arrays[bulk.SplitArray+name] = raw(ids)
	}
	return d, mapped.Guard(func() error {
		d.look()
		return d.degrees()
	})
}

// look finds the largest row of sparse features.
func (d *store) look() {
	if d.ds.SparseFeatures == nil && (d.book == nil || d.ds.Meta.FeatureFormat == "") {
		return
	}
	d.largest = 0
	for _, i := range d.here {
		for _, v := range d.own(i) {
			d.largest = max(d.largest, d.elements(v))
		}
	}
}

// ones reports whether each element of sparse features is 1.
func (d *store) ones() bool {
	if d.book == nil {
		return d.ds.SparseFeatures.Values == nil
	}
	return d.ds.Meta.FeatureFormat == dataset.FormatCSROnes
}

// elements is the number of elements of the sparse features of a node that is here.
func (d *store) elements(v int32) int {
	x, row := d.ds.SparseFeatures, int(v)
	if d.book != nil {
		x, row = d.parts[d.book.PartOf(v)].Sparse, d.book.Row(v)
	}
	return int(x.Indptr[row+1] - x.Indptr[row])
}

// gatherSparse returns the sparse features of nodes that are here, in memory of their own.
func (d *store) gatherSparse(nodes []int32, threads int) (m dataset.Sparse, err error) {
	if d.book != nil {
		_, err = d.book.GatherSparse(&m, nodes, threads)
		return m, err
	}
	d.ds.SparseFeatures.Gather(nodes, &m, threads)
	return m, nil
}

// whole takes a whole dataset. All its nodes get features of one width.
func (d *store) whole() error {
	described := *d.ds
	described.Describe()
	ds, err := divided.Whole(d.ds)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	d.ds, d.types, d.relations, d.edgeDims = ds, described.Meta.NodeTypes, described.Meta.Relations, described.Meta.EdgeFeatureDims
	d.rows, d.here = sample.RowsOf(ds.Graph), []int{0}
	if x := ds.Features; x != nil {
		d.half, d.rowBytes = x.Half(), 4*x.Cols
	}
	switch y := ds.MultiLabels; {
	case y != nil:
		d.labelBytes = y.Cols
	case ds.Labels != nil:
		d.labelBytes = 4
	}
	if d.half {
		d.rowBytes /= 2
	}
	d.arrays[bulk.PartsArray] = raw(make([]int32, ds.Nodes()))
	d.in = ds.Graph.InDegrees()
	d.arrays[bulk.InDegreesArray], d.arrays[bulk.OutDegreesArray] = raw(d.in), raw(ds.Graph.OutDegrees())
	return nil
}

// openParts opens parts of a divided dataset; nil means all that are on this machine.
func (d *store) openParts(parts []int) (err error) {
	if d.book, err = divided.Of(d.ds); err != nil {
		return err
	}
	if parts == nil {
		for i := range d.book.Parts() {
			if d.book.Has(i) {
				parts = append(parts, i)
			}
		}
	}
	if len(parts) == 0 {
		return fmt.Errorf("serve: no part of %s is on this machine; copy the directories of the parts that it serves", d.ds.Name())
	}
	d.parts = make([]*divided.Part, d.book.Parts())
	d.here = slices.Compact(slices.Sorted(slices.Values(parts)))
	for _, i := range d.here {
		p, err := d.book.Part(i)
		if err != nil {
			return err
		}
		d.parts[i] = p
	}
	if d.rows, err = d.book.Rows(d.here); err != nil {
		return err
	}
	m := &d.ds.Meta
	if m.FeatureFormat == "" {
		d.half, d.rowBytes = d.book.Half(), 4*m.FeatureDim
	}
	if d.half {
		d.rowBytes /= 2
	}
	switch {
	case m.MultiLabel:
		d.labelBytes = m.NumClasses
	case m.NumClasses > 0:
		d.labelBytes = 4
	}
	d.arrays[bulk.PartsArray] = raw(d.book.Of())
	d.in = d.book.InDegrees()
	d.arrays[bulk.InDegreesArray], d.arrays[bulk.OutDegreesArray] = raw(d.in), raw(d.book.OutDegrees())
	return nil
}

// degrees makes the arrays of degrees of each part's nodes.
func (d *store) degrees() error {
	for _, i := range d.here {
		own := d.own(i)
		looped, loops := make([]float32, len(own)), make([]float32, len(own))
		for k, v := range own {
			row, _ := d.rows.Row(v)
			looped[k], loops[k] = row.LoopedDegree(v)
		}
		d.arrays[bulk.OfPart(bulk.LoopedArray, i)] = raw(looped)
		if d.rows.Edges().Weighted {
			d.arrays[bulk.OfPart(bulk.LoopsArray, i)] = raw(loops)
		}
	}
	return nil
}

// own returns the nodes of a part.
func (d *store) own(part int) []int32 {
	if d.book != nil {
		return d.parts[part].Own
	}
	all := make([]int32, d.ds.Nodes())
	for v := range all {
		all[v] = int32(v)
	}
	return all
}

// raw returns the memory of a slice.
func raw[T any](x []T) []byte {
	if len(x) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(x[0])))
}

// hello returns the encoded description of the data.
func (d *store) hello(l Limits) ([]byte, error) {
	h := bulk.Hello{
		Protocol: bulk.Protocol, Digest: d.digest, Digests: d.all, Largest: max(0, d.largest), Metadata: d.ds.Meta, Parts: 1, Here: d.here, RowBytes: d.rowBytes, LabelBytes: d.labelBytes,
		Half: d.half, Edges: d.rows.Edges(), Arrays: map[string]int64{},
		Limits: bulk.Limits{Nodes: l.Nodes, Edges: l.Edges, Bytes: l.Bytes},
	}
	m := &h.Metadata
	m.NumNodes, m.NumEdges, m.FeatureDim, m.NumClasses, m.Weighted = d.ds.Nodes(), d.ds.Edges(), d.ds.FeatureDim(), d.ds.Classes(), h.Edges.Weighted
	m.EdgeFeatureDim, m.EdgeTimes, m.NumEvents = h.Edges.FeatureCols, h.Edges.Times, int64(len(d.ds.Events))
	m.Splits = d.ds.SplitNames()
	if d.book == nil {
		m.MultiLabel, m.FeatureFormat = d.ds.MultiLabels != nil, ""
		m.NodeTypes, m.Relations = d.types, d.relations
		m.EdgeFeatureDims = d.edgeDims
		if d.largest >= 0 {
			if m.FeatureFormat = dataset.FormatCSR; d.ones() {
				m.FeatureFormat = dataset.FormatCSROnes
			}
		}
	} else {
		h.Parts = d.book.Parts()
		h.Sums = d.ds.Meta.Parts.Sums
		h.Metadata.Parts, h.Metadata.Arrays = nil, nil // of the files
	}
	for name, a := range d.arrays {
		h.Arrays[name] = int64(len(a))
	}
	b, err := json.Marshal(h)
	if err == nil && len(b) > bulk.MaxFrame {
		err = errors.New("serve: the dataset's metadata is larger than a message; give it fewer splits or shorter descriptions")
	}
	return b, err
}

// size is the number of bytes of a node's rows, 0 if there are none.
func (d *store) size(what bulk.What) int {
	if what == bulk.Labels {
		return d.labelBytes
	}
	return d.rowBytes
}

// has reports whether the rows of a node are here.
func (d *store) has(v int32) bool {
	return uint(v) < uint(d.ds.Nodes()) && (d.book == nil || d.parts[d.book.PartOf(v)] != nil)
}

// gather writes the rows of nodes that are here to dst.
func (d *store) gather(what bulk.What, dst []byte, nodes []int32) {
	n := d.size(what)
	if d.book == nil {
		from := memory(what, d.ds.Features, d.ds.Labels, d.ds.MultiLabels)
		for i, v := range nodes {
			copy(dst[i*n:(i+1)*n], from[int(v)*n:])
		}
		return
	}
	for i, v := range nodes {
		p := d.parts[d.book.PartOf(v)]
		copy(dst[i*n:(i+1)*n], memory(what, p.Features, p.Labels, p.Multi)[d.book.Row(v)*n:])
	}
}

// memory returns the memory of rows.
func memory(what bulk.What, x *dataset.Matrix, labels []int32, y *dataset.Multi) []byte {
	switch {
	case what == bulk.Labels && y != nil:
		return raw(y.Data)
	case what == bulk.Labels:
		return raw(labels)
	case x.F16 != nil:
		return raw(x.F16)
	}
	return raw(x.F32)
}

// where describes the nodes that are here.
func (d *store) where() string {
	if d.book == nil {
		return fmt.Sprintf("this server has the nodes 0 to %d", d.ds.Nodes()-1)
	}
	return fmt.Sprintf("this server has the parts %v of %d nodes in %d parts", d.here, d.ds.Nodes(), d.book.Parts())
}
