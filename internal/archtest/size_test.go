package archtest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of rooms into ARCHITECTURE.md")

// tableOf lists the rows of ARCHITECTURE.md's table; "/..." includes the packages below.
var tableOf = []string{
	"gnb", "gnb/runs", "gnb/sweep", "gnb/scaling", "gnb/inspect", "gnb/report", "gnb/figure", "gnb/plan", "gnb/parts", "gnb/links/...", "gnb/kg", "gnb/budget", "gnb/monitor", "gnb/published", "gnb/serve/...", "gnb/flight", "gnb/tables", "gnb/remote", "gnb/cmd/gnb/...", "gnb/internal/...",
	"multigpu/...", "cuda/...", "graphops", "graphops/dataset/...", "graphops/datasets", "graphops/sample", "graphops/partition", "graphops/hotness", "graphops/divided/...", "graphops/gemm/...", "graphops/ops", "graphops/tensor/...", "graphops/nn", "graphops/optim", "graphops/metrics", "graphops/pairs", "graphops/kge", "graphops/walk", "graphops/safetensors",
	"internal/...",
}

func TestRoomsAreSmall(t *testing.T) {
	sizes, err := Sizes(root)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range sizes {
		if s.Lines > maxLines {
			t.Errorf("%s has %d lines, more than the limit of %d; divide it", s.Dir, s.Lines, maxLines)
		}
		if s.Dir == "gnb" {
			found = true
			if s.Files > maxGnbFiles {
				t.Errorf("gnb has %d files, over %d; move a separate topic into its own package", s.Files, maxGnbFiles)
			}
		}
	}
	if !found {
		t.Error("package gnb was not measured")
	}
}

// The table in ARCHITECTURE.md has every public package with its current size; run the test with
// -update to write the table.
func TestTableOfRooms(t *testing.T) {
	sizes, err := Sizes(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sizes {
		listed := false
		for _, dir := range tableOf {
			name, below := strings.CutSuffix(dir, "/...")
			listed = listed || s.Dir == name || below && strings.HasPrefix(s.Dir, name+"/")
		}
		top, _, _ := strings.Cut(s.Dir, "/")
		if !listed && (top == "gnb" || top == "graphops" || top == "multigpu" || top == "cuda") {
			t.Errorf("%s is missing in the table", s.Dir)
		}
	}
	const begin, end = "<!-- rooms: written by go test ./internal/archtest -update -->\n", "<!-- end of rooms -->"
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
	want := before + begin + Table(sizes, tableOf) + end + after
	if want == string(text) {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("ARCHITECTURE.md's table of rooms is out of date; go test ./internal/archtest -run TestTableOfRooms -update writes it")
}
