package live

import (
	"fmt"
	"io"
	"strings"
)

// block is some lines of a terminal that are drawn anew in their place.
type block struct {
	w     io.Writer
	size  func() (cols, rows int)
	drawn int // lines on the screen
}

func newBlock(w io.Writer) block {
	return block{w: w, size: func() (cols, rows int) { return termSize(w) }}
}

// draw writes lines, no wider than the terminal, over those that it wrote before. Of
// more lines than the terminal has rows it leaves some out, since what has scrolled off
// cannot be drawn anew; the last drawing, which stays, has all, however wide.
func (b *block) draw(lines []string, cols, rows int, last bool) error {
	if most := max(rows-1, 3); rows > 0 && len(lines) > most && !last {
		rest := len(lines) - most + 1
		lines = append(lines[:most-1:most-1], fit(fmt.Sprintf("and %s, for which this terminal is too low", plural(rest, "more line")), cols-1))
	}
	var out strings.Builder
	if b.drawn > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\r", b.drawn)
	}
	end := eraseLine + "\n" // erased after the new text, so that it does not flicker
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
	return write(b.w, out.String())
}

const eraseBelow = "\x1b[J"
