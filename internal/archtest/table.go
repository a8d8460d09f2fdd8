package archtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// Synopsis is the first sentence of a package's documentation.
type Synopsis struct {
	Dir  string // below the module's root
	Text string
}

// Synopses reads the module's packages, in files with any build tags.
func Synopses(dir string) ([]Synopsis, error) {
	out, err := GoList(dir, "-json=Dir,ImportPath,GoFiles,CgoFiles,IgnoredGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	var found []Synopsis
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir, ImportPath                   string
			GoFiles, CgoFiles, IgnoredGoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		s := Synopsis{Dir: cmp.Or(strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, Module), "/"), ".")}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles) {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				return nil, err
			}
			if f.Doc != nil {
				s.Text = cmp.Or(s.Text, new(doc.Package).Synopsis(f.Doc.Text()))
			}
		}
		found = append(found, s)
	}
}

// Table returns a table in Markdown with one row for each public package of the library.
func Table(packages []Synopsis) string {
	var b strings.Builder
	b.WriteString("| package | what it is |\n|---|---|\n")
	for _, p := range packages {
		top, _, _ := strings.Cut(p.Dir, "/")
		if !slices.Contains([]string{"gnb", "multigpu", "graphops"}, top) || slices.Contains(strings.Split(p.Dir, "/"), "internal") {
			continue
		}
		// "Package gnb trains …", "Command gnb is …"
		words := strings.SplitN(strings.TrimSuffix(p.Text, "."), " ", 3)
		fmt.Fprintf(&b, "| `%s` | %s |\n", p.Dir, words[len(words)-1])
	}
	return b.String()
}
