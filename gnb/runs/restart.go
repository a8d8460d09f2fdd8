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
