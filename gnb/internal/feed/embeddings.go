package feed

import (
	"encoding/binary"
	"fmt"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// EmbeddingOptions configure [NewEmbeddings]. They are the same on all ranks but for LocalRank.
type EmbeddingOptions struct {
	Comm collective.Comm
	// Site returns the site of a collective.
	Site func(kind string) collective.Site
	// Machine is the number of this rank's machine. LocalRank is its number among the LocalWorld ranks
	// there, which share the memory of a matrix. Ranks are numbered machine by machine.
	Machine, LocalRank, LocalWorld int
	Nodes, Cols                    int
	// Seed determines the initial rows.
	Seed uint64
}

// Embeddings are the learned rows of nodes that a network reads instead of features: a table [nodes,
// cols] with the state of its optimiser ([nn.SparseAdam]), for all ranks of a run. It is this rank's
// view, and belongs to the goroutine that runs the program.
//
// The ranks of a machine share one table and one state; a run on several machines has a copy on each.
// Each row has one owner among a machine's ranks, by ranges of ids, and only the owner writes it.
//
// A pass reads the rows of its batch when it begins (Leaf), whatever was prepared ahead: loaders prepare
// ids, never rows. Rows change only in [Embeddings.Step], which every rank enters after its last backward
// pass of the step and leaves when all owners have written. So a batch reads the rows that all earlier
// steps left, and none of a later one. Between two steps rank 0 can read everything, for a checkpoint:
// no owner writes before rank 0 has sent its gradients.
//
// An owner adds the gradients of a row in the order of virtual ranks, then of a batch's ids. So rows have
// the same bits for any division of the same virtual ranks among ranks and machines, and for any number
// of threads.
//
// A step sends each gradient of a row once to its owner on each machine, 4·cols + 4 bytes for each row
// that a batch reads, and computes O(rows read · cols), whatever the size of the table.
type Embeddings struct {
	*nn.Embedding
	o        EmbeddingOptions
	adam     *nn.SparseAdam
	m, v     []float32
	memory   []collective.Matrix
	machines []localRanks
	lo, hi   int // rows that this rank owns

	send, got [][]byte
	touched   []int32 // ids of own rows in this step
	place     []int32 // of each own row in touched, plus 1; 0 if it is not there
	sums      []float32
	row       []float32
}

// localRanks are the ranks of one machine, which share memory.
type localRanks struct{ first, ranks int }

// NewEmbeddings makes a table with its initial rows. Collective.
func NewEmbeddings(o EmbeddingOptions) (*Embeddings, error) {
	t := &Embeddings{o: o, adam: nn.NewSparseAdam(nn.AdamOptions{}), row: make([]float32, o.Cols)}
	if err := t.meet(); err != nil {
		return nil, err
	}
	var shared [3][]float32
	for i := range shared {
		m, err := o.Comm.NewMatrix(o.Site("table of embeddings"), o.Nodes, o.Cols)
		if err != nil {
			return nil, err
		}
		t.memory, shared[i] = append(t.memory, m), m.Data()
	}
	t.Embedding, t.m, t.v = &nn.Embedding{Cols: o.Cols, W: shared[0]}, shared[1], shared[2]
	if err := t.adam.SetState(0, t.m, t.v); err != nil {
		return nil, err
	}
	t.lo, t.hi = collective.Share(o.Nodes, o.LocalRank, o.LocalWorld)
	t.place = make([]int32, t.hi-t.lo)
	t.send = make([][]byte, o.Comm.Size())
	t.Init(o.Seed, t.lo, t.hi)
	return t, o.Comm.Barrier(o.Site("rows of embeddings"))
}

// meet finds the ranks of every machine.
func (t *Embeddings) meet() error {
	mine := binary.LittleEndian.AppendUint32(nil, uint32(t.o.Machine))
	all, err := t.o.Comm.AllGather(t.o.Site("owners of embeddings"), mine)
	if err != nil {
		return err
	}
	last := -1
	for rank, b := range all {
		m := int(binary.LittleEndian.Uint32(b))
		if m != last {
			t.machines = append(t.machines, localRanks{first: rank})
			last = m
		}
		t.machines[len(t.machines)-1].ranks++
	}
	return nil
}

// owner returns the rank that owns row v on a machine: the one whose [collective.Share] of the rows
// has v.
func (t *Embeddings) owner(m localRanks, v int32) int {
	return m.first + int(((int64(v)+1)*int64(m.ranks)-1)/int64(t.o.Nodes))
}

// Own returns the rows [lo, hi) that this rank owns, and their weights.
func (t *Embeddings) Own() (lo, hi int, w []float32) {
	return t.lo, t.hi, t.W[t.lo*t.Cols : t.hi*t.Cols]
}

// Add takes the gradient g [len(ids), cols] of the rows that a batch of this step has read. The batches
// of a rank's virtual ranks are added in their order. It copies both.
func (t *Embeddings) Add(ids []int32, g []float32) {
	if len(ids) == 0 {
		return
	}
	counts, begin := make([]uint32, len(t.send)), make([]int, len(t.send))
	for _, m := range t.machines {
		for _, v := range ids {
			counts[t.owner(m, v)]++
		}
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
	for _, m := range t.machines {
		for i, v := range ids {
			r := t.owner(m, v)
			b := t.send[r][begin[r]:]
			binary.LittleEndian.PutUint32(b[4*next[r]:], uint32(v))
			copy(b[4*int(counts[r])+4*t.Cols*next[r]:], bytesOf(g[i*t.Cols:(i+1)*t.Cols]))
			next[r]++
		}
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

// Step adds up the gradients of all ranks' batches of this step and updates their rows at the learning
// rate lr by the gradient scale·g. Collective.
func (t *Embeddings) Step(lr float64, scale float32) (err error) {
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
	for _, v := range t.touched {
		t.place[int(v)-t.lo] = 0
	}
	t.adam.SetLR(lr)
	t.adam.Step(t.W, t.Cols, t.touched, t.sums[:len(t.touched)*t.Cols], scale)
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
		for i := range n {
			v := int32(binary.LittleEndian.Uint32(ids[4*i:]))
			if int(v) < t.lo || int(v) >= t.hi {
				return fmt.Errorf("row %d is not one of this rank's, %d to %d", v, t.lo, t.hi-1)
			}
			t.sum(v, rows[i*width:(i+1)*width])
		}
	}
	return nil
}

// sum adds the gradient of a row.
func (t *Embeddings) sum(v int32, g []byte) {
	p := &t.place[int(v)-t.lo]
	if *p == 0 {
		t.touched = append(t.touched, v)
		*p = int32(len(t.touched))
		end := len(t.touched) * t.Cols
		if len(t.sums) < end {
			t.sums = append(t.sums, make([]float32, end/4+end-len(t.sums))...)
		}
		copy(bytesOf(t.sums[end-t.Cols:end]), g)
		return
	}
	copy(bytesOf(t.row), g)
	to := t.sums[(int(*p)-1)*t.Cols : int(*p)*t.Cols]
	for i, x := range t.row {
		to[i] += x
	}
}

// Steps is the number of steps so far.
func (t *Embeddings) Steps() int64 { return t.adam.Steps() }

// State returns the optimiser's state, shared memory as the table.
func (t *Embeddings) State() []nn.State { return t.adam.State() }

// Set replaces all rows by w, and the optimiser's state by m and v after a number of steps. Nil m and v
// leave the state as it is. Every rank passes the same. Collective.
func (t *Embeddings) Set(w, m, v []float32, steps int64) error {
	if err := t.o.Comm.Barrier(t.o.Site("embeddings before they are replaced")); err != nil {
		return err // other ranks may still read them
	}
	lo, hi := t.lo*t.Cols, t.hi*t.Cols
	copy(t.W[lo:hi], w[lo:hi])
	if m != nil {
		copy(t.m[lo:hi], m[lo:hi])
		copy(t.v[lo:hi], v[lo:hi])
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
			return fmt.Sprintf("%s of node %d has %v in column %d", what, t.lo+at/t.Cols, x[lo+at], at%t.Cols)
		}
	}
	return ""
}

// EmbeddingBytes is the memory of a table with its optimiser's state and the owners' lists, on each machine.
func EmbeddingBytes(nodes, cols int) int64 { return 4 * int64(nodes) * (3*int64(cols) + 1) }

// SavedEmbeddingBytes is the memory that rank 0 takes for copies: of a checkpoint, and of the best weights.
func SavedEmbeddingBytes(nodes, cols int) int64 { return 4 * int64(nodes) * (3 + 1) * int64(cols) }
