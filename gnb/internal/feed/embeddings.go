package feed

import (
	"encoding/binary"
	"fmt"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// EmbeddingOptions configure [NewEmbeddings]. They are the same on all ranks but for Machine and Parts.
type EmbeddingOptions struct {
	Comm collective.Comm
	// Site returns the site of a collective.
	Site func(kind string) collective.Site
	// Machine is the number of this rank's machine, whose ranks share the memory of a matrix. Ranks are
	// numbered machine by machine.
	Machine     int
	Nodes, Cols int
	// Seed determines the initial rows.
	Seed uint64
	// Parts is this rank's view of a divided dataset, else nil.
	Parts *Parts
	// Spans are the nodes that have learned rows, if others have features; nil means all nodes. Rows are then
	// numbered among these nodes.
	Spans []Span
}

// Embeddings are the learned rows of nodes that a network reads instead of features: a table [nodes,
// cols] with the state of its optimiser ([optim.SparseAdam]), for all ranks of a run. It is this rank's
// view, and belongs to the goroutine that runs the program.
//
// Each row has one owner among the ranks, and only the owner writes it. The ranks of a machine share the
// memory of their rows and states. On several machines each has the rows of its own ranks alone: on a
// dataset in parts the nodes of their parts, else a range of ids; see Apart. The embedded Embedding is
// the memory of this machine, whose row v is that of node v on one machine only.
//
// A pass reads the rows of its batch when it begins (Leaf), whatever was prepared ahead: loaders prepare
// ids, never rows. Rows change only in [Embeddings.Step], which every rank enters after its last backward
// pass of the step. On one machine every rank leaves it when all owners have written; on several, every
// read begins with a collective, in which all ranks have left their last Step. So a batch reads the rows
// that all earlier steps left, and none of a later one: an owner writes after the exchange of gradients,
// which ranks enter after their reads.
//
// An owner adds the gradients of a row in the order of virtual ranks, then of a batch's ids. So rows have
// the same bits for any division of the same virtual ranks among ranks and machines, and for any number
// of threads.
//
// A step sends each gradient of a row once to its owner, 4·cols + 4 bytes for each row that a batch
// reads, and computes O(rows read · cols), whatever the size of the table. A read on several machines
// sends 4 bytes for each row of another machine and gets 4·cols.
type Embeddings struct {
	*nn.Embedding
	*shards
	some   *some // nil if all nodes have learned rows
	o      EmbeddingOptions
	adam   *optim.SparseAdam
	m, v   []float32
	memory []collective.Matrix

	send, got [][]byte
	touched   []int32 // own rows in the memory of this machine that this step changes
	place     []int32 // of each own row in touched, plus 1; 0 if it is not there
	sums      []float32
	row1      []float32

	away awayRows
}

// NewEmbeddings makes a table with its initial rows. Collective.
func NewEmbeddings(o EmbeddingOptions) (*Embeddings, error) {
	t := &Embeddings{o: o, adam: optim.NewSparseAdam(optim.AdamOptions{}), row1: make([]float32, o.Cols)}
	var err error
	if len(o.Spans) > 0 {
		t.some = &some{spans: o.Spans}
		o.Nodes, o.Parts = t.some.rows(), nil
	}
	if t.shards, err = newShards(o.Comm, o.Site("owners of embeddings"), o.Machine, o.Nodes, o.Parts); err != nil {
		return nil, err
	}
	var shared [3][]float32
	for i := range shared {
		m, err := o.Comm.NewMatrix(o.Site("table of embeddings"), t.shards.rows, o.Cols)
		if err != nil {
			return nil, err
		}
		t.memory, shared[i] = append(t.memory, m), m.Data()
	}
	t.Embedding, t.m, t.v = &nn.Embedding{Cols: o.Cols, W: shared[0]}, shared[1], shared[2]
	if err := t.adam.SetState(0, t.m, t.v); err != nil {
		return nil, err
	}
	t.place = make([]int32, t.hi-t.lo)
	t.send = make([][]byte, o.Comm.Size())
	parallel.For(0, o.Nodes, 1+4096/o.Cols, func(lo, hi int) {
		t.each(t.rank, lo, hi, func(v int32, row int) { t.InitRow(o.Seed, v, row) })
	})
	return t, o.Comm.Barrier(o.Site("rows of embeddings"))
}

// Rows is the number of rows of the whole table.
func (t *Embeddings) Rows() int { return t.nodes }

// Rank is this rank's number.
func (t *Embeddings) Rank() int { return t.rank }

// Apart reports whether this machine has only some of the rows. Reads are then collective.
func (t *Embeddings) Apart() bool { return t.apart() }

// Add takes the gradient g [len(ids), cols] of the rows that a batch of this step has read. The batches
// of a rank's virtual ranks are added in their order. It copies both. Nodes with features are passed over.
func (t *Embeddings) Add(ids []int32, g []float32) {
	if t.some != nil {
		ids, g = t.some.learned(ids, g, t.Cols)
	}
	if len(ids) == 0 {
		return
	}
	counts, begin := make([]uint32, len(t.send)), make([]int, len(t.send))
	for _, v := range ids {
		counts[t.owner(v)]++
	}
	for r, n := range counts {
		if n == 0 {
			continue
		}
		begin[r] = len(t.send[r]) + 4
		t.send[r] = binary.LittleEndian.AppendUint32(t.send[r], n)
		t.send[r] = extend(t.send[r], int(n)*(4+4*t.Cols))
	}
	next := make([]int, len(t.send)) // rows so far
	for i, v := range ids {
		r := t.owner(v)
		b := t.send[r][begin[r]:]
		binary.LittleEndian.PutUint32(b[4*next[r]:], uint32(v))
		copy(b[4*int(counts[r])+4*t.Cols*next[r]:], bytesOf(g[i*t.Cols:(i+1)*t.Cols]))
		next[r]++
	}
}

// extend makes b longer by n bytes.
func extend(b []byte, n int) []byte {
	if cap(b) < len(b)+n {
		grown := make([]byte, len(b), (len(b)+n)*5/4)
		copy(grown, b)
		b = grown
	}
	return b[:len(b)+n]
}

// Drop forgets the gradients of a step that changes no weights.
func (t *Embeddings) Drop() {
	for r := range t.send {
		t.send[r] = t.send[r][:0]
	}
}

// Collect adds up the gradients of all ranks' batches of this step, for [Embeddings.Squares] and
// [Embeddings.Step]. Collective.
func (t *Embeddings) Collect() (err error) {
	got := t.send // one rank has nothing to exchange
	if t.o.Comm.Size() > 1 {
		if t.got, err = collective.AllToAllInto(t.o.Comm, t.o.Site("gradients of embeddings"), t.send, t.got); err != nil {
			return err
		}
		got = t.got
	}
	t.touched = t.touched[:0]
	for rank, b := range got {
		if err := t.take(b); err != nil {
			return fmt.Errorf("gnb: gradients of embeddings from rank %d: %w", rank, err)
		}
	}
	t.Drop()
	for _, row := range t.touched {
		t.place[int(row)-t.lo] = 0
	}
	return nil
}

// Step updates the rows at the learning rate lr by the gradient scale·g that [Embeddings.Collect] has
// added up. Collective.
func (t *Embeddings) Step(lr float64, scale float32) error {
	t.adam.SetLR(lr)
	t.adam.Step(t.W, t.Cols, t.touched, t.sums[:len(t.touched)*t.Cols], scale)
	if t.apart() {
		return nil // the next read is collective
	}
	return t.o.Comm.Barrier(t.o.Site("rows of embeddings"))
}

// take adds the gradients of a message: for each batch the number of rows, their ids, and their
// gradients.
func (t *Embeddings) take(b []byte) error {
	width := 4 * t.Cols
	for len(b) > 0 {
		n := 0
		if len(b) >= 4 {
			n = int(binary.LittleEndian.Uint32(b))
		}
		if len(b) < 4 || len(b)-4 < n*(4+width) {
			return fmt.Errorf("a message ends after %d bytes in the middle of %d rows", len(b), n)
		}
		ids, rows := b[4:4+4*n], b[4+4*n:4+n*(4+width)]
		b = b[4+n*(4+width):]
		// One new slice for all of them, since each of several leaves another behind.
		if most := min(len(t.touched)+n, len(t.place)) * t.Cols; len(t.sums) < most {
			sums := make([]float32, most+most/8)
			copy(sums, t.sums[:len(t.touched)*t.Cols])
			t.sums = sums
		}
		for i := range n {
			v := int32(binary.LittleEndian.Uint32(ids[4*i:]))
			if v < 0 || int(v) >= t.nodes || t.owner(v) != t.rank {
				return fmt.Errorf("the row of node %d is not one of this rank's; all ranks must have the same division of the dataset", v)
			}
			t.sum(int32(t.row(v)), rows[i*width:(i+1)*width])
		}
	}
	return nil
}

// sum adds the gradient of a row of this machine's memory.
func (t *Embeddings) sum(row int32, g []byte) {
	p := &t.place[int(row)-t.lo]
	if *p == 0 {
		t.touched = append(t.touched, row)
		*p = int32(len(t.touched))
		end := len(t.touched) * t.Cols
		copy(bytesOf(t.sums[end-t.Cols:end]), g)
		return
	}
	copy(bytesOf(t.row1), g)
	to := t.sums[(int(*p)-1)*t.Cols : int(*p)*t.Cols]
	for i, x := range t.row1 {
		to[i] += x
	}
}

// Steps is the number of steps so far.
func (t *Embeddings) Steps() int64 { return t.adam.Steps() }

// State returns the optimiser's state, shared memory as the table.
func (t *Embeddings) State() []optim.State { return t.adam.State() }

// Set replaces all rows by those of from: w [nodes, cols] alone or, with the optimiser's state after a number of steps, w,
// m and v. Only those of rank 0 count, which sends the other ranks their rows; the others may pass as many nil slices.
// Collective.
func (t *Embeddings) Set(from [][]float32, steps int64) error {
	if err := t.o.Comm.Barrier(t.o.Site("embeddings before they are replaced")); err != nil {
		return err // other ranks may still read them
	}
	for part, x := range from {
		to := [][]float32{t.W, t.m, t.v}[part]
		if err := t.scatter(x, to); err != nil {
			return err
		}
	}
	if len(from) > 1 {
		if err := t.adam.SetState(steps, t.m, t.v); err != nil {
			return err
		}
	}
	return t.o.Comm.Barrier(t.o.Site("rows of embeddings"))
}

// NotFinite returns a description of the first of this rank's rows that is not finite, or whose state is not; "" if all
// are finite.
func (t *Embeddings) NotFinite() string {
	lo, hi := t.lo*t.Cols, t.hi*t.Cols
	for i, x := range [][]float32{t.W, t.m, t.v} {
		if at := simd.NotFinite(x[lo:hi]); at >= 0 {
			what := "the learned row"
			if i > 0 {
				what = fmt.Sprintf("the optimiser's state %s of the learned row", t.adam.State()[i-1].Name)
			}
			return fmt.Sprintf("%s of node %d has %v in column %d", what, t.nameOf(t.lo+at/t.Cols), x[lo+at], at%t.Cols)
		}
	}
	return ""
}

// EmbeddingBytes is the memory of a table with its optimiser's state and the owners' lists on a machine that has
// the rows of this number of nodes.
func EmbeddingBytes(nodes, cols int) int64 { return 4 * int64(nodes) * (3*int64(cols) + 1) }

// SavedEmbeddingBytes is the memory that rank 0 takes for copies: of a checkpoint, and of the best weights now and at
// the last boundary.
func SavedEmbeddingBytes(nodes, cols int) int64 { return 4 * int64(nodes) * (3 + 2) * int64(cols) }

// nameOf returns the node of one of this rank's rows in the dataset.
func (t *Embeddings) nameOf(row int) int32 {
	v := t.nodeOf(row)
	if t.some != nil {
		v = t.some.node(v)
	}
	return v
}
