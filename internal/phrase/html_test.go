package phrase

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHTML(t *testing.T) {
	for in, want := range map[string]string{
		"a < b & \"c\" 'd'": "a &lt; b &amp; &#34;c&#34; &#39;d&#39;",
		"a\nb\tc":           "a\nb\tc",
		"\x00\x1b\xff":      "\ufffd\ufffd\ufffd",
	} {
		if got := HTML(in); got != want {
			t.Errorf("HTML(%q) is %q, want %q", in, got, want)
		}
	}
	if got, want := Markdown("a|b [x](javascript:1) <b> `c`\n*d*"), "a\\|b \\[x\\](javascript:1) &lt;b&gt; \\`c\\` \\*d\\*"; got != want {
		t.Errorf("Markdown is %q, want %q", got, want)
	}
}

// Text gets into HTML and SVG by one function.
func TestOneFunctionEscapes(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == filepath.Join(root, "internal", "phrase", "html.go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			return nil // the compiler says it better
		}
		for _, i := range f.Imports {
			switch i.Path.Value {
			case `"html"`, `"html/template"`:
				t.Errorf("%s imports %s: phrase.HTML is the one function that escapes text", path, i.Path.Value)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
