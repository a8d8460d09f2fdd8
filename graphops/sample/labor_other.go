//go:build !amd64

package sample

// laborDraws writes the draw of each source.
func laborDraws(out []uint32, nbrs []int32, w *laborWords) { laborGo(out, nbrs, w) }

// levelSets sets the bits of 64 draws after the other in each set, from a word on; the sets are words apart.
func levelSets(sets []uint64, word, words int, draws []uint32) { levelSetsGo(sets, word, words, draws) }

// inSet writes the sources that are in a set, and their positions, and returns how many they are.
func inSet(few, at, nbrs []int32, set []uint64) (m int) { return inSetGo(few, at, nbrs, 0, set, 0) }
