package screentest

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/phrase"
)

// Buffer is a writer that a test may read while a sink writes to it.
type Buffer struct {
	mu     sync.Mutex
	b      bytes.Buffer
	writes int
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes++
	return b.b.Write(p)
}

// String returns what was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Count returns the number of writes.
func (b *Buffer) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes
}

// Terminal emulates a terminal of the given width and returns its lines. It handles carriage returns,
// line feeds, erasing to the end of the line and of the screen, moving up, and colours.
func Terminal(t *testing.T, out string, w int) []string {
	t.Helper()
	rows := [][]rune{{}}
	y, x := 0, 0
	r := []rune(out)
	for i := 0; i < len(r); i++ {
		switch c := r[i]; {
		case c == '\r':
			x = 0
		case c == '\n':
			y, x = y+1, 0 // the line discipline adds a carriage return
			if y == len(rows) {
				rows = append(rows, nil)
			}
		case c == 0x1b && strings.HasPrefix(string(r[i:min(i+3, len(r))]), "\x1b[K"):
			rows[y] = rows[y][:min(x, len(rows[y]))]
			i += 2
		case c == 0x1b:
			end := phrase.EscapeEnd(r, i)
			switch r[end] {
			case 'm':
			case 'A': // moves up
				n, err := strconv.Atoi(string(r[i+2 : end]))
				if err != nil || n > y {
					t.Fatalf("%d lines up from line %d (%v)", n, y, err)
				}
				y -= n
			case 'J': // erases everything from here on
				rows = rows[:y+1]
				rows[y] = rows[y][:min(x, len(rows[y]))]
			default:
				t.Fatalf("escape sequence %q", string(r[i:end+1]))
			}
			i = end
		default:
			if x >= w {
				t.Fatalf("a line is longer than the terminal's %d columns: %q", w, string(rows[y]))
			}
			for len(rows[y]) <= x {
				rows[y] = append(rows[y], ' ')
			}
			rows[y][x] = c
			x++
		}
	}
	lines := make([]string, len(rows))
	for i := range rows {
		lines[i] = strings.TrimRight(string(rows[i]), " ")
	}
	return lines
}
