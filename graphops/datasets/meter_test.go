package datasets

import (
	"context"
	"errors"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A generator reports its progress, gives the same result with and without reports, and stops when
// its context is cancelled.
func TestGeneratorProgress(t *testing.T) {
	testneed.Raced(t, "it generates graphs with several numbers of threads")
	for name, generate := range map[string]func(threads int, m *meter) (*dataset.Dataset, error){
		"planted": func(threads int, m *meter) (*dataset.Dataset, error) {
			return planted(PlantedOptions{Nodes: 20_000, Features: 8}.defaults(), threads, m)
		},
		"rmat": func(threads int, m *meter) (*dataset.Dataset, error) {
			return rmat(RMATOptions{Scale: 14}.defaults(), threads, m)
		},
		"rmat without features": func(threads int, m *meter) (*dataset.Dataset, error) {
			return rmat(RMATOptions{Scale: 14, Features: -1, Classes: -1}.defaults(), threads, m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			plain, err := generate(2, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, threads := range []int{1, 3} {
				p := expect.Progress{T: t}
				m := &meter{ctx: t.Context(), report: p.Report}
				d, err := generate(threads, m)
				if err != nil {
					t.Fatal(err)
				}
				same(t, d, plain)
				// With several threads, the thread that reports may process few of the parts, and
				// not the last one.
				if m.done.Load() != m.total.Load() || threads == 1 && (p.Calls < 10 || p.Done != p.Total) {
					t.Errorf("%d reports, the last of %d of %d, the meter counted %d of %d", p.Calls, p.Done, p.Total, m.done.Load(), m.total.Load())
				}
			}
			for _, share := range []float64{0, 0.3, 0.9} {
				ctx, cancel := context.WithCancel(t.Context())
				d, err := generate(2, &meter{ctx: ctx, report: func(done, total int64) {
					if float64(done) >= share*float64(total) {
						cancel()
					}
				}})
				cancel()
				if !errors.Is(err, context.Canceled) || d != nil {
					t.Errorf("cancelled after %v: %v", share, err)
				}
			}
		})
	}
}

func TestLoadProgress(t *testing.T) {
	p := expect.Progress{T: t}
	if _, err := LoadWith(t.Context(), "planted?nodes=3000", LoadOptions{Progress: p.Report}); err != nil || p.Calls < 2 || p.Done != p.Total {
		t.Errorf("%d reports (%v)", p.Calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := LoadWith(ctx, "planted?nodes=3000", LoadOptions{Progress: func(_, _ int64) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
