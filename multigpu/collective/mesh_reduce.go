package collective

import "fmt"

func (c *mesh) NewReducer(s Site, n, virtual int) (Reducer, error) {
	if err := checkReducer(s, n, virtual); err != nil {
		return nil, err
	}
	if err := checkSizes("a reducer", s, n+16, 2*virtual+1, c.world); err != nil {
		return nil, err
	}
	r := &meshReducer{comm: c, n: n, virtual: virtual}
	count := c.world * virtual
	var spans []span
	var counts []int
	for m := range c.machines() {
		of := subtrees(nil, c.first[m]*virtual, c.first[m+1]*virtual, count)
		r.of = append(r.of, of)
		spans, counts = append(spans, of...), append(counts, len(of))
	}
	r.whole, _ = reduceRounds(n, counts)
	r.all = newJoins(spans, count)
	if _, err := c.run(s, call{op: opNewReducer, n: n, aux: virtual, finish: r.alloc}); err != nil {
		return nil, err
	}
	return r, nil
}

var _ Reducer = (*meshReducer)(nil)

// meshReducer holds, in memory that the ranks of a machine share, their slots, the sums of the
// machine's subtrees, and the whole sum. Each machine adds up its share of the elements or, if whole is set, all of them.
type meshReducer struct {
	comm       *mesh
	n, virtual int
	whole      bool
	of         [][]span // subtrees by machine
	all        *joins   // adds their sums
	inOwn      []*joins // adds the slots of a subtree of this machine; nil for one slot

	mem   Matrix
	slots [][]float32 // of this machine
	own   [][]float32 // sums of this machine's subtrees; the sum of a single slot is the slot itself
	sum   []float32
	parts [][]float32 // at the first rank: its share of the sums of all subtrees
}

// share is the range of elements that machine m adds up.
func (r *meshReducer) share(m int) (lo, hi int) {
	if r.whole {
		return 0, r.n
	}
	return Share(r.n, m, r.comm.machines())
}

func (r *meshReducer) alloc() (err error) {
	c := r.comm
	base, count := c.first[c.me]*r.virtual, c.count(c.me)*r.virtual
	stride := (r.n + 15) / 16 * 16 // a row begins on a cache line
	if r.mem, err = c.local.NewMatrix(within, count+len(r.of[c.me])+1, stride); err != nil {
		return err
	}
	free := r.mem.Data()
	row := func() []float32 {
		x := free[:r.n:r.n]
		free = free[stride:]
		return x
	}
	for range count {
		r.slots = append(r.slots, row())
	}
	for _, s := range r.of[c.me] {
		if s.hi-s.lo == 1 {
			r.own, r.inOwn = append(r.own, r.slots[s.lo-base]), append(r.inOwn, nil)
		} else {
			r.own, r.inOwn = append(r.own, row()), append(r.inOwn, joinSlots(s.hi-s.lo))
		}
	}
	r.sum = row()
	if !c.leads() {
		return nil
	}
	lo, hi := r.share(c.me)
	for m, of := range r.of {
		for j := range of {
			if m == c.me {
				r.parts = append(r.parts, r.own[j][lo:hi])
			} else {
				r.parts = append(r.parts, make([]float32, hi-lo))
			}
		}
	}
	return nil
}

func (r *meshReducer) Slot(v int) []float32 {
	if v < 0 || v >= r.virtual {
		panic(fmt.Sprintf("collective: slot %d of a reducer with %d virtual slots a rank", v, r.virtual))
	}
	return r.slots[r.comm.local.Rank()*r.virtual+v]
}

func (r *meshReducer) Release() {
	r.mem.Release()
	r.slots, r.own, r.sum, r.parts = nil, nil, nil, nil
}

func (r *meshReducer) Reduce(s Site) ([]float32, error) {
	c := r.comm
	if r.slots == nil {
		return nil, releasedError("a sum", s)
	}
	if _, err := c.run(s, call{
		op: opReduce, n: r.n, aux: r.virtual,
		local:  func([][]byte) error { return r.addOwn() },
		body:   func(_ [][]byte, m int) [][]byte { return r.ownSums(m) },
		into:   r.sumsOf,
		result: func([][]byte) ([][]byte, error) { return nil, r.addAll(s) },
	}); err != nil {
		return nil, err
	}
	return r.sum, nil
}

// addOwn adds this rank's part of the elements of the machine's subtrees.
func (r *meshReducer) addOwn() error {
	c := r.comm
	base := c.first[c.me] * r.virtual
	lo, hi := Share(r.n, c.local.Rank(), c.local.Size())
	for j, s := range r.of[c.me] {
		if in := r.inOwn[j]; in != nil {
			in.sum(r.own[j], r.slots[s.lo-base:s.hi-base], lo, hi)
		}
	}
	if c.local.Size() == 1 {
		return nil
	}
	return r.mem.Publish(within, 0, 0)
}

// ownSums are the sums of this machine's subtrees, of the elements that machine m adds up.
func (r *meshReducer) ownSums(m int) (sums [][]byte) {
	lo, hi := r.share(m)
	for _, x := range r.own {
		sums = append(sums, float32Bytes(x[lo:hi]))
	}
	return sums
}

// sumsOf is where the sums of machine m's subtrees go, of the elements that this machine adds up.
func (r *meshReducer) sumsOf(m int) (places [][]byte) {
	first := 0
	for _, of := range r.of[:m] {
		first += len(of)
	}
	for _, x := range r.parts[first : first+len(r.of[m])] {
		places = append(places, float32Bytes(x))
	}
	return places
}

// addAll adds up this machine's share of the elements and exchanges the result for the other
// machines' shares, unless each has added up all.
func (r *meshReducer) addAll(s Site) error {
	c := r.comm
	lo, hi := r.share(c.me)
	r.all.sum(r.sum[lo:hi], r.parts, 0, hi-lo)
	if r.whole {
		return nil
	}
	part := func(m int) [][]byte {
		lo, hi := r.share(m)
		return [][]byte{float32Bytes(r.sum[lo:hi])}
	}
	err := c.wire.run(round{kind: frameData, body: func(int) [][]byte { return part(c.me) }, into: part})
	if err != nil {
		return c.connError(s, err)
	}
	return nil
}
