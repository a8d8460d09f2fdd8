package live

import (
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// String formats the rate: "41.2 GFLOP/s", "12.3 M edges/s".
func (r Rate) String() string { return screen.WithUnit(r.PerSec, r.Unit) }

// beside returns the rate with the machine's limit: "41.2 GFLOP/s, 14 % of 287 GFLOP/s".
func (r Rate) beside() string {
	if !(r.Limit > 0) {
		return r.String()
	}
	// Reads from caches can exceed the limit, which is that of memory.
	return fmt.Sprintf("%s, %.0f %% of %s", r, 100*r.PerSec/r.Limit, screen.WithUnit(r.Limit, r.Unit))
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
	b.WriteString(screen.TableHead("width:100%"))
	cells := []string{screen.Head(screen.TextStyle+";vertical-align:top", "of this machine")}
	for _, r := range s.Rates {
		if !(r.PerSec > 0) {
			continue
		}
		c := screen.Escape(r.String())
		if r.Limit > 0 {
			share := r.PerSec / r.Limit
			c += fmt.Sprintf(` &nbsp;<b>%.0f %%</b> <span style="%s">of %s</span>`+
				`<div style="width:100%%;height:4px;border-radius:2px;overflow:hidden;background-color:%s"><div style="width:%.1f%%;height:4px;background-color:%s"></div></div>`,
				100*share, screen.Faint, screen.Escape(screen.WithUnit(r.Limit, r.Unit)), screen.Track, 100*screen.Clamp(share), screen.CSS(chart.Blue))
		}
		cells = append(cells, screen.Cell(screen.TextStyle+";vertical-align:top;width:30%", c))
	}
	screen.Row(b, false, cells...)
	b.WriteString("</table>")
}
