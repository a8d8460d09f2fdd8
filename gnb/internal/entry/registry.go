package entry

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/graphnb/graphnb/internal/codeid"
	"github.com/graphnb/graphnb/multigpu"
)

// Registry maps names to the declarations of a program. Declaring never fails, because it happens
// in initialisers: a name that was declared twice, or in the wrong place, is an error when it is
// used.
type Registry[T any] struct {
	Kind string // such as "model"
	registry
}

// registry is the part of a [Registry] that is the same code for all types, of which a program has several.
type registry struct {
	mu   sync.Mutex
	defs map[string][]registered
}

type registered struct {
	def    any
	at     string
	inMain bool
	whole  bool          // declared with a function
	roots  []codeid.Root // the roots of its code
}

// Add declares def under a name. function is the program's own that it calls, whole tells whether
// there is one. The exported function that declares must call Add directly.
func (r *Registry[T]) Add(name string, whole bool, function any, def T) {
	at, inMain := DeclaredAt()
	var roots []codeid.Root
	if whole && !multigpu.InWorker() { // workers do not compare code
		roots = append(codeid.Calls(1), codeid.Func(function))
	}
	r.add(name, registered{def, at, inMain, whole, roots})
}

// Get returns the declaration of a name.
func (r *Registry[T]) Get(name string) (def T, err error) {
	x, err := r.get(r.Kind, name)
	if err == nil {
		def = x.(T)
	}
	return def, err
}

func (r *registry) add(name string, d registered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.defs == nil {
		r.defs = map[string][]registered{}
		registries.mu.Lock()
		registries.all = append(registries.all, r)
		registries.mu.Unlock()
	}
	r.defs[name] = append(r.defs[name], d)
}

// Has reports whether a name is declared, well or not.
func (r *registry) Has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.defs[name]) > 0
}

func (r *registry) get(kind, name string) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch d := r.defs[name]; {
	case len(d) == 0:
		names := make([]string, 0, len(r.defs))
		for n := range r.defs {
			names = append(names, n)
		}
		sort.Strings(names)
		return nil, fmt.Errorf("gnb: there is no %s %q; declared are: %s", kind, name, strings.Join(names, ", "))
	case len(d) > 1:
		return nil, fmt.Errorf("gnb: two %ss are named %q, declared at %s and at %s; give one another name, or remove the old declaration from the notebook with %%rm and its variable's name", kind, name, d[0].at, d[1].at)
	case d[0].inMain:
		return nil, fmt.Errorf("gnb: %s %q is declared inside main, at %s, where workers cannot find it; declare it at package level: in a notebook, as a var above the line with %%%%", kind, name, d[0].at)
	case !d[0].whole:
		return nil, fmt.Errorf("gnb: %s %q is declared without a function, at %s", kind, name, d[0].at)
	default:
		return d[0].def, nil
	}
}

// registries are all registries with a declaration.
var registries struct {
	mu  sync.Mutex
	all []*registry
}

// RootsOf returns the roots of the code that the program has declared under a name, as whatever kind.
func RootsOf(name string) (roots []codeid.Root) {
	registries.mu.Lock()
	all := slices.Clone(registries.all)
	registries.mu.Unlock()
	for _, r := range all {
		roots = append(roots, r.Roots(name)...)
	}
	return roots
}

// Roots returns the roots of the code declared under a name.
func (r *registry) Roots(name string) (roots []codeid.Root) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.defs[name] {
		roots = append(roots, d.roots...)
	}
	return roots
}
