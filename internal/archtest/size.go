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
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Limits on the size of a room, so that it stays easy to understand.
const (
	maxLines    = 5000 // of one package, without tests and generated files
	maxGnbFiles = 25   // of package gnb, without tests
)

// generated matches the line that marks a generated file.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// Size is the size of a package, without tests and generated files.
type Size struct {
	Dir      string // below the module's root
	Files    int
	Lines    int
	Synopsis string   // the first sentence of its documentation
	Imports  []string // packages of the module, below its root
}

// Sizes measures the module's packages. It counts files with any build tags.
func Sizes(dir string) ([]Size, error) {
	out, err := GoList(dir, "-json=Dir,ImportPath,Imports,GoFiles,CgoFiles,IgnoredGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	var sizes []Size
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir, ImportPath                            string
			Imports, GoFiles, CgoFiles, IgnoredGoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return sizes, nil
		} else if err != nil {
			return nil, err
		}
		s := Size{Dir: cmp.Or(strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, Module), "/"), ".")}
		for _, i := range p.Imports {
			if rest, ok := strings.CutPrefix(i, Module+"/"); ok {
				s.Imports = append(s.Imports, rest)
			}
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles) {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			if generated.Match(text) {
				continue
			}
			s.Files++
			s.Lines += bytes.Count(text, []byte{'\n'})
			if f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.PackageClauseOnly|parser.ParseComments); err == nil && f.Doc != nil {
				s.Synopsis = cmp.Or(s.Synopsis, new(doc.Package).Synopsis(f.Doc.Text()))
			}
		}
		sizes = append(sizes, s)
	}
}

// Table returns a table of packages in Markdown, one row for each of dirs; a row with "/..." adds the packages
// below. Lines are rounded to half a thousand, so that few commits change the table.
func Table(sizes []Size, dirs []string) string {
	var b strings.Builder
	b.WriteString("| package | lines | what it is |\n|---|---:|---|\n")
	for _, dir := range dirs {
		name, below := strings.CutSuffix(dir, "/...")
		lines, what := 0, ""
		var others []string // packages below it
		for _, s := range sizes {
			switch rest, ok := strings.CutPrefix(s.Dir, name+"/"); {
			case s.Dir == name:
				// "Package gnb trains …", "Command gnb is …"
				words := strings.SplitN(strings.TrimSuffix(s.Synopsis, "."), " ", 3)
				what = words[len(words)-1]
			case !below || !ok:
				continue
			case s.Lines > 0:
				others = append(others, strings.TrimPrefix(rest, "internal/"))
			}
			lines += s.Lines
		}
		if len(others) > 0 {
			what = strings.TrimPrefix(what+"; with "+strings.Join(others, ", "), "; with ")
		}
		size := "under 500"
		if n := (lines + 250) / 500; n > 0 {
			size = strconv.Itoa(n * 500)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, size, what)
	}
	return b.String()
}
