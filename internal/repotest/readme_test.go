package repotest

import (
	"fmt"
	"strings"
	"testing"
)

// chartColours are the colours of a chart of README: of text, of GraphNB, and of peers as installed and tuned.
type chartColours struct{ text, ours, installed, tuned string }

var chartThemes = map[string]chartColours{
	"steps.svg":      {"#1f2328", "#1a7f37", "#b6c2cf", "#57606a"},
	"steps-dark.svg": {"#e6edf3", "#3fb950", "#484f58", "#9198a1"},
}

// chart draws the times of training steps, as installed and tuned, as an SVG.
func chart(t *testing.T, runs []*results, c chartColours) string {
	t.Helper()
	const left, bar, gap, width = 92.0, 13.0, 12.0, 400.0
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 204" font-family="sans-serif" font-size="12">` + "\n")
	text := func(x, y float64, anchor, weight, s string) {
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" text-anchor="%s" font-weight="%s" fill="%s">%s</text>`+"\n", x, y, anchor, weight, c.text, s)
	}
	for i, graph := range []struct{ row, title string }{{"train-arxiv", "ogbn-arxiv, ms a step"}, {"train-products", "products-like, ms a step"}} {
		x0, y := float64(i)*430, 34.0
		r := newest(t, runs, graph.row)
		text(x0+left, 18, "start", "bold", graph.title)
		longest := 0.0
		for _, engine := range []string{"DGL", "GraphBolt", "PyG"} {
			if v, ok := r.least(graph.row, engine, false, false); ok {
				longest = max(longest, v)
			}
		}
		scale := (width - left - 62) / longest
		draw := func(v float64, colour string) {
			fmt.Fprintf(&b, `<rect x="%.0f" y="%.0f" width="%.1f" height="%.0f" rx="1" fill="%s"/>`+"\n", x0+left, y, v*scale, bar, colour)
			text(x0+left+v*scale+5, y+11, "start", "normal", measured(v, "ms"))
			y += bar + 1
		}
		text(x0+left-8, y+11, "end", "bold", "GraphNB")
		draw(r.ours(t, graph.row, false), c.ours)
		y += gap
		for _, engine := range []string{"DGL", "GraphBolt", "PyG"} {
			text(x0+left-8, y+18, "end", "normal", engine)
			for _, tuned := range []bool{false, true} {
				v, ok := r.least(graph.row, engine, false, tuned)
				switch {
				case !ok && !tuned:
					t.Fatalf("%s has no %s of %s", r.file, graph.row, engine)
				case !ok:
					text(x0+left+5, y+11, "start", "normal", "best settings: not measured")
					y += bar + 1
					continue
				}
				draw(v, map[bool]string{false: c.installed, true: c.tuned}[tuned])
			}
			y += gap
		}
	}
	y := 192.0
	for i, key := range []struct{ colour, name string }{{c.ours, "GraphNB as installed"}, {c.installed, "peer as installed"}, {c.tuned, "peer with its best allocator settings"}} {
		x := left + float64(i)*190
		fmt.Fprintf(&b, `<rect x="%.0f" y="%.0f" width="12" height="12" rx="1" fill="%s"/>`+"\n", x, y-10, key.colour)
		text(x+18, y, "start", "normal", key.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// README's chart of step times, and its caption, are those of the newest recorded runs.
func TestReadmeChart(t *testing.T) {
	runs := recorded(t)
	arxiv, products := newest(t, runs, "train-arxiv"), newest(t, runs, "train-products")
	of := arxiv.versions("bench/results")
	if arxiv != products {
		of = fmt.Sprintf("ogbn-arxiv: %s; products-like: %s", of, products.versions("bench/results"))
	}
	compare(t, "./README.md", "steps", fmt.Sprintf("A training step of a three-layer GraphSAGE, 1,024 seed nodes, float32; medians. %s. PyG is its fastest variant. Settings and all other rows: [Performance](docs/performance.md).\n", of))
	for name, colours := range chartThemes {
		comparePicture(t, name, []byte(chart(t, runs, colours)))
	}
}
