package columns

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/readers.md")

// The page's tables are those of the rules; -update writes them.
func TestPage(t *testing.T) {
	const path = "../../../docs/readers.md"
	const from, to = "<!-- rules -->\n\n", "\n<!-- end of rules -->"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), from)
	have, tail, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the rules", path)
	}
	if have == Page() {
		return
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+from+Page()+to+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is out of date; go test ./graphops/dataset/columns -run TestPage -update writes it", path)
}
