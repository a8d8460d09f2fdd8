package safetensors_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/graphops/safetensors"
)

// Weights are written to a file and read back with the names and shapes that Python's
// safetensors.numpy.load_file finds.
func Example() {
	dir, err := os.MkdirTemp("", "safetensors")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	weight := safetensors.Tensor{Name: "lin.weight", Shape: []int{2, 3}, F32: []float32{1, 2, 3, 4, 5, 6}}
	if err := safetensors.WriteFile(path, []safetensors.Tensor{weight}, map[string]string{"made by": "hand"}); err != nil {
		log.Fatal(err)
	}

	tensors, meta, err := safetensors.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tensors {
		fmt.Println(t.Name, t.Shape, t.F32)
	}
	fmt.Println("checksum compared:", safetensors.Sealed(meta))
	// Output:
	// lin.weight [2 3] [1 2 3 4 5 6]
	// checksum compared: true
}
