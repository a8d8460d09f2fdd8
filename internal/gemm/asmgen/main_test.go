package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The kernels in the tree equal this generator's output.
func TestGenerated(t *testing.T) {
	for name, want := range files() {
		if got, err := os.ReadFile(filepath.Join("..", name)); err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate ./internal/gemm", name)
		}
	}
}
