package phrase

import (
	"html"
	"strings"
)

// HTML returns text for an element or an attribute of HTML or SVG, whatever its quotes. It is the one function by which text
// that is no constant of the program gets there: names in a run's record, a dataset, a table or an answer of a server may
// hold tags and scripts.
// Characters that have no place there ([Legal]) become U+FFFD.
func HTML(text string) string { return html.EscapeString(Legal(text)) }

// Legal returns text with U+FFFD in the place of what XML, and so a drawing in SVG, cannot hold: control characters but line
// breaks and tabs, and bytes that are no UTF-8.
func Legal(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, text)
}

// Markdown returns one line of text for Markdown, such as a cell of a table: without HTML, links, emphasis, or the end of
// the cell.
func Markdown(text string) string {
	out := make([]byte, 0, len(text)+8)
	for i := range len(text) {
		switch c := text[i]; c {
		case '\n', '\r':
			out = append(out, ' ')
		case '\\', '|', '[', ']', '`', '*', '_', '~':
			out = append(out, '\\', c)
		default:
			out = append(out, c)
		}
	}
	return HTML(string(out))
}
