package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// A change that a test looks at is found, and one that no test looks at is not.
func TestTry(t *testing.T) {
	testneed.NotShort(t, "it runs go test")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module m.test/m\n\ngo 1.26\n",
		"m.go":      "package m\n\nfunc Less(a, b int) bool { return a < b }\n\nfunc Sum(a, b int) int { return a + b }\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestLess(t *testing.T) {\n\tif Less(1, 1) {\n\t\tt.Error(1)\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	all, err := places("m.test/m", filepath.Join(dir, "m.go"))
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, want := range []bool{true, false} {
		if built, found, err := try(all[i]); err != nil || !built || found != want {
			t.Errorf("%v: built %v, found %v, %v; want found %v", all[i], built, found, err, want)
		}
	}
}
