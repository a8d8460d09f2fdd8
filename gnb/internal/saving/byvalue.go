package saving

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/phrase"
)

// ByValue chooses the best epoch by a value that the program reports. Rank 0 has the values; the other ranks follow it.
type ByValue struct {
	Name     string
	Minimize bool
	Patience int // epochs without improvement after which to stop; 0 means never

	// Best are the values reported in the best epoch; checkpoints keep them.
	Best map[string]float64

	seen map[string]float64 // reported in this epoch
	// judged and not are the numbers of epochs in this process with a value, and of those whose value was not finite.
	judged, not int
	ever        map[string]bool // reported in this process
}

// EnterEpoch forgets the values of the last epoch.
func (b *ByValue) EnterEpoch() {
	if b != nil {
		b.seen = map[string]float64{}
	}
}

// See takes the values of an event.
func (b *ByValue) See(e runs.Event) {
	if b == nil || e.Kind != runs.KindMetrics && e.Kind != runs.KindLog {
		return
	}
	if b.ever == nil {
		b.ever = map[string]bool{}
	}
	for _, v := range e.Values {
		b.ever[v.Name] = true
		if b.seen != nil {
			b.seen[v.Name] = v.Value
		}
	}
}

// Judge ends an epoch, and reports whether to stop. All ranks take rank 0's value, which share, the sum over ranks,
// hands out. save takes the score, of which more is better, and returns whether it is the best, and the best epoch so far if
// there is any. Patience begins with the first best epoch: a value that is not a number yet says nothing about improvement.
func (b *ByValue) Judge(epoch int, first bool, share func([]float64), save func(score float64) (improved bool, best int, some bool)) (stop bool) {
	if b == nil {
		return false
	}
	v := []float64{0, 0}
	if x, ok := b.seen[b.Name]; ok && first {
		if b.Minimize {
			x = -x
		}
		v = []float64{1, x}
	}
	if share(v); v[0] == 0 {
		return false
	}
	if b.judged++; math.IsNaN(v[1]) || math.IsInf(v[1], 0) {
		b.not++
	}
	improved, best, some := save(v[1])
	if !improved {
		return some && b.Patience > 0 && epoch-best >= b.Patience
	}
	b.Best = map[string]float64{}
	maps.Copy(b.Best, b.seen)
	delete(b.Best, "epoch") // best_epoch says it
	b.Best["best_epoch"] = float64(epoch)
	return false
}

// Report gives the values of the best epoch to result, or prints what was reported instead of them.
func (b *ByValue) Report(print func(format string, args ...any), result func(name string, value float64)) {
	if b == nil {
		return
	}
	if b.Best == nil && len(b.ever) > 0 && !b.ever[b.Name] {
		print("BestBy: nothing was logged as %q, so no epoch is the best; logged: %s", b.Name, strings.Join(slices.Sorted(maps.Keys(b.ever)), ", "))
	}
	switch {
	case b.not > 0 && b.Best == nil:
		print("BestBy: %q was not a finite number in any of %s, so no epoch is the best, and no best weights are kept", b.Name, phrase.Count(b.judged, "epoch"))
	case b.not > 0:
		print("BestBy: %q was not a finite number in %d of %s, which cannot be the best", b.Name, b.not, phrase.Count(b.judged, "epoch"))
	}
	for name, value := range b.Best {
		result(name, value)
	}
}
