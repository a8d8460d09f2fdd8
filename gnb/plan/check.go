package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

const (
	// fewSeeds is the number of seeds that a first, rough prediction samples.
	fewSeeds = 16
	// roughly is the share of the free memory up to which a rough prediction suffices.
	roughly = 0.5
	// manyWeights is the number of weights up to which a model is made in the process that starts the workers.
	manyWeights = 1 << 26
	// manyNodes is the number of nodes up to which a check replaces parts of other machines, which reads the degrees of all nodes.
	manyNodes = 1 << 25
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
			return verdict(j, []Item{{"the dataset's copy for the workers", d.Bytes()}}, 0, m)
		}
		return "", nil
	}
	if err := j.begin(); err != nil {
		return "", nil // the run reports what is wrong
	}
	defer j.parts.close()
	j.mine, j.free = true, m.Free
	if j.GPU {
		return j.fitsGPUs(ctx)
	}
	if j.check() != nil || j.large() || j.Data.Graph == nil && j.Data.Nodes() > manyNodes && j.lacksParts() {
		return "", nil
	}
	if rough, ok := j.rough(ctx); ok && float64(rough) < roughly*float64(m.Free) || j.Data.Edges() > manyEdges {
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
	memory := j.memory(l)
	for i := range memory.Shared {
		switch item := &memory.Shared[i]; {
		case item.Name == launcherItem || item.Name == datasetItem && j.Data.Mapped():
			item.Bytes = 0
		case item.Name == datasetItem:
			item.Bytes = j.Data.Bytes() // the workers' copy; this process has its own already
		}
	}
	return verdict(j, memory.Shared, memory.PerWorker(), m)
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
func verdict(j Job, shared []Item, worker int64, m machine.Memory) (warning string, err error) {
	need := int64(j.here())*worker + sumOf(shared)
	fits := fit(need, m.Free)
	if fits == "fits" {
		return "", nil
	}
	what, parts := j.Data.Name(), []string(nil)
	if j.Model != "" {
		what = j.Model + " on " + what
	}
	if worker > 0 {
		parts = append(parts, fmt.Sprintf("%s for each of %s", phrase.Bytes(worker), phrase.Count(j.here(), "worker")))
	}
	for _, i := range shared {
		if i.Bytes > need/20 {
			parts = append(parts, fmt.Sprintf("%s for %s", phrase.Bytes(i.Bytes), i.Name))
		}
	}
	of := "this machine"
	if m.Limit > 0 {
		of = "the control group"
	}
	text := fmt.Sprintf("%s takes about %s of memory (%s), and %s of the %s of %s are free", what, phrase.Bytes(need), phrase.List(parts), phrase.Bytes(m.Free), phrase.Bytes(m.Total), of)
	way := "take fewer Workers or VirtualRanks, a smaller Batch, Hidden or Fanouts, or Eval \"sampled\"; gnb plan shows each part"
	if j.Build == nil {
		way = "write the dataset to a directory (gnb data convert) and load it from there"
	}
	if fits == "no" {
		return "", fmt.Errorf("%s; %s", text, way)
	}
	return text + ", which may not suffice: if it does not, " + way + ".", nil
}

// rough returns more bytes than a job takes, predicted from a few seeds; ok is false if it cannot tell.
func (j *Job) rough(ctx context.Context) (bytes int64, ok bool) {
	few := *j
	few.Cooperative, few.Eval, few.Batch, few.PerWorker = false, "none", fewSeeds, 0
	if j.Data.Meta.Parts != nil { // seeds go to the workers that have their parts
		few.Batch *= j.world()
	} else {
		few.Workers, few.Virtual, few.Here = 1, 1, 0
	}
	few.Fanouts = slices.Clone(j.Fanouts)
	if slices.Contains(few.Fanouts, -1) {
		return 0, false
	}
	l, err := few.loads(ctx, 1, 0)
	if err != nil || l.seeds == 0 {
		return 0, false
	}
	seeds := j.batch(j.seedsOf())
	if !j.Cooperative || j.Workers == 1 {
		seeds = (seeds + j.world() - 1) / j.world()
	}
	times := max(1, int64(float64(seeds)/l.seeds+1))
	l.held, l.batch, l.rows, l.made, l.inputs = l.held*times, l.batch*times, l.rows*times, l.made*times, l.inputs*float64(times)
	if j.Eval != "none" {
		l.evalled = j.roughEvaluation()
	}
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
