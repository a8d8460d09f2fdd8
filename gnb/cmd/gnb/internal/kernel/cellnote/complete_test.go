package cellnote

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Exported names of the library's packages complete without gopls; other text has no answer.
func TestCompleteWithoutGopls(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod":             "module github.com/graphnb/graphnb\n\ngo 1.26\n",
		"gnb/a.go":           "package gnb\nfunc Load() {}\nfunc load() {}\ntype Loader struct{ Workers, hidden int; Work func() }\nfunc (Loader) Lost() {}\nvar Lot, Other = 1, 2\nconst Low = 1\n",
		"gnb/a_test.go":      "package gnb\nfunc LoadTest() {}\n",
		"gnb/broken.go":      "package gnb\nfunc (",
		"gnb/links/links.go": "package links\nfunc Train() {}\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.work"), []byte("go 1.26\n\nuse (\n\t.\n\t"+root+"\n)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"ds := gnb.Must(gnb.Lo":  {"Load", "Loader", "Lot", "Low"},
		"gnb.":                   {"Load", "Loader", "Lot", "Low", "Other"},
		"links.T":                {"Train"},
		"gnb.Q":                  nil,
		"fmt.Pr":                 nil,
		"x.gnb.Lo":               nil,
		"":                       nil,
		"TrainOptions{Work":      nil,
		"o := gnb.Loader{Work":   {"Work", "Workers"},
		"gnb.Loader{Work: f, Wo": {"Work", "Workers"},
		"gnb.Loader{Work: gnb.L": {"Load", "Loader", "Lot", "Low"},
		"gnb.Lot{":               nil,
		"π := gnb.Oth":           {"Other"},
		"gnb.Load().Something(a": nil,
	} {
		got, n := Complete(text, dir, packages)
		if !slices.Equal(got, want) || len(got) > 0 && text[len(text)-n:] != text[len(text)-n:][:n] {
			t.Errorf("%q is completed by %q", text, got)
		}
	}
	if got, _ := Complete("gnb.Lo", t.TempDir(), packages); got != nil {
		t.Errorf("without go.work: %q", got)
	}
}
