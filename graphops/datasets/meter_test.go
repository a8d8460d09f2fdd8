package datasets

import (
	"context"
	"errors"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// progress checks reports of progress: they only increase, up to one total.
type progress struct {
	t           *testing.T
	calls       int
	done, total int64
}

func (p *progress) report(done, total int64) {
	if p.calls++; done < p.done || done > total || total == 0 || p.total != 0 && total != p.total {
		p.t.Errorf("report %d: %d of %d after %d of %d", p.calls, done, total, p.done, p.total)
	}
	p.done, p.total = done, total
}

// A generator reports its progress, gives the same result with and without reports, and stops when
// its context is cancelled.
func TestGeneratorProgress(t *testing.T) {
	testneed.NotShort(t, "it generates graphs with several numbers of threads")
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
				p := progress{t: t}
				m := &meter{ctx: t.Context(), report: p.report}
				d, err := generate(threads, m)
				if err != nil {
					t.Fatal(err)
				}
				same(t, d, plain)
				// With several threads, the thread that reports may process few of the parts, and
				// not the last one.
				if m.done.Load() != m.total.Load() || threads == 1 && (p.calls < 10 || p.done != p.total) {
					t.Errorf("%d reports, the last of %d of %d, the meter counted %d of %d", p.calls, p.done, p.total, m.done.Load(), m.total.Load())
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
	p := progress{t: t}
	if _, err := LoadWith(t.Context(), "planted?nodes=3000", LoadOptions{Progress: p.report}); err != nil || p.calls < 2 || p.done != p.total {
		t.Errorf("%d reports (%v)", p.calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := LoadWith(ctx, "planted?nodes=3000", LoadOptions{Progress: func(_, _ int64) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
