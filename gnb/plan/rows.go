package plan

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/multigpu/collective"
)

const (
	// rowNodes is the number of nodes whose rows are read to measure with, and rowBatch those of a batch.
	rowNodes, rowBatch = 1 << 17, 1 << 12
	// rowBatches is the number of batches, which read different rows.
	rowBatches = 12
	// learnedBytes is the size of the table of learned rows, and learnedBatch the rows of a step.
	learnedBytes, learnedBatch = 1 << 25, 1 << 13
)

// randomNodes returns the nodes below n that are r modulo m, in a random order.
func randomNodes(seed uint64, n int, of func(v int32) bool) []int32 {
	var ids []int32
	for v := range int32(n) {
		if of(v) {
			ids = append(ids, v)
		}
	}
	rand.New(rand.NewPCG(seed, 3)).Shuffle(len(ids), func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
	return ids
}

// learned measures steps of learned rows, each of other rows, as those of a run.
func (r *Rates) learned() error {
	for _, width := range rowWidths {
		cols, nodes := int(width)/4, learnedBytes/int(width)
		all, at := randomNodes(1, nodes, func(int32) bool { return true }), 0
		t, err := feed.NewEmbeddings(feed.EmbeddingOptions{
			Comm: collective.NewSingle(), Site: func(kind string) collective.Site { return collective.Site{Kind: kind} }, Nodes: nodes, Cols: cols,
		})
		if err != nil {
			return fmt.Errorf("plan: measuring learned rows: %w", err)
		}
		grad, f := floats(learnedBatch*cols), nn.NewFwd(nn.Config{Threads: r.Threads})
		step := func() {
			ids := all[at:][:learnedBatch]
			at = (at + learnedBatch) % nodes
			f.Reset(nn.Config{Threads: r.Threads})
			_, e := t.Leaf(f, ids, &nn.Space{})
			t.Add(ids, grad)
			if e == nil {
				e = t.Step(1e-3, 1)
			}
			if err == nil {
				err = e
			}
		}
		for range nodes / learnedBatch { // until all rows have memory
			step()
		}
		r.Learned = append(r.Learned, typical(step)/learnedBatch)
		if err != nil {
			return fmt.Errorf("plan: measuring learned rows: %w", err)
		}
	}
	return nil
}

// rankOf is the rank of two that has a node's row: each has every other pair of nodes, and thus half of the rows that a rank
// gets for the machine.
func rankOf(v int32) int { return int(v) / 2 % 2 }

// halfOfRows is the rows of a rank, which are looked up as those of parts are.
type halfOfRows struct {
	rank     int32
	rowBytes int
	of, at   []int32 // the rank and the row of each node
	rows     []byte
}

func newHalfOfRows(rank, rowBytes int, rows []byte) *halfOfRows {
	h := &halfOfRows{int32(rank), rowBytes, make([]int32, rowNodes), make([]int32, rowNodes), rows}
	for v := range h.of {
		h.of[v], h.at[v] = int32(rankOf(int32(v))), int32(v)
	}
	return h
}

func (h *halfOfRows) Has(v int32) bool { return h.of[v] == h.rank }

func (h *halfOfRows) Gather(dst []byte, ids []int32) error {
	for i, v := range ids {
		if h.Has(v) {
			copy(dst[i*h.rowBytes:(i+1)*h.rowBytes], h.rows[int(h.at[v])*h.rowBytes:])
		}
	}
	return nil
}

// fetched measures how two ranks of this machine get the rows of batches: of their own, and each other's. Where no memory
// can be shared, rows of others count as two copies.
func (r *Rates) fetched() error {
	for _, width := range rowWidths {
		var seconds [2]float64 // of a row of a rank's own, and of another one's
		for i := range seconds {
			times := make([]float64, 3)
			for k := range times {
				var err error
				if times[k], err = fetchTime(int(width), i == 1); err != nil {
					return fmt.Errorf("plan: measuring rows of other workers: %w", err)
				}
			}
			slices.Sort(times)
			seconds[i] = times[1]
		}
		r.Own, r.Sent = append(r.Own, seconds[0]), append(r.Sent, seconds[1])
	}
	return nil
}

// fetchTime returns the time in which a rank gets a row, own or away.
func fetchTime(rowBytes int, away bool) (seconds float64, err error) {
	rows := make([]byte, rowNodes*rowBytes)
	files, err := collective.NewShared(2)
	if err != nil { // systems other than Linux have one rank
		own := newHalfOfRows(0, rowBytes, rows)
		ids := randomNodes(0, rowNodes, own.Has)[:rowBatch]
		dst := make([]byte, len(ids)*rowBytes)
		return 2 * typical(func() { _ = own.Gather(dst, ids) }) / rowBatch, nil
	}
	defer files.Close()
	memory, slots := make([]byte, rowNodes*rowBytes), make([]int32, rowNodes)
	ended := make(chan error, 2)
	for rank := range 2 {
		go func() {
			s, err := fetchAs(files, rank, rows, memory, slots, rowBytes, away)
			if err != nil {
				files.Abort(err.Error()) // the other rank would wait
			}
			if rank == 0 {
				seconds = s
			}
			ended <- err
		}()
	}
	for range 2 {
		if e := <-ended; e != nil && err == nil {
			err = e
		}
	}
	return max(seconds, 1e-9), err
}

// fetchAs gets the rows of a rank's batches and returns the time of one. The ranks have one window, in memory.
func fetchAs(files *collective.Files, rank int, rows, memory []byte, slots []int32, rowBytes int, away bool) (seconds float64, err error) {
	at := collective.Site{Kind: "plan"}
	c, err := collective.Open(files.Control, files.Data, rank, 2)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	own := newHalfOfRows(rank, rowBytes, rows)
	ids, dst := randomNodes(uint64(rank), rowNodes, func(v int32) bool { return own.Has(v) != away }), make([]byte, rowBatch*rowBytes)
	if err := c.Barrier(at); err != nil {
		return 0, err
	}
	start := time.Now()
	w := plane.Open(context.Background(), plane.Options{
		Source: &plane.Exchange{Comm: c, Site: at, Own: own, RowBytes: rowBytes, Owner: rankOf},
		Own:    own, RowBytes: rowBytes, Bytes: 1 << 30, Batches: rowBatches, Threads: 1,
		Machine: &plane.Machine{Ranks: []int{0, 1}, Rows: memory, Nodes: rowNodes, Slots: slots},
	})
	defer w.Wait()
	defer w.Close()
	tickets := make([]*plane.Ticket, rowBatches)
	for i := range tickets { // all have room, so that no Ask waits
		if tickets[i], err = w.Ask(ids[i*rowBatch : (i+1)*rowBatch]); err != nil {
			return 0, err
		}
	}
	for _, t := range tickets {
		if err := t.Gather(nil, dst); err != nil {
			w.Abandon()
			return 0, err
		}
	}
	return time.Since(start).Seconds() / (rowBatches * rowBatch), nil
}

// awayReads counts the rows that shares read of other workers' parts, of one share of each rank out of two: what is read most
// in half of the shares is looked for in the other half, as in a cache that was filled before the batches.
type awayReads struct {
	ranks  int
	counts map[int][]uint16 // by machine: of each node, in the first half
	nodes  int
	later  []awayShare
	shares int
}

// awayShare is the nodes of a share whose rows other workers have.
type awayShare struct {
	machine, rank int
	ids           []int32
}

// awayReads returns nil for jobs without a cache of other workers' rows.
func (j *Job) awayReads() *awayReads {
	if j.Cache == "" && !j.Disk {
		return nil
	}
	return &awayReads{ranks: j.Workers, counts: map[int][]uint16{}, nodes: j.Data.Nodes()}
}

func (a *awayReads) add(s awayShare) {
	counts := a.counts[s.machine]
	if counts == nil {
		counts = make([]uint16, a.nodes)
		a.counts[s.machine] = counts
	}
	if a.shares++; (a.shares-1)/a.ranks%2 == 1 {
		a.later = append(a.later, s)
		return
	}
	for _, v := range s.ids {
		counts[v] += min(1, math.MaxUint16-counts[v])
	}
}

// has returns the function that says which share of a node's reads a machine's cache of this number of rows has.
func (a *awayReads) has(rows int) hasRow {
	type cache struct {
		counts []uint16
		least  int     // the smallest count whose nodes have room
		some   float64 // the share of the nodes with one less that have room
	}
	caches := map[int]cache{}
	for machine, counts := range a.counts {
		var by [64]int // nodes that were read this often
		for _, n := range counts {
			by[min(int(n), len(by)-1)]++
		}
		least, room := len(by), rows
		for least > 1 && by[least-1] <= room {
			least--
			room -= by[least]
		}
		c := cache{counts: counts, least: least}
		if least > 1 {
			c.some = float64(room) / float64(max(1, by[least-1]))
		}
		caches[machine] = c
	}
	return func(machine int, v int32) float64 {
		c, n := caches[machine], min(int(a.counts[machine][v]), 63)
		switch {
		case n >= c.least:
			return 1
		case n == c.least-1 && n > 0:
			return c.some
		}
		return 0
	}
}

// windowRows are rows of a mean share that other workers have: away all of them, held those that are not in the machine's cache,
// asked those of them that no batch which is still in the window has asked for, and wire those of them that come from other
// machines. The garbage of a share is received messages, and what is known of the rows; fill is what filling the cache leaves
// before the first step: scores of all nodes, and the rows as they are got, sent and kept in messages.
type windowRows struct {
	away, held, asked, wire float64
	garbage, fill           int64
}

// hasRow says which share of a node's reads the cache of a machine has.
type hasRow func(machine int, v int32) float64

// cacheOf returns what the caches of a job have, of the rows that shares read; the shares in which that is seen are returned
// too. A run fills its cache by probabilities where its sampler and its graph allow that (feed.Fetcher), and so does the plan.
func (j *Job) cacheOf(ctx context.Context, l *load, shares []awayShare) (hasRow, []awayShare, error) {
	counted := j.awayReads()
	if counted == nil {
		return func(int, int32) float64 { return 0 }, shares, nil
	}
	rows := int(j.cache(j.sizes(l, j.free)) / max(1, rowBytes(j.Data)))
	if _, uniform := j.Picker.(sample.Fanouts); j.Picker != nil && !uniform || j.Divided || j.Data.Graph == nil || j.Cooperative || j.Data.Edges() > manyEdges {
		for _, s := range shares {
			counted.add(s)
		}
		if len(counted.later) == 0 {
			return counted.has(rows), shares, nil
		}
		return counted.has(rows), counted.later, nil
	}
	ids, err := j.Data.Split("train")
	if err != nil {
		return nil, nil, err
	}
	ranks, err := j.views()
	if err != nil {
		return nil, nil, err
	}
	machines := map[int][]view{}
	for _, v := range ranks {
		machines[j.machineOf(v.rank)] = append(machines[j.machineOf(v.rank)], v)
	}
	if j.Disk { // the machines read the same files
		machines[0] = nil
	}
	has := map[int][]bool{}
	for m, views := range machines {
		of, parts, batch := make([]int32, j.Data.Nodes()), 1, max(1, j.batch(len(ids))/j.world())
		var mine []int
		if views != nil && (views[0].parts.Parts() > 1 || j.Workers == 1) {
			of, parts, batch = views[0].parts.Of(), views[0].parts.Parts(), j.batch(len(ids))
		}
		for p := range parts {
			if parts == 1 || j.machineOf(views[0].parts.Rank(p)) == m {
				mine = append(mine, p)
			}
		}
		hot, err := hotness.Propagate(ctx, hotness.Job{
			Graph: j.Data.Graph, Of: of, Parts: parts, Fanouts: j.Fanouts, Seeds: ids, Batch: batch, Only: mine, Threads: j.Threads,
		})
		if err != nil {
			return nil, nil, err
		}
		score := make([]float32, j.Data.Nodes()) // reads of rows that the reading rank does not have
		for _, p := range mine {
			for v, h := range hot[p] {
				if j.fetches() || views[0].parts.Owner(int32(v), j.Workers) != views[0].parts.Rank(p) {
					score[v] += h
				}
			}
		}
		has[m] = make([]bool, len(score))
		for _, v := range hotness.Hottest(score, make([]int32, len(score)), -1, rows) {
			has[m][v] = true
		}
	}
	return func(machine int, v int32) float64 {
		if j.Disk {
			machine = 0
		}
		if has[machine][v] {
			return 1
		}
		return 0
	}, shares, nil
}

// window counts the rows of shares. A loop that waits for rows has a batch or two more in the window than this counts, and asks
// for somewhat fewer rows.
func (j *Job) window(ctx context.Context, l *load, shares []awayShare) (w windowRows, err error) {
	views, err := j.views()
	if err != nil || len(views) == 0 && !j.Disk {
		return w, err
	}
	has, shares, err := j.cacheOf(ctx, l, shares)
	if err != nil {
		return w, err
	}
	sizes := j.sizes(l, j.free)
	// When a batch is sampled, the loop has just taken the first of the batches that were sampled ahead, and has gathered those
	// that it prepares ahead but one.
	batches := max(sizes.Ahead*j.Virtual+sizes.Late+1-ahead, plane.Depth(sizes.Late > 0))
	if j.Disk { // two batches have been gathered, the one in use with them
		batches = sizes.Ahead*j.Virtual + 1
	}
	groups := map[int][]awayShare{} // those whose windows are one
	for _, s := range shares {
		at := s.machine
		if sizes.Alone {
			at = s.rank
		}
		groups[at] = append(groups[at], s)
	}
	total := len(shares)
	for _, group := range groups {
		shares, at := group, map[int]bool{}
		for _, s := range shares {
			at[s.rank] = true
		}
		// An epoch begins with an empty window. Steps are in a random order, so that in a later part of an epoch any of them may
		// precede a step: there the first ones follow the last ones.
		ranks, last := len(at), map[int32]int{}
		window := min(batches*ranks, len(shares)-ranks)
		epoch := j.steps(j.seedsOf()) * j.Virtual * ranks // shares
		rounds := 2
		if epoch <= len(shares) {
			shares, rounds = shares[:len(shares)/epoch*epoch], 1
		}
		var sum, first windowRows // of all shares, and of the first round
		for i := range rounds * len(shares) {
			s := shares[i%len(shares)]
			if i%epoch == 0 && rounds == 1 {
				clear(last)
			}
			if i == len(shares) {
				first, sum = sum, windowRows{}
			}
			for _, v := range s.ids {
				before, seen := last[v]
				last[v] = i
				row := 1 - has(s.machine, v)
				sum.away++
				sum.held += row
				if seen && i-before <= window+i%ranks { // a step's shares are in it at the same time
					continue
				}
				if sum.asked += row; !j.fetches() && j.machineOf(views[0].parts.Owner(v, j.Workers)) != s.machine {
					sum.wire += row
				}
			}
		}
		n, all := float64(len(shares)), float64(epoch)
		part := float64(len(group)) / float64(total)
		w.away += part * sum.away / n
		w.held += part * sum.held / n
		w.asked += part * sum.asked / n
		w.wire += part * sum.wire / n
		if rounds > 1 {
			w.asked += part * max(0, first.asked-sum.asked) / all
			w.wire += part * max(0, first.wire-sum.wire) / all
		}
	}
	if j.fetches() {
		return w, nil
	}
	w.garbage = int64(w.asked*float64(rowBytes(j.Data)+4) + w.away*placeBytes + w.held*heldBytes)
	if j.Cache != "" {
		w.fill = int64(j.Data.Nodes())*int64(hotBytes+hotRankBytes*j.Virtual) + 2*sizes.Cache
	}
	return w, nil
}

const (
	// placeBytes is what a batch notes of a row that another worker has, in a list that grows (plane.Window.Ask), and heldBytes
	// what the ranks note of one that is not in the cache, in ids, slots and requests (joint.agree): by allocation profiles.
	placeBytes, heldBytes = 32, 52
	// hotBytes is what filling a cache makes for each node, and hotRankBytes what it makes besides for each virtual rank
	// (hotness.Hottest, hotness.Propagate).
	hotBytes, hotRankBytes = 18, 24
)
