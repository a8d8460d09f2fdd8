package runs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/tbevents"
)

// Drawn is something that a program logged to look at: a histogram, a chart, a picture or a table (see package gnb/figure).
type Drawn struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // "histogram", "chart", "picture" or "table"
	Text string `json:"text"` // what it shows, in words

	PNG    []byte `json:"png,omitempty"`   // how it looks, at twice the resolution of a standard screen; none for a table
	Width  int    `json:"width,omitempty"` // for display, in CSS pixels
	Height int    `json:"height,omitempty"`
	Areas  string `json:"areas,omitempty"` // its charts, for the script of notebooks

	Edges   []float64 `json:"edges,omitempty"` // of a histogram: one more than Counts, ascending
	Counts  []float64 `json:"counts,omitempty"`
	Sum     float64   `json:"sum,omitempty"`     // of a histogram's values
	Squares float64   `json:"squares,omitempty"` // the sum of their squares

	Head []string   `json:"head,omitempty"` // of a table: the names of columns
	Rows [][]string `json:"rows,omitempty"`
}

// draw takes something drawn into the panel.
func (p *panel) draw(e Event) {
	d := e.Drawn
	if d == nil {
		return
	}
	s := &p.snap
	at := fmt.Sprintf("step %s", chart.Grouped(int(e.Total)))
	if e.Total == 0 {
		at = fmt.Sprintf("epoch %d", e.Epoch+1)
	}
	shown := live.Drawn{Name: d.Name, Text: d.Text, At: at, PNG: d.PNG, Width: d.Width, Height: d.Height, Areas: chart.Checked(d.Areas), Head: d.Head, Rows: d.Rows}
	all := slices.Clone(s.Drawn) // the sink keeps the other one
	i := slices.IndexFunc(all, func(o live.Drawn) bool { return o.Name == d.Name })
	if i < 0 {
		i = len(all)
		all = append(all, shown)
	}
	all[i] = shown
	s.Drawn = all
}

// writeDrawn writes the last drawing of each name into the run's directory: drawn/NAME.png, or NAME.csv for a table.
func (p *panel) writeDrawn(dir string) error {
	if len(p.snap.Drawn) == 0 {
		return nil
	}
	dir = filepath.Join(dir, "drawn")
	err := os.MkdirAll(dir, 0o755)
	taken := map[string]bool{}
	for _, d := range p.snap.Drawn {
		data, ext := d.PNG, ".png"
		if data == nil {
			data, ext = csvOf(append([][]string{d.Head}, d.Rows...)), ".csv"
		}
		name := fileName(d.Name)
		for base, n := name, 2; taken[strings.ToLower(name+ext)]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[strings.ToLower(name+ext)] = true
		path := filepath.Join(dir, name+ext)
		if err == nil {
			err = atomicfile.Replaceable(path)
		}
		if err == nil {
			err = atomicfile.WriteFile(path, data, 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("runs: writing what the run has drawn: %w", err)
	}
	return nil
}

// csvOf writes cells of one line each as CSV (RFC 4180), without the package that reads it, too.
func csvOf(rows [][]string) []byte {
	var b bytes.Buffer
	for _, row := range rows {
		for i, s := range row {
			if i > 0 {
				b.WriteByte(',')
			}
			if strings.ContainsAny(s, "\",") || s == "" && len(row) == 1 {
				s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
			}
			b.WriteString(s)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// fileName returns a name of a file for a logged name.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)) {
			return r
		}
		return '_'
	}, name)
	if name = strings.Trim(name, "."); name == "" {
		name = "drawing"
	}
	return name[:min(len(name), 80)]
}

// draw writes something drawn in the form that TensorBoard has for it.
func (b *board) draw(e Event) error {
	d, tag := e.Drawn, "log/"
	if d == nil {
		return nil
	}
	tag += d.Name
	switch {
	case d.Kind == runfile.Histogram && len(d.Counts) > 0 && len(d.Edges) == len(d.Counts)+1:
		return b.w.Histogram(b.at, e.Total, tag, tbevents.Histogram{Edges: d.Edges, Counts: d.Counts, Sum: d.Sum, Squares: d.Squares})
	case len(d.PNG) > 24: // its header has the size
		return b.w.PNG(b.at, e.Total, tag, int(binary.BigEndian.Uint32(d.PNG[16:])), int(binary.BigEndian.Uint32(d.PNG[20:])), d.PNG)
	case d.Kind != runfile.Table:
		return nil
	}
	var text strings.Builder // Markdown
	row := func(cells []string) {
		for _, c := range cells {
			text.WriteString("| " + phrase.Markdown(c) + " ")
		}
		text.WriteString("|\n")
	}
	row(d.Head)
	text.WriteString(strings.Repeat("|---", len(d.Head)) + "|\n")
	for _, r := range d.Rows {
		row(r)
	}
	return b.w.Text(b.at, e.Total, tag, text.String())
}
