package entry

import (
	"runtime"
	"strings"
	"sync"
)

// DeclaredAt returns the source line outside this module that called into it, and whether it runs
// under main.main instead of in an initialiser.
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

// CallSite returns the source line (see placeOf) of the innermost frame outside this module.
// Collectives use it to name the position of each rank.
func CallSite() string {
	// The first few frames usually suffice, and their sites are cached.
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

// sites caches the results of siteOf.
var sites sync.Map

// siteOf returns the source line of a frame for CallSite, "" for a frame of this module.
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

// ownFrame reports whether a frame belongs to the library, not to a program: a user's, a test's,
// or one that the library declares.
func ownFrame(f runtime.Frame) bool {
	if !strings.HasPrefix(f.Function, prefix) || strings.HasSuffix(f.File, "_test.go") {
		return !strings.Contains(f.Function, ".") || strings.HasPrefix(f.Function, "runtime.")
	}
	return !strings.HasPrefix(f.Function, prefix+"gnb.init.func") && !strings.HasPrefix(f.Function, prefix+"tutorials")
}
