package ranks

import (
	"errors"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/sample"
)

// Fanouts is the flag --fanout: "15,10,5", the hop next to the seeds first; full (or -1) takes all
// neighbours of a hop, and "full" alone those of every hop.
type Fanouts struct {
	List []int
	Full bool // all neighbours of every hop
}

// String returns the flag's text.
func (f *Fanouts) String() string {
	if f.Full {
		return "full"
	}
	words := make([]string, len(f.List))
	for i, k := range f.List {
		words[i] = strconv.Itoa(k)
	}
	return strings.Join(words, ",")
}

// Set reads the flag's text.
func (f *Fanouts) Set(s string) error {
	*f = Fanouts{}
	if s == "full" {
		f.Full = true
		return nil
	}
	for _, word := range strings.Split(s, ",") {
		if word == "full" {
			f.List = append(f.List, -1)
			continue
		}
		k, err := strconv.Atoi(word)
		if err != nil {
			return errors.New("a fanout is a number of neighbours, or full, separated by commas")
		}
		f.List = append(f.List, k)
	}
	return sample.Fanouts(f.List).Check()
}

// Hops returns the fanouts of n hops.
func (f *Fanouts) Hops(n int) []int {
	if !f.Full {
		return f.List
	}
	all := make([]int, n)
	for i := range all {
		all[i] = -1
	}
	return all
}
