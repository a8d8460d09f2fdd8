// Package kernels is the device code of GraphNB: CUDA sources, one topic a file,
// and beside each the PTX that it compiles to, which is what a program carries and
// a driver compiles for its GPU. It imports nothing of CUDA and needs no build tag.
//
// "make kernels" writes the PTX anew, with one pinned compiler, so a test can
// compare bytes. The first line of each PTX holds the sha256 of its sources.
// limits.json bounds what each kernel uses of registers, spills and shared memory.
package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed *.ptx
var files embed.FS

// Module is what one source file compiles to.
type Module struct {
	Name    string // the file's name without .cu
	PTX     string
	Sources string // sha256 of the headers that it includes, in order of name, and the source
	Kernels []Kernel
}

// Kernel is one entry of a module.
type Kernel struct {
	Name   string
	Module string
	Params []int // bytes of each parameter, in order
}

// Modules are all modules in order of name. The slice is shared: read only.
func Modules() []Module { return modules() }

// Lookup is the kernel of that name, which is unique among all modules.
func Lookup(name string) (Kernel, bool) {
	k, ok := byName()[name]
	return k, ok
}

// Names are the names of all kernels, sorted.
func Names() []string {
	var names []string
	for name := range byName() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var modules = sync.OnceValue(func() []Module {
	list, err := fs.Glob(files, "*.ptx")
	if err != nil {
		panic(err) // the pattern is right
	}
	all := make([]Module, len(list))
	for i, file := range list {
		text, err := files.ReadFile(file)
		if err != nil {
			panic(err) // it is embedded
		}
		all[i] = parse(strings.TrimSuffix(file, ".ptx"), string(text))
	}
	return all
})

var byName = sync.OnceValue(func() map[string]Kernel {
	all := map[string]Kernel{}
	for _, m := range modules() {
		for _, k := range m.Kernels {
			if other, ok := all[k.Name]; ok {
				panic(fmt.Sprintf("kernels: %s.cu and %s.cu both have a kernel %s", other.Module, m.Name, k.Name))
			}
			all[k.Name] = k
		}
	}
	return all
})

var (
	firstLine = regexp.MustCompile(`^// sha256 ([0-9a-f]{64})\n`)
	entry     = regexp.MustCompile(`\.entry\s+(\w+)\s*\(([^)]*)\)`)
	param     = regexp.MustCompile(`\.param\s+\.[a-z](\d+)\s+\w+`)
)

// parse reads what a program needs to know of a module. Parameters are scalars.
func parse(name, ptx string) Module {
	m := Module{Name: name, PTX: ptx}
	if s := firstLine.FindStringSubmatch(ptx); s != nil {
		m.Sources = s[1]
	}
	for _, e := range entry.FindAllStringSubmatch(ptx, -1) {
		k := Kernel{Name: e[1], Module: name}
		for _, p := range param.FindAllStringSubmatch(e[2], -1) {
			bits, err := strconv.Atoi(p[1])
			if err != nil {
				panic(err) // they are digits
			}
			k.Params = append(k.Params, bits/8)
		}
		m.Kernels = append(m.Kernels, k)
	}
	return m
}
