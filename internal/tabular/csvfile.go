package tabular

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/graphnb/graphnb/internal/phrase"
)

// maxRecord is the largest number of bytes in one record; without it, an unclosed quote would read
// the rest of the file into memory.
const maxRecord = 1 << 20

// CSVFile is a text table whose first line names the columns: comma-separated values by RFC 4180,
// or values separated by semicolons or tabs; the first line decides which. A line "sep=;" before it, which spreadsheet
// programs write and obey, names the separator.
type CSVFile struct {
	*File
	r      *csv.Reader
	guard  *recordGuard
	Header []string // lower case, without blanks around; "unnamed: 0" for column 0 without a name, as pandas calls it
	line   int      // line of the last record read
	before int      // lines before the header

	unnamed map[int]bool
}

// Unnamed returns the first column without a name, -1 if each has one.
func (t *CSVFile) Unnamed() int {
	for i := range t.Header {
		if t.unnamed[i] {
			return i
		}
	}
	return -1
}

// Separator is what separates the columns.
func (t *CSVFile) Separator() rune { return t.r.Comma }

// recordGuard stops reading a record that is too long.
type recordGuard struct {
	r io.Reader
	n int // bytes read since the record began
}

func (g *recordGuard) Read(b []byte) (int, error) {
	if g.n > maxRecord {
		return 0, errRecordTooLong
	}
	n, err := g.r.Read(b)
	g.n += n
	return n, err
}

var errRecordTooLong = fmt.Errorf("a record is longer than %s; is a quote not closed?", phrase.Bytes(maxRecord))

// CSVNames returns the file names that a table may have.
func CSVNames(base string) []string {
	return []string{base + ".csv", base + ".csv.gz", base + ".tsv", base + ".tsv.gz"}
}

// Table opens BASE.csv, or another name of cSVNames, and reads its first line.
func (s *Source) Table(base, what string) (*CSVFile, error) {
	name := s.Find(CSVNames(base)...)
	if name == "" {
		name = base + ".csv"
	}
	f, err := s.Open(name, what)
	if err != nil {
		return nil, err
	}
	t, err := NewCSV(f)
	if err != nil {
		_ = f.Close()
	}
	return t, err
}

var separatorLine = regexp.MustCompile(`(?i)^"?sep=([,;|\t])"?\r?$`)

// NewCSV reads the first line of a table.
func NewCSV(f *File) (*CSVFile, error) {
	t := &CSVFile{File: f, guard: &recordGuard{r: f}}
	br := bufio.NewReader(t.guard)
	head, err := br.Peek(br.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bom := "\xef\xbb\xbf"; bytes.HasPrefix(head, []byte(bom)) { // spreadsheet programs write a byte order mark
		_, _ = br.Discard(len(bom)) // cannot fail: the bytes are in the buffer
		head = head[len(bom):]
	}
	first, _, _ := bytes.Cut(head, []byte{'\n'})
	t.r = csv.NewReader(br)
	t.r.FieldsPerRecord, t.r.ReuseRecord, t.r.TrimLeadingSpace = -1, true, true
	if m := separatorLine.FindSubmatch(first); m != nil {
		_, _ = br.Discard(min(len(first)+1, len(head)))
		t.r.Comma, t.before = rune(m[1][0]), 1
	} else {
		for _, c := range ";\t" {
			if bytes.ContainsRune(first, c) && !bytes.ContainsRune(first, ',') {
				t.r.Comma = c
			}
		}
	}
	// In a tab-separated table, a tab at the start of a field ends the field, so it must not be
	// trimmed.
	t.r.TrimLeadingSpace = t.r.Comma != '\t'
	record, err := t.next()
	if errors.Is(err, io.EOF) {
		return nil, f.Wrong("it is empty; its first line should name the columns")
	}
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, name := range record {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			if name = fmt.Sprintf("unnamed: %d", i); t.unnamed == nil {
				t.unnamed = map[int]bool{}
			}
			t.unnamed[i] = true
		}
		if seen[name] {
			return nil, f.Wrong("line %d: two columns are named %s", t.before+1, Shown([]byte(name)))
		}
		seen[name] = true
		t.Header = append(t.Header, name)
	}
	return t, nil
}

// Next returns the next record, valid until the following call; io.EOF at the end.
func (t *CSVFile) next() ([]string, error) {
	t.guard.n = 0
	record, err := t.r.Read()
	var syntax *csv.ParseError
	switch {
	case errors.Is(err, io.EOF) && !errors.As(err, &syntax):
		return nil, io.EOF
	case errors.Is(err, errRecordTooLong):
		return nil, t.Wrong("after line %d: %w", t.line, errRecordTooLong)
	case errors.As(err, &syntax):
		return nil, t.Wrong("line %d, column %d: %w; a field with a quote in it stands in quotes, and its own are doubled", t.before+syntax.Line, syntax.Column, syntax.Err)
	case err != nil:
		return nil, err
	}
	t.line, _ = t.r.FieldPos(0)
	t.line += t.before
	if t.Header != nil && len(record) != len(t.Header) {
		return nil, t.At("there are %d columns, but the first line names %d", len(record), len(t.Header))
	}
	for i, field := range record {
		record[i] = strings.TrimSpace(field)
	}
	return record, nil
}

// Each calls visit for every record below the first line.
func (t *CSVFile) Each(ctx context.Context, visit func(record []string) error) error {
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		record, err := t.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(record)
		}
		if err != nil {
			return err
		}
	}
}

// Line returns the line of the last record read.
func (t *CSVFile) Line() int { return t.line }

// At returns an error about the last record read.
func (t *CSVFile) At(format string, args ...any) error {
	return t.Wrong("%w", AtLine(int64(t.line), format, args...))
}

// Column returns the position of the first of the names that is a column, -1 if none is.
func (t *CSVFile) Column(names ...string) int {
	for _, name := range names {
		for i, h := range t.Header {
			if h == name {
				return i
			}
		}
	}
	return -1
}
