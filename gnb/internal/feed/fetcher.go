package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// PlaneOptions configure how ranks get rows of features that they do not have.
type PlaneOptions struct {
	// Features is where dense features are: "memory" (mapped files), "disk", or "" for disk where memory is too small.
	Features string `json:"features,omitempty"`
	// Cache is the size of the static cache, of which the ranks of a machine have one together: for each rank a share of
	// the rows that a rank has on average, "0.2" or "20%", or bytes of the machine, "512MB". "" means none; for features on
	// disk, a share of the free memory.
	Cache string `json:"cache,omitempty"`
	// CachePolicy says which rows the cache has: "static", which "" means too, or "belady", with a cache of each rank's
	// own whose rows are replaced by what the next Prefetch steps read.
	CachePolicy string `json:"cache_policy,omitempty"`
	// Prefetch is the number of steps ahead of use that rows are asked for; 0 means 4.
	Prefetch int `json:"prefetch,omitempty"`
	// GPUCache is the size of the rows that stay in the memory of each rank's GPU: a share, as of Cache, or bytes of the
	// rank; "" means none.
	GPUCache string `json:"gpu_cache,omitempty"`
}

// Values of PlaneOptions.CachePolicy.
const (
	staticPolicy = "static"
	BeladyPolicy = "belady"
)

// defaultPrefetch is the number of steps that 0 means.
const defaultPrefetch = 4

// MaxPrefetch bounds PlaneOptions.Prefetch.
const MaxPrefetch = 1 << 10

// checkGPU returns an error if no rows of a dataset's features can stay on GPUs as GPUCache says.
func (o PlaneOptions) checkGPU(ds *dataset.Dataset) error {
	switch {
	case o.GPUCache == "":
		return nil
	case ds.FeatureDim() == 0 || ds.Meta.FeatureFormat != "" || ds.SparseFeatures != nil:
		return fmt.Errorf("gnb: GPUCache is for dense features, and those of %s are sparse or absent; leave it out", ds.Name())
	}
	return nil
}

// asked reports whether the program asked for cache or prefetch.
func (o PlaneOptions) asked() bool { return o.Cache != "" || o.Prefetch != 0 }

// Check returns an error for options that no run can have, or the dataset's runs cannot.
func (o PlaneOptions) Check(ds *dataset.Dataset) error {
	if _, _, err := o.cacheSize(); err != nil {
		return err
	}
	if _, _, err := plane.ParseSize("GPUCache", o.GPUCache); err != nil {
		return err
	}
	if err := o.checkFeatures(ds); err != nil {
		return err
	}
	switch {
	case o.CachePolicy != "" && o.CachePolicy != staticPolicy && o.CachePolicy != BeladyPolicy:
		return fmt.Errorf(`gnb: CachePolicy is %q; it is "static" or "belady"`, o.CachePolicy)
	case o.CachePolicy == BeladyPolicy && o.Cache == "" && o.Features != FeaturesOnDisk:
		return errors.New(`gnb: CachePolicy is "belady", but there is no cache; set Cache (--cache 20%), or leave CachePolicy out`)
	case ds == nil:
		return nil
	}
	if err := o.checkGPU(ds); err != nil {
		return err
	}
	switch {
	case !o.asked() || o.Features == FeaturesOnDisk:
		return nil
	case !divided.Is(ds):
		return fmt.Errorf("gnb: Cache and Prefetch are for rows of features that other workers have or that are on disk, but %s is not divided into parts; divide it with gnb partition --out, set Features to \"disk\", or leave them out", ds.Name())
	case ds.FeatureDim() == 0:
		return fmt.Errorf("gnb: Cache and Prefetch are for features, and %s has none; leave them out", ds.Name())
	case ds.Meta.FeatureFormat != "" && divided.IsFar(ds):
		return fmt.Errorf("gnb: Cache and Prefetch are for dense features at servers, and those of %s are sparse; leave them out", ds.Name())
	}
	return nil
}

// Reads describes the rows that a rank's batches read, to [PlaneOptions.Sizes].
type Reads struct {
	Own      float64 // rows that a rank has on average
	Nodes    int     // rows of all ranks
	Remote   float64 // distinct rows of a step that other ranks or servers have
	Inputs   float64 // distinct rows of a step
	RowBytes int64
	// Elsewhere means that the rank lacks some rows; else it maps all, unless the options are set.
	Elsewhere bool
	// Servers means that servers have them, not other ranks.
	Servers bool
	// Free is the memory of the machine that is free before the run, and Local the number of its ranks.
	Free  int64
	Local int
}

// Sizes is the memory that a rank has for rows which are not on its machine.
type Sizes struct {
	Cache   int64
	Window  int64 // rows that later batches asked for
	Buffers int64 // of requests and answers
	// Ahead is the number of steps that are sampled ahead; 0 if rows are mapped.
	Ahead int
	// Alone means that the cache is the rank's own; else the ranks of a machine share it.
	Alone bool
	// Late is the number of batches that are sampled ahead besides, because the ranks of a machine tell each other what
	// their batches need.
	Late int
}

// Sizes returns the memory that a rank has for rows which are not on its machine, where its batches read r.
func (o PlaneOptions) Sizes(r Reads) (s Sizes) {
	share, cache, _ := o.cacheSize() // Check reports an error
	if cache = ofRank(cache, r.Local); share > 0 {
		cache = int64(share*r.Own) * r.RowBytes
	}
	prefetch := cmp.Or(o.Prefetch, defaultPrefetch)
	s.Alone = o.CachePolicy == BeladyPolicy
	defer func() {
		if s.Alone && s.Ahead > 0 {
			s.Ahead += beyondKnown
		}
	}()
	kept := prefetch // steps whose rows are kept
	if s.Alone {
		kept = min(kept, beyondKnown) // those of the other steps are in the cache, or not there yet
	}
	window := func(rows float64) int64 { return int64(float64(kept)*rows) * r.RowBytes }
	switch {
	case o.Features == FeaturesOnDisk:
		bound, most := memoryShares(r.Free, r.Local)
		if o.Cache == "" {
			cache = most
		}
		return Sizes{
			Cache: min(cache, int64(r.Nodes)*r.RowBytes), Window: min(bound, window(r.Inputs)), Buffers: min(plane.DiskBuffers, int64(r.Nodes)*r.RowBytes),
			Ahead: prefetch, Alone: s.Alone,
		}
	case !r.Elsewhere && !o.asked():
		return Sizes{}
	}
	if r.Local > 1 && !r.Servers && !s.Alone {
		s.Late = plane.Depth(true) - plane.Depth(false)
	}
	bound, rows := int64(windowBytes), window(r.Remote)
	if r.Servers {
		if bound, _ = memoryShares(r.Free, r.Local); !s.Alone { // rows stay until others need their room
			rows = max(rows, int64(r.Nodes)*r.RowBytes/int64(max(1, r.Local)))
		}
	}
	// The rows of an answer are there in its messages and in its memory, and those of two answers are sent.
	return Sizes{Cache: cache, Window: min(bound, rows), Buffers: 4 * int64(r.Remote) * r.RowBytes, Ahead: prefetch, Alone: s.Alone, Late: s.Late}
}

// cacheSize returns the size of the cache: for each rank a share of its rows, or bytes of the machine.
func (o PlaneOptions) cacheSize() (share float64, bytes int64, err error) {
	return plane.ParseSize("Cache", o.Cache)
}

// ofRank is what each of the ranks of a machine has of its bytes: at least one, so that all ranks have a cache or none.
func ofRank(bytes int64, ranks int) int64 { return max(min(bytes, 1), bytes/int64(max(1, ranks))) }

// Own is the rows of features on this machine, and the layout of all rows.
type Own interface {
	plane.Own
	// RowBytes is the size of a row as it is stored or sent.
	RowBytes() int
	// Reset gives a matrix the memory of rows rows, with any content, and returns their bytes.
	Reset(m *dataset.Matrix, rows int) []byte
}

// Fetcher gets the rows of features that a rank's batches read and that are not on its machine. It opens a
// [plane.Window] for each loop over batches, and keeps the cache, which the ranks of a machine share, and the counts from
// one loop to the next.
type Fetcher struct {
	o            PlaneOptions
	team         *Team
	data         *dataset.Dataset
	parts        *Parts // nil if the source is a disk
	own          Own
	source       plane.Source
	at           Place
	cache        *plane.Cache
	memory       collective.Matrix // of the cache, if the ranks of the machine share it; else nil
	pool         *plane.Pool       // in place of the cache, with Belady's policy
	near         []int             // the ranks of this machine, if their windows are one; else nil
	rows         collective.Matrix // of that window; made when needed
	shared       *plane.Machine    // of that window
	cached       bool              // the first loop of training has made the cache
	counts       plane.Counts
	filled       int64        // bytes asked for to fill the caches
	hot          *plane.Index // the rows that are on the rank's GPU; nil if none stay there
	here, copied atomic.Int64 // rows of batches that were there, and bytes of the others
	window       int64        // bytes of rows of later batches
	kept         *plane.Kept  // rows of earlier batches; nil where they are dropped

	disk         *plane.Disk // the source, or nil
	defaultCache int64       // bytes of the cache if the options say nothing
	limit        float64     // of the disk in bytes per second, 0 before it is measured
	limitAt      int64       // the size of the requests with which it was measured
}

// beyondKnown is the number of steps that are sampled ahead beyond those that a cache of Belady's policy knows: a batch's
// rows are asked for when it is known what the next Prefetch steps read, and two exchanges before they are there.
const beyondKnown = 3

// windowBytes bounds the rows of later batches that a rank keeps; see [plane.Options].
const windowBytes = 512 << 20

// NewFetcher returns a Fetcher, or nil for ranks that read all features from mapped files. Collective.
//
// This is the one place that chooses where rows come from that are not on this machine. A further source, such as graph
// servers or a disk, implements [plane.Source], with an [Own] whose Has is false for the rows that come from it, and is
// chosen here; windows, cache, counts and batches are the same for each source.
func NewFetcher(t *Team, p *Parts, o PlaneOptions, at Place) (*Fetcher, error) {
	if o.GPUCache != "" && at.device(o) == nil && at.Note != nil {
		at.Note("GPUCache has no effect: the host copies no batches to a GPU in this run")
	}
	switch {
	case o.Features == FeaturesOnDisk:
		return newDiskFetcher(t, o, at)
	case p == nil && o.GPUCache != "":
		return newWholeFetcher(t, o, at)
	case p == nil:
		return nil, nil
	}
	ds := p.Dataset()
	far := divided.IsFar(ds)
	if !far {
		if err := p.agree(t, o.asked()); err != nil || !p.apart && at.device(o) == nil {
			return nil, err
		}
	}
	switch {
	case ds.FeatureDim() == 0, far && ds.Meta.FeatureFormat != "":
		return nil, nil
	}
	own := p.ownRows(t.o.Threads)
	f := &Fetcher{o: o, team: t, data: ds, at: at, parts: p, own: own, window: windowBytes}
	if far {
		letWait(t.o.Threads)
		var err error
		if _, f.source, err = p.Far(); err != nil {
			return nil, err
		}
		f.kept = &plane.Kept{}
		if m, err := machine.ReadMemory(); err == nil {
			f.window, _ = memoryShares(m.Free, at.LocalWorld)
		}
		if err := f.smallest("memory for features from servers", &f.window); err != nil {
			return nil, err
		}
		return f, f.findNear()
	}
	if !p.apart { // all rows are in files of this machine
		return f, nil
	}
	if err := t.besides(); err != nil {
		return nil, err
	}
	if !collective.SharesMemory(t.beside) {
		letWait(t.o.Threads)
	}
	f.source = &plane.Exchange{
		Comm: t.beside, Site: ahead("features of other ranks"), Own: own, RowBytes: own.RowBytes(), Counts: &f.counts,
		Owner: func(v int32) int { return p.Rank(p.PartOf(v)) },
	}
	return f, f.findNear()
}

// Together reports whether ranks must begin a loop over batches together ([Team.Enter]); within says that it is within
// another one.
func (f *Fetcher) Together(within bool) bool {
	return f != nil && (f.exchanges() || f.near != nil && !within)
}

// exchanges reports whether other ranks have the rows.
func (f *Fetcher) exchanges() bool {
	_, ok := f.source.(plane.Collective)
	return ok
}

// UseData replaces the dataset, by one with other edges. f may be nil.
func (f *Fetcher) UseData(ds *dataset.Dataset) {
	if f != nil {
		f.data = ds
	}
}

// Close closes the disk, if that is the source. It waits for reads under way. f may be nil.
func (f *Fetcher) Close() error {
	if !f.FromDisk() {
		return nil
	}
	return f.disk.Close()
}

// Counts returns the rows that this rank's batches have asked for so far; nil if they read mapped files.
// The bytes are with those of the cache.
func (f *Fetcher) Counts() *plane.Rows {
	if f == nil {
		return nil
	}
	r := f.counts.Rows()
	r.GPU, r.Copied = f.here.Load(), f.copied.Load()
	if f.disk != nil {
		f.countDisk(&r)
		return &r
	}
	r.Bytes += f.filled
	return &r
}

// Loop describes a loop over batches to [Fetcher.Open].
type Loop struct {
	Sampler sample.Batcher
	// Batches is the number of batches, of which there are Virtual in a step; Ahead are prepared ahead of the consumer.
	Batches, Virtual, Ahead int
	// Train is set for a loop whose epochs repeat. The first one makes the cache, from the rows that its batches read.
	Train    bool
	Picker   sample.Picker
	Seeds    []int32 // of the epoch
	Items    bool    // Seeds are items of a program, of which each has seeds of its own
	Disjoint bool    // each seed has a tree of its own
	Batch    int     // seeds of a step
	Team     *Team   // that of the loops before, or its Within
	// Sample samples batch i of the loop.
	Sample func(i int) (*sample.Batch, error)
}

// Rows is the rows of features of one loop over batches. A nil *Rows is that of ranks that read mapped files.
type Rows struct {
	f     *Fetcher
	w     *plane.Window
	train bool
	ahead int
	// numbers finds the distinct rows of batches of disjoint trees; made when needed.
	numbers graphops.Numbering
}

// Open begins a loop over batches, after [Team.Enter]. Collective if Together is.
func (f *Fetcher) Open(l Loop) (*Rows, error) {
	if f == nil {
		return nil, nil
	}
	if l.Train && !f.cached {
		f.cached = true
		if err := f.fill(l); err != nil {
			return nil, err
		}
	}
	sampled := l.Team.Together(l.Sampler, nil) != nil
	near := f.near != nil && l.Team == f.team
	together, source := near || f.exchanges(), f.source
	if x, ok := source.(*plane.Exchange); ok && l.Team != f.team {
		source = x.Over(l.Team.beside)
	}
	ahead := cmp.Or(f.o.Prefetch, defaultPrefetch) * l.Virtual
	pool, known := f.pool, 0
	switch {
	case pool != nil && !pool.Settle():
		pool = nil // a loop around this one replaces its rows
	case pool != nil && l.Train:
		known = ahead
		ahead += beyondKnown * l.Virtual
	}
	var machine *plane.Machine
	if near {
		var err error
		if machine, err = f.machine(); err != nil {
			return nil, err
		}
		if f.exchanges() {
			ahead += plane.Depth(true) - plane.Depth(false)
		}
	}
	kept := f.kept
	if f.near != nil && !near || f.pool != nil {
		kept = nil
	}
	r := &Rows{f: f, train: l.Train, ahead: min(max(l.Ahead, ahead), max(1, l.Batches))}
	r.w = plane.Open(context.Background(), plane.Options{
		Source: source, Own: f.own, Cache: f.cache, Kept: kept, Pool: pool, Known: known, Counts: &f.counts, RowBytes: f.own.RowBytes(), Nodes: f.data.Nodes(), Bytes: f.window, Batches: l.Batches,
		// The exchanges of samplers that need other ranks pass over the same connection.
		Inline:  together && sampled,
		Machine: machine,
		Failed:  func(err error) { _ = l.Team.fail(err) },
		Threads: f.team.o.Threads,
	})
	if together {
		l.Team.loops.Go(r.w.Wait)
	}
	return r, nil
}

// Ask asks for the rows of the next batch. The ticket is nil if the batch reads mapped files. After this rank or another
// one has left the loop, Ask has no error but the ticket has no rows: other ranks may still sample batches with this one,
// until they meet where each of them leaves.
func (r *Rows) Ask(b *sample.Batch) (*Ticket, error) {
	if r == nil {
		return nil, nil
	}
	var ids, places []int32
	if err := nn.Try(func() { ids, places = r.f.split(b.InputIDs()) }); err != nil { // a device may have them
		return nil, err
	}
	rows, once := len(ids), []int32(nil)
	if b.Trees != nil {
		ids, once = r.distinct(ids)
	}
	t, err := r.w.Ask(ids)
	var left error
	if errors.Is(err, plane.ErrClosed) || errors.Is(err, plane.ErrLeft) {
		left, err = err, nil
	}
	return &Ticket{t: t, left: left, own: r.f.own, rows: rows, asked: len(ids), once: once, Places: places}, err
}

// pass takes part in what the other ranks do in Ask of a batch that this rank does not sample, because it leaves the loop.
func (r *Rows) pass() {
	if r != nil {
		_, _ = r.w.Ask(nil) // it reports the error of a call, and others are those of a loop that has ended
	}
}

// distinct returns the distinct ids, in the order in which they first occur, and the place of each id among them.
func (r *Rows) distinct(ids []int32) (distinct, places []int32) {
	if r.numbers == nil {
		r.numbers = graphops.NewNumbering(r.f.data.Nodes())
	}
	r.numbers.Begin()
	places = slices.Clone(ids)
	return r.numbers.Number(nil, places), places
}

// Ahead returns the number of batches to sample ahead of the consumer, for which the loader wants ahead.
func (r *Rows) Ahead(ahead int) int {
	if r == nil {
		return ahead
	}
	return r.ahead
}

// Ticket stands for the rows of a batch. A nil Ticket is that of a batch that reads mapped files.
type Ticket struct {
	t    *plane.Ticket // nil after a rank has left the loop
	left error         // that a rank has
	own  Own
	rows int
	// With disjoint trees a row may be there several times: asked are the distinct ones, and once says which of them each is.
	asked int
	once  []int32
	// Places says where the batch's rows are if some of them can be on the rank's GPU: a number below that of the rows there,
	// or that number plus the place among the rows of Features. It is nil if Features has all rows.
	Places []int32
}

// Table is Features for a program that can read rows in memory of all nodes' rows, by number. It returns nil, and has not
// waited, where there is no such memory.
func (t *Ticket) Table(m *Memory, stop <-chan struct{}) (*dataset.Matrix, error) {
	if t.left != nil {
		return nil, t.left
	}
	if t.Places != nil {
		return nil, nil
	}
	rows, err := t.t.Table(stop)
	if rows == nil || err != nil {
		return nil, err
	}
	t.own.Reset(&m.table, 1) // for its columns and their type
	plane.View(&m.table, rows, m.table.Cols, m.table.Half())
	return &m.table, nil
}

// Features waits for the rows of a batch, dense or sparse; the other is nil. They are in the order of its InputIDs, in
// memory of m, without those that are on the rank's GPU.
func (t *Ticket) Features(m *Memory, stop <-chan struct{}) (*dataset.Matrix, *dataset.Sparse, error) {
	if t.left != nil {
		return nil, nil, t.left
	}
	rows := t.own.Reset(&m.dense, t.rows)
	size := t.own.RowBytes()
	if err := t.t.Gather(stop, rows[:t.asked*size]); err != nil {
		return nil, nil, err
	}
	for i := len(t.once) - 1; i >= 0; i-- { // from the end, because no row is behind its first copy
		copy(rows[i*size:(i+1)*size], rows[int(t.once[i])*size:])
	}
	return m.written(t.own, rows)
}

// Fetched bounds the batches that have their rows at a time, besides the one in use; 0 means that nothing bounds them
// but the number of batches.
func (r *Rows) Fetched(ahead int) int {
	switch {
	case r == nil:
		return 0
	case r.f.disk != nil:
		return 2 // the memory is small
	}
	return ahead + 1
}

// Close ends the loop; failed says that the program has failed.
func (r *Rows) Close(failed bool) {
	switch {
	case r == nil:
	case failed:
		r.w.Abandon()
	default:
		r.w.Close()
		if r.train && r.f.disk != nil {
			r.f.measure()
		}
	}
}

// countedBatches bounds the batches that are sampled to find the rows to cache.
const countedBatches = 512

// fill makes the cache for the batches of a loop.
func (f *Fetcher) fill(l Loop) error {
	bytes, err := f.cacheBytes()
	device := f.device()
	if err != nil || bytes == 0 && device == nil { // on all ranks
		return err
	}
	f.sayCache(bytes)
	score, err := f.score(l)
	if err != nil {
		return fmt.Errorf("gnb: finding the rows to cache: %w", err)
	}
	if device != nil {
		if err := device.Stay(f, score); err != nil || bytes == 0 {
			return err
		}
	}
	for v := range score {
		if f.own.Has(int32(v)) {
			score[v] = 0
		}
	}
	if f.o.CachePolicy == BeladyPolicy {
		return f.fillPool(score, bytes)
	}
	return f.fillBy(score, bytes)
}

// fillPool makes the cache of Belady's policy, which begins with the rows of the highest scores.
func (f *Fetcher) fillPool(score []float32, bytes int64) error {
	f.cache = nil
	hottest := hotness.Hottest(score, make([]int32, len(score)), -1, len(score))
	c, err := plane.NewCache(context.Background(), f.source, hottest, len(score), f.own.RowBytes(), bytes)
	if err != nil {
		return err
	}
	f.filled += int64(c.Asked()) * int64(f.own.RowBytes())
	f.pool = plane.NewPool(c, score, bytes)
	return nil
}

// cacheBytes is this rank's share of the size of its machine's cache.
func (f *Fetcher) cacheBytes() (int64, error) {
	share, bytes, err := f.o.cacheSize()
	switch {
	case err != nil:
		return 0, err
	case f.o.Cache == "":
		return f.defaultCache, nil
	case share > 0:
		return int64(share*float64(f.data.Nodes())/float64(f.team.o.Comm.Size())) * int64(f.own.RowBytes()), nil
	}
	return ofRank(bytes, f.at.LocalWorld), nil
}

// sayCache says how the ranks of a machine share the bytes of its cache.
func (f *Fetcher) sayCache(each int64) {
	share, bytes, _ := f.o.cacheSize() // cacheBytes has reported an error
	if share > 0 || bytes == 0 || f.at.LocalWorld < 2 || f.at.Note == nil {
		return
	}
	how := "share it"
	if f.o.CachePolicy == BeladyPolicy {
		how = "have " + phrase.Bytes(each) + " each"
	}
	f.at.Note("the cache of feature rows has %s on a machine at most; its %d workers %s", phrase.Bytes(bytes), f.at.LocalWorld, how)
}

// score returns how often the batches of an epoch read each row: computed from probabilities if the sampler and the
// graph allow it, else counted in the loop's own batches.
func (f *Fetcher) score(l Loop) ([]float32, error) {
	g, score := f.data.Graph, make([]float32, f.data.Nodes())
	spec, ok := sample.SpecOf(l.Picker)
	fanouts := spec.Fanouts
	ok = ok && !spec.Weighted && spec.Labor == nil && !l.Items && !l.Disjoint
	switch ok = ok && g != nil && f.team.Together(l.Sampler, nil) == nil; {
	case ok && f.parts == nil:
		hot, err := hotness.Propagate(context.Background(), hotness.Job{
			Graph: g, Of: make([]int32, len(score)), Parts: 1, Fanouts: fanouts, Seeds: l.Seeds, Batch: max(1, l.Batch/(f.team.o.Comm.Size()*l.Virtual)), Threads: f.team.o.Threads,
		})
		if err != nil {
			return nil, err
		}
		return hot[0], nil
	case ok && (f.parts.Parts() > 1 || f.parts.world == 1):
		mine := f.parts.PartsOf(f.parts.rank, f.parts.world)
		hot, err := hotness.Propagate(context.Background(), hotness.Job{
			Graph: g, Of: f.parts.Of(), Parts: f.parts.Parts(), Fanouts: fanouts, Seeds: l.Seeds, Batch: l.Batch, Only: mine, Threads: f.team.o.Threads,
		})
		if err != nil {
			return nil, err
		}
		for _, p := range mine {
			for v, h := range hot[p] {
				score[v] += h
			}
		}
		return score, nil
	}
	for i := range min(l.Batches, countedBatches) {
		b, err := l.Sample(i)
		if err != nil {
			return nil, err
		}
		ids := b.InputIDs()
		if b.Trees != nil { // a batch asks for a row once
			ids = slices.Compact(slices.Sorted(slices.Values(ids)))
		}
		for _, v := range ids {
			score[v]++
		}
		b.Release()
	}
	return score, nil
}

// agree makes the ranks agree whether each of them has all rows. It fails if a machine lacks what the run needs there.
// Collective.
func (p *Parts) agree(t *Team, alone bool) error {
	lacks := make([]int64, 2)
	if !p.HasAll() {
		lacks[0] = 1
	}
	if p.Dataset().Graph == nil {
		lacks[1] = 1
	}
	if err := t.o.Comm.SumInt64(t.o.Site("parts on each machine"), lacks); err != nil {
		return err
	}
	if n := lacks[1]; n > 0 && n < int64(p.world) {
		return errors.New("gnb: some machines have the whole graph (indptr.npy, indices.npy) and others do not; copy it to every machine, or remove it from all")
	}
	if p.apart = lacks[0] > 0 || alone; p.apart && p.Dataset().Meta.FeatureFormat != "" {
		if err := p.agreeLongest(t); err != nil {
			return err
		}
	}
	if lacks[0] == 0 && alone { // as if each rank were on a machine of its own
		for i := range p.here {
			p.here[i] = p.Rank(i) == p.rank
		}
	}
	return nil
}
