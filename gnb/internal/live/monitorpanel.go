package live

import (
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/machine"
)

// GPU is one of a run's GPUs, as the run's panel shows it.
type GPU struct {
	machine.GPU
	Run string // the run whose share of the memory is shown
	Sum string // what it did in the whole run, for the final table; "" is left out
}

// gpusHTML writes one row per GPU, below those of the workers.
func gpusHTML(b *strings.Builder, s *Snapshot) {
	if len(s.GPUs) == 0 {
		return
	}
	gpuTableHead(b)
	for i := range s.GPUs {
		g := &s.GPUs[i]
		gpuRow(b, g.Run, i, &g.GPU)
		gpuNoteRow(b, &g.GPU, whySlow(&g.GPU))
	}
	b.WriteString("</table>")
}

// gpusBusy returns the mean utilization of a run's GPUs for a line of text; "" if it is not known.
func gpusBusy(s *Snapshot) string {
	sum, n := 0.0, 0
	for i := range s.GPUs {
		if u := s.GPUs[i].Utilization; u.Known() {
			sum += float64(u)
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("GPU %s", screen.SharePercent(sum/float64(n)))
}
