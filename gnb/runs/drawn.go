package runs

import (
	"encoding/binary"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
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
