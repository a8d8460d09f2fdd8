package plan

import (
	"cmp"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/mapped"
)

// view is a rank's view of a dataset in parts.
type view struct {
	parts *feed.Parts
	rank  int
}

// parts are the files of a dataset in parts that a plan or a check reads.
type parts struct {
	book  *divided.Book
	lock  sync.Mutex
	found *partRows
}

// open returns the parts of the job's dataset, which the copies of the job share. [Make] and [Check] close them.
func (j *Job) open() (*parts, error) {
	if j.parts == nil {
		book, err := divided.Of(j.Data)
		if err != nil {
			return nil, err
		}
		j.parts = &parts{book: book}
	}
	return j.parts, nil
}

// begin opens the parts of a dataset that has them, for the job and its copies.
func (j *Job) begin() error {
	j.parts = nil
	if !divided.Is(j.Data) {
		return nil
	}
	_, err := j.open()
	return err
}

// close closes the files. p may be nil.
func (p *parts) close() {
	if p != nil {
		_ = p.book.CloseParts()
	}
}

// edges returns the edges of the parts on this machine.
func (p *parts) edges() (*partRows, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	err := mapped.Guard(func() (err error) { p.found, err = newPartRows(p.book); return err })
	return p.found, err
}

// views returns the views of the ranks whose parts are on this machine; none of another dataset.
func (j *Job) views() (ranks []view, err error) {
	if j.Data.Meta.Parts == nil {
		return nil, nil
	}
	if _, err := feed.VirtualOfParts(j.Data, j.Workers, j.Virtual); err != nil {
		return nil, err
	}
	p, err := j.open()
	if err != nil {
		return nil, err
	}
	first, end := 0, j.Workers
	if j.mine {
		first, end = j.First, min(end, j.First+j.here())
	}
	for rank := first; rank < end; rank++ {
		parts, e := feed.PartsOf(p.book, rank, j.Workers, j.Virtual)
		switch {
		case e != nil: // another machine may have the rank's parts
			err = cmp.Or(err, e)
		case parts != nil:
			ranks = append(ranks, view{parts, rank})
		}
	}
	if len(ranks) > 0 {
		err = nil
	}
	return ranks, err
}

// slotRows follows the memory of batches' own rows of features. A rank's batches take its slots in turn; one that finds its
// slot too small replaces it by one with room for an eighth more rows (plane.Reset).
type slotRows struct {
	slots   int // of each rank
	of      map[int][]int64
	turn    map[int]int
	dropped int64 // bytes that were replaced, of all ranks
}

// rowSlots returns the slots of a job: those of the batches that have been gathered and are not done, with the one in use.
func (j *Job) rowSlots() *slotRows {
	n := ahead + 2
	switch {
	case j.Disk:
		n = 2
	case j.sizes(&load{}, 0).Ahead > 0:
		n = ahead + 1
	}
	return &slotRows{slots: n, of: map[int][]int64{}, turn: map[int]int{}}
}

func (s *slotRows) add(rank int, bytes int64) {
	of := s.of[rank]
	if of == nil {
		of = make([]int64, s.slots)
		s.of[rank] = of
	}
	at := &of[s.turn[rank]%s.slots]
	s.turn[rank]++
	if bytes > *at {
		s.dropped += *at
		*at = bytes + bytes/8
	}
}

// found returns the bytes that a rank keeps for at most a number of batches, and those that it has replaced.
func (s *slotRows) found(batches int) (kept, left int64) {
	n := int64(max(1, len(s.of)))
	for _, of := range s.of {
		of = slices.Clone(of)
		for i, bytes := range of {
			if of[i] = bytes; bytes == 0 { // no batch has taken it yet
				of[i] = slices.Max(of)
			}
		}
		kept += sumBytes(of[:min(len(of), batches)])
	}
	return kept / n, s.dropped / n
}

func sumBytes(of []int64) (n int64) {
	for _, b := range of {
		n += b
	}
	return n
}

// evaluatedPart is what a rank evaluates of a dataset in parts: one part after the other, of which this is the largest.
type evaluatedPart struct {
	graph      *graphops.Graph
	own, nodes int // of the part, and with its halo
	all, halo  int // nodes of all parts of the rank, and of others that they need
	apart      bool
}

// largestPart returns the part with the most nodes of those on this machine, with its rank's; nil for a dataset whose workers
// evaluate ranges of nodes.
func (j *Job) largestPart() (*evaluatedPart, error) {
	if j.far() {
		return nil, nil
	}
	ranks, err := j.views()
	if err != nil || len(ranks) == 0 {
		return nil, err
	}
	o := feed.PlaneOptions{Cache: j.Cache, Prefetch: j.Prefetch}
	best := &evaluatedPart{apart: j.elsewhere() || o.Cache != "" || o.Prefetch != 0}
	for _, v := range ranks {
		e := *best
		e.all, e.halo, e.graph, e.nodes = 0, 0, nil, 0
		seen := make([]bool, j.Data.Nodes()) // of the halo
		for i := range v.parts.Parts() {
			if v.parts.Rank(i) != v.rank {
				continue
			}
			part, err := v.parts.Part(i)
			if err != nil {
				return nil, err
			}
			e.all += len(part.Own)
			for _, u := range part.Halo {
				if !seen[u] && v.parts.Owner(u, j.Workers) != v.rank {
					e.halo++
				}
				seen[u] = true
			}
			if n := len(part.Own) + len(part.Halo); e.graph == nil || n > e.nodes {
				e.graph, e.own, e.nodes = part.Graph, len(part.Own), n
			}
		}
		if best.graph == nil || e.all+e.halo > best.all+best.halo {
			best = &e
		}
	}
	return best, nil
}

// layer returns the bytes that a layer of width out takes of a rank, besides its tensors, and makes: input and output rows,
// those of halos as they are sent, got and kept, and the input of a part.
func (e *evaluatedPart) layer(j *Job, layer, in, out int) (bytes int64) {
	row := 4 * int64(in)
	bytes = 4 * int64(out) * int64(e.all)
	switch {
	case layer > 0:
		return bytes + row*int64(e.all+3*e.halo+e.nodes)
	case j.Embedding > 0:
		return bytes
	case e.apart:
		bytes += 2 * rowBytes(j.Data) * int64(e.halo)
	}
	return bytes + rowBytes(j.Data)*int64(e.nodes)
}

// ofParts changes an evaluation of the largest part to that of a rank, with layers of the widths.
func (j *Job) ofParts(p *evaluatedPart, widths []int, e *evaluated) {
	var most, made int64
	in := j.inputCols()
	for i, out := range widths {
		bytes := p.layer(j, i, in, out)
		most, made, in = max(most, bytes), made+bytes, out
	}
	// No worker has rows of all nodes. What is made anew for each layer is garbage after it.
	e.matrices, e.batch, e.times = 0, e.batch+most, float64(p.all)/float64(max(1, p.own))
	e.left, e.again = e.left+made-most, e.again+made
}
