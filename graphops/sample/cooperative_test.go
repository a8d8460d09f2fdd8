package sample_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

// hub exchanges messages between goroutines that play ranks.
type hub struct {
	mu    sync.Mutex
	all   *sync.Cond
	sent  [][][]byte
	round int
	here  int
	broke error
}

func newHub(world int) *hub {
	h := &hub{sent: make([][][]byte, world)}
	h.all = sync.NewCond(&h.mu)
	return h
}

func (h *hub) peers(rank int) sample.Peers {
	return sample.Peers{Rank: rank, World: len(h.sent), AllToAll: func(send [][]byte) ([][]byte, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		mine := make([][]byte, len(send))
		for r := range send {
			mine[r] = slices.Clone(send[r])
		}
		h.sent[rank] = mine
		if err := h.wait(); err != nil {
			return nil, err
		}
		got := make([][]byte, len(send))
		for r := range got {
			got[r] = h.sent[r][rank]
		}
		return got, h.wait() // no rank may start the next round while others still read this one
	}}
}

func (h *hub) wait() error {
	round := h.round
	if h.here++; h.here == len(h.sent) {
		h.here = 0
		h.round++
		h.all.Broadcast()
	}
	for round == h.round && h.broke == nil {
		h.all.Wait()
	}
	if round == h.round {
		return h.broke
	}
	return nil
}

// abort ends all waits, as the end of a rank does in a run.
func (h *hub) abort() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broke = errors.New("a rank has ended")
	h.all.Broadcast()
}

// together runs f for each rank in its own goroutine and returns their errors.
func together(h *hub, f func(rank int, p sample.Peers) error) []error {
	errs := make([]error, len(h.sent))
	var wg sync.WaitGroup
	for r := range errs {
		wg.Go(func() {
			if errs[r] = f(r, h.peers(r)); errs[r] != nil {
				h.abort()
			}
		})
	}
	wg.Wait()
	return errs
}

// checkParts compares the parts of a cooperative batch with the whole batch: each node's picks are
// at its owner, in the order of the whole batch, and each halo row is the row of its owner.
// The farthest hop of several has neither halo rows nor that order of sources unless inputHalo is set.
func checkParts(t rapid.TB, whole refBatch, parts []*sample.Batch, owner func(v int32) int, inputHalo, sums bool) {
	t.Helper()
	if sums {
		checkSums(t, parts)
	}
	world := len(parts)
	for hop, w := range whole.hops {
		most := 0
		for rank, p := range parts {
			k := p.Blocks[len(p.Blocks)-1-hop]
			h := k.Halo
			most = max(most, k.NumSrc)
			if sums && hop < len(whole.hops)-1 != (h.Sums != nil) {
				t.Fatalf("hop %d, rank %d: the sums at owners are %v", hop, rank, h.Sums)
			}
			listed := inputHalo || hop == 0 || hop < len(whole.hops)-1
			var dst, src []int32
			var picks [][]int64
			for i, v := range w.dst {
				if owner(v) == rank {
					dst, picks = append(dst, v), append(picks, w.picks[i])
				}
			}
			for _, v := range w.src {
				if owner(v) == rank {
					src = append(src, v)
				}
			}
			if !listed {
				checkInputs(t, k, rank, owner)
				src = dst
			}
			if k.Level != hop || k.NumDst != len(dst) || h.Own != len(src) || k.OwnSrc() != h.Own || !slices.Equal(k.SrcIDs()[:h.Own], src) {
				t.Fatalf("hop %d, rank %d: %d destinations and sources %v, want %v and %v", hop, rank, k.NumDst, k.SrcIDs()[:h.Own], dst, src)
			}
			for d := range dst {
				if got := k.EdgePos()[k.Indptr()[d]:k.Indptr()[d+1]]; !slices.Equal(got, picks[d]) {
					t.Fatalf("hop %d, rank %d, node %d: edges %v, want %v", hop, rank, dst[d], got, picks[d])
				}
				for e := k.Indptr()[d]; e < k.Indptr()[d+1]; e++ {
					if got, want := k.SrcID(int(k.Indices()[e])), k.Graph.Indices[k.Pos(e)]; got != want {
						t.Fatalf("hop %d, rank %d, edge %d: source %d, want %d", hop, rank, e, got, want)
					}
				}
			}
			if !listed {
				continue
			}
			at := 0
			for r := range world {
				other := parts[r].Blocks[len(parts[r].Blocks)-1-hop]
				if r == rank && len(h.From[r])+len(h.To[r]) > 0 {
					t.Fatalf("hop %d: rank %d gets rows from itself", hop, rank)
				}
				if r != rank && other.Halo.At[rank] != at || !slices.Equal(other.Halo.To[rank], h.From[r]) {
					t.Fatalf("hop %d: rank %d reads rows %v of rank %d into its row %d, which sends %v into %d", hop, rank, h.From[r], r, at, other.Halo.To[rank], other.Halo.At[rank])
				}
				for _, row := range h.From[r] {
					if got, want := k.SrcID(h.Own+at), other.SrcID(int(row)); int(row) >= other.Halo.Own || got != want {
						t.Fatalf("hop %d, rank %d: halo row %d is node %d, and rank %d's row %d of %d is node %d", hop, rank, at, got, r, row, other.Halo.Own, want)
					}
					at++
				}
			}
			if k.NumSrc != h.Own+at || h.Others != at || len(k.SrcIDs()) != k.NumSrc {
				t.Fatalf("hop %d, rank %d: %d sources with %d ids, of which %d and %d", hop, rank, k.NumSrc, len(k.SrcIDs()), h.Own, at)
			}
		}
		for rank, p := range parts {
			if h := p.Blocks[len(p.Blocks)-1-hop].Halo; h.From != nil && h.Most != most {
				got := h.Most
				t.Fatalf("hop %d: rank %d says that the largest block has %d sources, want %d", hop, rank, got, most)
			}
		}
	}
}

// checkSums checks the lists of edges by the owners of their sources: together they have the edges of the
// blocks, in their order for each destination and owner, and their halos are each other's rows.
func checkSums(t rapid.TB, parts []*sample.Batch) {
	t.Helper()
	hops := len(parts[0].Blocks)
	for hop := range hops - 1 {
		block := func(rank int) *graphops.Block { return parts[rank].Blocks[hops-1-hop] }
		most := 0
		for rank := range parts {
			most = max(most, block(rank).Halo.Sums.Block.NumDst)
		}
		for rank := range parts {
			k := block(rank)
			s := k.Halo.Sums
			u, at := s.Block, k.NumDst
			if u.NumSrc != k.Halo.Own || s.Halo.Own != k.NumDst || s.Halo.Most != most || !u.HasTransposed() {
				t.Fatalf("hop %d, rank %d: %v with the halo %+v, of %v; the largest has %d destinations", hop, rank, u, s.Halo, k, most)
			}
			compare := func(row int, other *graphops.Block, d int) {
				var got, want []int32
				for _, i := range u.Indices()[u.Indptr()[row]:u.Indptr()[row+1]] {
					got = append(got, u.SrcID(int(i)))
				}
				own := k.SrcIDs()[:k.Halo.Own]
				for _, i := range other.Indices()[other.Indptr()[d]:other.Indptr()[d+1]] {
					if v := other.SrcID(int(i)); slices.Contains(own, v) {
						want = append(want, v)
					}
				}
				if !slices.Equal(got, want) || other != k && len(got) == 0 {
					t.Fatalf("hop %d, rank %d: destination %d has the sources %v, want %v", hop, rank, row, got, want)
				}
			}
			for d := range k.NumDst {
				compare(d, k, d)
			}
			checkReads(t, k, rank, func(r, row int) int32 { return block(r).SrcID(row) })
			for r, from := range s.Halo.From {
				other := block(r).Halo.Sums.Halo
				if !slices.Equal(from, other.To[rank]) || len(from) > 0 && other.At[rank] != at-k.NumDst || r == rank && len(from) > 0 {
					t.Fatalf("hop %d: rank %d adds up for rows %v of rank %d at %d, which reads rows %v at %d", hop, rank, from, r, at-k.NumDst, other.To[rank], other.At[rank])
				}
				for _, d := range from {
					compare(at, block(r), int(d))
					at++
				}
			}
			if at != u.NumDst {
				t.Fatalf("hop %d, rank %d: %d destinations, want %d", hop, rank, u.NumDst, at)
			}
		}
	}
}

// checkReads checks the lists of edges by the owners of their sources: for each destination and owner they have the
// sources of the block, in its order; id is the node of a row at a rank.
func checkReads(t rapid.TB, k *graphops.Block, rank int, id func(r, row int) int32) {
	t.Helper()
	s := k.Halo.Sums
	for r, l := range s.Reads {
		to := s.Halo.To[r]
		if r == rank {
			to = all(k.NumDst)
		}
		if len(l.Indptr) != len(to)+1 || int(l.Indptr[len(to)]) != len(l.Indices) {
			t.Fatalf("rank %d reads %v for %d destinations", rank, l, len(to))
		}
		for i, d := range to {
			var got, want []int32
			for _, row := range l.Indices[l.Indptr[i]:l.Indptr[i+1]] {
				got = append(got, id(r, int(row)))
			}
			for _, v := range k.Indices()[k.Indptr()[d]:k.Indptr()[d+1]] {
				if owner := ownerOfRow(k, rank, int(v)); owner == r {
					want = append(want, k.SrcID(int(v)))
				}
			}
			if !slices.Equal(got, want) || r != rank && len(got) == 0 {
				t.Fatalf("rank %d reads of rank %d, for destination %d, the nodes %v, want %v", rank, r, d, got, want)
			}
		}
	}
}

// ownerOfRow is the rank that has a source row of a rank's block.
func ownerOfRow(k *graphops.Block, rank, row int) int {
	if row < k.Halo.Own {
		return rank
	}
	row -= k.Halo.Own
	for r, from := range k.Halo.From {
		if row < len(from) {
			return r
		}
		row -= len(from)
	}
	return -1
}

// checkInputs checks the sources of a block without lists of halo rows: the destinations, then the other
// nodes in the order in which edges reach them.
func checkInputs(t rapid.TB, k *graphops.Block, rank int, owner func(v int32) int) {
	t.Helper()
	h := *k.Halo
	want, others := slices.Clone(k.SrcIDs()[:min(k.NumDst, k.NumSrc)]), 0
	for e := range int64(k.NumEdges()) {
		if v := k.Graph.Indices[k.Pos(e)]; !slices.Contains(want, v) {
			want = append(want, v)
			if owner(v) != rank {
				others++
			}
		}
	}
	if !slices.Equal(k.SrcIDs(), want) || h.Own != k.NumDst || h.Others != others || h.From != nil || h.To != nil || h.At != nil || h.Most != 0 || h.Sums != nil {
		t.Fatalf("rank %d: the farthest block has the sources %v, want %v, and the halo %+v; other ranks own %d of them", rank, k.SrcIDs(), want, h, others)
	}
}

// drawOwners draws Owners of every kind and returns them with a function that gives the owner of
// each node.
func drawOwners(t *rapid.T, nodes, world int) (sample.Owners, func(v int32) int) {
	switch rapid.SampledFrom([]string{"hash", "range", "parts", "own"}).Draw(t, "owners") {
	case "range":
		return sample.RangeOwners(nodes), func(v int32) int { return int(v) * world / nodes }
	case "parts":
		parts := rapid.IntRange(1, 9).Draw(t, "parts")
		of := rapid.SliceOfN(rapid.Int32Range(0, int32(parts-1)), nodes, nodes).Draw(t, "part")
		o, err := sample.NewPartOwners(of, parts)
		if err != nil {
			t.Fatal(err)
		}
		return o, func(v int32) int { return int(of[v]) * world / parts }
	case "own":
		return lastOwns{}, func(int32) int { return world - 1 }
	}
	return nil, func(v int32) int { return sample.Owner(v, world) }
}

// lastOwns makes the last rank the owner of all nodes.
type lastOwns struct{}

func (lastOwns) Owner(_ int32, world int) int { return world - 1 }

// For any graph, fanouts, seeds, ownership and number of ranks, the parts together are the batch of
// one rank. The cases include reused memory and ranks that own no seeds.
func TestCooperative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 120).Draw(t, "nodes")
		g := random(nodes, rapid.IntRange(0, 9).Draw(t, "degree"), rapid.Uint64().Draw(t, "graph"))
		fanouts := rapid.SliceOfN(rapid.IntRange(-1, 5), 1, 4).Draw(t, "fanouts")
		world := rapid.IntRange(1, 5).Draw(t, "world")
		owners, owner := drawOwners(t, nodes, world)
		inputHalo, sums := rapid.Bool().Draw(t, "input halo"), rapid.Bool().Draw(t, "sums")
		turns, announced := rapid.Bool().Draw(t, "turns"), rapid.IntRange(0, 3).Draw(t, "announced")
		numSeeds := rapid.IntRange(0, min(nodes, 20)).Draw(t, "seeds")
		c := sample.Config{Picker: sample.Fanouts(fanouts), Seed: 7, Threads: rapid.IntRange(1, 2).Draw(t, "threads"), Transpose: true}
		const steps = 3
		parts := make([][]*sample.Batch, steps)
		for i := range parts {
			parts[i] = make([]*sample.Batch, world)
		}
		order := sample.EpochOrder(1, 2, all(nodes))
		seedsOf := func(step int) []int32 {
			lo := step * numSeeds % max(1, nodes-numSeeds+1)
			return order[lo : lo+numSeeds]
		}
		for r, err := range together(newHub(world), func(rank int, p sample.Peers) error {
			p.Owners, p.InputHalo, p.Sums, p.Turns = owners, inputHalo, sums, turns
			p.AllToAll = overwriting(p.AllToAll)
			s, err := sample.NewCooperative(g, c, p)
			if err != nil {
				return err
			}
			if announced > 0 {
				s.Foresee(2, 0, announced, seedsOf)
			}
			for step := range steps {
				if step == 1 { // between batches of one turn
					other, err := s.Sample(3, 0, sample.Seeds{IDs: seedsOf(2)})
					if err != nil {
						return err
					}
					other.Release()
				}
				if step == steps-1 { // reuses the memory of the first batch
					again, err := s.Sample(2, 0, sample.Seeds{IDs: seedsOf(0)})
					if err != nil {
						return err
					}
					again.Release()
				}
				if parts[step][rank], err = s.Sample(2, step, sample.Seeds{IDs: seedsOf(step)}); err != nil {
					return err
				}
			}
			return nil
		}) {
			if err != nil {
				t.Fatalf("rank %d: %v", r, err)
			}
		}
		single, union := sample.NewDigest(), sample.NewDigest()
		for step := range steps {
			seeds := seedsOf(step)
			checkParts(t, refSample(g, 7, philox.Sample, 2, step, fanouts, seeds), parts[step], owner, inputHalo, sums)
			one := mustSample(t, newSampler(t, g, c), 2, step, seeds)
			single.AddBatch(one)
			var picks [][]byte
			edges := 0
			for _, p := range parts[step] {
				picks = append(picks, sample.EncodePicks(p))
				edges += p.Edges()
			}
			if err := union.AddStep(sample.Seeds{IDs: seeds}, picks); err != nil {
				t.Fatal(err)
			}
			if edges != one.Edges() {
				t.Fatalf("the ranks pick %d edges, one rank %d", edges, one.Edges())
			}
		}
		if single.Sum() != union.Sum() {
			t.Fatalf("digest %s, want %s", union.Sum(), single.Sum())
		}
	})
}

// overwriting overwrites what ranks have sent at the next exchange, which is the earliest that it may be.
func overwriting(exchange func([][]byte) ([][]byte, error)) func([][]byte) ([][]byte, error) {
	var last [][]byte
	return func(send [][]byte) ([][]byte, error) {
		got, err := exchange(send)
		for _, b := range last {
			for i := range b {
				b[i] = 0xFF
			}
		}
		last = make([][]byte, len(got))
		for r := range got {
			last[r] = slices.Clone(got[r])
		}
		return slices.Clone(last), err
	}
}

// If a rank leaves, the next batch of the others fails with an error that says so; if all leave,
// none fails.
func TestCooperativeLeave(t *testing.T) {
	g := random(50, 4, 1)
	run := func(leaves func(rank int) bool) []error {
		return together(newHub(3), func(rank int, p sample.Peers) error {
			s, err := sample.NewCooperative(g, sample.Config{Picker: sample.Fanouts{3, 2}}, p)
			if err == nil {
				_, err = s.Sample(0, 0, sample.Seeds{IDs: all(9)})
			}
			if err != nil || leaves(rank) {
				if err == nil {
					err = s.Leave()
				}
				return err
			}
			_, err = s.Sample(0, 1, sample.Seeds{IDs: all(9)})
			return err
		})
	}
	for r, err := range run(func(int) bool { return true }) {
		if err != nil {
			t.Errorf("rank %d, when all leave: %v", r, err)
		}
	}
	for r, err := range run(func(rank int) bool { return rank == 1 }) {
		if r == 1 && err != nil || r != 1 && (err == nil || !strings.Contains(fmt.Sprint(err), "rank 1 has left the loop over batches before step 1")) {
			t.Errorf("rank %d, when rank 1 leaves: %v", r, err)
		}
	}
}

// Ranks that take turns have the batches of some steps before they need them, so they exchange nothing when they
// leave the loop at different places within these, or before its end. A rank that leaves between two turns is found.
func TestTurnsLeave(t *testing.T) {
	g := random(50, 4, 1)
	const world, steps = 3, 7
	// run samples as many batches as samples says of each rank; a rank that samples fewer than steps leaves.
	run := func(end int, samples func(rank int) int) []error {
		return together(newHub(world), func(rank int, p sample.Peers) error {
			p.Turns = true
			s, err := sample.NewCooperative(g, sample.Config{Picker: sample.Fanouts{3, 2}}, p)
			if err != nil {
				return err
			}
			for range 2 { // the second loop begins as the first did
				s.Foresee(0, 0, end, func(step int) []int32 { return all(9 + step) })
				for step := range samples(rank) {
					b, err := s.Sample(0, step, sample.Seeds{IDs: all(9 + step)})
					if err != nil {
						return err
					}
					b.Release()
				}
				if samples(rank) < end {
					if err := s.Leave(); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	for name, c := range map[string]struct {
		end     int
		samples func(rank int) int
	}{
		"all":                 {steps, func(int) int { return steps }},
		"in a turn":           {steps, func(rank int) int { return 4 + rank%2 }},
		"in the last turn":    {6, func(rank int) int { return 6 - rank%2 }},
		"in the first turn":   {steps, func(rank int) int { return 1 + rank }},
		"in the only turn":    {2, func(rank int) int { return min(2, 1+rank) }},
		"after a single step": {1, func(int) int { return 1 }},
	} {
		for r, err := range run(c.end, c.samples) {
			if err != nil {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
	}
	for r, err := range run(steps, func(rank int) int { return 3 + rank%2 }) { // rank 1 needs the second turn
		if r == 1 && (err == nil || !strings.Contains(err.Error(), "rank 0 has left the loop over batches before step 3")) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// Ranks that exchange something else over the same connection after each batch leave the loop after different batches
// if each does so for the batches that are ready, and meet there or at the loop's end.
func TestTurnsLeaveBetweenOtherExchanges(t *testing.T) {
	g := random(50, 4, 1)
	const world, other = 3, "of another kind"
	for _, turns := range []bool{true, false} {
		for end := 1; end <= 7; end++ {
			for first := 1; first <= end; first++ { // batches that rank 0 samples; the others sample more if they need no other rank for them
				for r, err := range together(newHub(world), func(rank int, p sample.Peers) error {
					p.Turns = turns
					exchange := func() error {
						got, err := p.AllToAll([][]byte{[]byte(other), []byte(other), []byte(other)})
						for r := range got {
							if r != rank && err == nil && string(got[r]) != other {
								err = fmt.Errorf("a message of %d bytes from rank %d is none of these", len(got[r]), r)
							}
						}
						return err
					}
					s, err := sample.NewCooperative(g, sample.Config{Picker: sample.Fanouts{3, 2}}, p)
					if err != nil {
						return err
					}
					for range 2 { // the second loop begins as the first did
						s.Foresee(0, 0, end, func(step int) []int32 { return all(9 + step) })
						step := 0
						for more := rank; step < first || s.Ready() > 0 && more > 0; step++ {
							if step >= first {
								more--
							}
							b, err := s.Sample(0, step, sample.Seeds{IDs: all(9 + step)})
							if err != nil {
								return err
							}
							b.Release()
							if err := exchange(); err != nil {
								return err
							}
						}
						for range s.Ready() {
							step++
							if err := exchange(); err != nil {
								return err
							}
						}
						if step < end {
							if err := s.Leave(); err != nil {
								return err
							}
						}
					}
					return nil
				}) {
					if err != nil {
						t.Errorf("turns %v, rank 0 leaves after %d of %d batches: rank %d: %v", turns, first, end, r, err)
					}
				}
			}
		}
	}
}

// The rank that samples a step for all gives the reason if it cannot; the others wait for its end. A rank with other
// seeds than were announced, or with the batches of another program, says so.
func TestTurnsFail(t *testing.T) {
	g := random(50, 4, 1)
	run := func(edit func(p *sample.Peers), seeds func(rank, step int, announced bool) []int32) []error {
		return together(newHub(2), func(rank int, p sample.Peers) error {
			p.Turns = true
			edit(&p)
			s, err := sample.NewCooperative(g, sample.Config{Picker: sample.Fanouts{3, 2, 2}, Transpose: true}, p)
			if err != nil {
				return err
			}
			s.Foresee(0, 0, 2, func(step int) []int32 { return seeds(rank, step, true) })
			for step := range 2 {
				if _, err := s.Sample(0, step, sample.Seeds{IDs: seeds(rank, step, false)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	nothing := func(*sample.Peers) {}
	errs := run(nothing, func(_, step int, _ bool) []int32 { return []int32{1, int32(2 + 48*step)} })
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "seed 50 at position 1 is not a node") || errs[0] == nil || !strings.Contains(errs[0].Error(), "a rank has ended") {
		t.Errorf("a seed that does not exist: %v", errs)
	}
	errs = run(nothing, func(rank, step int, announced bool) []int32 {
		if rank == 1 && step == 1 && announced {
			return all(8)
		}
		return all(9)
	})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "the seeds of epoch 0, step 1 are not those that were announced") {
		t.Errorf("other seeds: %v", errs)
	}
	for cut := 0; cut < 3000; cut += 7 {
		long := true
		errs = run(func(p *sample.Peers) {
			send := p.AllToAll
			p.AllToAll = func(out [][]byte) ([][]byte, error) {
				got, err := send(out)
				if p.Rank == 1 && err == nil {
					long = cut < len(got[0])
					got[0] = got[0][:min(cut, len(got[0]))]
				}
				return got, err
			}
		}, func(int, int, bool) []int32 { return all(9) })
		if !long {
			break
		}
		if errs[1] == nil || !strings.Contains(errs[1].Error(), "all ranks must") {
			t.Fatalf("a message of %d bytes: %v", cut, errs[1])
		}
	}
}

func TestCooperativeRefuses(t *testing.T) {
	g := random(50, 4, 1)
	p := newHub(1).peers(0)
	for name, c := range map[string]struct {
		c    sample.Config
		p    sample.Peers
		want string
	}{
		"a frontier": {sample.Config{Frontier: everything{}, Hops: 1}, p, "picks for a whole frontier"},
		"a rank":     {sample.Config{Picker: sample.Fanouts{1}}, sample.Peers{Rank: 1, World: 1, AllToAll: p.AllToAll}, "rank 1 of 1"},
		"alone":      {sample.Config{Picker: sample.Fanouts{1}}, sample.Peers{World: 2}, "connected by AllToAll"},
		"a sampler":  {sample.Config{Picker: sample.Fanouts{-2}}, p, "fanout of hop 0 is -2"},
	} {
		if _, err := sample.NewCooperative(g, c.c, c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for _, c := range []struct {
		seeds []int32
		want  string
	}{{[]int32{1, 50}, "seed 50 at position 1 is not a node"}, {[]int32{3, 4, 3}, "seed 3 occurs twice"}} {
		s, err := sample.NewCooperative(g, sample.Config{Picker: sample.Fanouts{1}}, p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Sample(0, 0, sample.Seeds{IDs: c.seeds}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("seeds %v: %v, want %q", c.seeds, err, c.want)
		}
	}
}

// Owners that differ between ranks, or that name a rank that does not exist, end sampling with an
// error.
func TestWrongOwners(t *testing.T) {
	g := random(50, 4, 1)
	mostly := func(rank int) sample.Owners { // the owners of rank 1 differ in one node
		of := make([]int32, 50)
		for v := range of {
			of[v] = int32(v % 2)
		}
		of[7] = int32(rank)
		o, err := sample.NewPartOwners(of, 2)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for name, c := range map[string]struct {
		owners func(rank int) sample.Owners
		want   string
	}{
		"other owners": {mostly, "all ranks must have the same Owners"},
		"no such rank": {func(int) sample.Owners { return noRank{} }, "belongs to rank -1 by the Owners, but the ranks are 0 to 1"},
	} {
		errs := together(newHub(2), func(rank int, p sample.Peers) error {
			p.Owners = c.owners(rank)
			s, err := sample.NewCooperative(g, sample.Config{Picker: sample.Fanouts{-1}}, p)
			if err == nil {
				_, err = s.Sample(0, 0, sample.Seeds{IDs: all(9)})
			}
			return err
		})
		if !slices.ContainsFunc(errs, func(err error) bool { return err != nil && strings.Contains(err.Error(), c.want) }) {
			t.Errorf("%s: %v, want %q", name, errs, c.want)
		}
	}
	if _, err := sample.NewPartOwners([]int32{0, 2}, 2); err == nil || !strings.Contains(err.Error(), "node 1 is in part 2, but the parts are 0 to 1") {
		t.Errorf("a node in a part that does not exist gave %v", err)
	}
	if _, err := sample.NewPartOwners(nil, 0); err == nil || !strings.Contains(err.Error(), "at least one part") {
		t.Errorf("no parts: %v", err)
	}
	few, err := sample.NewPartOwners([]int32{0, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	p := newHub(1).peers(0)
	p.Owners = few
	if _, err := sample.NewCooperative(g, sample.Config{Picker: sample.Fanouts{1}}, p); err == nil || !strings.Contains(err.Error(), "the parts of 2 nodes, but the graph has 50") {
		t.Errorf("the parts of another graph gave %v", err)
	}
}

// noRank names rank -1 as the owner of all nodes but the first ten.
type noRank struct{}

func (noRank) Owner(v int32, _ int) int { return -min(1, int(v)/10) }

// everything takes all edges.
type everything struct{}

func (everything) PickFrontier(_ *sample.Hop, g *graphops.Graph, dst []int32, pick func(i int, positions []int32)) error {
	for i, v := range dst {
		pick(i, all(g.InDegree(v)))
	}
	return nil
}

// Owner gives each rank about the same number of nodes.
func TestOwner(t *testing.T) {
	for _, world := range []int{1, 2, 3, 4, 7, 64} {
		const n = 1 << 16
		count := make([]int, world)
		for v := range int32(n) {
			count[sample.Owner(v, world)]++
		}
		for r, c := range count {
			if mean := float64(n) / float64(world); float64(c) < 0.9*mean || float64(c) > 1.1*mean {
				t.Errorf("rank %d of %d owns %d of %d nodes", r, world, c, n)
			}
		}
	}
}
