package tabular

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A table numbers words exactly as a map would, for any words.
func TestTable(t *testing.T) {
	n, want := wordsNew(), map[string]int32{}
	u := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		word := fmt.Sprint(u.IntN(5000))
		if u.IntN(100) == 0 {
			word = ""
		}
		number, isNew, full := n.Add(word)
		old, there := want[word]
		if !there {
			old = int32(len(want))
			want[word] = old
		}
		if number != old || isNew == there || full || string(n.Word(int(number))) != word {
			t.Fatalf("%q is %d (new %v), want %d (new %v)", word, number, isNew, old, !there)
		}
	}
	if n.Len() != len(want) {
		t.Errorf("%d names, want %d", n.Len(), len(want))
	}
	if _, _, ok := n.Find("no such word"); ok {
		t.Error("an unknown word was found")
	}
}
