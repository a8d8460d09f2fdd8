// Package doctest compiles the Go that the documentation shows: fenced blocks of Markdown pages, the
// code in their sentences and tables, and the cells and prose of notebooks. Its tests do so for this
// repository.
//
// A page or a notebook is one [Unit], as a notebook is one program: what one piece declares the
// others use, and a later declaration of a name replaces the one before. Names that a sentence uses
// without saying where they come from, such as ctx or w, are those of [Context].
//
// The pieces are type-checked against the compiled packages, so an error is the compiler's, at the
// line of the page. That is what "go build" would say; only nothing is linked.
package doctest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Kind says what a piece of Go is.
type Kind int

// The kinds of pieces.
const (
	Block Kind = iota // lines of code: declarations, statements, or both around a line "%%"
	Span              // `code` in a sentence or a table: an expression, a type, or statements
)

// Piece is Go in a page.
type Piece struct {
	Kind Kind
	File string // as errors name it
	Line int    // of the text's first line
	Text string
}

// Read finds the pieces of a page: a notebook, where path ends in .ipynb, else Markdown.
func Read(path string) ([]Piece, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	if strings.HasSuffix(path, ".ipynb") {
		return notebook(name, text)
	}
	return markdown(name, string(text), 0), nil
}

// notebook reads the cells. A piece's line is counted from the beginning of its cell, and its file
// says which that is.
func notebook(name string, text []byte) ([]Piece, error) {
	var nb struct {
		Cells []struct {
			Type   string `json:"cell_type"`
			Source source
		}
	}
	if err := json.Unmarshal(text, &nb); err != nil {
		return nil, fmt.Errorf("doctest: reading %s: %w", name, err)
	}
	var pieces []Piece
	for i, c := range nb.Cells {
		at := fmt.Sprintf("%s cell %d", name, i)
		switch c.Type {
		case "code":
			pieces = append(pieces, Piece{Block, at, 1, string(c.Source)})
		case "markdown":
			pieces = append(pieces, markdown(at, string(c.Source), 0)...)
		}
	}
	return pieces, nil
}

// source is a cell's text, which a notebook stores as one string or as lines.
type source string

// UnmarshalJSON reads either form.
func (s *source) UnmarshalJSON(b []byte) error {
	var lines []string
	if err := json.Unmarshal(b, &lines); err == nil {
		*s = source(strings.Join(lines, ""))
		return nil
	}
	var one string
	err := json.Unmarshal(b, &one)
	*s = source(one)
	return err
}

var (
	fence = regexp.MustCompile("^ {0,3}(```+)\\s*([A-Za-z]*)")
	span  = regexp.MustCompile("`([^`]+)`")
	// What a sentence calls with a package or a variable of Context in front is Go of ours. Methods of
	// a type, such as Worker.Step, and names of other languages are not.
	ours = regexp.MustCompile(`(?:^|[^\w.])((?:` + strings.Join(prefixes(), "|") + `)\.[A-Z]\w*)`)
	// Columns of tables that show other people's lines.
	theirs = regexp.MustCompile(`(?i)\b(pyg|dgl|pytorch|there|original|theirs)\b`)
)

// markdown finds the blocks marked as Go and the spans that are ours; first is added to line numbers.
func markdown(name, text string, first int) []Piece {
	var pieces []Piece
	var block *Piece // nil: in a block of another language
	end := ""
	var skip []bool // columns of the table we are in
	for i, line := range strings.Split(text, "\n") {
		number := first + i + 1
		m := fence.FindStringSubmatch(line)
		switch {
		case end == "" && m != nil:
			if end = m[1]; m[2] == "go" {
				block = &Piece{Kind: Block, File: name, Line: number + 1}
			}
			continue
		case end != "" && strings.TrimSpace(line) == end:
			if block != nil {
				pieces = append(pieces, *block)
			}
			block, end = nil, ""
			continue
		case block != nil:
			block.Text += line + "\n"
		}
		if end != "" {
			continue
		}
		cells := []string{line}
		if strings.HasPrefix(strings.TrimSpace(line), "|") {
			cells = Cells(line)
			if skip == nil {
				for _, head := range cells {
					skip = append(skip, theirs.MatchString(head))
				}
			}
		} else {
			skip = nil
		}
		for c, cell := range cells {
			if c < len(skip) && skip[c] {
				continue
			}
			for _, m := range span.FindAllStringSubmatch(cell, -1) {
				if ours.MatchString(m[1]) {
					for _, code := range elided(m[1]) {
						pieces = append(pieces, Piece{Span, name, number, code})
					}
				}
			}
		}
	}
	return pieces
}

var (
	restOfFields = regexp.MustCompile(`(,\s*)?…\s*}`)
	restOfCall   = regexp.MustCompile(`\(([^()]*,\s*)?…\)$`)
)

// elided is a span without what it leaves out: "f(…)" and "f(a, …)" speak of f,
// whatever it is given, and "T{a, …}" of a T with other fields as well. Of a span
// that leaves out more, only the names are looked at.
func elided(code string) []string {
	short := restOfFields.ReplaceAllString(restOfCall.ReplaceAllString(code, ""), "}")
	if !strings.Contains(short, "…") {
		return []string{short}
	}
	var names []string
	for _, m := range ours.FindAllStringSubmatch(code, -1) {
		names = append(names, m[1])
	}
	return names
}

// Cells are the cells of a row of a table. A "|" that is code is written "\|" there.
func Cells(row string) []string {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	const hidden = "\x00"
	cells := strings.Split(strings.ReplaceAll(row, `\|`, hidden), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], hidden, "|"))
	}
	return cells
}

// Spans are the codes in a sentence or a cell of a table.
func Spans(text string) []string {
	var all []string
	for _, m := range span.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}
