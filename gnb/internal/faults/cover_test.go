package faults

import "testing"

func TestCoverHasAllPairs(t *testing.T) {
	cases := cover(all())
	if len(cases) < len(faults)*len(stages) || len(cases) > len(all())/2 {
		t.Errorf("the cover has %d cases of %d", len(cases), len(all()))
	}
	has := func(f, s, v string) bool {
		for _, c := range cases {
			if (f == "" || c.Fault == f) && (s == "" || c.Stage == s) && (v == "" || c.Victim == v) {
				return true
			}
		}
		return false
	}
	for _, c := range all() {
		if !has(c.Fault, c.Stage, "") || !has(c.Fault, "", c.Victim) || !has("", c.Stage, c.Victim) {
			t.Errorf("two of %v do not occur together", c)
		}
	}
}
