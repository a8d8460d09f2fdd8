package plainwords

import (
	"encoding/json"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// riddles lists phrases that leave the subject or the meaning to the reader's guess, each with
// advice on what to write instead. Every match contains word in lower case: looking for it first takes a tenth of the time.
var riddles = []struct{ pattern, word, instead string }{
	{`\bwho looks\b`, "who looks", "name the reader: a liveness probe, the command"},
	{`\bg(o|oes|oing|one) on with\b`, "on with", "resume, or continue"},
	{`\b(some|any)body (says|said|looks|asks|wants)\b|\bby somebody\b`, "body", "name the subject: the user, a program"},
	{`\bwhere nobody\b|\bnobody (says|said|asks|asked|wants)\b|\bwhich nobody has by\b`, "nobody", "unknown, unset, unused"},
	{`\bwhoever\b`, "whoever", "name the subject: the caller, the worker"},
	{`\bso many (epochs|steps|runs|trials|rows|columns|nodes|edges|bytes|workers|ranks|lines|seconds|threads|times)\b`, "so many ", "N epochs, or the number of epochs"},
	{`\b(in|for) so many\b`, "so many", "N, or the number of"},
	{`\bwhat [a-z' ]{0,40}\bfollows? from\b`, "from", "name it: random seed"},
	{`\bwhat [a-z' ]{0,40}\b(is|are) made of\b`, "made of", "its contents, its parts"},
	{`\b(is|are|was|were) said\b`, " said", "is reported, is documented, is set by"},
	{`\bthere is what\b`, "there is what", "name it"},
	{`\bexplain themselves\b`, "explain themselves", "show their documentation"},
	{`\bnot at hand\b`, "not at hand", "missing, not installed, not available"},
	{`\b(is|was) not to be had\b`, "not to be had", "is not available"},
	{`\bthey have not come\b`, "they have not come", "timed out waiting for"},
	{`\bbeside what\b`, "beside what", "compared with"},
	{`\blets one in\b`, "lets one in", "keeps the best 1/N"},
	{`\bkeeps? (nobody|anybody|it|them) from going\b`, "from going", "blocks resuming"},
}

// mark exempts a line of a page, for examples of bad wording.
const mark = "<!-- not -->"

func TestPlainWords(t *testing.T) {
	each := make([]*regexp.Regexp, len(riddles))
	for i, r := range riddles {
		each[i] = regexp.MustCompile(r.pattern)
		if !strings.Contains(r.pattern, r.word) {
			t.Errorf("the pattern %s lacks its word %q", r.pattern, r.word)
		}
	}
	pieces := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if name != ".." && strings.HasPrefix(name, ".") && name != ".ci" && name != ".github" ||
				name == "testdata" || name == "results" || name == "build" || name == "plainwords" {
				return filepath.SkipDir
			}
			return nil
		}
		for _, p := range read(t, path) {
			pieces++
			text := strings.ToLower(p.text)
			for i, r := range riddles {
				if !strings.Contains(text, r.word) {
					continue
				}
				if m := each[i].FindString(text); m != "" {
					t.Errorf("%s:%d: %q; write instead: %s", path, p.line, m, r.instead)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pieces < 10_000 {
		t.Errorf("only %d pieces of text were read", pieces)
	}
}

// piece is the text of one line of a file, or a comment or string that begins on that line.
type piece struct {
	line int
	text string
}

// read returns the prose of a file: comments and strings of Go, markdown cells of notebooks, lines of other
// files.
func read(t *testing.T, path string) (out []piece) {
	t.Helper()
	switch filepath.Ext(path) {
	case ".go", ".md", ".sh", ".ipynb", ".py", ".yml", ".yaml", ".js":
	default:
		if filepath.Base(path) != "Makefile" {
			return nil
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch filepath.Ext(path) {
	case ".go":
		return readGo(b)
	case ".ipynb":
		var nb struct {
			Cells []struct {
				Type   string `json:"cell_type"`
				Source []string
			}
		}
		if err := json.Unmarshal(b, &nb); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, c := range nb.Cells {
			if c.Type == "markdown" {
				out = append(out, piece{i, strings.Join(c.Source, " ")})
			}
		}
		return out
	}
	for i, l := range strings.Split(string(b), "\n") {
		if !strings.Contains(l, mark) {
			out = append(out, piece{i + 1, l})
		}
	}
	return out
}

// readGo joins the lines of a comment, so that a phrase is found across a line break.
func readGo(src []byte) (out []piece) {
	files := token.NewFileSet()
	var s scanner.Scanner
	file := files.AddFile("", files.Base(), len(src))
	s.Init(file, src, nil, scanner.ScanComments)
	last := -1 // line of the previous comment, if only that comment came before
	for {
		pos, tok, lit := s.Scan()
		line := file.Line(pos)
		switch tok {
		case token.EOF:
			return out
		case token.COMMENT:
			text := strings.TrimLeft(lit, "/* \t")
			if last == line-1 {
				out[len(out)-1].text += " " + text
			} else {
				out = append(out, piece{line, text})
			}
			last = line
			continue
		case token.STRING:
			out = append(out, piece{line, lit})
		case token.SEMICOLON:
			if lit == "\n" {
				continue
			}
		}
		last = -1
	}
}
