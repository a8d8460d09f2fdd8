package entry

import (
	"fmt"
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
	mu   sync.Mutex
	defs map[string][]registered[T]
}

type registered[T any] struct {
	def    T
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.defs == nil {
		r.defs = map[string][]registered[T]{}
	}
	r.defs[name] = append(r.defs[name], registered[T]{def, at, inMain, whole, roots})
}

// Has reports whether a name is declared, well or not.
func (r *Registry[T]) Has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.defs[name]) > 0
}

// Get returns the declaration of a name.
func (r *Registry[T]) Get(name string) (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var none T
	switch d := r.defs[name]; {
	case len(d) == 0:
		names := make([]string, 0, len(r.defs))
		for n := range r.defs {
			names = append(names, n)
		}
		sort.Strings(names)
		return none, fmt.Errorf("gnb: there is no %s %q; declared are: %s", r.Kind, name, strings.Join(names, ", "))
	case len(d) > 1:
		return none, fmt.Errorf("gnb: two %ss are named %q, declared at %s and at %s; give one another name, or remove the old declaration from the notebook with %%rm and its variable's name", r.Kind, name, d[0].at, d[1].at)
	case d[0].inMain:
		return none, fmt.Errorf("gnb: %s %q is declared inside main, at %s, where workers cannot find it; declare it at package level: in a notebook, as a var above the line with %%%%", r.Kind, name, d[0].at)
	case !d[0].whole:
		return none, fmt.Errorf("gnb: %s %q is declared without a function, at %s", r.Kind, name, d[0].at)
	default:
		return d[0].def, nil
	}
}

// Roots returns the roots of the code declared under a name.
func (r *Registry[T]) Roots(name string) (roots []codeid.Root) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.defs[name] {
		roots = append(roots, d.roots...)
	}
	return roots
}
