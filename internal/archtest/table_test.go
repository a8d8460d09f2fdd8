package archtest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of areas into ARCHITECTURE.md")

// The table in ARCHITECTURE.md has every public package with the first sentence of its documentation;
// run the test with -update to write the table.
func TestTableOfAreas(t *testing.T) {
	packages, err := Synopses(root)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- packages: written by go test ./internal/archtest -update -->\n", "<!-- end of packages -->"
	file := filepath.Join(root, "ARCHITECTURE.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("ARCHITECTURE.md lacks the lines %q and %q", begin, end)
	}
	want := before + begin + Table(packages) + end + after
	if want == string(text) {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("ARCHITECTURE.md's table of areas is out of date; go test ./internal/archtest -run TestTableOfAreas -update writes it")
}
