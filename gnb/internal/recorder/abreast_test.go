package recorder

import (
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// The head of the panel and its row for all workers agree with the workers' own rows.
func TestTheRunStandsWhereItsWorkersDo(t *testing.T) {
	workers := func(pos ...int) (ws []live.Worker) {
		for i := 0; i < len(pos); i += 2 {
			ws = append(ws, live.Worker{Rank: i / 2, Epoch: pos[i], Step: pos[i+1]})
		}
		return ws
	}
	for _, c := range []struct {
		name        string
		in          live.Snapshot
		epoch, step int
	}{
		{"reports lag", live.Snapshot{State: screen.Running, Epoch: 3, Epochs: 20, Step: 10, Steps: 59, Workers: workers(3, 22, 3, 22)}, 3, 22},
		{"the last worker counts", live.Snapshot{State: screen.Running, Epoch: 3, Epochs: 20, Step: 10, Steps: 59, Workers: workers(3, 22, 3, 21)}, 3, 21},
		{"an epoch later", live.Snapshot{State: screen.Running, Epoch: 3, Epochs: 20, Step: 59, Steps: 59, Workers: workers(4, 1, 4, 2)}, 4, 1},
		{"after the last step", live.Snapshot{State: screen.Running, Epoch: 3, Epochs: 20, Step: 58, Steps: 59, Workers: workers(3, 60, 3, 60)}, 3, 59},
		{"workers that have not begun", live.Snapshot{State: screen.Running, Epoch: 3, Epochs: 20, Step: 10, Steps: 59, Workers: workers(0, 0, 3, 12)}, 3, 10},
		{"after the last epoch", live.Snapshot{State: screen.Running, Epoch: 20, Epochs: 20, Step: 59, Steps: 59, Workers: workers(21, 1)}, 20, 59},
		{"evaluating", live.Snapshot{State: screen.Evaluating, Epoch: 3, Epochs: 20, Step: 10, Steps: 59, Workers: workers(3, 22)}, 3, 10},
		{"no workers", live.Snapshot{State: screen.Running, Epoch: 3, Step: 10}, 3, 10},
	} {
		if got := abreast(c.in); got.Epoch != c.epoch || got.Step != c.step {
			t.Errorf("%s: epoch %d, step %d, want %d and %d", c.name, got.Epoch, got.Step, c.epoch, c.step)
		}
	}
}
