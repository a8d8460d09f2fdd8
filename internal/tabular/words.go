// This file numbers words, such as the ids of nodes, in little memory.

package tabular

import (
	"hash/maphash"
	"math"
)

// table numbers words in the order in which they are added. It takes about 12
// bytes per word in addition to the words, a fifth of a map's overhead.
type table struct {
	text  []byte
	ends  []uint32 // end of word i in text
	slots []int32  // open addressing: number+1, 0 if free; length a power of two, at most 2/3 full
	seed  maphash.Seed
}

// maxText bounds the total bytes of the words, because their ends are uint32.
const maxText = math.MaxUint32

// wordsNew returns an empty table.
func wordsNew() *table { return &table{slots: make([]int32, 16), seed: maphash.MakeSeed()} }

// Len returns the number of words.
func (n *table) Len() int { return len(n.ends) }

// Text returns all words one after another; the bytes belong to the table.
func (n *table) Text() []byte { return n.text }

// Word returns word i; the bytes belong to the table.
func (n *table) Word(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = n.ends[i-1]
	}
	return n.text[start:n.ends[i]]
}

// Find returns the number of a word, and its slot or the free slot where it would go.
func (n *table) Find(word string) (number int32, slot int, ok bool) {
	mask := len(n.slots) - 1
	slot = int(maphash.String(n.seed, word)) & mask
	for n.slots[slot] != 0 {
		if number = n.slots[slot] - 1; string(n.Word(int(number))) == word {
			return number, slot, true
		}
		slot = (slot + 1) & mask
	}
	return 0, slot, false
}

// Add returns the number of a word, and numbers it if it is new. full reports that there is no room
// for it.
func (n *table) Add(word string) (number int32, isNew, full bool) {
	number, slot, ok := n.Find(word)
	if ok {
		return number, false, false
	}
	if len(n.ends) >= math.MaxInt32 || len(n.text)+len(word) > maxText {
		return 0, false, true
	}
	n.text = append(n.text, word...)
	n.ends = append(n.ends, uint32(len(n.text)))
	n.slots[slot] = int32(len(n.ends))
	if 3*len(n.ends) > 2*len(n.slots) {
		n.grow()
	}
	return int32(len(n.ends) - 1), true, false
}

func (n *table) grow() {
	n.slots = make([]int32, 2*len(n.slots))
	mask := len(n.slots) - 1
	for i := range n.ends {
		slot := int(maphash.Bytes(n.seed, n.Word(i))) & mask
		for n.slots[slot] != 0 {
			slot = (slot + 1) & mask
		}
		n.slots[slot] = int32(i) + 1
	}
}
