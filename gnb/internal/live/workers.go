package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// mostWorkers is the maximum number of workers with a row each; beyond it, the panel shows the
// slowest and the fastest workers and a summary of the others.
const mostWorkers = 16

// workerRow is the row of one worker.
type workerRow struct {
	name string
	*Worker
}

// workerRows returns the workers' rows, and a summary of the workers without a row; "" if each has
// one.
func workerRows(s *Snapshot) (rows []workerRow, rest string) {
	ws := s.Workers
	if len(ws) <= mostWorkers {
		for i := range ws {
			rows = append(rows, workerRow{strconv.Itoa(ws[i].Rank), &ws[i]})
		}
		return rows, ""
	}
	slowest, fastest := 0, 0
	for i := range ws {
		if slower(&ws[i], &ws[slowest]) < 0 {
			slowest = i
		}
		if slower(&ws[i], &ws[fastest]) > 0 {
			fastest = i
		}
	}
	if slowest != fastest {
		rows = []workerRow{
			{fmt.Sprintf("%d, the slowest", ws[slowest].Rank), &ws[slowest]},
			{fmt.Sprintf("%d, the fastest", ws[fastest].Rank), &ws[fastest]},
		}
	}
	return rows, workersText(s)
}

// slower orders workers by speed. Workers step together, so their rates are alike: the slowest is
// the one that waits least for the others.
func slower(a, b *Worker) int {
	return cmp.Or(cmp.Compare(a.waiting(), b.waiting()), cmp.Compare(a.SeedsPerSec, b.SeedsPerSec))
}

// waiting returns the share of its time that a worker waits for the others' gradients. On a GPU
// this wait is part of the all-reduce stage.
func (w *Worker) waiting() (share float64) {
	for _, st := range w.Stages {
		if st.Name == "idle" || st.Name == "all-reduce" {
			share += st.Share
		}
	}
	return share
}

// workersText summarises many workers in one line: "32 workers: 900 to 1.2 k seeds/s, 1.1 k at the
// median; waiting for others 2 % to 31 % of the time; now 30 forward, 2 sample".
func workersText(s *Snapshot) string {
	ws := s.Workers
	var seeds, waits []float64
	now := map[string]int{}
	for i := range ws {
		w := &ws[i]
		if chart.Finite(w.SeedsPerSec) && w.SeedsPerSec > 0 {
			seeds = append(seeds, w.SeedsPerSec)
		}
		if len(w.Stages) > 0 {
			waits = append(waits, w.waiting())
		}
		if w.Stage != "" && !s.final() {
			now[screen.OneLine(w.Stage)]++
		}
	}
	var parts []string
	if len(seeds) > 0 {
		slices.Sort(seeds)
		parts = append(parts, fmt.Sprintf("%s to %s %s, %s at the median", screen.Number(seeds[0]), screen.Number(seeds[len(seeds)-1]), s.perSec(), screen.Number(seeds[len(seeds)/2])))
	}
	if len(waits) > 0 {
		parts = append(parts, fmt.Sprintf("waiting for others %s to %s of the time", screen.SharePercent(slices.Min(waits)), screen.SharePercent(slices.Max(waits))))
	}
	if len(now) > 0 {
		names := slices.Sorted(maps.Keys(now))
		slices.SortStableFunc(names, func(a, b string) int { return now[b] - now[a] })
		for i, n := range names {
			names[i] = fmt.Sprintf("%d %s", now[n], n)
		}
		parts = append(parts, "now "+strings.Join(names, ", "))
	}
	return strings.Join(screen.NonEmpty(screen.Plural(len(ws), "worker"), strings.Join(parts, "; ")), ": ")
}

// perSec is the unit of the workers' rates: seeds/s, or for instance graphs/s.
func (s *Snapshot) perSec() string { return cmp.Or(screen.OneLine(s.Counted), "seeds") + "/s" }

// totals returns the sums of the workers' rates and of their memory (rss).
func (s *Snapshot) totals() (seeds, edges float64, rss int64) {
	for i := range s.Workers {
		w := &s.Workers[i]
		seeds += w.SeedsPerSec
		edges += w.EdgesPerSec
		rss += w.RSS
	}
	return seeds, edges, rss
}
