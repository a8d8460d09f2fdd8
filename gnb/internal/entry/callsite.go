package entry

import (
	"runtime"
	"strings"
	"sync"
)

// DeclaredAt is the place outside this module that called into it, and whether
// that place runs under main.main rather than in an initialiser.
func DeclaredAt() (at string, inMain bool) {
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

// CallSite is the place, see placeOf, of the innermost frame outside this module: how a
// collective names where each rank stands.
func CallSite() string {
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

// siteOf is what CallSite says of a frame, "" for one of this package.
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

// Module is the path of this module; the functions of its packages have names that begin with prefix.
const (
	Module = "github.com/graphnb/graphnb"
	prefix = Module + "/"
)

// ownFrame tells the library's frames from those of programs: the user's, the
// tests', and the ones that the library itself is written with.
func ownFrame(f runtime.Frame) bool {
	if !strings.HasPrefix(f.Function, prefix) || strings.HasSuffix(f.File, "_test.go") {
		return !strings.Contains(f.Function, ".") || strings.HasPrefix(f.Function, "runtime.")
	}
	return !strings.HasPrefix(f.Function, prefix+"gnb.init.func") && !strings.HasPrefix(f.Function, prefix+"tutorials")
}
