package sample

import "github.com/graphnb/graphnb/internal/simd"

// laborDraws writes the draw of each source.
func laborDraws(out []uint32, nbrs []int32, w *laborWords) {
	n := len(nbrs)
	switch {
	case n == 0:
	case path == simd.AVX512:
		laborAVX512(&out[:n][0], &nbrs[0], n, w)
	case path == simd.AVX2:
		const lanes = width / 2
		whole := n &^ (lanes - 1)
		if whole > 0 {
			laborAVX2(&out[:n][0], &nbrs[0], whole/lanes, w)
		}
		if whole < n { // the last ones, from a copy
			var ids [lanes]int32
			var draws [lanes]uint32
			copy(ids[:], nbrs[whole:])
			laborAVX2(&draws[0], &ids[0], 1, w)
			copy(out[whole:n], draws[:])
		}
	default:
		laborGo(out, nbrs, w)
	}
}

// laborAVX512 writes the draws of n sources, at least one.
//
//go:noescape
func laborAVX512(out *uint32, nbrs *int32, n int, words *laborWords)

// laborAVX2 writes the draws of 8·blocks sources.
//
//go:noescape
func laborAVX2(out *uint32, nbrs *int32, blocks int, words *laborWords)

// levelSets sets the bits of 64 draws after the other in each set, from a word on; the sets are words apart.
func levelSets(sets []uint64, word, words int, draws []uint32) {
	if path == simd.AVX512 {
		levelsAVX512(&sets[word], 8*words, &draws[0], len(draws)/width)
	} else {
		levelSetsGo(sets, word, words, draws)
	}
}

// inSet writes the sources that are in a set, and their positions, and returns how many they are. few and at have room
// for 16 more than there are sources.
func inSet(few, at, nbrs []int32, set []uint64) (m int) {
	done := 0
	if blocks := len(nbrs) / width; path == simd.AVX512 && blocks > 0 {
		m, done = belowAVX512(&few[0], &at[0], &nbrs[0], blocks, &set[0], 2*len(set)), width*blocks
	}
	return inSetGo(few, at, nbrs, done, set, m)
}

// levelsAVX512 sets 16·blocks bits of each of the maxLevels sets, which are stride bytes apart.
//
//go:noescape
func levelsAVX512(sets *uint64, stride int, draws *uint32, blocks int)

// belowAVX512 is inSet for 16·blocks sources, and a set of words 32-bit words.
//
//go:noescape
func belowAVX512(few, at, nbrs *int32, blocks int, set *uint64, words int) (m int)
