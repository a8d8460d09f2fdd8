// Asmgen writes the vector kernels of package simd: go generate ./internal/simd.
//
// Each kernel is described once and generated twice, in AVX-512 and in AVX2. Methods of type asm
// hide the differences: masks, tails, and instructions that one of the two lacks.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	for name, text := range files() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "asmgen:", err)
			os.Exit(1)
		}
	}
}

// files returns the generated files' contents by name.
func files() map[string]string {
	out := map[string]string{}
	var all []*kernel
	for _, group := range []struct {
		name string
		make func(a *asm)
	}{
		{"stream", streams},
		{"reduce", reductions},
		{"keep", keeps},
		{"rows", rowKernels},
		{"segments", segmentKernels},
		{"norm", normKernels},
		{"cosines", cosineKernels},
	} {
		for _, i := range []isa{avx512, avx2} {
			a := newAsm(i)
			group.make(a)
			out["zz_"+group.name+"_"+i.file+"_amd64.s"] = a.text()
			if i.name == avx512.name {
				all = append(all, a.kernels...)
			}
		}
	}
	out["zz_kernels_amd64.go"] = stubs(all)
	out["zz_kernels_other.go"] = noStubs(all)
	return out
}
