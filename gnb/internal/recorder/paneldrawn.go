package recorder

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// draw takes something drawn into the panel.
func (p *panel) draw(e runs.Event) {
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
