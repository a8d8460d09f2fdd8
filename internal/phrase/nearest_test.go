package phrase

import "testing"

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
