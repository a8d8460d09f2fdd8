package tables_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/tables"
	"github.com/graphnb/graphnb/internal/testneed"
)

// rows is a table of the tests, in batches.
type rows struct {
	names   []string
	batches [][]any
}

func (r rows) Columns() ([]string, iter.Seq[[]any]) { return r.names, slices.Values(r.batches) }

// people are three rows in two batches, with a missing text, and text that no encoding of a line would survive.
var people = rows{[]string{"node", "id", "p:yes", "score"}, [][]any{
	{[]int64{0, 1}, []string{"a\n\"b", ""}, []float32{0.25, 1}, []float64{1e-300, -2}},
	{[]int64{1 << 40}, []string{"ü"}, []float32{0.1}, []float64{3}},
}}

// What Write writes, pyarrow and pandas' kind of reader read back: every value, type and missing value.
func TestWriteIsReadByPyArrow(t *testing.T) {
	python := testneed.PythonWith(t, "pyarrow")
	dir := t.TempDir()
	var paths []string
	for _, end := range []string{".parquet", ".arrow", ".feather"} {
		paths = append(paths, filepath.Join(dir, "t"+end))
		if err := tables.Write(paths[len(paths)-1], people); err != nil {
			t.Fatal(err)
		}
	}
	script := `
import json, sys
import pyarrow.feather, pyarrow.parquet
for path in sys.argv[1:]:
    t = pyarrow.parquet.read_table(path) if path.endswith(".parquet") else pyarrow.feather.read_table(path)
    print(json.dumps([[f.name, str(f.type), t.column(f.name).to_pylist()] for f in t.schema]))
`
	out, err := exec.Command(python, append([]string{"-c", script}, paths...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(paths) {
		t.Fatalf("pyarrow read %d files: %s", len(lines), out)
	}
	const want = `[["node","int64",[0,1,1099511627776]],["id","string",["a\n\"b",null,"ü"]],["p:yes","float",[0.25,1,0.10000000149011612]],["score","double",[1e-300,-2,3]]]`
	for i, line := range lines {
		var read any
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(read); err != nil || string(got) != want {
			t.Errorf("%s: pyarrow reads %s, want %s", filepath.Ext(paths[i]), got, want)
		}
	}
}

// A table that cannot be written gets a sentence, and no file appears; an earlier file stays.
func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	for want, c := range map[string]struct {
		name string
		of   tables.Columns
	}{
		"needs columns":                            {"x.parquet", nil},
		"ends in .parquet, .arrow or .feather":     {"x.csv", people},
		"two columns named \"a\"":                  {"x.parquet", rows{[]string{"a", "a"}, nil}},
		"there are no columns":                     {"x.parquet", rows{}},
		"there are no rows":                        {"x.arrow", rows{[]string{"a"}, nil}},
		"column a is []int":                        {"x.parquet", rows{[]string{"a"}, [][]any{{[]int{1}}}}},
		"1 columns, and there are 2 names":         {"x.parquet", rows{[]string{"a", "b"}, [][]any{{[]int64{1}}}}},
		"column 0 is []string in a later batch":    {"x.parquet", rows{[]string{"a"}, [][]any{{[]int64{1}}, {[]string{"x"}}}}},
		"a batch has 0 columns, and the first one": {"x.arrow", rows{[]string{"a"}, [][]any{{[]int64{1}}, {}}}},
		"has 2 rows in a batch, and the columns":   {"x.parquet", rows{[]string{"a", "b"}, [][]any{{[]int64{1}, []string{"x", "y"}}}}},
		"no such file or directory":                {"none/x.parquet", people},
	} {
		err := tables.Write(filepath.Join(dir, c.name), c.of)
		if err == nil || !strings.HasPrefix(err.Error(), "tables: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("failed writes left %v, %v", left, err)
	}
	path := filepath.Join(dir, "kept.parquet")
	if err := tables.Write(path, people); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if tables.Write(path, rows{[]string{"a"}, [][]any{{[]int64{1}}, {}}}) == nil {
		t.Error("a batch without columns was written")
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("a failed write changed the earlier file, %v", err)
	}
}

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "write")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	err = tables.Write(filepath.Join(dir, "people.parquet"), people) // a *report.Report is written the same way
	fmt.Println(err)
	// Output: <nil>
}
