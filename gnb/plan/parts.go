package plan

import (
	"cmp"

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

// evaluatedPart is the largest part on this machine: a rank evaluates its parts one after the other.
type evaluatedPart struct {
	graph     *graphops.Graph // nil for a dataset whose workers evaluate ranges of nodes
	own, halo int             // nodes
}

func (j *Job) largestPart() (best evaluatedPart, err error) {
	if j.far() {
		return best, nil
	}
	ranks, err := j.views() // none of a dataset that is not in parts
	for _, v := range ranks {
		for i := range v.parts.Parts() {
			if v.parts.Rank(i) != v.rank {
				continue
			}
			part, err := v.parts.Part(i)
			if err != nil {
				return best, err
			}
			if len(part.Own)+len(part.Halo) > best.own+best.halo {
				best = evaluatedPart{part.Graph, len(part.Own), len(part.Halo)}
			}
		}
	}
	return best, err
}

// bytes is what the layers of an evaluation take of a rank, besides its tensors, as if all its parts were like this one: the input and
// output rows of the largest layer, those of halos as they are sent, got and kept, and the input of a part.
func (e *evaluatedPart) bytes(j *Job, widths []int) (most int64) {
	in, all, halos, nodes := 4*int64(j.inputCols()), int64(e.own*j.Virtual), int64(e.halo*j.Virtual), int64(e.own+e.halo)
	for i, out := range widths {
		bytes := 4 * int64(out) * all
		switch {
		case i > 0:
			bytes += in * (all + 3*halos + nodes)
		case j.Embedding == 0:
			bytes += rowBytes(j.Data) * (nodes + 2*halos)
		}
		most, in = max(most, bytes), 4*int64(out)
	}
	return most
}
