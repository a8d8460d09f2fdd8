package feed

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Team is this rank's part in the cooperative batches of a run, and in the sampling of a divided
// graph: it makes the samplers and exchangers, all of which exchange with those of the other ranks.
type Team struct {
	o      TeamOptions
	beside collective.Comm // of samplers, which run beside the training steps; made when needed
	moved  atomic.Int64
	asking atomic.Bool // the sampler is in an exchange with the other ranks
	// degrees are those of a divided graph; made when needed.
	degrees *graphops.DegreeTable
	rows    *ownRows       // other edges of a divided graph than those of the dataset; see UseRows
	loops   sync.WaitGroup // first stages of the pipelines of loops
	within  *Team          // see Within

	mu     sync.Mutex
	failed error // the first error of what the ranks do together ahead of the program
}

// TeamOptions configure a [Team].
type TeamOptions struct {
	Comm collective.Comm
	// Site returns the site of a collective.
	Site func(kind string) collective.Site
	// Threads is the number of threads that copy rows.
	Threads int
	// Waited is called with the time that this rank waited for others in the exchange of rows, and
	// the stage to which that was counted.
	Waited func(stage string, d time.Duration)
	// Mover moves rows between devices; nil if the passes are on the host.
	Mover Mover
	// Data is the run's dataset, and Parts this rank's view of it if it is divided.
	Data  *dataset.Dataset
	Parts *Parts
}

// CheckCooperative returns an error if a run with this many virtual ranks per worker, or this
// sampler, cannot have cooperative batches.
func CheckCooperative(virtual int, frontier sample.FrontierPicker) error {
	switch {
	case virtual > 1:
		return fmt.Errorf("gnb: a cooperative batch belongs to all workers together, so it cannot be divided among %d virtual ranks per worker; leave VirtualRanks out, or Cooperative", virtual)
	case frontier != nil:
		return errors.New("gnb: a cooperative batch has a part of each frontier on each worker, but Frontier samples for a whole one; give the Loader a Sampler, or leave Cooperative out")
	}
	return nil
}

// NewTeam returns a Team. It is not collective.
func NewTeam(o TeamOptions) *Team { return &Team{o: o} }

// UseData replaces the dataset, by one with other edges.
func (t *Team) UseData(ds *dataset.Dataset) { t.o.Data, t.within = ds, nil }

// Within returns the team of a loop: t or, for one within another loop, whose ranks have the connection beside the program's
// in use, a team that exchanges over the program's own. That program calls End before it goes on.
func (t *Team) Within(another bool) *Team {
	if !another {
		return t
	}
	if t.within == nil {
		t.within = &Team{o: t.o, beside: t.o.Comm, rows: t.rows}
	}
	return t.within
}

// Moved is the number of bytes that this rank has got from other ranks so far: ids and rows of
// sampling, rows between layers and their gradients, and features that other ranks own.
func (t *Team) Moved() int64 {
	n := t.moved.Load()
	if t.within != nil {
		n += t.within.moved.Load()
	}
	return n
}

// Exchanger returns an Exchanger for the passes of one network.
func (t *Team) Exchanger() *Exchanger { return &Exchanger{o: t.o, moved: &t.moved} }

// Enter begins a loop over batches that the ranks sample together, when this rank has left the loop before it as the
// other ranks have. Collective: a rank that is elsewhere in the program is found here. It fails as End does.
func (t *Team) Enter() error {
	if err := t.o.Comm.Barrier(t.o.Site("loop over batches of all ranks")); err != nil {
		return err
	}
	return t.End()
}

// End waits until the last loop has ended on all ranks. It returns the error of a batch that this rank has prepared with
// the other ranks, also if the program has left the loop before that batch: other ranks may wait for this one in the
// exchange that failed, and end when this rank does.
func (t *Team) End() error {
	t.loops.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// fail notes the error of a batch that the ranks prepare together. It returns err.
func (t *Team) fail(err error) error {
	if err == nil || errors.Is(err, sample.ErrLeft) || errors.Is(err, plane.ErrLeft) {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = err
	}
	return err
}

// Sampler returns a sampler of cooperative batches, with the Owners and the InputHalo of a key. Its
// Sample takes all seeds of a step. Collective.
func (t *Team) Sampler(c sample.Config, k Key) (sample.Batcher, error) {
	if t.o.Data.Graph == nil {
		return nil, fmt.Errorf("gnb: a cooperative batch needs the whole graph in each worker: %s, or leave Cooperative out", t.o.Data.WhyNoGraph())
	}
	if err := t.besides(); err != nil {
		return nil, err
	}
	// The ranks meet several times in a step. On one processor of Go's, a sampler at work keeps the goroutine for which
	// the other ranks wait from running, until it yields. If each rank has its own processors, that costs little,
	// and the sampler works while the other goroutine waits. Otherwise, with one more, the operating system divides
	// the processor between the two at once.
	if !t.alone() {
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), t.o.Threads+1))
	}
	site := ahead("sampling together")
	rank, world := t.beside.Rank(), t.beside.Size()
	var kept [][]byte // memory for messages
	s, err := sample.NewCooperative(t.o.Data.Graph, c, sample.Peers{
		Rank: rank, World: world, Owners: k.Owners, InputHalo: k.InputHalo,
		Sums:  world > 1 && t.o.Mover == nil,     // on devices it is not measured
		Turns: collective.SharesMemory(t.beside), // whole batches are too much for a network
		AllToAll: func(send [][]byte) ([][]byte, error) {
			t.asking.Store(true)
			got, err := collective.AllToAllInto(t.beside, site, send, kept)
			t.asking.Store(false)
			kept = got
			for r, b := range got {
				if r != rank {
					t.moved.Add(int64(len(b)))
				}
			}
			return got, err
		},
	})
	if err != nil {
		return nil, err
	}
	return &teamSampler{s, t, rowBytes(t.o.Data)}, nil
}

// ahead returns the site of a collective of samplers or windows. These are ahead of the program, whose place is not theirs.
func ahead(kind string) collective.Site { return collective.Site{Kind: kind, Epoch: -1, Step: -1} }

// alone reports whether each rank has its own processors, and computes on them alone.
func (t *Team) alone() bool {
	return t.o.Mover == nil && collective.SharesMemory(t.o.Comm) && t.o.Comm.Size() <= parallel.CPUs()
}

// besides makes t.beside. Collective.
func (t *Team) besides() error {
	if t.beside != nil {
		return nil
	}
	beside, err := t.o.Comm.Split(t.o.Site("sampling together"))
	t.beside = beside
	return err
}

// teamSampler counts the features of other ranks' nodes in the batches of a sampler.
type teamSampler struct {
	*sample.Cooperative
	t   *Team
	row int
}

func (s *teamSampler) Sample(epoch, step int, seeds sample.Seeds) (*sample.Batch, error) {
	b, err := s.Cooperative.Sample(epoch, step, seeds)
	if err == nil {
		s.t.moved.Add(int64(s.row * (b.Inputs() - b.OwnInputs())))
	}
	return b, s.t.fail(err)
}

// Foresee tells a sampler which batches a loop is about to ask for: those of the steps first to end-1 of an epoch,
// whose seeds are those of all ranks. All ranks do.
func Foresee(s sample.Batcher, epoch, first, end int, seeds func(step int) []int32) {
	if t, ok := s.(*teamSampler); ok {
		t.Cooperative.Foresee(epoch, first, end, seeds)
	}
}

// rowBytes is the mean size of a node's features.
func rowBytes(ds *dataset.Dataset) int {
	switch x, sparse := ds.Features, ds.SparseFeatures; {
	case divided.Is(ds) && ds.Meta.Parts.FeatureType == "f16":
		return 2 * ds.FeatureDim()
	case divided.Is(ds):
		return 4 * ds.FeatureDim()
	case x != nil && x.F16 != nil:
		return 2 * x.Cols
	case x != nil:
		return 4 * x.Cols
	case sparse != nil && sparse.Rows > 0:
		return 8 * len(sparse.Indices) / sparse.Rows
	}
	return 0
}

// Together returns how a pipeline ends that samples with this sampler and asks for rows, nil if the sampler needs no other
// ranks.
func (t *Team) Together(s sample.Batcher, rows *Rows) *Together {
	l, ok := s.(interface{ Leave() error })
	if !ok {
		return nil
	}
	together := &Together{
		Leave: func() {
			// The other ranks may ask for the rows of batches that they sample without this one, before they can see that it
			// has left: there they need it, over the same connection.
			if r, ok := s.(interface{ Ready() int }); ok {
				for range r.Ready() {
					rows.pass()
				}
			}
			_ = l.Leave() // fails only if the run is ending
		},
		First: &t.loops,
	}
	// Of other samplers, and of rows from other parts, it is not known when they wait.
	if _, ok := s.(*teamSampler); ok && t.alone() && t.o.Threads == 1 && !divided.Is(t.o.Data) {
		together.Waits = t.asking.Load
	}
	return together
}
