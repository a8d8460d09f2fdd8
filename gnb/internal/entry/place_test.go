package entry

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Lines of a notebook's cells are named by their text.
func TestPlaceOf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gonb_1f2e3d4c")
	cells := filepath.Join(dir, "main.go")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cells, []byte("package main\n\n\tw.Log(\"epoch\") // "+strings.Repeat("é", 80)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		line int
		want string
	}{
		{"/home/me/prog/main.go", 3, "main.go:3"},
		{cells, 3, "line 3 `w.Log(\"epoch\") // " + strings.Repeat("é", 51) + "…`"},
		{cells, 2, "line 2 of the cells"},
		{cells, 9, "line 9 of the cells"},
		{filepath.Join(dir, "main_test.go"), 1, "line 1 of the cells"}, // the file no longer exists
	} {
		if got := placeOf(runtime.Frame{File: c.file, Line: c.line}); got != c.want {
			t.Errorf("%s:%d is %q, want %q", c.file, c.line, got, c.want)
		}
	}
}
