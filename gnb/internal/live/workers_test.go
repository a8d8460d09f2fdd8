package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// many returns n workers, of which number 20 is the slowest.
func many(n int) (ws []Worker) {
	for i := range n {
		w := Worker{
			Rank: i, Epoch: 1, Step: 3, SeedsPerSec: 1000 + 10*float64(i), Stage: "forward",
			Stages: []StageShare{{"forward", 0.6}, {"all-reduce", 0.1}, {"idle", 0.3 - 0.001*float64(i)}},
		}
		if i == 20 {
			w.SeedsPerSec, w.Stage, w.Stages = 2000, "<b>sample", []StageShare{{"sample", 0.4}, {"forward", 0.6}}
		}
		ws = append(ws, w)
	}
	return ws
}

// A few workers have one row each; of many workers, only notable ones have a row. This holds for
// the panel, the final table and its text.
func TestManyWorkersAreFolded(t *testing.T) {
	for _, n := range []int{1, 2, 16, 17, 64, 200} {
		s := Snapshot{State: screen.Running, Workers: many(n)}
		var b strings.Builder
		workersHTML(&b, &s)
		end := s
		end.State = screen.Done
		table, plain := tableHTML("x", &end, nil, ""), tablePlain(&end, nil)
		if lines := strings.Count(plain, "\nworker "); n <= mostWorkers && lines != n || n > mostWorkers && lines != 2 {
			t.Errorf("%d lines for %d workers:\n%s", lines, n, plain)
		}
		if rows := strings.Count(b.String(), "<tr"); rows > mostWorkers+2 || n > mostWorkers && rows != 4 {
			t.Errorf("%d rows for %d workers", rows, n)
		}
		if rows := strings.Count(table, "<tr"); rows > mostWorkers+9 {
			t.Errorf("%d rows in the table of %d workers", rows, n)
		}
		if n <= 20 {
			continue
		}
		for name, text := range map[string]string{"panel": b.String(), "table": table, "text": plain} {
			for _, want := range []string{"20, the slowest", "0, the fastest", fmt.Sprint(n, " workers: 1.00 k to "), " at the median; waiting for others 0 % to 40 % of the time"} {
				if !strings.Contains(text, want) {
					t.Errorf("the %s of %d workers lacks %q:\n%s", name, n, want, text)
				}
			}
			if now := strings.Contains(text, fmt.Sprintf("; now %d forward, 1 &lt;b&gt;sample", n-1)); now != (name == "panel") {
				t.Errorf("the %s shows the workers' current stages: %v", name, now)
			}
		}
	}
}

// Before the first rates are known, no worker counts as the slowest.
func TestManyWorkersAtTheStart(t *testing.T) {
	s := Snapshot{State: screen.Starting, Workers: make([]Worker, 40)}
	if rows, rest := workerRows(&s); len(rows) != 0 || rest != "40 workers" {
		t.Errorf("%d rows and %q", len(rows), rest)
	}
	s.Workers[7].SeedsPerSec = 5
	if rows, rest := workerRows(&s); len(rows) != 2 || rows[1].Worker != &s.Workers[7] || rest != "40 workers: 5 to 5 seeds/s, 5 at the median" {
		t.Errorf("%v and %q", rows, rest)
	}
}

// All forms of the panel name what the rates count.
func TestRatesHaveTheirUnit(t *testing.T) {
	s := Snapshot{Title: "molecules", Epoch: 1, Epochs: 2, Elapsed: 10 * time.Second, Counted: "graphs"}
	for i := range 20 {
		s.Workers = append(s.Workers, Worker{Rank: i, SeedsPerSec: 7, EdgesPerSec: 70})
	}
	var b strings.Builder
	workersHTML(&b, &s)
	for name, text := range map[string]string{"panel": b.String(), "progress": ProgressLine(&s), "epoch": epochLine(&s, 1), "table": tableHTML("id", &s, nil, ""), "text": tablePlain(&s, nil), "summary": summary(&s)[0], "workers": workersText(&s)} {
		if !strings.Contains(text, "graphs/s") || strings.Contains(text, "seeds") {
			t.Errorf("the %s says:\n%s", name, text)
		}
	}
}
