package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	optionsType = regexp.MustCompile(`^([A-Z]\w*)?Options$|^Loader$`)
	zeroDoc     = regexp.MustCompile(`\b0 (means|is)\b|[Rr]equired`)
	numbers     = map[string]bool{
		"int": true, "int32": true, "int64": true, "uint64": true, "float32": true, "float64": true, "time.Duration": true,
	}
)

// The comment of each numeric field of an options struct tells what 0 means, for readers who leave
// the field out and for readers who want 0.
func TestOptionsSayWhatZeroMeans(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (name == "internal" || name == "testdata" || name == "bench" || name[0] == '.') {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if f.Name.Name == "main" {
			return nil
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.TypeSpec)
			if !ok || !optionsType.MatchString(s.Name.Name) {
				return true
			}
			st, ok := s.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range st.Fields.List {
				kind := ""
				switch x := field.Type.(type) {
				case *ast.Ident:
					kind = x.Name
				case *ast.SelectorExpr:
					if p, ok := x.X.(*ast.Ident); ok {
						kind = p.Name + "." + x.Sel.Name
					}
				}
				if !numbers[kind] {
					continue
				}
				for _, name := range field.Names {
					if !name.IsExported() {
						continue
					}
					seen++
					if doc := field.Doc.Text() + field.Comment.Text(); !zeroDoc.MatchString(doc) {
						t.Errorf("%s: %s.%s.%s does not say what 0 means: %q", path, f.Name.Name, s.Name.Name, name.Name, doc)
					}
				}
			}
			return false
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 90 {
		t.Errorf("only %d fields were checked", seen)
	}
}
