package codeid

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pkg is a package with parsed sources.
type pkg struct {
	dir     string
	name    string // name in the package clause
	path    string // import path, "" for a root's package: the prefix of its parts' names
	set     *token.FileSet
	files   []*file
	decls   map[string][]*decl // functions, types, variables and constants, by name
	methods map[string][]*decl // by the receiver's type
	inits   []*decl
}

// file is a file of a package.
type file struct {
	pkg     *pkg
	path    string
	src     []byte
	tree    *ast.File
	imports []imported
}

// imported is an import of a file.
type imported struct {
	name     string // name that the file gives it, "" if none
	path     string
	preamble string // of import "C"
}

// decl is one declared name of a package.
type decl struct {
	file  *file
	kind  string // "function", "type", "variable" or "constant"
	name  string // "train", "(*gnn).Layer"
	whole ast.Node
	// nodes is its source: for one of several variables in a line, its type and value.
	nodes []ast.Node
	iota  string   // index of the constant in its group, if it matters
	embed []string // patterns of go:embed
}

// sourceOf reads the package of that name in a directory, including its test files if tests is set.
func sourceOf(dir, name string, tests bool, notAfter time.Time) (*pkg, error) {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.go"))
	if err != nil {
		return nil, err
	}
	p := &pkg{dir: dir, name: name, set: token.NewFileSet(), decls: map[string][]*decl{}, methods: map[string][]*decl{}}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") && !tests {
			continue
		}
		if err := p.read(path, notAfter); err != nil {
			return nil, err
		}
	}
	if len(p.files) == 0 {
		return nil, fmt.Errorf("there is no source of it in %s", dir)
	}
	for _, f := range p.files {
		f.declarations()
	}
	return p, nil
}

// escapeGlob escapes a directory's name for filepath.Glob.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// read parses a file, if it belongs to the package.
func (p *pkg) read(path string, notAfter time.Time) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err // not compiled, so it does not count
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	mode := parser.Mode(0)
	if strings.Contains(string(src), "//go:embed") || strings.Contains(string(src), `import "C"`) {
		mode = parser.ParseComments
	}
	tree, err := parser.ParseFile(p.set, path, src, mode)
	if err != nil {
		if info.ModTime().After(notAfter) {
			return fmt.Errorf("%s is newer than the program", path)
		}
		return nil //nolint:nilerr // it was not compiled as it is
	}
	if tree.Name.Name != p.name {
		return nil
	}
	if info.ModTime().After(notAfter) {
		return fmt.Errorf("%s is newer than the program", path)
	}
	f := &file{pkg: p, path: path, src: src, tree: tree}
	for _, s := range tree.Imports {
		im := imported{}
		if im.path, err = strconv.Unquote(s.Path.Value); err != nil {
			return nil //nolint:nilerr // it was not compiled
		}
		if s.Name != nil {
			im.name = s.Name.Name
		}
		f.imports = append(f.imports, im)
	}
	p.files = append(p.files, f)
	return nil
}

// declarations lists what the file declares.
func (f *file) declarations() {
	p := f.pkg
	for _, d := range f.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.function(d)
		case *ast.GenDecl:
			switch d.Tok {
			case token.TYPE:
				for _, s := range d.Specs {
					s := s.(*ast.TypeSpec)
					p.add(&decl{file: f, kind: "type", name: s.Name.Name, whole: s, nodes: []ast.Node{s}})
				}
			case token.VAR:
				for _, s := range d.Specs {
					f.variables(d, s.(*ast.ValueSpec))
				}
			case token.CONST:
				f.constants(d)
			case token.IMPORT:
				f.preamble(d)
			}
		}
	}
}

func (p *pkg) add(d *decl) { p.decls[d.name] = append(p.decls[d.name], d) }

func (f *file) function(d *ast.FuncDecl) {
	x := &decl{file: f, kind: "function", name: d.Name.Name, whole: d, nodes: []ast.Node{d}}
	switch {
	case d.Recv != nil && len(d.Recv.List) == 1:
		typ, star := receiver(d.Recv.List[0].Type)
		x.name = typ + "." + d.Name.Name
		if star {
			x.name = "(*" + typ + ")." + d.Name.Name
		}
		f.pkg.methods[typ] = append(f.pkg.methods[typ], x)
	case d.Name.Name == "init":
		f.pkg.inits = append(f.pkg.inits, x)
	case d.Name.Name == "main" && f.pkg.name == "main":
	default:
		f.pkg.add(x)
	}
}

// receiver returns the name of a method's receiver type, and whether it is a pointer.
func receiver(t ast.Expr) (name string, star bool) {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t, star = x.X, true
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name, star
		default:
			return "", star
		}
	}
}

func (f *file) variables(d *ast.GenDecl, s *ast.ValueSpec) {
	embed := append(embedded(d.Doc), embedded(s.Doc)...)
	for i, name := range s.Names {
		x := &decl{file: f, kind: "variable", name: name.Name, whole: s, nodes: []ast.Node{s}, embed: embed}
		if len(s.Names) > 1 && (len(s.Values) == 0 || len(s.Values) == len(s.Names)) {
			x.nodes = nil
			if s.Type != nil {
				x.nodes = append(x.nodes, s.Type)
			}
			if len(s.Values) > 0 {
				x.nodes = append(x.nodes, s.Values[i])
			}
		}
		f.pkg.add(x)
	}
}

// constants declares the constants of a group, in which an omitted expression repeats the previous
// one.
func (f *file) constants(d *ast.GenDecl) {
	var last *ast.ValueSpec
	for index, s := range d.Specs {
		s := s.(*ast.ValueSpec)
		if len(s.Values) > 0 || last == nil {
			last = s
		}
		for i, name := range s.Names {
			x := &decl{file: f, kind: "constant", name: name.Name, whole: s}
			if last.Type != nil {
				x.nodes = append(x.nodes, last.Type)
			}
			if i < len(last.Values) {
				x.nodes = append(x.nodes, last.Values[i])
			}
			if slices.ContainsFunc(x.nodes, names("iota")) {
				x.iota = strconv.Itoa(index)
			}
			f.pkg.add(x)
		}
	}
}

// names reports whether a node contains the name.
func names(name string) func(ast.Node) bool {
	return func(n ast.Node) (found bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == name {
				found = true
			}
			return !found
		})
		return found
	}
}

// embedded returns the patterns of the go:embed lines in a comment.
func embedded(doc *ast.CommentGroup) (patterns []string) {
	if doc == nil {
		return nil
	}
	for _, c := range doc.List {
		if rest, ok := strings.CutPrefix(c.Text, "//go:embed "); ok {
			patterns = append(patterns, rest)
		}
	}
	return patterns
}

// preamble stores the C code above import "C".
func (f *file) preamble(d *ast.GenDecl) {
	for i, im := range f.imports {
		if im.path == "C" && d.Doc != nil && slices.ContainsFunc(d.Specs, func(s ast.Spec) bool { return s.(*ast.ImportSpec).Path.Value == `"C"` }) {
			f.imports[i].preamble = d.Doc.Text()
		}
	}
}

// at returns the declarations at a line, including init functions.
func (p *pkg) at(path string, line int) (out []*decl) {
	around := func(d *decl) {
		from, to := p.set.Position(d.whole.Pos()), p.set.Position(d.whole.End())
		if from.Filename == path && from.Line <= line && line <= to.Line {
			out = append(out, d)
		}
	}
	for _, group := range []map[string][]*decl{p.decls, p.methods} {
		for _, ds := range group {
			for _, d := range ds {
				around(d)
			}
		}
	}
	for _, d := range p.inits {
		around(d)
	}
	return out
}

// source returns a node's text.
func (f *file) source(n ast.Node) []byte {
	of := f.pkg.set.File(n.Pos())
	return f.src[of.Offset(n.Pos()):of.Offset(n.End())]
}

var errGone = errors.New("its source is not where it was compiled")

// clauseOf returns the name in a file's package clause.
func clauseOf(path string) (string, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("%s: %w", path, errGone)
		}
		return "", err
	}
	return tree.Name.Name, nil
}

// importedName returns the name of the importable package in a directory.
func importedName(dir string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.go"))
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		if name, err := clauseOf(path); err == nil && name != "main" && !strings.HasSuffix(path, "_test.go") {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s: %w", dir, errGone)
}
