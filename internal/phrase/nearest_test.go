package phrase

import (
	"slices"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"cora", "citeseer", "ogbn-arxiv", "ppi"}
	for word, want := range map[string]string{
		"coar": "cora", "coraa": "cora", "Cora": "cora", "citesser": "citeseer", "ogbn_arxiv": "ogbn-arxiv", "arxiv": "",
		"": "", "x": "", "pp": "", "ppj": "ppi", "reddit": "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

// The closest names are sorted by distance, then as given; parts before a dot and the case do not count.
func TestClosest(t *testing.T) {
	names := []string{"args.Hidden", "args.LR", "test_accuracy", "val_accuracy", "seed", "args.Model.seeds"}
	for word, want := range map[string][]string{
		"seeed": {"seed", "args.Model.seeds"}, "value_accuracy": {"val_accuracy", "test_accuracy"}, "hiden": {"args.Hidden", "seed"},
	} {
		if got := Closest(word, names, 2); !slices.Equal(got, want) {
			t.Errorf("closest to %q are %q, want %q", word, got, want)
		}
	}
	if got := Closest("x", names[:2], 3); len(got) != 2 {
		t.Errorf("of two names: %q", got)
	}
}
