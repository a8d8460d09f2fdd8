// Package codeid identifies the code that a program executes, so that it can be compared with the
// code of an earlier process: for example of a notebook cell before an edit, or of a program before
// a rebuild.
//
// # Basics
//
//	roots := []codeid.Root{codeid.Func(run)}
//	code := codeid.Of(roots, codeid.Options{Library: "github.com/graphnb/graphnb"})
//	words := before.Changes(code) // "function `(*gnn).Layer` changed"
//
// If the sources can be read, the identity covers all package-level declarations that the roots
// reach by name. A function, type, variable or constant reaches the names in its tokens, and code
// registered under its string literals; a type reaches its methods; a variable reaches its
// initialiser. Names are resolved by scope, so a local variable reaches nothing. Comments, line
// breaks, the order of declarations, file names and directories do not count. Function main never
// counts; a function init counts if it registered a root, or assigns to a reached variable.
//
// An imported package counts as its module and version, if it has a version. Packages of the main
// module, of a workspace and of modules replaced by a directory count by their sources, declaration
// by declaration. The standard library and Options.Library do not count: callers record those
// versions themselves.
//
// If a source cannot be read, or is newer than the executable, the identity is the revision in
// version control if the program was built from an unmodified checkout, else the executable's
// SHA-256.
//
// # Caveats
//
// Packages imported only for their side effects, and code reached only through reflection, do not
// count. Files that build constraints exclude count as if they were built.
package codeid

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// The ways to identify a program's code.
const (
	Library    = "library"    // no code but the library's
	Source     = "source"     // Parts
	Revision   = "revision"   // Revision
	Executable = "executable" // Executable
)

// Code is the identity of a program's code.
type Code struct {
	// By is Library, Source, Revision or Executable.
	By string `json:"by"`
	// Parts maps the reached declarations to digests, and modules to versions.
	Parts map[string]string `json:"parts,omitempty"`
	// Revision is the version-control revision from which the program was built, if the checkout
	// was unmodified.
	Revision string `json:"revision,omitempty"`
	// Executable is the SHA-256 of the program's file, if nothing else identifies the code.
	Executable string `json:"executable,omitempty"`
	// Why is the reason why the sources do not identify the code.
	Why string `json:"why,omitempty"`
}

// Options holds what [Of] must know from its caller.
type Options struct {
	// Library is the path of a module whose own packages do not count, except their tests. Own reports whether a
	// package is one of these by its path below the module: any other package is a program of a user who works in a
	// checkout of the library. nil means that all are.
	Library string
	Own     func(pkg string) bool
	// Named returns the roots of the code registered under a name, if text is such a name.
	Named func(text string) []Root
}

// Of identifies the code that is reached from roots. It reads each package's sources once per
// process, so its answer does not change while the process runs.
func Of(roots []Root, o Options) Code {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	p := newProgram(info, o)
	roots = slices.DeleteFunc(slices.Clone(roots), func(r Root) bool { return p.ofLibrary(r.pkg, r.File) })
	if len(roots) == 0 {
		return Code{By: Library}
	}
	c := Code{By: Source, Revision: cleanRevision(info)}
	err := errors.New("it was built without information about its modules")
	if ok && info.Main.Path != "" {
		if c.Parts, err = p.reach(roots); err == nil {
			return c
		}
	}
	c.Parts, c.Why = nil, err.Error()
	if c.By = Revision; c.Revision != "" {
		return c
	}
	c.By = Executable
	if c.Executable, err = executableSum(); err != nil {
		c.Why += "; " + err.Error()
	}
	return c
}

// cleanRevision returns the revision from which the program was built, "" if the checkout was
// modified or the revision is unknown.
func cleanRevision(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["vcs.modified"] != "false" || settings["vcs.revision"] == "" {
		return ""
	}
	return settings["vcs"] + " " + settings["vcs.revision"]
}

// executableSum returns the SHA-256 of the program's file.
func executableSum() (string, error) {
	f, err := os.Open(executable())
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Changes describes the differences of the code now from c, one phrase each; empty if there are
// none.
func (c Code) Changes(now Code) []string {
	switch {
	case c.By == Source && now.By == Source:
		return partChanges(c.Parts, now.Parts)
	case c.Revision != "" && now.Revision != "":
		if c.Revision != now.Revision {
			return []string{fmt.Sprintf("its revision was %s and is %s", short(c.Revision), short(now.Revision))}
		}
		return nil
	case c.By == Library && now.By == Library:
		return nil
	case c.By == Executable && now.By == Executable:
		if c.Executable == "" || c.Executable != now.Executable {
			return []string{"the program was built anew, and " + cmp.Or(now.Why, "its source cannot be read")}
		}
		return nil
	}
	s := fmt.Sprintf("it was identified by the %s and now by the %s, so the two cannot be compared", by(c.By), by(now.By))
	if why := cmp.Or(now.Why, c.Why); why != "" {
		s += ": " + why
	}
	return []string{s}
}

func by(kind string) string {
	switch kind {
	case Library:
		return "library's version"
	case "":
		return "nothing"
	}
	return kind
}

// short returns the first twelve digits of a revision.
func short(revision string) string {
	name, digits, ok := strings.Cut(revision, " ")
	if !ok {
		name, digits = "", name
	}
	return strings.TrimSpace(name + " " + digits[:min(12, len(digits))])
}

// partChanges compares declarations and modules.
func partChanges(was, is map[string]string) []string {
	names := slices.Sorted(maps.Keys(was))
	for name := range is {
		if _, ok := was[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var changed, others []string
	for _, name := range names {
		before, had := was[name]
		now, has := is[name]
		switch {
		case before == now && had == has:
		case strings.HasPrefix(name, "module ") && had && has:
			changed = append(changed, fmt.Sprintf("%s was %s and is %s", name, before, now))
		case !had:
			others = append(others, name+" is new")
		case !has:
			others = append(others, name+" is no longer used")
		default:
			changed = append(changed, name+" changed")
		}
	}
	// Changed declarations come before added and removed ones, which often follow from them.
	return append(changed, others...)
}
