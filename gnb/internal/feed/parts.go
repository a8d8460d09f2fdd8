package feed

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Parts is a rank's view of a divided dataset: the rank's parts, and its share of each batch.
type Parts struct {
	*divided.Book
	rank, world, virtual int
	here                 []bool        // the parts whose rows this rank reads from files
	apart                bool          // some ranks do not have all rows; see agree
	longest              int           // elements of the longest row of sparse features; known if apart is set
	halo                 *haloExchange // of layer-wise evaluation; made when needed
	// ranges divides the nodes of a single part at servers among the ranks, for layer-wise evaluation;
	// nil if the parts do.
	ranges *Parts
}

// NewParts returns a rank's view of a divided dataset; nil for another dataset.
func NewParts(ds *dataset.Dataset, rank, world, virtual int) (*Parts, error) {
	if !divided.Is(ds) {
		return nil, nil
	}
	if _, err := VirtualOfParts(ds, world, virtual); err != nil {
		return nil, err
	}
	book, err := divided.Of(ds)
	if err != nil {
		return nil, err
	}
	return PartsOf(book, rank, world, virtual)
}

// PartsOf is [NewParts] for an open book, whose parts are divided evenly among the ranks. Views of one book share its open files.
func PartsOf(book *divided.Book, rank, world, virtual int) (*Parts, error) {
	p := &Parts{Book: book, rank: rank, world: world, virtual: virtual, here: book.Here()}
	if divided.IsFar(book.Dataset()) {
		if book.Parts() == 1 && world > 1 {
			p.ranges = &Parts{Book: book.Ranges(world), rank: rank, world: world, virtual: virtual, here: make([]bool, world)}
		}
		_, _, err := book.Far() // before the first batch, so that servers that do not answer are seen
		return p, err
	}
	for i, here := range p.here {
		if !here && p.Rank(i) != rank {
			continue // another machine has it
		}
		if _, err := book.Part(i); err != nil {
			return nil, fmt.Errorf("gnb: rank %d of %d: %w", rank, world, err)
		}
	}
	return p, nil
}

// Close closes the parts, and ends requests to servers that have them. p may be nil.
func (p *Parts) Close() error {
	if p == nil {
		return nil
	}
	return p.CloseParts()
}

// Abandon ends requests to servers, for a program that has failed: batches ahead of it would wait until the servers
// answer, and the other ranks until this one ends. p may be nil.
func (p *Parts) Abandon() error {
	if p == nil || !divided.IsFar(p.Dataset()) {
		return nil
	}
	return p.CloseParts()
}

// VirtualOfParts returns the number of virtual ranks per worker for a dataset: virtual or, if that is
// 0, the number with which a virtual rank of a divided dataset is a part; 1 for another dataset, or
// one in a single part. It fails if the parts cannot be divided evenly among the ranks.
func VirtualOfParts(ds *dataset.Dataset, workers, virtual int) (int, error) {
	if !divided.Is(ds) {
		return max(1, virtual), nil
	}
	parts := ds.Meta.Parts.Count
	if parts == 1 {
		return max(1, virtual), nil
	}
	if virtual == 0 {
		virtual = max(1, parts/workers)
	}
	if parts%(workers*virtual) == 0 {
		return virtual, nil
	}
	if parts%workers != 0 {
		return 0, fmt.Errorf("gnb: the %d parts of %s cannot be divided evenly among %d workers; take a number of workers that divides %d, or divide the dataset into a multiple of %d parts (gnb partition)", parts, ds.Name(), workers, parts, workers)
	}
	return 0, fmt.Errorf("gnb: the %d parts of %s cannot be divided evenly among %d workers with %d virtual ranks each; leave virtual ranks out, or take a number of them that divides %d", parts, ds.Name(), workers, virtual, parts/workers)
}

// Rank returns the rank that has a part.
func (p *Parts) Rank(part int) int { return divided.RankOf(part, p.Parts(), p.world) }

// Mine reports whether this rank has a node's part, or computes the node in a layer-wise evaluation.
func (p *Parts) Mine(v int32) bool {
	if p.ranges != nil {
		return p.ranges.Mine(v)
	}
	return p.Rank(p.PartOf(v)) == p.rank
}

// OwnRows returns the number of nodes that this rank computes in a layer-wise evaluation.
func (p *Parts) OwnRows() (n int) {
	if p.ranges != nil {
		return p.ranges.OwnRows()
	}
	for i := range p.Parts() {
		if p.Rank(i) == p.rank {
			n += p.Own(i)
		}
	}
	return n
}

// Share returns the seeds of a global batch, in its order, that belong to this rank's virtual rank v:
// those of its parts, or an even share if there is one part.
func (p *Parts) Share(seeds []int32, v int) []int32 {
	ranks := p.world * p.virtual
	if p.Parts() == 1 {
		lo, hi := sample.Share(len(seeds), p.rank*p.virtual+v, ranks)
		return seeds[lo:hi]
	}
	mine := make([]int32, 0, len(seeds)/ranks+8)
	for _, s := range seeds {
		if p.PartOf(s)*ranks/p.Parts() == p.rank*p.virtual+v {
			mine = append(mine, s)
		}
	}
	return mine
}

// Owner implements sample.Owners: a node's owner is the rank that has its part.
func (p *Parts) Owner(node int32, world int) int {
	return divided.RankOf(p.PartOf(node), p.Parts(), world)
}

// ownRows is the rows of features of this rank's parts, as ranks send them to each other.
func (p *Parts) ownRows(threads int) Own {
	if p.Dataset().Meta.FeatureFormat != "" {
		return plane.NewSparseBook(p.Book, p.here, p.longest, threads)
	}
	return plane.NewBook(p.Book, p.here, threads)
}

// longestRow is the number of elements of the longest row of sparse features on this machine.
func (p *Parts) longestRow() (longest int, err error) {
	for i, here := range p.here {
		if !here {
			continue
		}
		part, err := p.Part(i)
		if err != nil {
			return 0, err
		}
		err = mapped.Guard(func() error {
			for row, to := range part.Sparse.Indptr[1:] {
				longest = max(longest, int(to-part.Sparse.Indptr[row]))
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return longest, nil
}

// agreeLongest makes the ranks agree on the length of rows of sparse features. Collective.
func (p *Parts) agreeLongest(t *Team) error {
	mine, failed := p.longestRow()
	longest, err := p.largest(t.o.Comm, t.o.Site("length of sparse rows"), mine)
	p.longest = longest
	return cmp.Or(failed, err)
}

// largest is the largest n of all ranks, which is not negative. Collective.
func (p *Parts) largest(c collective.Comm, site collective.Site, n int) (int, error) {
	all := make([]int64, p.world)
	all[p.rank] = int64(n)
	err := c.SumInt64(site, all)
	return int(slices.Max(all)), err
}

// written returns the features that are in the bytes of rows, as own.Reset has made them of m: dense or sparse, the other is
// nil.
func (m *Memory) written(own Own, rows []byte) (*dataset.Matrix, *dataset.Sparse, error) {
	if s, ok := own.(*plane.SparseBook); ok {
		if err := s.Decode(&m.sparse, rows); err != nil {
			return nil, nil, fmt.Errorf("gnb: reading rows of features: %w", err)
		}
		return nil, &m.sparse, nil
	}
	return &m.dense, nil, nil
}

// Rows gathers the features of nodes from the parts: dense or sparse, the other is nil.
func (m *Memory) Rows(p *Parts, ids []int32, threads int) (*dataset.Matrix, *dataset.Sparse, error) {
	if len(ids) < fewRows {
		threads = 1
	}
	ctx := context.Background()
	if divided.IsFar(p.Dataset()) {
		var err error
		if ctx, _, err = p.Far(); err != nil {
			return nil, nil, err
		}
	}
	dense, sparse, missing, err := m.RowsOf(ctx, p.Book, ids, threads)
	if err == nil && dense != nil && len(missing) > 0 {
		err = fmt.Errorf("gnb: the features of node %d are on another machine, and rank %d gets those for loops over batches (Worker.Batches, Worker.Evaluate) only", ids[missing[0]], p.rank)
	}
	return dense, sparse, err
}

// RowsOf gathers the features of nodes from the parts of a book, at servers until ctx ends: dense or sparse, the other is nil. missing are the
// positions of nodes whose parts are not here.
func (m *Memory) RowsOf(ctx context.Context, b *divided.Book, ids []int32, threads int) (dense *dataset.Matrix, sparse *dataset.Sparse, missing []int, err error) {
	switch meta := &b.Dataset().Meta; {
	case meta.FeatureDim == 0:
		return nil, nil, nil, nil
	case meta.Parts.Servers != "":
		dense, sparse, err = m.farRows(ctx, b, ids)
		return dense, sparse, nil, err
	case meta.FeatureFormat != "":
		missing, err = b.GatherSparse(&m.sparse, ids, threads)
		return nil, &m.sparse, missing, err
	}
	missing, err = b.Gather(&m.dense, ids, threads)
	return &m.dense, nil, missing, err
}

// farRows asks servers for the features of nodes.
func (m *Memory) farRows(ctx context.Context, b *divided.Book, ids []int32) (*dataset.Matrix, *dataset.Sparse, error) {
	_, to, err := b.Far()
	if err != nil {
		return nil, nil, err
	}
	if b.Dataset().Meta.FeatureFormat != "" {
		return nil, &m.sparse, to.SparseRows(ctx, ids, &m.sparse)
	}
	d := &m.dense
	d.Rows, d.Cols = len(ids), b.Dataset().FeatureDim()
	n := d.Rows * d.Cols
	var raw []byte
	if b.Half() {
		d.F16, d.F32 = slices.Grow(d.F16[:0], n)[:n], nil
		raw = bytesOf(d.F16)
	} else {
		d.F32, d.F16 = slices.Grow(d.F32[:0], n)[:n], nil
		raw = bytesOf(d.F32)
	}
	return d, nil, to.Rows(ctx, ids, raw)
}

// Answers gathers the labels of seeds from the parts: one label per node, or the targets of nodes
// with several labels.
func (m *Memory) Answers(p *Parts, seeds []int32) (labels []int32, targets []int8, err error) {
	var missing []int
	switch meta := &p.Dataset().Meta; {
	case meta.MultiLabel:
		m.targets, missing, err = p.Targets(m.targets[:0], seeds)
		targets = m.targets
	case meta.NumClasses > 0:
		m.labels, missing, err = p.Labels(m.labels[:0], seeds)
		labels = m.labels
	}
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("gnb: the label of seed %d is on another machine than rank %d's; leave Owners out, so that each node belongs to the rank that has its part", seeds[missing[0]], p.rank)
	}
	return labels, targets, err
}
