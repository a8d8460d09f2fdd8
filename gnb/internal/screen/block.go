package screen

import (
	"fmt"
	"io"
	"strings"
)

// Block is a group of terminal lines that are redrawn in place.
type Block struct {
	W     io.Writer
	Size  func() (cols, rows int)
	drawn int // lines on the screen
}

// NewBlock returns an empty block of the terminal that w writes to.
func NewBlock(w io.Writer) Block {
	return Block{W: w, Size: func() (cols, rows int) { return termSize(w) }}
}

// Draw overwrites the previously drawn lines and cuts lines to the terminal's width. If there are
// more lines than rows it omits some, because scrolled lines cannot be redrawn; the last drawing
// has all lines in full width.
func (b *Block) Draw(lines []string, cols, rows int, last bool) error {
	if most := max(rows-1, 3); rows > 0 && len(lines) > most && !last {
		rest := len(lines) - most + 1
		lines = append(lines[:most-1:most-1], Fit(fmt.Sprintf("and %s, for which this terminal is too low", Plural(rest, "more line")), cols-1))
	}
	var out strings.Builder
	if b.drawn > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\r", b.drawn)
	}
	end := EraseLine + "\n" // erased after the new text, so that it does not flicker
	if last {
		out.WriteString(eraseBelow)
		end = "\n"
	}
	for _, l := range lines {
		out.WriteString(l + end)
	}
	if !last {
		out.WriteString(eraseBelow)
	}
	b.drawn = len(lines)
	return Write(b.W, out.String())
}

const eraseBelow = "\x1b[J"
