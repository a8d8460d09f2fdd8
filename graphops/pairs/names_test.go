package pairs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/pairs"
)

// Files of pairs and nodes hold the ids of a dataset's source or, where no word can be one of these, numbers.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	if n := pairs.NewNames(nil); n.Of(4) != "4" {
		t.Errorf("node 4 without ids is %q", n.Of(4))
	}
	file := func(text string) string {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// The last nodes have the same id, as nodes of several types may have.
	words := pairs.NewNames([]string{"ann", "Bob Lee", "x", "x", "x"})
	hashes := pairs.NewNames([]string{"#a", "#b", "c", "source"})
	numbers := pairs.NewNames([]string{"1", "2", "3", "ann"})
	if words.Of(1) != "Bob Lee" || words.Of(3) != "x" {
		t.Fatalf("%q, %q", words.Of(1), words.Of(3))
	}
	for _, c := range []struct {
		names pairs.Names
		text  string
		want  []int32
		err   string
	}{
		{words, "ann,Bob Lee\n", []int32{0, 1}, ""},
		{words, "source,target\nBob Lee, ann\n", []int32{1, 0}, ""},
		{words, "\"Bob Lee\",ann\nann ann\n", []int32{1, 0, 0, 0}, ""},
		{words, "3,0\n1,2\n", []int32{3, 0, 1, 2}, ""},
		{words, "source\ttarget\n4\t2\n", []int32{4, 2}, ""},
		{words, "", nil, ""},
		{words, "ann,ann\nann,eve\n", nil, `line 2: "eve" is not the id of one node`},
		{words, "0,1\nann,ann\n", nil, `line 1: "0" is not the id of one node`},
		{words, "ann,x\n", nil, `"x" is not the id of one node`},
		{words, "ann,ann\nann\n", nil, "line 2 is"},
		{words, "bod lee,eve\nann,ann\n", nil, `line 1: "bod lee" is not the id`},
		{words, "eve,adam\nann,ann\n", nil, `line 1: "eve" is not the id of one node of the dataset; a header has names such as`},
		{words, "# the pairs\n#\nann,ann\n", []int32{0, 0}, ""},
		{hashes, "#a,#b\nc,#a\n", []int32{0, 1, 2, 0}, ""},
		{hashes, "\"#a\",\"#b\"\n", []int32{0, 1}, ""},
		{hashes, "# a comment\n#a,c\n", []int32{0, 2}, ""},
		{hashes, "#a,#b\n#z,#b\n", nil, `line 2: "#z" is not the id`},
		{hashes, "#y,#z\n#a,#b\n", nil, `line 1: "#y" is not the id`},
		{hashes, "source,c\n", []int32{3, 2}, ""},
		{numbers, "1,2\n3 ann\n", []int32{0, 1, 2, 3}, ""},
		{numbers, "source,target\n3,1\n", []int32{2, 0}, ""},
		{numbers, "1,2\n2,0\n", nil, `line 2: "0" is not the id of one node`}, // not node 0, whose id is 1
		{numbers, "0,4\n", nil, `line 1: "0" is not the id of one node`},
	} {
		e, err := c.names.Edges(file(c.text))
		var got []int32
		for i := range e.Len() {
			got = append(got, e.Src[i], e.Dst[i])
		}
		if c.err == "" && (err != nil || !slices.Equal(got, c.want)) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q has the pairs %v, %v; want %v %q", c.text, got, err, c.want, c.err)
		}
	}
	for text, want := range map[string][]int32{"Bob Lee\nann\n": {1, 0}, "node\nann\n": {0}, "4\n1\n": {4, 1}} {
		if got, err := words.Nodes(file(text)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q has the nodes %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"eve\n":       `line 1: "eve" is not the id of one node of the dataset`,
		"node\neve\n": `line 2: "eve" is not the id of one node of the dataset`,
		"4\n-1\n":     "line 2 has the node -1; nodes are whole numbers",
	} {
		if got, err := words.Nodes(file(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q has the nodes %v, %v; want %s", text, got, err, want)
		}
	}
	if got, err := numbers.Nodes(file("2\n7\n")); err == nil || !strings.Contains(err.Error(), `"7" is not the id`) {
		t.Errorf("an unknown number is %v, %v", got, err)
	}
	if _, err := words.Edges(filepath.Join(dir, "no")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
}
