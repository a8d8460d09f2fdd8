package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Rates are what a machine's CPUs do per second, all of them together, measured with the operations of training. They
// are kept in a file of the user's cache directory, with the machine's name, and measured anew on another machine.
type Rates struct {
	Machine string `json:"machine"`
	Threads int    `json:"threads"`
	Version int    `json:"version"`
	// Tall are products of many rows with a square matrix, and Deep sums over many rows into a square matrix, of the
	// sides in sides, in FLOP/s; TallBF16 and DeepBF16 those with factors rounded to bfloat16.
	Tall     []float64 `json:"tall_flop_per_second"`
	Deep     []float64 `json:"deep_flop_per_second"`
	TallBF16 []float64 `json:"tall_bf16_flop_per_second"`
	DeepBF16 []float64 `json:"deep_bf16_flop_per_second"`
	// Near are sums of rows of the widths in widths, at random positions of a table of nearBytes, and Far of one of
	// farBytes, in bytes/s.
	Near []float64 `json:"near_row_bytes_per_second"`
	Far  []float64 `json:"far_row_bytes_per_second"`
	// NearStream and FarStream are sums of two vectors of these sizes, in bytes/s.
	NearStream float64 `json:"near_stream_bytes_per_second"`
	FarStream  float64 `json:"far_stream_bytes_per_second"`
	// HeadSums and HeadDots are a sum of rows, and products of rows, in which each edge has several heads, in heads of
	// edges/s.
	HeadSums  float64 `json:"head_sums_per_second"`
	HeadDots  float64 `json:"head_dots_per_second"`
	Exp       float64 `json:"exponentials_per_second"`
	Draw      float64 `json:"dropout_elements_per_second"`
	Transpose float64 `json:"transposed_edges_per_second"`
	// Operation is the time of an operation on few elements, in seconds.
	Operation float64 `json:"operation_seconds"`
	// Reduce are sums of a gradient over ranks in shared memory, for the numbers of ranks in worlds: seconds of an
	// empty one, and bytes of a gradient per second beyond that.
	ReduceSeconds []float64 `json:"reduce_seconds"`
	ReduceBytes   []float64 `json:"reduce_bytes_per_second"`
	// Operations are what an operation's time in a pass is, by name, and Together is a step's time as a multiple of the sum
	// of its stages.
	Operations map[string]Operation `json:"operations"`
	Together   float64              `json:"together"`
	// Learned is the time in which a learned row of a batch is read, its gradient added up and the row changed; Own that in
	// which a row of a batch is copied, and Sent that in which one is got from another rank of the machine: in seconds, for
	// rows of the widths in rowWidths.
	Learned []float64 `json:"learned_row_seconds"`
	Own     []float64 `json:"own_row_seconds"`
	Sent    []float64 `json:"sent_row_seconds"`
	// Message is the time of an exchange of empty messages between ranks of this machine, in seconds, and MessageBytes how
	// many bytes per second are written into messages for the edges of a hop, sent to a rank of the machine, and read there.
	Message      float64 `json:"message_seconds"`
	MessageBytes float64 `json:"message_bytes_per_second"`
}

// ratesVersion changes when what is measured changes.
const ratesVersion = 8

var (
	sides  = []float64{8, 32, 128, 512}
	widths = []float64{16, 64, 256, 1024} // bytes
	worlds = []float64{2, 4}
	// rowWidths are bytes too.
	rowWidths = []float64{64, 512}
)

const (
	nearBytes, farBytes = 1 << 18, 1 << 26
	// roomToMeasure is the free memory that measuring requires. It takes 300 MB.
	roomToMeasure = 384 << 20
)

// ErrNoRoom matches the error of [Measured] where too little memory is free.
var ErrNoRoom = errors.New("too little memory is free to measure this machine's rates")

// processors is the number of threads that compute at the same time: the CPUs, or what the control group's quota or the
// user (GOMAXPROCS) allows of them.
func processors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// Measured returns this machine's rates: those of the file, or measured now, which takes some five seconds, if there is
// none, if it is of another number of threads, or if again is set. A busy machine measures low rates.
func Measured(again bool) (*Rates, error) { return measuredBy(measure, again) }

// measuredBy is Measured with the function that measures.
func measuredBy(measure func(threads int) (*Rates, error), again bool) (*Rates, error) {
	file, err := machine.CacheFile("rates")
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if !again {
		if r := recorded(file); r != nil {
			return r, nil
		}
	}
	if m, err := machine.ReadMemory(); err == nil && m.Free < roomToMeasure {
		return nil, fmt.Errorf("plan: %w: that needs %s, and %s are free; end another program", ErrNoRoom, phrase.Bytes(roomToMeasure), phrase.Bytes(m.Free))
	}
	r, err := measure(processors())
	if err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = atomicfile.WriteFile(file, append(raw, '\n'), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("plan: keeping this machine's rates: %w; set XDG_CACHE_HOME to a directory that you can write to", err)
	}
	return r, nil
}

// recorded returns the rates of a file, or nil if it cannot be read, is not whole or of another machine: these are
// measured again.
func recorded(file string) *Rates {
	var r Rates
	if raw, err := atomicfile.ReadFile(file, 1<<20); err != nil || json.Unmarshal(raw, &r) != nil || !r.fits() {
		return nil
	}
	return &r
}

// fits reports whether the rates are whole and of this machine.
func (r *Rates) fits() bool {
	ok := r.Machine == machine.Name() && r.Version == ratesVersion && r.Threads == processors()
	for _, of := range []struct {
		rates []float64
		n     int
	}{
		{r.Tall, len(sides)},
		{r.Deep, len(sides)},
		{r.TallBF16, len(sides)},
		{r.DeepBF16, len(sides)},
		{r.Near, len(widths)},
		{r.Far, len(widths)},
		{r.ReduceSeconds, len(worlds)},
		{r.ReduceBytes, len(worlds)},
		{r.Learned, len(rowWidths)},
		{r.Own, len(rowWidths)},
		{r.Sent, len(rowWidths)},
		{[]float64{r.NearStream, r.FarStream, r.HeadSums, r.HeadDots, r.Exp, r.Draw, r.Transpose, r.Operation, r.Message, r.MessageBytes}, 10},
	} {
		ok = ok && len(of.rates) == of.n && usable(of.rates)
	}
	return ok && r.fitOperations()
}

// usable reports whether all rates are positive and finite.
func usable(rates []float64) bool {
	return !slices.ContainsFunc(rates, func(x float64) bool { return !(x > 0) || math.IsInf(x, 0) })
}

// measure measures the rates on threads threads.
func measure(threads int) (*Rates, error) {
	r := &Rates{Machine: machine.Name(), Threads: threads, Version: ratesVersion}
	for _, bf16 := range []bool{false, true} {
		be := ops.CPU(threads)
		if bf16 {
			f := tensor.NewFwd(tensor.Config{Threads: threads, BF16: true})
			be = f.Backend()
		}
		for _, side := range sides {
			n := int(side)
			rows := max(512, min(1<<15, 40_000_000/(2*n*n))) // about a millisecond
			x, y, w := floats(rows*n), floats(rows*n), floats(n*n)
			flop := 2 * float64(rows) * side * side
			product := []ops.Product{{X: ops.HostBuffer(x), W: ops.HostBuffer(w), K: n, T: true}}
			tall := flop / typical(func() { be.Affine(ops.HostBuffer(y), rows, n, product, ops.Epilogue{}) })
			deep := flop / typical(func() {
				be.AffineGrad(ops.HostBuffer(y), rows, n, product, []ops.ProductGrad{{DW: ops.HostBuffer(w), WantW: true}}, ops.Epilogue{}, ops.Buffer{}, false)
			})
			if bf16 {
				r.TallBF16, r.DeepBF16 = append(r.TallBF16, tall), append(r.DeepBF16, deep)
			} else {
				r.Tall, r.Deep = append(r.Tall, tall), append(r.Deep, deep)
			}
		}
	}
	be := ops.CPU(threads)
	r.rows(be)
	r.elements(be)
	for _, measure := range []func() error{r.reduce, r.messages, r.learned, r.fetched, r.operations} {
		if err := measure(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// rows measures sums of rows, and the transposition of a block.
func (r *Rates) rows(be ops.Backend) {
	table, random := floats(farBytes/4), rand.New(rand.NewPCG(1, 2))
	for _, width := range widths {
		cols := int(width / 4)
		for _, far := range []bool{false, true} {
			size := nearBytes
			if far {
				size = farBytes
			}
			src := size / int(width)
			edges := max(1<<12, 1<<22/int(width))        // 4 MB
			var blocks [typicalCalls + 1]*graphops.Block // each call reads other rows, which no cache has yet
			for i := range blocks {
				blocks[i] = randomBlock(random, edges/10, src, 10)
			}
			out, call := floats(blocks[0].NumDst*cols), 0
			rate := width * float64(blocks[0].NumEdges()) / typical(func() {
				be.SpMM(tensor.Mean, ops.HostBuffer(out), ops.Buffer{}, blocks[call], ops.HostBuffer(table[:src*cols]), cols)
				call++
			})
			if far {
				r.Far = append(r.Far, rate)
			} else {
				r.Near = append(r.Near, rate)
			}
		}
	}
	b, t := randomBlock(random, 1<<13, 1<<15, 10), graphops.Transposed{}
	x, y := ops.HostBuffer(floats(2*b.NumEdges())), ops.HostBuffer(floats(2*b.NumEdges()))
	const heads, cols = 4, 64
	h, out, weights := ops.HostBuffer(table[:b.NumSrc*cols]), ops.HostBuffer(floats(b.NumSrc*cols)), ops.HostBuffer(floats(heads*b.NumEdges()))
	n := heads * float64(b.NumEdges())
	sums := typical(func() { be.SpMMWeighted(out.Slice(0, b.NumDst*cols), b, weights, heads, h, cols, false) })
	back := typical(func() { be.SpMMWeightedGrad(out, h.Slice(0, b.NumDst*cols), weights, heads, b, cols, false) })
	r.HeadSums = 2 * n / (sums + back)
	r.HeadDots = n / typical(func() { be.EdgeDot(weights, b, h.Slice(0, b.NumDst*cols), h, heads, cols, false) })
	r.Exp = 2 * float64(b.NumEdges()) / typical(func() { be.EdgeSoftmax(y, b, x, 2) })
	r.Transpose = float64(b.NumEdges()) / typical(func() {
		b.Reset()
		b.Transpose(&t, r.Threads)
	})
}

// randomBlock returns a block with edges from random sources.
func randomBlock(r *rand.Rand, dst, src, degree int) *graphops.Block {
	h := graphops.HostBlock{NumDst: dst, NumSrc: max(dst, src), Indptr: []int64{0}}
	for range dst {
		for range degree {
			h.Indices = append(h.Indices, int32(r.IntN(src)))
		}
		h.Indptr = append(h.Indptr, int64(len(h.Indices)))
	}
	h.SrcIDs = make([]int32, h.NumSrc)
	return h.Block()
}

// elements measures operations element by element.
func (r *Rates) elements(be ops.Backend) {
	add := func(bytes int) float64 {
		n := bytes / 12
		a, b, c := ops.HostBuffer(floats(n)), ops.HostBuffer(floats(n)), ops.HostBuffer(floats(n))
		return 12 * float64(n) / typical(func() { be.Binary(ops.AddOp, a, b, c, false) })
	}
	r.NearStream, r.FarStream = add(nearBytes), add(farBytes)
	const n = 1 << 19
	x, y, mask := ops.HostBuffer(floats(n)), ops.HostBuffer(floats(n)), ops.HostBuffer(floats(ops.MaskWords(n/64, 64)))
	sp := &tensor.Space{}
	key := ops.DropoutKey{Space: sp, Seed: 1, Threshold: 1 << 31, Scale: 2}
	r.Draw = n / typical(func() { be.Dropout(y, mask, x, n/64, 64, key) })
	few := ops.HostBuffer(floats(64))
	r.Operation = typical(func() {
		for range 64 {
			be.Unary(ops.ScaleOp, few, few, 1, false)
		}
	}) / 64
}

// reduce measures sums over ranks, which are goroutines here.
func (r *Rates) reduce() error {
	for _, world := range worlds {
		var seconds [2]float64
		for i, n := range []int{16, 1 << 18} {
			var err error
			if seconds[i], err = reduceTime(int(world), n); err != nil {
				return fmt.Errorf("plan: measuring the sum of a gradient over %d ranks: %w", int(world), err)
			}
		}
		r.ReduceSeconds = append(r.ReduceSeconds, seconds[0])
		r.ReduceBytes = append(r.ReduceBytes, 4*float64(1<<18)/max(seconds[1]-seconds[0], 1e-9))
	}
	return nil
}

// ranksHere calls f as each of a number of ranks in shared memory, which are goroutines here; ok is false where there is none.
func ranksHere(world int, f func(c collective.Comm) error) (ok bool, err error) {
	files, err := collective.NewShared(world)
	if err != nil {
		return false, nil
	}
	defer files.Close()
	ended := make(chan error, world)
	for rank := range world {
		go func() {
			c, err := collective.Open(files.Control, files.Data, rank, world)
			if err == nil {
				err = f(c)
				_ = c.Close()
			}
			if err != nil {
				files.Abort(err.Error()) // the other ranks would wait
			}
			ended <- err
		}()
	}
	for range world {
		if e := <-ended; e != nil && err == nil {
			err = e
		}
	}
	return true, err
}

// measuring is the site of the collectives that are measured.
var measuring = collective.Site{Kind: "plan"}

// timesOf returns the times of calls of f at rank 0, each of which begins when all ranks are there.
func timesOf(c collective.Comm, calls int, f func() error) ([]float64, error) {
	var times []float64
	for range calls {
		if err := c.Barrier(measuring); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		times = append(times, max(time.Since(start).Seconds(), 1e-9))
	}
	slices.Sort(times)
	return times, nil
}

// reduceTime returns the time of one sum of n elements over world ranks in shared memory; where there is none, that of
// a sum over their slots by one thread.
func reduceTime(world, n int) (seconds float64, err error) {
	const rounds = 9
	ok, err := ranksHere(world, func(c collective.Comm) error {
		s, err := c.NewReducer(measuring, n, 1)
		if err != nil {
			return err
		}
		times, err := timesOf(c, rounds, func() error {
			clear(s.Slot(0))
			_, err := s.Reduce(measuring)
			return err
		})
		if err == nil && c.Rank() == 0 {
			seconds = times[rounds/2]
		}
		return err
	})
	if ok {
		return seconds, err
	}
	s, err := collective.NewSingle().NewReducer(measuring, n, world)
	if err != nil {
		return 0, err
	}
	seconds = typical(func() { _, err = s.Reduce(measuring) })
	return seconds, err
}

// messages measures the messages by which two ranks of this machine ask each other for edges.
func (r *Rates) messages() error {
	const rounds, nodes, degree = 9, 1 << 12, 8
	reply := func(nodes int) *sample.HopReply {
		return &sample.HopReply{Counts: make([]int32, nodes), First: make([]int64, nodes), Sources: make([]int32, nodes*degree), Offsets: make([]int32, nodes*degree)}
	}
	r.Message, r.MessageBytes = 1e-6, r.FarStream/4 // where no memory can be shared
	_, err := ranksHere(2, func(c collective.Comm) error {
		other := 1 - c.Rank()
		send, got := make([][]byte, 2), sample.HopReply{}
		once := func(from *sample.HopReply) func() error {
			return func() error {
				send[other] = send[other][:0]
				if from != nil {
					send[other] = from.Append(send[other])
				}
				all, err := c.AllToAll(measuring, send)
				if err == nil && from != nil {
					err = got.Decode(all[other])
				}
				return err
			}
		}
		empty, err := timesOf(c, rounds, once(nil))
		if err != nil {
			return err
		}
		of := reply(nodes)
		full, err := timesOf(c, rounds, once(of))
		if err == nil && c.Rank() == 0 {
			r.Message = empty[rounds/2]
			r.MessageBytes = float64(of.Size()) / max(full[rounds/2]-empty[rounds/2], 1e-9)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("plan: measuring messages between ranks: %w", err)
	}
	return nil
}

func floats(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 0.5
	}
	return x
}

// typicalCalls is the number of calls that typical measures.
const typicalCalls = 15

// typical returns the median time of several calls of f, in seconds, after a first one.
func typical(f func()) float64 {
	f()
	var t [typicalCalls]float64
	for i := range t {
		start := time.Now()
		f()
		t[i] = time.Since(start).Seconds()
	}
	slices.Sort(t[:])
	return max(t[len(t)/2], 1e-9)
}

// between interpolates rates measured at the positions at, by the logarithm of x, and continues them as constants.
func between(at, rates []float64, x float64) float64 {
	i, _ := slices.BinarySearch(at, x)
	switch i {
	case 0:
		return rates[0]
	case len(at):
		return rates[len(at)-1]
	}
	share := math.Log(x/at[i-1]) / math.Log(at[i]/at[i-1])
	return rates[i-1] * math.Pow(rates[i]/rates[i-1], share)
}

// seconds returns the time of a part of an operation on all threads.
func (r *Rates) seconds(c tensor.Cost, bf16 bool) float64 {
	near := func(bytes float64, near, far float64) float64 {
		return between([]float64{nearBytes, farBytes}, []float64{near, far}, bytes)
	}
	switch c.Kind {
	case tensor.ProductCost:
		tall, deep := r.Tall, r.Deep
		if bf16 {
			tall, deep = r.TallBF16, r.DeepBF16
		}
		switch {
		case c.FLOP == 0: // its operands
			return 0
		case c.K > c.M: // a sum over rows
			return float64(c.FLOP) / between(sides, deep, math.Sqrt(float64(c.M)*float64(c.N)))
		}
		return float64(c.FLOP) / between(sides, tall, math.Sqrt(float64(c.N)*float64(c.K)))
	case tensor.RowCost:
		w := float64(c.Width)
		rate := func(table int64) float64 {
			return near(float64(table), between(widths, r.Near, w), between(widths, r.Far, w))
		}
		s := float64(c.Distinct)/rate(c.Table) + float64(c.Bytes-c.Distinct)/rate(min(c.Table, c.Distinct))
		if c.Elements > 0 {
			s = max(s, float64(c.Elements)/min(r.HeadSums, r.HeadDots))
		}
		return s
	case tensor.StreamCost:
		return float64(c.Bytes)/near(float64(c.Bytes), r.NearStream, r.FarStream) + r.Operation
	case tensor.ExpCost:
		return float64(c.Elements) / r.Exp
	case tensor.DrawCost:
		return float64(c.Elements) / r.Draw
	case tensor.TransposeCost:
		return float64(c.Elements) / r.Transpose
	}
	return 0
}

// reduceSeconds returns the time of a sum of n elements over ranks of one machine.
func (r *Rates) reduceSeconds(world, n int) float64 {
	if world < 2 {
		return 4 * float64(n) / r.FarStream
	}
	w := float64(world)
	return between(worlds, r.ReduceSeconds, w) + 4*float64(n)/between(worlds, r.ReduceBytes, w)
}
