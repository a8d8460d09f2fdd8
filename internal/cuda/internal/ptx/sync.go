package ptx

// waitBarrier implements bar.sync: the thread waits for all threads of its block.
func waitBarrier(t *thread, in *instr) { t.state, t.in = atBarrier, in }

// waitWarp implements any operation of the lanes in a mask, which is in slot c.
func waitWarp(t *thread, in *instr) { t.state, t.in, t.mask = atWarp, in, uint32(t.r[in.c]) }

func exit(t *thread, _ *instr) {
	t.state = done
	t.w.live--
}

// barrier releases the threads if all have reached the barrier.
func (w *worker) barrier() bool {
	var first *thread
	for i := range w.threads {
		t := &w.threads[i]
		if t.state == running || t.state == atWarp {
			return false
		}
		if t.state == atBarrier && first == nil {
			first = t
		}
	}
	for i := range w.threads {
		switch t := &w.threads[i]; {
		case t.state == done:
			first.fail(first.in, Barrier, 0, "it waits at the barrier, but thread %s has ended: all threads of a block have to reach a barrier", triple(t.tid()))
		case t.in != first.in:
			t.fail(t.in, Barrier, 0, "it waits at this barrier, but thread %s at the one in line %d: all threads of a block have to reach the same", triple(first.tid()), first.in.line)
		}
	}
	w.epoch++
	if x := first.in.x; x != nil {
		w.reduce(first.in, x)
	}
	for i := range w.threads {
		w.threads[i].state = running
	}
	return true
}

// reduce implements bar.red: a vote of the block.
func (w *worker) reduce(in *instr, x *extra) {
	n := uint64(0)
	for i := range w.threads {
		if (w.threads[i].r[in.a] != 0) != x.negB {
			n++
		}
	}
	switch x.combine {
	case 'a':
		n = truth(n == uint64(len(w.threads)))
	case 'o':
		n = truth(n > 0)
	}
	for i := range w.threads {
		w.threads[i].r[in.d] = n
	}
}

func truth(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

// warps executes every warp operation whose lanes have all arrived.
func (w *worker) warps() bool {
	any := false
	for from := 0; from < len(w.threads); from += 32 {
		lanes := w.threads[from:min(from+32, len(w.threads))]
		for i := range lanes {
			if lanes[i].state == atWarp && w.warp(lanes, &lanes[i], i) {
				any = true
			}
		}
	}
	return any
}

// warp executes the operation at which t, of lane i, waits, if all lanes that it names have arrived
// or ended.
func (w *worker) warp(lanes []thread, t *thread, i int) bool {
	if t.mask>>i&1 == 0 {
		t.fail(t.in, Warp, 0, "lane %d is not in the mask %#x of its own warp operation", i, t.mask)
	}
	there := uint32(0)
	for l := range lanes {
		u := &lanes[l]
		if t.mask>>l&1 == 0 || u.state == done {
			continue
		}
		if u.state != atWarp {
			return false
		}
		if u.in != t.in || u.mask != t.mask {
			return false // the lane may still arrive
		}
		there |= 1 << l
	}
	in := t.in
	if in.fn2 != nil {
		in.fn2(w, in, lanes, there)
	}
	for l := range lanes {
		if there>>l&1 != 0 {
			lanes[l].state = running
		}
	}
	return true
}

// syncWarp implements bar.warp.sync: the lanes' earlier accesses are ordered before their later
// ones.
func syncWarp(w *worker, _ *instr, lanes []thread, there uint32) {
	if !w.races {
		return
	}
	var joined [32]uint16
	for l := range lanes {
		if there>>l&1 == 0 {
			continue
		}
		u := &lanes[l]
		u.seen[l] = u.clock
		for j, c := range u.seen {
			joined[j] = max(joined[j], c)
		}
	}
	for l := range lanes {
		if there>>l&1 != 0 {
			*lanes[l].seen = joined
			lanes[l].clock++
		}
	}
}

// shuffle implements shfl.sync; in.sub is u, d, b or i. a is the value, b the lane or distance, e
// the clamp and segment mask.
func shuffle(w *worker, in *instr, lanes []thread, there uint32) {
	for l := range lanes {
		lanes[l].before = lanes[l].r[in.a]
	}
	for l := range lanes {
		if there>>l&1 == 0 {
			continue
		}
		t := &lanes[l]
		by, clamp := int(t.r[in.b]&31), t.r[in.e]
		most, segment := int(clamp&31), int(clamp>>8&31)
		low := l & segment
		high := low | most&^segment
		from, inside := 0, false
		switch in.sub {
		case 'u':
			from = l - by
			inside = from >= high
		case 'd':
			from = l + by
			inside = from <= high
		case 'b':
			from = l ^ by
			inside = from <= high
		case 'i':
			from = low | by&^segment
			inside = from <= high
		}
		if !inside {
			from = l
		}
		if from >= len(lanes) || there>>from&1 == 0 {
			t.fail(in, Warp, 0, "the shuffle reads lane %d, which takes no part in it (mask %#x)", from, t.mask)
		}
		t.r[in.d] = lanes[from].before & 0xffffffff
		if s := in.x.second; s >= 0 {
			t.r[s] = truth(inside)
		}
	}
}

// vote implements vote.sync; in.sub is a(ll), o (any), u(ni) or b(allot).
func vote(_ *worker, in *instr, lanes []thread, there uint32) {
	yes := uint32(0)
	for l := range lanes {
		if there>>l&1 != 0 && (lanes[l].r[in.a] != 0) != in.x.negB {
			yes |= 1 << l
		}
	}
	v := uint64(yes)
	switch in.sub {
	case 'a':
		v = truth(yes == there)
	case 'o':
		v = truth(yes != 0)
	case 'u':
		v = truth(yes == there || yes == 0)
	}
	for l := range lanes {
		if there>>l&1 != 0 {
			lanes[l].r[in.d] = v
		}
	}
}

// match implements match.sync; in.sub is a(ll) or o (any).
func match(_ *worker, in *instr, lanes []thread, there uint32) {
	for l := range lanes {
		lanes[l].before = lanes[l].r[in.a]
	}
	for l := range lanes {
		if there>>l&1 == 0 {
			continue
		}
		same := uint32(0)
		for j := range lanes {
			if there>>j&1 != 0 && lanes[j].before == lanes[l].before {
				same |= 1 << j
			}
		}
		if in.sub == 'a' {
			all := same == there
			if !all {
				same = 0
			}
			if s := in.x.second; s >= 0 {
				lanes[l].r[s] = truth(all)
			}
		}
		lanes[l].r[in.d] = uint64(same)
	}
}

// stuck reports the threads in a deadlock and what they wait for.
func (w *worker) stuck() {
	for i := range w.threads {
		t := &w.threads[i]
		if t.state != atWarp {
			continue
		}
		first := i &^ 31
		for l := range min(32, len(w.threads)-first) {
			u := &w.threads[first+l]
			if t.mask>>l&1 == 0 || u.state == done || u.state == atWarp && u.in == t.in && u.mask == t.mask {
				continue
			}
			if u.state == atWarp && u.in == t.in {
				t.fail(t.in, Warp, 0, "lane %d names the lanes %#x here, but lane %d names %#x", i-first, t.mask, l, u.mask)
			}
			t.fail(t.in, Warp, 0, "lane %d waits here for the lanes %#x, but lane %d waits in line %d", i-first, t.mask, l, u.in.line)
		}
	}
	panic("unreachable: a thread is stuck, but none waits for its warp")
}
