package live

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphnb/graphnb/gnb/internal/chart"
)

// String formats the rate: "41.2 GFLOP/s", "12.3 M edges/s".
func (r Rate) String() string { return withUnit(r.PerSec, r.Unit) }

// withUnit formats a number with its unit. A unit of measure begins with a capital and directly
// follows the number's prefix; the name of something counted follows a space.
func withUnit(x float64, unit string) string {
	n := number(x)
	unit = oneLine(unit)
	if unit == "" {
		return n
	}
	first, _ := utf8.DecodeRuneInString(unit)
	prefixed := n != "" && strings.ContainsRune("kMGT", rune(n[len(n)-1]))
	if !prefixed || !unicode.IsUpper(first) {
		n += " "
	}
	return n + unit
}

// beside returns the rate with the machine's limit: "41.2 GFLOP/s, 14 % of 287 GFLOP/s".
func (r Rate) beside() string {
	if !(r.Limit > 0) {
		return r.String()
	}
	// Reads from caches can exceed the limit, which is that of memory.
	return fmt.Sprintf("%s, %.0f %% of %s", r, 100*r.PerSec/r.Limit, withUnit(r.Limit, r.Unit))
}

// ratesTexts returns the run's rates compared with the machine's limits.
func ratesTexts(s *Snapshot) (parts []string) {
	for _, r := range s.Rates {
		if r.PerSec > 0 {
			parts = append(parts, r.beside())
		}
	}
	return parts
}

func ratesText(s *Snapshot) string { return strings.Join(ratesTexts(s), "; ") }

// ratesHTML writes the same as a row, with a gauge below each rate whose limit is known.
func ratesHTML(b *strings.Builder, s *Snapshot) {
	if ratesText(s) == "" {
		return
	}
	b.WriteString(tableHead("width:100%"))
	cells := []string{head(txt+";vertical-align:top", "of this machine")}
	for _, r := range s.Rates {
		if !(r.PerSec > 0) {
			continue
		}
		c := esc(r.String())
		if r.Limit > 0 {
			share := r.PerSec / r.Limit
			c += fmt.Sprintf(` &nbsp;<b>%.0f %%</b> <span style="%s">of %s</span>`+
				`<div style="width:100%%;height:4px;border-radius:2px;overflow:hidden;background-color:%s"><div style="width:%.1f%%;height:4px;background-color:%s"></div></div>`,
				100*share, faint, esc(withUnit(r.Limit, r.Unit)), track, 100*clamp01(share), css(chart.Blue))
		}
		cells = append(cells, cell(txt+";vertical-align:top;width:30%", c))
	}
	row(b, false, cells...)
	b.WriteString("</table>")
}

// short formats a number such as a learning rate, with three significant digits.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
