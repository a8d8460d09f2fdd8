package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The generated files are those that this generator writes.
func TestGenerated(t *testing.T) {
	want := files()
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if string(got) != text {
			t.Errorf("%s is not what the generator writes: run go generate ./internal/simd", name)
		}
	}
	have, err := filepath.Glob("../zz_*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range have {
		if _, ok := want[filepath.Base(name)]; !ok {
			t.Errorf("%s is not generated any more: remove it", name)
		}
	}
}
