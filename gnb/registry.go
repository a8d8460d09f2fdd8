package gnb

import (
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/internal/codeid"
	"github.com/graphnb/graphnb/multigpu"
)

// A registry maps names to what a cell declared under them. Registering never
// fails, since it happens in initialisers: a name that was declared twice, or in
// the wrong place, is an error when it is used.
type registry[T any] struct {
	kind string // "model", "program"
	mu   sync.Mutex
	defs map[string][]registered[T]
}

type registered[T any] struct {
	def    T
	at     string
	inMain bool
	whole  bool          // with a function
	roots  []codeid.Root // of its code
}

var (
	models   = registry[modelDef]{kind: "model"}
	programs = registry[programDef]{kind: "program"}
)

// add registers what a function of the program's makes or does.
func (r *registry[T]) add(name string, whole bool, function any, def T) {
	at, inMain := entry.DeclaredAt()
	var roots []codeid.Root
	if whole && !multigpu.InWorker() { // which compares nothing
		roots = append(codeid.Calls(1), codeid.Func(function))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.defs == nil {
		r.defs = map[string][]registered[T]{}
	}
	r.defs[name] = append(r.defs[name], registered[T]{def, at, inMain, whole, roots})
}

func (r *registry[T]) get(name string) (T, error) {
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
		return none, fmt.Errorf("gnb: there is no %s %q; declared are: %s", r.kind, name, strings.Join(names, ", "))
	case len(d) > 1:
		return none, fmt.Errorf("gnb: two %ss are named %q, declared at %s and at %s; give one another name, or remove the old declaration from the notebook with %%rm and its variable's name", r.kind, name, d[0].at, d[1].at)
	case d[0].inMain:
		return none, fmt.Errorf("gnb: %s %q is declared inside main, at %s, where workers cannot find it; declare it at package level: in a notebook, as a var above the line with %%%%", r.kind, name, d[0].at)
	case !d[0].whole:
		return none, fmt.Errorf("gnb: %s %q is declared without a function, at %s", r.kind, name, d[0].at)
	default:
		return d[0].def, nil
	}
}

// roots are from where the code of what has a name is reached.
func (r *registry[T]) roots(name string) (roots []codeid.Root) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.defs[name] {
		roots = append(roots, d.roots...)
	}
	return roots
}

var errWorker = entry.ErrWorker

// callSite is the source line of the program that called this package, for errors.
func callSite() string { return entry.CallSite() }
