package repotest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The table of prefetched rows in docs/performance.md is what bench/prefetch measured, and runs over hosts had the
// weights of runs on one machine.
func TestPrefetchTable(t *testing.T) {
	var r struct {
		CPU   string
		CPUs  int
		Load  float64
		Sides []struct {
			Name, Method string
			Args         []string
			Hosts        float64 `json:"hosts_ms"`
			Local        float64 `json:"local_ms"`
			Busy         float64 `json:"local_busy_ms"`
			Wire         float64 `json:"wire_ms"`
			Reduce       float64 `json:"allreduce_ms"`
			Rows         float64 `json:"rows_mb"`
			Ratio        float64
			Idle         float64 `json:"ratio_idle"`
			Same         bool    `json:"same_weights"`
		}
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "prefetch.json")), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| run | rows per step | over hosts | here, beside the forwarder's load | here, idle | rows on the wire | all-reduce | ratio | ratio to idle |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	met := 0
	for _, s := range r.Sides {
		if !s.Same {
			t.Errorf("%s: the run over hosts has other weights", s.Name)
		}
		if s.Ratio <= 1.2 {
			met++
		}
		fmt.Fprintf(&b, "| %s: %s partition, `%s` | %.2f MB | %.1f ms | %.1f ms | %.1f ms | %.1f ms | %.1f ms | %.2f | %.2f |\n",
			s.Name, s.Method, strings.Join(s.Args, " "), s.Rows, s.Hosts, s.Busy, s.Local, s.Wire, s.Reduce, s.Ratio, s.Idle)
	}
	fmt.Fprintf(&b, "\nThe ratio is at most 1.2 in %d of %d runs. The machine: %s, %d CPUs, load %.1f before.\n", met, len(r.Sides), r.CPU, r.CPUs, r.Load)
	compare(t, "performance.md", "prefetch", b.String())
}
