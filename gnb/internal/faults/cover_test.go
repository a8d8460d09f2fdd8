//go:build linux

package faults

import (
	"fmt"
	"testing"
)

// Every pair of way, fault, stage and process that can occur does, and most trials are of the cheapest way.
func TestCoverHasAllPairs(t *testing.T) {
	has, number := map[[2]string]bool{}, map[string]int{}
	for _, c := range cover(trials()) {
		number[c.Way]++
		for _, p := range c.pairs() {
			has[p] = true
		}
	}
	total := 0
	for _, n := range number {
		total += n
	}
	if least, most := len(faults)*len(stages), len(trials())/4; total < least || total > most {
		t.Errorf("the cover has %d trials of %d, want %d to %d", total, len(trials()), least, most)
	}
	if own := number[ownWorkers.Name]; own < total/3 {
		t.Errorf("%d of %d trials are of own workers", own, total)
	}
	for _, c := range trials() {
		for _, p := range c.pairs() {
			if !has[p] {
				t.Errorf("%s and %s do not occur together", p[0], p[1])
			}
		}
	}
	t.Log(fmt.Sprint(number))
}
