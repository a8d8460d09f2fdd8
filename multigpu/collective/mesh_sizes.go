package collective

// wholeBytes bounds what a machine sends for a sum in one round of messages: with more bytes than that, the time of a second
// round's first bytes counts little, and the memory and additions of all elements on each machine count more.
const wholeBytes = 1 << 20

// ReduceBytes returns what a sum of n float32 over machines moves in each of its rounds, as Reducers over [Machines] do: the
// most bytes that a machine sends or receives. The second is 0 for a sum that takes one round. The ranks of machine m are
// those from first[m] on, up to those of the next one or world, and each has virtual slots. Heads of messages do not count.
func ReduceBytes(n, virtual, world int, first []int) (rounds [2]int64) {
	var spans []int
	for m := range first {
		end := world
		if m+1 < len(first) {
			end = first[m+1]
		}
		spans = append(spans, len(subtrees(nil, first[m]*virtual, end*virtual, world*virtual)))
	}
	_, rounds = reduceRounds(n, spans)
	return rounds
}

// reduceRounds is ReduceBytes by the number of subtrees of each machine. whole says that the machines send each other the
// sums of all elements, so that each adds up all of them. Else each adds up its share, and sends the others its sums in a
// second round. One round is taken where it moves no more bytes than two, as between two machines, or few.
func reduceRounds(n int, spans []int) (whole bool, rounds [2]int64) {
	machines, all := len(spans), 0
	for _, s := range spans {
		all += s
	}
	one := int64(0)
	for m, s := range spans {
		one = max(one, 4*int64(n)*int64(max(s*(machines-1), all-s)))
		lo, hi := Share(n, m, machines)
		own := int64(hi - lo)
		others := int64(n) - own
		rounds[0] = max(rounds[0], 4*int64(s)*others, 4*own*int64(all-s))
		rounds[1] = max(rounds[1], 4*own*int64(machines-1), 4*others)
	}
	if one <= small || one <= wholeBytes && one <= rounds[0]+rounds[1] {
		return true, [2]int64{one}
	}
	return false, rounds
}
