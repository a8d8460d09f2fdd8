package collective

// wholeBytes bounds what a machine sends for a sum in one round of messages: with more bytes than that, the time of a second
// round's first bytes counts little, and the memory and additions of all elements on each machine count more.
const wholeBytes = 1 << 20

// ReduceBytes returns what a sum of n float32 over machines moves in each of its rounds, as Reducers over [Machines] do: the
// most bytes that a machine sends or receives. The second is 0 for a sum that takes one round. The ranks of machine m are
// those from first[m] on, up to those of the next one or world, and each has virtual slots. Heads of messages do not count.
func ReduceBytes(n, virtual, world int, first []int) (rounds [2]int64) {
	return reduceBytes(n, virtual, world, first, inOneRound(n, virtual, world, first))
}

// inOneRound reports whether the machines send each other the sums of all elements, so that each adds up all of them. Else
// each adds up its share, and sends the others its sums in a second round. One round is taken where it moves no more bytes
// than two, as between two machines of one rank each, or few.
func inOneRound(n, virtual, world int, first []int) bool {
	one, two := reduceBytes(n, virtual, world, first, true), reduceBytes(n, virtual, world, first, false)
	return one[0] <= small || one[0] <= wholeBytes && one[0] <= two[0]+two[1]
}

// reduceBytes is ReduceBytes for a sum in one round or in two.
func reduceBytes(n, virtual, world int, first []int, one bool) (rounds [2]int64) {
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
		if one {
			rounds[0] = max(rounds[0], 4*int64(n)*int64(max(s*(machines-1), all-s)))
			continue
		}
		lo, hi := Share(n, m, machines)
		own := int64(hi - lo)
		others := int64(n) - own
		rounds[0] = max(rounds[0], 4*int64(s)*others, 4*own*int64(all-s))
		rounds[1] = max(rounds[1], 4*own*int64(machines-1), 4*others)
	}
	return rounds
}
