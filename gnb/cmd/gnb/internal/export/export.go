// Package export makes a Go program of the cells of a notebook. The command "gnb export" uses it.
package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// Program is the program of a notebook's cell.
type Program struct {
	Source []byte // a Go file
	Cell   int    // the code cell whose statements the program runs, counted from 1
	// Left are what the program does not have, each in a few words: commands for the kernel or a shell.
	Left []string
}

// Of returns the program of a code cell of a notebook (nbformat 4), counted from 1: the statements behind the cell's line
// %%, and what this cell and those before it declare. A later declaration replaces an earlier one of the same name, as in the
// kernel. The cell 0 means the last one that runs statements. Imports that cells leave out to the kernel are not added.
func Of(notebook []byte, cell int) (*Program, error) {
	var nb struct {
		Format int `json:"nbformat"`
		Cells  []struct {
			Type   string `json:"cell_type"`
			Source lines  `json:"source"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(notebook, &nb); err != nil {
		return nil, fmt.Errorf("it is not a notebook: %w", err)
	}
	if nb.Format < 4 {
		return nil, errors.New("it is not a notebook of nbformat 4; open and save it in JupyterLab")
	}
	var cells []codeCell
	for _, c := range nb.Cells {
		if c.Type == "code" {
			cells = append(cells, split(string(c.Source)))
		}
	}
	p := &Program{Cell: cell}
	switch {
	case cell < 0 || cell > len(cells):
		return nil, fmt.Errorf("there is no code cell %d; the notebook has %d", cell, len(cells))
	case cell == 0:
		for i, c := range cells {
			if c.runs {
				p.Cell = i + 1
			}
		}
		if p.Cell == 0 {
			return nil, errors.New("no cell has a line %%, so none runs anything")
		}
	case !cells[cell-1].runs:
		return nil, fmt.Errorf("code cell %d has no line %%%%, so it runs nothing", cell)
	}
	d := declarations{}
	for i, c := range cells[:p.Cell] {
		for _, l := range c.left {
			p.Left = append(p.Left, fmt.Sprintf("code cell %d: %s", i+1, l))
		}
		if err := d.add(c.declares); err != nil {
			return nil, fmt.Errorf("code cell %d: %w", i+1, err)
		}
		if err := checkStatements(c); err != nil {
			return nil, fmt.Errorf("code cell %d: %w", i+1, err)
		}
	}
	c := cells[p.Cell-1]
	d.put(declaration{text: `"flag"`, keys: []string{`import "flag"`}})
	const mpi = `_ "github.com/graphnb/graphnb/multigpu/mpi"`
	const workers = `"github.com/graphnb/graphnb/multigpu"`
	d.put(declaration{text: workers, keys: []string{"import " + workers}})
	d.put(declaration{text: mpi + " // works with -tags mpi", keys: []string{"import " + mpi}})
	var b bytes.Buffer
	fmt.Fprintln(&b, "package main\n\nimport (")
	for _, x := range d.all {
		if x.imports() {
			fmt.Fprintln(&b, "\t"+x.text)
		}
	}
	fmt.Fprintln(&b, ")")
	for _, x := range d.all {
		if !x.imports() {
			fmt.Fprintf(&b, "\n%s\n", x.text)
		}
	}
	fmt.Fprintf(&b, "\nfunc main() {\n\tflag.Parse()\n%s\n\tmultigpu.Leave(0) // tells the launcher that the program has ended well\n}\n", strings.Trim(c.statements, "\n"))
	var err error
	p.Source, err = format.Source(b.Bytes())
	return p, err
}

// lines is a text that nbformat writes as a string or as a list of lines.
type lines string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *lines) UnmarshalJSON(raw []byte) error {
	var all []string
	if json.Unmarshal(raw, &all) == nil {
		*l = lines(strings.Join(all, ""))
		return nil
	}
	return json.Unmarshal(raw, (*string)(l))
}

// codeCell is a code cell, divided as the kernel does.
type codeCell struct {
	declares, statements string
	runs                 bool     // it has a line %%
	left                 []string // its commands for the kernel or a shell
}

// split divides a cell at its line %%. Lines that are not Go become empty, so that errors have the cell's lines.
func split(source string) (c codeCell) {
	var parts [2]strings.Builder
	at := 0
	for i, line := range strings.Split(source, "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case (word == "%%" || word == "%main") && at == 0:
			at, c.runs = 1, true
			if rest = strings.TrimSpace(rest); rest != "" {
				c.left = append(c.left, "the arguments "+rest)
			}
			parts[1].WriteString(strings.Repeat("\n", i))
			line = ""
		case strings.HasPrefix(word, "%%") && i == 0: // a cell for another program
			return codeCell{left: []string{"a cell of " + word}}
		case strings.HasPrefix(line, "%"), strings.HasPrefix(line, "!"):
			c.left = append(c.left, "the command "+strings.TrimSpace(line))
			line = ""
		}
		parts[at].WriteString(line + "\n")
	}
	c.declares, c.statements = parts[0].String(), parts[1].String()
	return c
}

// checkStatements reports what does not parse.
func checkStatements(c codeCell) error {
	if !c.runs {
		return nil
	}
	_, err := parser.ParseFile(token.NewFileSet(), "", "package main; func main() {"+c.statements+"\n}", parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("line %w", err)
	}
	return nil
}

// declaration is the text of one declaration.
type declaration struct {
	text string
	keys []string // what it declares; a later declaration of one of them replaces it
}

func (d declaration) imports() bool {
	return len(d.keys) == 1 && strings.HasPrefix(d.keys[0], "import ")
}

type declarations struct{ all []declaration }

// put adds a declaration in place of earlier ones with its keys.
func (d *declarations) put(x declaration) {
	d.all = slices.DeleteFunc(d.all, func(old declaration) bool {
		return slices.ContainsFunc(old.keys, func(key string) bool { return slices.Contains(x.keys, key) })
	})
	d.all = append(d.all, x)
}

// add adds what a text declares.
func (d *declarations) add(text string) error {
	const head = "package main;"
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", head+text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("line %w; what is not a declaration belongs behind a line %%%%", err)
	}
	src := head + text
	of := func(doc *ast.CommentGroup, n ast.Node) string {
		from, to := n.Pos(), n.End()
		if doc != nil {
			from = doc.Pos()
		}
		end := files.Position(to).Offset
		line, _, _ := strings.Cut(src[end:], "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "//") {
			end += len(line)
		}
		return src[files.Position(from).Offset:end]
	}
	for _, decl := range f.Decls {
		switch x := decl.(type) {
		case *ast.FuncDecl:
			if err := d.addFunc(x, of(x.Doc, x)); err != nil {
				return err
			}
		case *ast.GenDecl:
			if x.Tok == token.CONST { // an iota depends on the whole
				var keys []string
				for _, s := range x.Specs {
					keys = append(keys, names(s)...)
				}
				d.put(declaration{of(x.Doc, x), keys})
				continue
			}
			for _, s := range x.Specs {
				doc := x.Doc
				if x.Lparen.IsValid() || doc == nil {
					doc = docOf(s)
				}
				keyword := x.Tok.String() + " "
				if x.Tok == token.IMPORT {
					keyword = ""
				}
				body := of(nil, s)
				if doc != nil {
					body = keyword + body
					keyword = of(nil, doc) + "\n"
				}
				d.put(declaration{keyword + body, names(s)})
			}
		}
	}
	return nil
}

// addFunc adds a function. A function init_NAME of a cell runs as init.
func (d *declarations) addFunc(x *ast.FuncDecl, text string) error {
	name := x.Name.Name
	switch {
	case x.Recv != nil && len(x.Recv.List) == 1:
		name = receiver(x.Recv.List[0].Type) + "." + name
	case name == "main":
		return errors.New("it declares func main; write its statements behind a line %%")
	case strings.HasPrefix(name, "init_"):
		text = strings.Replace(text, "func "+name, "func init", 1)
	}
	d.put(declaration{text, []string{name}})
	return nil
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

func docOf(s ast.Spec) *ast.CommentGroup {
	switch x := s.(type) {
	case *ast.TypeSpec:
		return x.Doc
	case *ast.ValueSpec:
		return x.Doc
	case *ast.ImportSpec:
		return x.Doc
	}
	return nil
}

// names are the keys of what a specification declares. The blank identifier has none.
func names(s ast.Spec) (all []string) {
	switch x := s.(type) {
	case *ast.ImportSpec:
		path, _ := strconv.Unquote(x.Path.Value)
		name := strconv.Quote(path)
		switch {
		case x.Name == nil:
		case x.Name.Name == "_" || x.Name.Name == ".":
			name = x.Name.Name + " " + name
		default:
			name = x.Name.Name
		}
		return []string{"import " + name}
	case *ast.TypeSpec:
		return []string{x.Name.Name}
	case *ast.ValueSpec:
		for _, n := range x.Names {
			if n.Name != "_" {
				all = append(all, n.Name)
			}
		}
	}
	return all
}
