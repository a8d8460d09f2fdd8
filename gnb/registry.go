package gnb

import (
	"fmt"
	"runtime"
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
	at, inMain := declaredAt()
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

// declaredAt is the place outside this package that called into it, and whether
// that place runs under main.main rather than in an initialiser.
func declaredAt() (at string, inMain bool) {
	at = "an unknown place"
	found := false
	for f := range callers() {
		if !found && !ownFrame(f) {
			at, found = placeOf(f), true
		}
		if f.Function == "main.main" {
			inMain = true
		}
	}
	return at, inMain
}

// callSite is the place, see placeOf, of the innermost frame outside this package: how a
// collective names where each rank stands.
func callSite() string {
	// Mostly the first few frames will do, and what they are is known.
	var pcs [8]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:n] {
			if site := siteOf(pc); site != "" {
				return site
			}
		}
		if n < len(pcs) {
			return ""
		}
	}
}

// sites are the answers of siteOf.
var sites sync.Map

// siteOf is what callSite says of a frame, "" for one of this package.
func siteOf(pc uintptr) string {
	if s, ok := sites.Load(pc); ok {
		return s.(string)
	}
	site := ""
	for frames, more := runtime.CallersFrames([]uintptr{pc}), true; more && site == ""; {
		var f runtime.Frame
		if f, more = frames.Next(); !ownFrame(f) {
			site = placeOf(f)
		}
	}
	sites.Store(pc, site)
	return site
}

func callers() func(yield func(runtime.Frame) bool) {
	return func(yield func(runtime.Frame) bool) {
		var pcs [64]uintptr
		frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
		for {
			f, more := frames.Next()
			if !yield(f) || !more {
				return
			}
		}
	}
}

const modulePrefix = "github.com/graphnb/graphnb/"

// ownFrame tells the library's frames from those of programs: the user's, the
// tests', and the ones that the library itself is written with.
func ownFrame(f runtime.Frame) bool {
	if !strings.HasPrefix(f.Function, modulePrefix) || strings.HasSuffix(f.File, "_test.go") {
		return !strings.Contains(f.Function, ".") || strings.HasPrefix(f.Function, "runtime.")
	}
	return !strings.HasPrefix(f.Function, modulePrefix+"gnb.init.func") && !strings.HasPrefix(f.Function, modulePrefix+"tutorials")
}

var errWorker = entry.ErrWorker
