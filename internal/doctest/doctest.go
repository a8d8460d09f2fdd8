// Package doctest type-checks the Go code in documentation: fenced blocks of Markdown pages, the
// code in their sentences and tables, and the cells and prose of notebooks. Its tests check this
// repository's documentation.
//
// The pieces of a page or notebook form one package, as the cells of a notebook form one program: a
// piece can use the declarations of others, and a later declaration of a name replaces an earlier
// one. Names that a page uses without declaring them, such as ctx or w, are those of [Context]. The
// pieces are type-checked against the compiled packages, so an error is the compiler's, at the line
// of the page.
package doctest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Piece is a piece of Go code in a page.
type Piece struct {
	File string // file name in errors
	Line int    // of the text's first line
	Text string
	// Span is set for `code` in a sentence or a table: an expression, a type, or statements. Other
	// pieces are lines of code: declarations, statements, or both around a line "%%".
	Span bool
}

// Read finds the pieces of a page: a notebook if path ends in .ipynb, else Markdown. In a notebook,
// a piece's line is counted from the beginning of its cell, and its file name includes the cell.
func Read(path string) ([]Piece, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	if !strings.HasSuffix(path, ".ipynb") {
		return markdown(name, string(text)), nil
	}
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
			pieces = append(pieces, Piece{File: at, Line: 1, Text: string(c.Source)})
		case "markdown":
			pieces = append(pieces, markdown(at, string(c.Source))...)
		}
	}
	return pieces, nil
}

// source is a cell's text, which a notebook stores as one string or as a list of lines.
type source string

// UnmarshalJSON reads both forms.
func (s *source) UnmarshalJSON(b []byte) error {
	var lines []string
	if err := json.Unmarshal(b, &lines); err == nil {
		*s = source(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(b, (*string)(s))
}

var (
	fence = regexp.MustCompile("^ {0,3}(```+)\\s*([A-Za-z]*)")
	span  = regexp.MustCompile("`([^`]+)`")
	// ours matches code that is checked: code in a sentence that uses a package of Packages or a
	// variable of Context.
	ours = regexp.MustCompile(`(?:^|[^\w.])((?:` + strings.Join(prefixes(), "|") + `)\.[A-Z]\w*)`)
	// theirs matches the headings of table columns that show other libraries' code.
	theirs = regexp.MustCompile(`(?i)\b(pyg|dgl|pytorch|there|original|theirs)\b`)
)

// markdown finds the blocks marked as Go, and the code spans that ours matches.
func markdown(name, text string) []Piece {
	var pieces []Piece
	var block *Piece // nil: in a block of another language
	end := ""
	var heads []string // headings of the table that contains the line
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case end == "" && m != nil:
			if end = m[1]; m[2] == "go" {
				block = &Piece{File: name, Line: i + 2}
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
		if !strings.HasPrefix(strings.TrimSpace(line), "|") {
			heads = nil
		} else if cells = Cells(line); heads == nil {
			heads = cells
		}
		for c, cell := range cells {
			if c < len(heads) && theirs.MatchString(heads[c]) {
				continue
			}
			for _, code := range Spans(cell) {
				switch {
				case !ours.MatchString(code):
				case !strings.Contains(code, "…"):
					pieces = append(pieces, Piece{name, i + 1, code, true})
				default: // only names are left of what leaves something out
					for _, m := range ours.FindAllStringSubmatch(code, -1) {
						pieces = append(pieces, Piece{name, i + 1, m[1], true})
					}
				}
			}
		}
	}
	return pieces
}

// Cells returns the cells of a table row. A "|" inside code is written "\|" there.
func Cells(row string) []string {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	const hidden = "\x00"
	cells := strings.Split(strings.ReplaceAll(row, `\|`, hidden), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], hidden, "|"))
	}
	return cells
}

// Spans returns the code spans in a sentence or a table cell.
func Spans(text string) []string {
	var all []string
	for _, m := range span.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}
