package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Write writes s, unless it is empty.
func Write(w io.Writer, s string) error {
	if s == "" {
		return nil
	}
	if _, err := io.WriteString(w, s); err != nil {
		return fmt.Errorf("writing progress: %w", err)
	}
	return nil
}

// Style describes what a terminal supports.
type Style struct {
	color bool
	ASCII bool
}

// TermStyle returns what the environment says about the terminal.
func TermStyle() Style {
	st := Style{color: os.Getenv("NO_COLOR") == ""}
	for _, k := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(k)); v != "" {
			st.ASCII = !strings.Contains(v, "UTF-8") && !strings.Contains(v, "UTF8")
			break
		}
	}
	return st
}

func (st Style) paint(sgr, s string) string {
	if !st.color || s == "" {
		return s
	}
	return sgr + s + sgrReset
}

// State colours a text by the given state.
func (st Style) State(state, s string) string {
	switch state {
	case Done:
		return st.paint(sgrGreen, s)
	case Failed:
		return st.paint(sgrRed, s)
	case Interrupted:
		return st.paint(sgrYellow, s)
	}
	return s
}

// Gauge draws a bar of w columns, filled to the nearest half column.
func (st Style) Gauge(share float64, w int) string {
	full, half, empty := "━", "╸", "─"
	if st.ASCII {
		full, half, empty = "#", "", "-"
	}
	n := int(Clamp(share)*float64(2*w) + 0.5)
	on := strings.Repeat(full, n/2)
	if n%2 == 1 {
		on += half
	}
	return st.paint(SgrCyan, on) + st.paint(sgrDim, strings.Repeat(empty, w-Width(on)))
}

const EraseLine = "\x1b[K"

const (
	sgrReset  = "\x1b[0m"
	sgrDim    = "\x1b[2m"
	sgrRed    = "\x1b[31m"
	sgrGreen  = "\x1b[32m"
	sgrYellow = "\x1b[33m"
	SgrCyan   = "\x1b[36m"
)
