package repotest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The table of docs/accuracy.md equals the recorded results of bench/accuracy.py.
func TestAccuracyPage(t *testing.T) {
	text := read(t, "bench", "results", "accuracy.json")
	var rows map[string]struct {
		Set, Model, Command, Published, Source string
		Test                                   []float64
		Mean, Deviation                        float64
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| dataset | model | command | GraphNB | published | source |\n|---|---|---|---:|---:|---|\n")
	set := ""
	for _, id := range keys(t, text) {
		r := rows[id]
		seeds := ""
		switch n := len(r.Test); {
		case n < 3 || n > 10:
			t.Errorf("%s has %d results, want 10, or at least 3 of a row that takes hours", id, n)
		case n < 10:
			seeds = fmt.Sprintf(" (%d of 10)", n)
		}
		shown := r.Set
		if shown == set {
			shown = ""
		}
		set = r.Set
		if r.Published == "" || r.Source == "" {
			t.Errorf("%s has no published value and source", id)
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` | %.1f ± %.1f%s | %s | %s |\n", shown, r.Model, r.Command, r.Mean, r.Deviation, seeds, r.Published, r.Source)
	}
	compare(t, "accuracy.md", "table", b.String())
}

// keys returns the names of a JSON object's values, in the order of the text.
func keys(t *testing.T, text string) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	var all []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		all = append(all, name.(string))
	}
	return all
}
