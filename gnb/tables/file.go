package tables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/tabular"
)

const (
	batchRows = 4096
	// maxCell is the largest number of bytes of one value; a CSV record has the same limit.
	maxCell = 1 << 20
	// noPartition is what Hive, Spark and DuckDB call the partition of missing values.
	noPartition = "__HIVE_DEFAULT_PARTITION__"
)

type format uint8

const (
	csvFormat format = iota
	parquetFormat
	arrowFormat
	arrowStream
	emptyFile
)

// part is one file of a table.
type part struct {
	path   string
	format format
	hive   []string // values of the table's partition columns
	// separator is that of a text's columns, and unnamed a column without a name, or "".
	separator rune
	unnamed   string
}

// table is a file, or a folder of files with the same columns.
type table struct {
	path  string
	parts []part
	names []string          // columns, in lower case, those of partitions last
	hive  []string          // the partition columns
	odd   map[string]string // columns that cannot be read, and what they hold
	meter *tabular.Meter
	// separator is that of the columns of the first text file, 0 if there is none; unnamed are its columns without a name.
	separator rune
	unnamed   map[string]bool
	rows      *batch // all rows, of a table in memory; it has no parts
}

// fault is an error about a table; its text begins with the package.
func fault(format string, args ...any) error { return fmt.Errorf("tables: "+format, args...) }

// ours gives an error of package tabular the prefix of this package.
func ours(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if bare := phrase.Bare(err); bare != err { //nolint:errorlint // the same one
		return fault("%w", bare)
	}
	return err
}

// openTable finds the files of a table and reads the names of its columns.
func openTable(path string, meter *tabular.Meter) (*table, error) {
	t := &table{path: path, odd: map[string]string{}, meter: meter}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault("%w", err)
	}
	if !info.IsDir() {
		t.parts = []part{{path: path}}
	} else if err := t.walk(); err != nil {
		return nil, err
	}
	found := false
	for k := range t.parts {
		p := &t.parts[k]
		if p.format, err = sniff(p.path); err != nil {
			return nil, err
		}
		if p.format == emptyFile {
			continue
		}
		names, odd, err := p.columns()
		if err != nil {
			return nil, err
		}
		for _, key := range t.hive {
			if slices.Contains(names, key) {
				return nil, fault("%s: the column %s is in the file and in the name of its folder; remove one of them", p.path, shown(key))
			}
		}
		names = append(names, t.hive...)
		if !found {
			found, t.names, t.odd = true, names, odd
			t.separator, t.unnamed = p.separator, map[string]bool{p.unnamed: p.unnamed != ""}
			continue
		}
		for _, name := range t.names {
			if !slices.Contains(names, name) {
				return nil, fault("%s has no column %s, which other files of %s have; the files of one table have the same columns", p.path, shown(name), path)
			}
		}
		for _, name := range names {
			if !slices.Contains(t.names, name) {
				return nil, fault("%s has a column %s, which %s lacks; the files of one table have the same columns", p.path, shown(name), t.parts[0].path)
			}
		}
		for name, what := range odd {
			t.odd[name] = what
		}
	}
	if !found {
		return nil, fault("%s is empty; a table begins with the names of its columns", path)
	}
	return t, nil
}

// walk lists the files of a folder, sorted by path. It ignores names that begin with _ or a point, such as _SUCCESS.
func (t *table) walk() error {
	var keys []string
	err := filepath.WalkDir(t.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if path != t.path && (strings.HasPrefix(name, "_") && !strings.Contains(name, "=") || strings.HasPrefix(name, ".")) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		p := part{path: path}
		var here []string
		rel, err := filepath.Rel(t.path, path)
		if err != nil {
			return err
		}
		for _, dir := range strings.Split(filepath.Dir(rel), string(filepath.Separator)) {
			if key, value, ok := strings.Cut(dir, "="); ok {
				if value, err = url.PathUnescape(value); err != nil {
					return fmt.Errorf("%s: the name of its folder %s is not well escaped", path, shown(dir))
				}
				if value == noPartition {
					value = ""
				}
				here, p.hive = append(here, strings.ToLower(key)), append(p.hive, value)
			}
		}
		if t.parts != nil && !slices.Equal(here, keys) {
			return fmt.Errorf("%s: its folders are partitions by %v, and those of %s by %v", path, here, t.parts[0].path, keys)
		}
		keys = here
		t.parts = append(t.parts, p)
		return nil
	})
	if err != nil {
		return fault("%w", err)
	}
	if len(t.parts) == 0 {
		return fault("%s is a folder without files; a table is a file, or a folder of CSV, Parquet or Arrow files", t.path)
	}
	t.hive = keys
	return nil
}

// sniff detects a file's format by its first bytes.
func sniff(path string) (format, error) {
	f, err := atomicfile.Open(path)
	if err != nil {
		if errors.Is(err, atomicfile.ErrNotRegular) {
			return 0, fault("%s is not a regular file", path)
		}
		return 0, fault("%w", err)
	}
	defer f.Close()
	var head [6]byte
	n, err := io.ReadFull(f, head[:])
	switch h := string(head[:n]); {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return 0, fault("%w", err)
	case n == 0:
		return emptyFile, nil
	case strings.HasPrefix(h, "PAR1"):
		return parquetFormat, nil
	case h == "ARROW1":
		return arrowFormat, nil
	case strings.HasPrefix(h, "\xff\xff\xff\xff"):
		return arrowStream, nil
	}
	return csvFormat, nil
}

// columns returns the names of a file's columns, and those that cannot be read.
func (p *part) columns() (names []string, odd map[string]string, err error) {
	if p.format != csvFormat {
		names, odd, err = p.arrowColumns()
		if err != nil {
			return nil, nil, err
		}
		for i, name := range names {
			switch {
			case name == "":
				return nil, nil, fault("%s: column %d has no name", p.path, i+1)
			case !utf8.ValidString(name):
				return nil, nil, fault("%s: the name of column %d is not UTF-8", p.path, i+1)
			case slices.Contains(names[:i], name):
				return nil, nil, fault("%s: two columns are named %s", p.path, shown(name))
			}
		}
		return names, odd, nil
	}
	c, err := p.openCSV(&tabular.Meter{})
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	p.separator = c.Separator()
	if i := c.Unnamed(); i >= 0 {
		p.unnamed = c.Header[i]
	}
	return c.Header, map[string]string{}, nil
}

func (p *part) openCSV(meter *tabular.Meter) (*tabular.CSVFile, error) {
	f, err := tabular.OpenFile(p.path, meter)
	if err != nil {
		return nil, ours(err)
	}
	c, err := tabular.NewCSV(f)
	if err == nil {
		for i, name := range c.Header {
			if strings.ContainsRune(name, utf8.RuneError) { // lower case has replaced the bytes
				err = f.Wrong("line 1: the name of column %d is not UTF-8; convert the file first, such as with iconv -f latin1 -t utf-8", i+1)
			}
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, ours(err)
	}
	return c, nil
}

// each reads the table in batches, in order. want says which columns are read.
func (t *table) each(ctx context.Context, want []bool, visit func(b *batch) error) error {
	if t.rows != nil {
		return visit(t.rows)
	}
	for k := range t.parts {
		p := &t.parts[k]
		if p.format == emptyFile {
			continue
		}
		full := func(b *batch) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			for h := range t.hive {
				c := len(t.names) - len(t.hive) + h
				if want[c] {
					b.cols[c] = vec{class: text, s: slices.Repeat([]string{p.hive[h]}, b.n)}
				}
			}
			return visit(b)
		}
		read := p.eachArrow
		if p.format == csvFormat {
			read = p.eachCSV
		}
		if err := read(ctx, t, want, full); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) eachCSV(ctx context.Context, t *table, want []bool, visit func(b *batch) error) error {
	c, err := p.openCSV(t.meter)
	if err != nil {
		return err
	}
	defer c.Close()
	b := &batch{file: p.path, cols: make([]vec, len(t.names)), lines: make([]int, 0, batchRows)}
	to := make([]int, len(c.Header))
	for i, name := range c.Header {
		if to[i] = slices.Index(t.names, name); to[i] < 0 {
			return fault("%s was changed while it was read", p.path)
		}
		if want[to[i]] {
			b.cols[to[i]] = vec{class: text, s: make([]string, 0, batchRows)}
		}
	}
	flush := func() error {
		if b.n == 0 {
			return nil
		}
		err := visit(b)
		for i := range b.cols {
			b.cols[i].s = b.cols[i].s[:0]
		}
		b.n, b.lines = 0, b.lines[:0]
		return err
	}
	err = c.Each(ctx, func(record []string) error {
		same := true
		for i, field := range record {
			if !utf8.ValidString(field) {
				return c.At("the column %s is not UTF-8 text; convert the file first, such as with iconv -f latin1 -t utf-8", shown(c.Header[i]))
			}
			same = same && strings.EqualFold(field, c.Header[i])
			if v := &b.cols[to[i]]; v.class == text {
				v.s = append(v.s, field)
			}
		}
		if same {
			return c.At("it repeats the names of the columns, as files do that were joined with their first lines; remove this line")
		}
		b.lines = append(b.lines, c.Line())
		if b.n++; b.n == batchRows {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	return ours(err)
}
