package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

const (
	// fewSeeds is the number of seeds that a first, rough prediction samples, and roughly the share of the free memory up to which
	// that suffices.
	fewSeeds, roughly = 16, 0.5
	// manyWeights is the number of weights up to which a model is made in the process that starts the workers.
	manyWeights = 1 << 26
	// manyNodes is the number of nodes up to which a check replaces parts of other machines, which sorts all nodes.
	manyNodes = 1 << 22
)

// Check predicts whether a job fits into the memory that is free on this machine, within the limits of its control groups. It
// returns an error if the job surely does not fit, and a warning if it takes most of the free memory. Of a job without a
// model it checks the dataset alone.
//
// It takes milliseconds: it samples a few seeds, and the job's first steps only if a rough prediction does not fit. Of a job on
// several machines it checks what the workers of this one take. A job that cannot be predicted passes: one on servers that have
// the edges, or with a very large graph if the rough prediction does not fit. So does a job whose context ends
// meanwhile. Of a job on GPUs it checks what each worker takes of its GPU, if it is known how much memory that has, and not the
// host's memory.
func Check(ctx context.Context, j Job) (warning string, err error) {
	m, err := machine.ReadMemory()
	if err != nil {
		return "", nil // systems other than Linux
	}
	return j.fits(ctx, m)
}

// fits is [Check] with the memory m.
func (j Job) fits(ctx context.Context, m machine.Memory) (warning string, err error) {
	if j.Build == nil {
		if d := j.Data; d.Dir() == "" && !d.Mapped() {
			return j.verdict([]Item{{"the dataset's copy for the workers", d.Bytes()}}, 0, m)
		}
		return "", nil
	}
	if err := j.begin(); err != nil {
		return "", nil // the run reports what is wrong
	}
	defer j.parts.close()
	j.mine, j.free = true, m.Free
	limit := m.Free
	if j.GPU {
		j.locate(ctx)
		limit = j.at.Limit
	}
	if limit == 0 || j.check() != nil || j.large() || j.GPU && j.Data.Meta.Parts != nil || j.Data.Graph == nil && j.Data.Nodes() > manyNodes && j.lacksParts() {
		return "", nil
	}
	if rough, ok := j.rough(ctx); ok && float64(rough) < roughly*float64(limit) || j.Data.Edges() > manyEdges {
		return "", nil
	}
	steps := 1
	if j.Data.Meta.Parts != nil && !j.Cooperative { // a step of each of two workers, whose parts differ
		steps = min(2, j.here())
	}
	l, err := j.loads(ctx, steps, 0)
	if err != nil {
		return "", nil // the run reports what is wrong
	}
	if j.GPU {
		return j.gpuVerdict(l)
	}
	memory := j.memory(l)
	for i := range memory.Shared {
		switch item := &memory.Shared[i]; {
		case item.Name == launcherItem || item.Name == datasetItem && j.Data.Mapped():
			item.Bytes = 0
		case item.Name == datasetItem:
			item.Bytes = j.Data.Bytes() // the workers' copy; this process has its own already
		}
	}
	return j.verdict(memory.Shared, memory.PerWorker(), m)
}

// large reports whether the model is so large that making it takes long, or cannot be made. Workers check the memory of its weights
// before they make it.
func (j *Job) large() bool {
	large := true
	_ = nn.Try(func() {
		n, err := nn.Count(j.Build())
		large = err != nil || n > manyWeights
	})
	return large
}

// verdict compares what a job takes beyond what this process has with the free memory.
func (j *Job) verdict(shared []Item, worker int64, m machine.Memory) (warning string, err error) {
	need := int64(j.here())*worker + sumOf(shared)
	what, parts := j.Data.Name(), largest(shared, need)
	if j.Model != "" {
		what = j.Model + " on " + what
	}
	if worker > 0 {
		parts = slices.Insert(parts, 0, fmt.Sprintf("%s for each of %s", phrase.Bytes(worker), phrase.Count(j.here(), "worker")))
	}
	way := "take fewer Workers or VirtualRanks, a smaller Batch, Hidden or Fanouts, or Eval \"sampled\"; gnb plan shows each part"
	if j.Build == nil {
		way = "write the dataset to a directory (gnb data convert) and load it from there"
	}
	return refuse(fit(need, m.Free), fmt.Sprintf("%s takes about %s of memory (%s), and %s of the %s of %s are free", what, phrase.Bytes(need), phrase.List(parts), phrase.Bytes(m.Free), phrase.Bytes(m.Total), owner(m.Limit)), way)
}

// largest describes the items that are more than a twentieth of need.
func largest(items []Item, need int64) (parts []string) {
	for _, i := range items {
		if i.Bytes > need/20 {
			parts = append(parts, fmt.Sprintf("%s for %s", phrase.Bytes(i.Bytes), i.Name))
		}
	}
	return parts
}

// owner names what has the memory, with the limit of a control group or without one.
func owner(limit int64) string {
	if limit > 0 {
		return "the control group"
	}
	return "this machine"
}

// refuse returns an error for a run that does not fit, and a warning for one that is near the limit.
func refuse(fits, text, way string) (warning string, err error) {
	switch fits {
	case "no":
		return "", errors.New(text + "; " + way)
	case "near":
		return text + ", which may not suffice: if it does not, " + way + ".", nil
	}
	return "", nil
}

// rough returns more bytes than a job takes, of a GPU if it is on GPUs, predicted from a few seeds; ok is false if it cannot tell.
func (j *Job) rough(ctx context.Context) (bytes int64, ok bool) {
	if slices.Contains(j.Fanouts, -1) && !j.GPU {
		return 0, false
	}
	few := *j
	few.Eval, few.Batch, few.PerWorker = "none", fewSeeds, 0
	switch {
	case j.GPU || j.Data.Meta.Parts != nil: // seeds go to the workers that have their parts
		few.Batch *= j.world()
	default:
		few.Cooperative, few.Workers, few.Virtual, few.Here = false, 1, 1, 0
	}
	l, err := few.loads(ctx, 1, 0)
	if err != nil || l.seeds == 0 {
		return 0, false
	}
	seeds := j.batch(j.seedsOf())
	if !j.cooperates() || j.GPU {
		seeds = (seeds + j.world() - 1) / j.world()
	}
	times := max(1, int64(float64(seeds)/l.seeds+1))
	var evaluation evaluated
	if j.Eval != "none" {
		evaluation = j.roughEvaluation()
	}
	if j.GPU {
		return few.gpuMemory(l).Bytes()*times + evaluation.held, true
	}
	l.held, l.batch, l.rows, l.made, l.inputs, l.evalled = l.held*times, l.batch*times, l.rows*times, l.made*times, l.inputs*float64(times), evaluation
	m := j.memory(l)
	return int64(j.here())*m.PerWorker() + sumOf(m.Shared), true
}

// roughEvaluation returns more than what an evaluation takes: the outputs of two layers of all nodes, and ten matrices of a
// chunk with its edges.
func (j *Job) roughEvaluation() (e evaluated) {
	d, err := newDry(j, false)
	if err != nil {
		return e
	}
	const chunk = 64 << 20 // bytes of a matrix of the largest chunk; see nn.LayerRows
	wide := int64(j.inputCols())
	for _, p := range d.params.List() {
		wide = max(wide, int64(p.Rows))
	}
	e.matrices = 8 * int64(j.Data.Nodes()) * wide
	e.held = min(10*chunk, 40*int64(j.Data.Nodes())*wide)
	e.batch = 40 * (j.Data.Edges() + int64(j.Data.Nodes()))
	return e
}
