// Package kernels holds GraphNB's device code: CUDA sources, one topic per file, each with the PTX that it
// compiles to. A program contains the PTX, and the driver compiles it for its GPU. The package imports
// nothing of CUDA and needs no build tag.
//
// "make kernels" generates the PTX with one pinned compiler version, so a test can compare bytes. The first
// line of each PTX file holds the sha256 of its sources. limits.json bounds the registers, spills and
// shared memory that each kernel uses.
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

// Module is the result of compiling one source file.
type Module struct {
	Name    string // the file's name without .cu
	PTX     string
	Sources string // sha256 of the headers that it includes, ordered by name, and of the source
	Kernels []Kernel
}

// Kernel is one entry of a module.
type Kernel struct {
	Name   string
	Module string
	Params []int // bytes of each parameter, in order
}

// Modules returns all modules, ordered by name. The caller must not change the slice.
func Modules() []Module { return modules() }

// Lookup returns the kernel of a name, which is unique among all modules.
func Lookup(name string) (Kernel, bool) {
	k, ok := byName()[name]
	return k, ok
}

// Names returns the names of all kernels, sorted.
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
		panic(err) // the pattern is a valid constant
	}
	all := make([]Module, len(list))
	for i, file := range list {
		text, err := files.ReadFile(file)
		if err != nil {
			panic(err) // the file is embedded
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
	entry     = regexp.MustCompile(`^\s+(\w+)\s*\(([^)]*)$`)
	param     = regexp.MustCompile(`\.param\s+\.[a-z](\d+)\s+\w+`)
)

// parse reads a module's kernels and their parameters, which are scalars.
func parse(name, ptx string) Module {
	m := Module{Name: name, PTX: ptx}
	if s := firstLine.FindStringSubmatch(ptx); s != nil {
		m.Sources = s[1]
	}
	for _, rest := range strings.Split(ptx, ".entry")[1:] { // the pattern would search all of the code
		head, _, _ := strings.Cut(rest, ")")
		e := entry.FindStringSubmatch(head)
		if e == nil {
			continue
		}
		k := Kernel{Name: e[1], Module: name}
		for _, p := range param.FindAllStringSubmatch(e[2], -1) {
			bits, err := strconv.Atoi(p[1])
			if err != nil {
				panic(err) // the pattern matches digits only
			}
			k.Params = append(k.Params, bits/8)
		}
		m.Kernels = append(m.Kernels, k)
	}
	return m
}
