package screen

import (
	"strings"

	"github.com/graphnb/graphnb/internal/phrase"
)

// Grid is a small table: its first column is text, and the others are numbers.
type Grid struct {
	Title string // "" for none
	Head  []string
	Rows  [][]string
}

// ShowGrids shows tables below a title, if it is not empty, in the current cell, with sentences behind them, and text for viewers without HTML; outside
// a notebook it does nothing.
func ShowGrids(title string, grids []Grid, notes []string, text string) error {
	return showGrids(title, grids, notes, text, Options{})
}

func showGrids(title string, grids []Grid, notes []string, text string, o Options) error {
	if Pick(&o) != Notebook {
		return nil
	}
	return send(o.Display, HTMLData("", gridsHTML(title, grids, notes), text))
}

func gridsHTML(title string, grids []Grid, notes []string) string {
	var b strings.Builder
	line := func(tag, text string) {
		b.WriteString("<" + tag + ">" + phrase.HTML(OneLine(text)) + "</" + tag + ">\n")
	}
	if title != "" {
		line("b", title)
	}
	for _, g := range grids {
		if g.Title != "" {
			line("b", g.Title)
		}
		b.WriteString("<table>\n")
		for i, row := range append([][]string{g.Head}, g.Rows...) {
			tag := "td"
			if i == 0 {
				tag = "th"
			}
			b.WriteString("<tr>")
			for j, cell := range row {
				align := "right"
				if j == 0 {
					align = "left"
				}
				b.WriteString("<" + tag + ` style="text-align:` + align + `">` + phrase.HTML(OneLine(cell)) + "</" + tag + ">")
			}
			b.WriteString("</tr>\n")
		}
		b.WriteString("</table>\n")
	}
	for _, n := range notes {
		line("div", n)
	}
	return b.String()
}
