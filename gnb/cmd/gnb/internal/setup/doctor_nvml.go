package setup

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/watch"
	"github.com/graphnb/graphnb/gnb/monitor"
	"github.com/graphnb/graphnb/internal/machine"
)

// checkNVML reads the GPUs through NVML in a separate process, as "gnb monitor" does. An error of
// NVML is a failure only if the machine has GPUs.
func checkNVML(ctx context.Context, _ patient) check {
	self, err := os.Executable()
	if err != nil {
		return bad("run gnb by its full path", "finding this program: %v", err)
	}
	s, err := watch.First(ctx, monitor.Options{Helper: self, Interval: 200 * time.Millisecond})
	if err != nil {
		return bad("report it", "%v", err)
	}
	if len(s.GPUs) == 0 {
		why := strings.TrimPrefix(s.Note, "GPUs are not shown: ")
		if _, err := machine.GPUSlots(); err != nil {
			return good("%s; \"gnb monitor\" shows the host", why)
		}
		return bad("see what \"nvidia-smi\" says; training does not need it, gnb monitor does", "%s", why)
	}
	var found, wrong []string
	for i := range s.GPUs {
		g := &s.GPUs[i]
		if g.Error != "" {
			wrong = append(wrong, fmt.Sprintf("GPU %d: %s", g.Index, g.Error))
			continue
		}
		text := fmt.Sprintf("GPU %d %s", g.Index, g.Name)
		for _, m := range g.Instances {
			text += fmt.Sprintf(", %d:%d %s %s", g.Index, m.Index, m.Name, m.UUID)
		}
		if len(g.Throttled) > 0 {
			text += " (slowed: " + strings.Join(g.Throttled, ", ") + ")"
		}
		found = append(found, text)
	}
	if len(wrong) > 0 {
		return bad("see what \"nvidia-smi\" says of it; until it is back, leave it out with CUDA_VISIBLE_DEVICES", "%s", strings.Join(wrong, "; "))
	}
	return good("%s", strings.Join(found, "; "))
}
