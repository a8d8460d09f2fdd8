package live

import (
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/screen"
)

func TestProgressOfRun(t *testing.T) {
	for _, c := range []struct {
		s     Snapshot
		want  float64
		known bool
	}{
		{Snapshot{}, 0, false},
		{Snapshot{State: screen.Done}, 1, true},
		{Snapshot{Epochs: 4}, 0, true},
		{Snapshot{Epoch: 2, Epochs: 4, Step: 5, Steps: 10}, 0.375, true},
		{Snapshot{Epoch: 4, Epochs: 4, Step: 10, Steps: 10}, 1, true},
		{Snapshot{Epoch: 9, Epochs: 4}, 1, true},
		{Snapshot{Step: 5, Steps: 10}, 0.5, true},
	} {
		if got, known := c.s.progress(); got != c.want || known != c.known {
			t.Errorf("%+v: %g %v, want %g %v", c.s, got, known, c.want, c.known)
		}
	}
}
