package runs

import (
	"fmt"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/phrase"
)

// Restart is what happened when a worker of a run failed and the workers were started again; see
// gnb.LaunchOptions.Restarts.
type Restart struct {
	When time.Time `json:"when"`
	// Rank is the worker that failed. Epoch, Step and Stage are its position: -1 and "starting"
	// before its program set one.
	Rank  int    `json:"rank"`
	Epoch int    `json:"epoch"`
	Step  int    `json:"step"`
	Stage string `json:"stage"`
	// Reason is the cause in a few words.
	Reason string `json:"reason"`
	// From is the step of the checkpoint from which the run continued, 0 if there was none.
	From int64 `json:"from"`
	// Workers is the number of workers since the restart.
	Workers int `json:"workers"`
}

func (r Restart) String() string {
	var at []string
	if r.Epoch >= 0 {
		at = append(at, fmt.Sprintf("epoch %d", r.Epoch))
	}
	if r.Step >= 0 {
		at = append(at, fmt.Sprintf("step %d", r.Step))
	}
	from := "the beginning, because there is no checkpoint yet"
	if r.From > 0 {
		from = fmt.Sprintf("the checkpoint after step %d", r.From)
	}
	return fmt.Sprintf("rank %d failed at %s: %s; %s started again from %s",
		r.Rank, strings.Join(append(at, "stage "+r.Stage), ", "), r.Reason, phrase.Count(r.Workers, "worker"), from)
}

// Restart shows a restart of the run's workers, and the run from there on. The run's configuration
// has the restart, and its metrics are cut to those before the checkpoint and contain the event.
// The workers must have ended; firstGPU is the GPU of the next rank 0.
func (rec *recorder) Restart(event any, firstGPU int, notes ...string) error {
	e := event.(Event)
	rec.endWatch()
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.o.FirstGPU = firstGPU
	for _, k := range rec.panel.ranks {
		rec.edges += k.now.edges
		rec.rows.add(k.now.rows)
	}
	rec.panel.restart(rec.run.Config.Workers)
	if err := rec.reread(); err != nil {
		return err
	}
	rec.run.Result.Restarts = len(rec.run.Config.Restarts)
	for _, n := range notes {
		rec.panel.print(n)
	}
	rec.panel.Observe(e)
	rec.panel.update()
	if rec.tell != nil {
		rec.tell.Observe(e)
	}
	return nil
}
