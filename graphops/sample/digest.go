package sample

import (
	"cmp"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// Digest is the SHA-256 of all sampled edges. It hashes batch after batch:
//
//	the seeds of the global batch in their order       int32 each
//	hop by hop, from the seeds outwards:
//	    each distinct destination, ascending by id     int32 id, int32 count,
//	                                                   int32 sources, ascending
//
// all little-endian. If the edges have types, each source is followed by the edge's type, as int32, and
// edges of the same source ascend by type. If trees are disjoint, a destination's seed, as int32, is before its id, and
// destinations ascend by seed, then by id. If the seeds have times, each seed, also that before an id, is followed by its
// time, as int64, and destinations ascend by seed, time and id. Equal seeds have equal trees, which count once. The destinations are those of all ranks together, so the digest depends on
// neither the number of workers and threads nor the device. testdata/digest.py computes it from a
// dataset directory with NumPy alone.
type Digest struct {
	h     hash.Hash
	steps int
	edges int64
	buf   []byte
}

// NewDigest returns the digest of no batches.
func NewDigest() *Digest { return &Digest{h: sha256.New()} }

// Sum returns the digest of the batches so far, in hexadecimal. More batches may follow.
func (d *Digest) Sum() string { return hex.EncodeToString(d.h.Sum(nil)) }

// Steps is the number of batches so far.
func (d *Digest) Steps() int { return d.steps }

// Edges is the number of edges picked so far. Within a step, each destination of a hop counts once,
// even if several ranks picked for it.
func (d *Digest) Edges() int64 { return d.edges }

// digestState is a [Digest] in a checkpoint.
type digestState struct {
	SHA256 []byte `json:"sha256"` // the state of crypto/sha256, which its versions have in common
	Steps  int    `json:"steps"`
	Edges  int64  `json:"edges"`
}

// MarshalJSON encodes the digest of the batches so far, to which [Digest.UnmarshalJSON] adds more.
func (d *Digest) MarshalJSON() ([]byte, error) {
	h := d.h
	if h == nil {
		h = sha256.New()
	}
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return nil, err
	}
	return json.Marshal(digestState{state, d.steps, d.edges})
}

// UnmarshalJSON sets the digest to one that MarshalJSON has encoded.
func (d *Digest) UnmarshalJSON(b []byte) error {
	var s digestState
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	h := sha256.New()
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(s.SHA256); err != nil {
		return fmt.Errorf("sample: a digest in a file: %w", err)
	}
	*d = Digest{h: h, steps: s.Steps, edges: s.Edges}
	return nil
}

// AddBatch adds a batch that one rank sampled as a whole.
func (d *Digest) AddBatch(b *Batch) {
	if err := d.AddStep(Seeds{b.Seeds, b.Times}, [][]byte{EncodePicks(b)}); err != nil {
		panic(err) // cannot fail: one rank cannot disagree with itself
	}
}

// AddStep adds one step: the seeds of the global batch in their order, and each rank's picks for
// its share of them, encoded by [EncodePicks]. Ranks that picked for the same destination must have
// picked the same edges; otherwise the error names the hop, the node and both ranks, and the digest
// stays unchanged.
func (d *Digest) AddStep(seeds Seeds, perRank [][]byte) error {
	edges := d.edges
	added := false
	defer func() {
		if !added {
			d.edges = edges
		}
	}()
	out := d.buf[:0]
	for i, v := range seeds.IDs {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
		if seeds.Times != nil {
			out = binary.LittleEndian.AppendUint64(out, uint64(seeds.Times[i]))
		}
	}
	in := make([]reader, len(perRank))
	hops := uint32(0) // with typedPicks and the like
	for r := range in {
		in[r] = reader{rest: perRank[r], rank: r}
		n, err := in[r].word()
		if err != nil {
			return err
		}
		if r > 0 && n != hops {
			return fmt.Errorf("sample: digest: rank 0 sampled %d hops and rank %d %d (types, trees and times of seeds count as 2^31, 2^30 and 2^29); all ranks need the same sampler and graph", hops, r, n)
		}
		hops = n
	}
	for r := range in {
		in[r].width, in[r].tree = pickWords(hops)
	}
	for hop := range hops &^ (typedPicks | treePicks | timedPicks) {
		var err error
		if out, err = d.mergeHop(out, in, int(hop)); err != nil {
			return err
		}
	}
	for r := range in {
		if n := len(in[r].rest); n > 0 {
			return fmt.Errorf("sample: digest: the picks of rank %d have %d extra bytes at the end", r, n)
		}
	}
	d.buf = out
	d.h.Write(out)
	d.steps++
	added = true
	return nil
}

// mergeHop appends the union of the ranks' records of one hop, ascending by id.
func (d *Digest) mergeHop(out []byte, in []reader, hop int) ([]byte, error) {
	for r := range in {
		n, err := in[r].word()
		if err != nil {
			return nil, err
		}
		in[r].left = n
		if err := in[r].advance(); err != nil {
			return nil, err
		}
	}
	for {
		first := -1
		for r := range in {
			if in[r].record != nil && (first < 0 || in[r].at.compare(in[first].at) < 0) {
				first = r
			}
		}
		if first < 0 {
			return out, nil
		}
		at, record := in[first].at, in[first].record
		out = append(out, record...)
		d.edges += int64(len(record)/4-2-in[first].tree) / int64(in[first].width)
		for r := first; r < len(in); r++ {
			if in[r].record == nil || in[r].at != at {
				continue
			}
			if string(in[r].record) != string(record) {
				return nil, fmt.Errorf("sample: digest: ranks %d and %d picked differently for node %d at hop %d; a picker must decide from its draws and the node alone", first, r, at.id, hop)
			}
			if err := in[r].advance(); err != nil {
				return nil, err
			}
		}
	}
}

// reader iterates over one rank's encoded picks.
type reader struct {
	rest   []byte
	rank   int
	width  int    // words of an edge
	tree   int    // words of a destination's seed
	left   uint32 // records of this hop after the current one
	at     destination
	record []byte // the current record, nil after the hop's last
}

func (r *reader) word() (uint32, error) {
	if len(r.rest) < 4 {
		return 0, fmt.Errorf("sample: digest: the picks of rank %d are truncated", r.rank)
	}
	w := binary.LittleEndian.Uint32(r.rest)
	r.rest = r.rest[4:]
	return w, nil
}

// advance moves to the hop's next record.
func (r *reader) advance() error {
	before, last := r.record != nil, r.at
	r.record = nil
	if r.left == 0 {
		return nil
	}
	r.left--
	head := 8 + 4*r.tree
	if len(r.rest) < head {
		return fmt.Errorf("sample: digest: the picks of rank %d are truncated", r.rank)
	}
	size := int64(head) + 4*int64(r.width)*int64(binary.LittleEndian.Uint32(r.rest[head-4:]))
	if int64(len(r.rest)) < size {
		return fmt.Errorf("sample: digest: the picks of rank %d are truncated", r.rank)
	}
	r.at = destination{id: int32(binary.LittleEndian.Uint32(r.rest[head-8:]))}
	if r.tree > 0 {
		r.at.seed = int32(binary.LittleEndian.Uint32(r.rest))
	}
	if r.tree > 1 {
		r.at.time = int64(binary.LittleEndian.Uint64(r.rest[4:]))
	}
	r.record, r.rest = r.rest[:size], r.rest[size:]
	if before && r.at.compare(last) <= 0 {
		return fmt.Errorf("sample: digest: the picks of rank %d are not in ascending order: node %d after %d", r.rank, r.at.id, last.id)
	}
	return nil
}

// destination is a node or, with disjoint trees, a node in the tree of a seed.
type destination struct {
	seed int32
	time int64
	id   int32
}

// destination returns that of an id in the upper half of a word and a row in the lower one.
func (b *Batch) destination(row uint64) destination {
	at := destination{id: int32(row >> 32)}
	if b.Trees != nil {
		at.seed = b.Seeds[b.Trees[uint32(row)]]
	}
	if b.Times != nil {
		at.time = b.Times[b.Trees[uint32(row)]]
	}
	return at
}

func (p destination) compare(q destination) int {
	return cmp.Or(cmp.Compare(p.seed, q.seed), cmp.Compare(p.time, q.time), cmp.Compare(p.id, q.id))
}

// EncodePicks encodes the picks of a batch for [Digest.AddStep] in another process: the number of
// hops, then hop by hop from the seeds outwards the number of destinations and, in the order of the digest,
// what it hashes of each; all are 32-bit words, little-endian, and times two of them. If the edges have types, the number
// of hops has bit 31 set, with disjoint trees bit 30, and with times of seeds bit 29. Cost: a sort of each hop's
// destinations.
func EncodePicks(b *Batch) []byte {
	hops := uint32(len(b.Blocks))
	if len(b.Blocks) > 0 && b.Blocks[0].HasEdgeTypes() {
		hops |= typedPicks
	}
	if b.Trees != nil {
		hops |= treePicks
	}
	if b.Times != nil {
		hops |= timedPicks
	}
	width, tree := pickWords(hops)
	size := 4
	for _, k := range b.Blocks {
		size += 4 + (8+4*tree)*k.NumDst + 4*width*k.NumEdges()
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, size), hops)
	var sources []int32
	var rows, typed []uint64 // a destination's id, then its row
	for i := len(b.Blocks) - 1; i >= 0; i-- {
		k := b.Blocks[i]
		rows = rows[:0]
		for d := range k.NumDst {
			rows = append(rows, uint64(uint32(k.DstID(d)))<<32|uint64(d))
		}
		slices.Sort(rows)
		if tree > 0 {
			slices.SortStableFunc(rows, func(p, q uint64) int { return b.destination(p).compare(b.destination(q)) })
			rows = slices.CompactFunc(rows, func(p, q uint64) bool { return b.destination(p) == b.destination(q) }) // of equal seeds
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(len(rows)))
		for _, row := range rows {
			d, at := int(uint32(row)), b.destination(row)
			if tree > 0 {
				out = binary.LittleEndian.AppendUint32(out, uint32(at.seed))
			}
			if tree > 1 {
				out = binary.LittleEndian.AppendUint64(out, uint64(at.time))
			}
			out = binary.LittleEndian.AppendUint32(out, uint32(at.id))
			out = binary.LittleEndian.AppendUint32(out, uint32(k.InDegree(d)))
			if width == 2 {
				typed = appendTyped(typed[:0], k, d)
				for _, e := range typed {
					out = binary.LittleEndian.AppendUint32(out, uint32(e>>32))
					out = binary.LittleEndian.AppendUint32(out, uint32(e))
				}
				continue
			}
			sources = appendSources(sources[:0], k, d)
			for _, u := range sources {
				out = binary.LittleEndian.AppendUint32(out, uint32(u))
			}
		}
	}
	return out
}

// What encoded picks have, in their number of hops: types of edges, disjoint trees, times of seeds.
const (
	typedPicks = 1 << (31 - iota)
	treePicks
	timedPicks
)

// pickWords returns the number of words of an edge, and of a destination's seed.
func pickWords(hops uint32) (edge, tree int) {
	edge = 1
	if hops&typedPicks != 0 {
		edge = 2
	}
	switch {
	case hops&timedPicks != 0:
		tree = 3
	case hops&treePicks != 0:
		tree = 1
	}
	return edge, tree
}

// appendTyped appends source and type of the in-edges of row d, ascending.
func appendTyped(out []uint64, k *graphops.Block, d int) []uint64 {
	indptr, indices, types := k.Indptr(), k.Indices(), k.EdgeTypes()
	for e := indptr[d]; e < indptr[d+1]; e++ {
		out = append(out, uint64(uint32(k.SrcID(int(indices[e]))))<<32|uint64(types[e-indptr[0]]))
	}
	slices.Sort(out)
	return out
}

func appendSources(out []int32, k *graphops.Block, d int) []int32 {
	indptr := k.Indptr()
	for _, s := range k.Indices()[indptr[d]:indptr[d+1]] {
		out = append(out, k.SrcID(int(s)))
	}
	slices.Sort(out)
	return out
}
