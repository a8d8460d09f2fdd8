package pairs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/pairs"
)

// Files of pairs and nodes hold the ids of a dataset's source or, if a word is none of these, numbers.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	if n := pairs.NewNames(nil); n.Of(4) != "4" {
		t.Errorf("node 4 without ids is %q", n.Of(4))
	}
	// Nodes 4 to 6 have the same id, as nodes of several types may have.
	names := pairs.NewNames([]string{"ann", "Bob Lee", "3", "0", "x", "x", "x"})
	if names.Of(1) != "Bob Lee" || names.Of(5) != "x" {
		t.Fatalf("%q, %q", names.Of(1), names.Of(5))
	}
	file := func(text string) string {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for text, want := range map[string][]int32{
		"ann,3\n": {0, 2}, "source,target\nBob Lee, ann\n": {1, 0}, "\"Bob Lee\",0\n": {1, 3}, "3 0\n0;ann\n": {2, 3, 3, 0}, // ids that are numbers
		"3,0\n1,2\n": {3, 0, 1, 2}, "source\ttarget\n5\t4\n": {5, 4}, "": nil,
	} {
		e, err := names.Edges(file(text))
		var got []int32
		for i := range e.Len() {
			got = append(got, e.Src[i], e.Dst[i])
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q has the pairs %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string][]int32{"Bob Lee\nann\n": {1, 0}, "node\n3\n": {2}, "5\n1\n": {5, 1}} {
		if got, err := names.Nodes(file(text)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q has the nodes %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"ann,3\nann,eve\n": `"eve" is not the id of one node`, "ann,x\n": `"x" is not the id of one node`, "ann,3\nann\n": "line 1"} {
		if _, err := names.Edges(file(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := names.Edges(filepath.Join(dir, "no")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
}
