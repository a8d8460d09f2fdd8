package repotest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The table of cooperative batches in docs/performance.md equals the counts of
// bench/cooperative.py, each dataset of its last call. In these batches no work is repeated, and the digests are those of one
// worker.
func TestCooperativeTable(t *testing.T) {
	var r struct {
		Datasets []struct {
			Name   string
			Timed  string
			Date   string
			Turns  int
			Load   []float64
			Step   map[string]float64 `json:"step_ms"`
			Counts []struct {
				Workers     int
				Cooperative bool
				Edges, Rows float64
				Moved       float64 `json:"moved_mb"`
				Digest      string
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "cooperative.json")), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| dataset | workers | repeated by independent workers: edges, rows | repeated by cooperative workers: edges, rows | moved per step |\n|---|---:|---:|---:|---:|\n")
	for _, d := range r.Datasets {
		alone := map[int]string{}
		for _, c := range d.Counts {
			if c.Digest == "" || c.Digest != d.Counts[0].Digest {
				t.Errorf("%s: the digest of %d workers differs from that of one", d.Name, c.Workers)
			}
			work := fmt.Sprintf("× %.2f, × %.2f", c.Edges, c.Rows)
			if !c.Cooperative {
				alone[c.Workers] = work
				continue
			}
			if c.Edges != 1 || c.Rows != 1 {
				t.Errorf("%s: %d cooperative workers repeat work: %s", d.Name, c.Workers, work)
			}
			fmt.Fprintf(&b, "| %s | %d | %s | %s | %.1f MB |\n", d.Name, c.Workers, alone[c.Workers], work, c.Moved)
		}
	}
	compare(t, "performance.md", "cooperative", b.String())
	b.Reset()
	b.WriteString("| dataset | one worker, two threads | two independent | two cooperative | cooperative / one | date, turns, load |\n|---|---:|---:|---:|---:|---|\n")
	for _, d := range r.Datasets {
		if len(d.Step) == 0 || len(d.Load) == 0 {
			continue
		}
		date := d.Timed
		if date == "" {
			date = d.Date
		}
		fmt.Fprintf(&b, "| %s | %.1f ms | %.1f ms | %.1f ms | %.2f | %s, %d, %.1f |\n", d.Name, d.Step["one"], d.Step["independent"], d.Step["cooperative"],
			d.Step["cooperative"]/d.Step["one"], date, d.Turns, slices.Max(d.Load))
	}
	compare(t, "performance.md", "cooperative-times", b.String())
}
