package collective

// ReduceBytes returns what a sum of n float32 over machines moves in each of its rounds, as Reducers over [Machines] with
// connections do: the most bytes that a machine sends or receives. The ranks of machine m are those from first[m] on, up to
// those of the next one or world, and each has virtual slots. Heads of messages do not count.
func ReduceBytes(n, virtual, world int, first []int) (rounds [2]int64) {
	machines := len(first)
	if machines < 2 {
		return rounds
	}
	var spans []int // subtrees of each machine
	all := 0
	for m := range machines {
		end := world
		if m+1 < machines {
			end = first[m+1]
		}
		s := len(subtrees(nil, first[m]*virtual, end*virtual, world*virtual))
		spans, all = append(spans, s), all+s
	}
	for m, s := range spans {
		lo, hi := Share(n, m, machines)
		own := int64(hi - lo)
		others := int64(n) - own
		rounds[0] = max(rounds[0], 4*int64(s)*others, 4*own*int64(all-s))
		rounds[1] = max(rounds[1], 4*own*int64(machines-1), 4*others)
	}
	return rounds
}
