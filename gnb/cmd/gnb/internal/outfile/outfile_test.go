package outfile_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/outfile"
)

func TestWrite(t *testing.T) {
	header := []string{"id", "rank", "score", `a "name"`}
	rows := [][]any{{"a,b", 1, float32(0.1), outfile.Probability(0.25)}, {"ü", 2, float32(3), outfile.Probability(1)}}
	for name, want := range map[string]string{
		"x.csv":   "id,rank,score,\"a \"\"name\"\"\"\n\"a,b\",1,0.1,0.250000\nü,2,3,1.000000\n",
		"x.jsonl": `{"id": "a,b", "rank": 1, "score": 0.1, "a \"name\"": 0.25}` + "\n" + `{"id": "ü", "rank": 2, "score": 3, "a \"name\"": 1}` + "\n",
		"x.json":  "[\n" + `{"id": "a,b", "rank": 1, "score": 0.1, "a \"name\"": 0.25}` + ",\n" + `{"id": "ü", "rank": 2, "score": 3, "a \"name\"": 1}` + "\n]\n",
	} {
		for n := range 3 {
			path := filepath.Join(t.TempDir(), name)
			if err := outfile.Write(path, header, slices.Values(rows[:n])); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n == 2 && string(got) != want {
				t.Errorf("%s is\n%swant\n%s", name, got, want)
			}
			var all []map[string]any
			if name == "x.json" && (json.Unmarshal(got, &all) != nil || len(all) != n) {
				t.Errorf("%s of %d rows is %s", name, n, got)
			}
		}
	}
	for _, name := range []string{"x.parquet", "x.arrow", "x.feather"} {
		path := filepath.Join(t.TempDir(), name)
		if err := outfile.Write(path, header, slices.Values(rows)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A name that says no format, or one that the result cannot have, is refused before anything is written.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		path        string
		array, rows bool
		ok          bool
	}{
		{"x.npy", true, false, true},
		{"x.npy", false, true, false},
		{"x.csv", true, false, false},
		{"x.CSV", false, true, true},
		{"x.json", true, true, true},
		{"x.txt", true, true, false},
		{"x", true, true, false},
		{"x.npz", true, true, false},
		{"x.json", true, false, false},
	} {
		err := outfile.Check(c.path, c.array, c.rows)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, outfile.ErrFormat) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.txt")
	if err := outfile.Write(path, []string{"a"}, slices.Values([][]any{{"b"}})); !errors.Is(err, outfile.ErrFormat) {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a refused file is there")
	}
}
