package feed

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/sample"
)

func TestLoaderDefaults(t *testing.T) {
	differ := errors.New("networks differ")
	deep := func(layers int) func() (int, error) { return func() (int, error) { return layers, nil } }
	setting := Setting{Seeds: 100, World: 2, Virtual: 3, Depth: deep(2)}
	with := func(change func(s *Setting)) Setting {
		s := setting
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		l     Loader
		s     Setting
		want  Loader // Batch, Hops, Ahead, Cooperative; Fanouts if they are set
		steps int
		fails string
	}{
		"nothing set":       {Loader{}, setting, Loader{Batch: 100, Hops: 2, Ahead: 2, Fanouts: []int{10, 10}}, 1, ""},
		"large split":       {Loader{}, with(func(s *Setting) { s.Seeds = 5000 }), Loader{Batch: 1024, Hops: 2, Ahead: 2}, 5, ""},
		"no seeds":          {Loader{Ahead: 4}, with(func(s *Setting) { s.Seeds = 0 }), Loader{Batch: 1, Hops: 2, Ahead: 1}, 0, ""},
		"per worker":        {Loader{BatchPerWorker: 4}, setting, Loader{Batch: 24, Hops: 2, Ahead: 2}, 5, ""},
		"per worker, huge":  {Loader{BatchPerWorker: 1 << 62}, setting, Loader{Batch: 100, Hops: 2, Ahead: 2}, 1, ""},
		"some steps":        {Loader{Batch: 7, MaxSteps: 3, Ahead: 20}, setting, Loader{Batch: 7, Hops: 2, Ahead: 9}, 3, ""},
		"own fanouts":       {Loader{Fanouts: []int{3}}, with(func(s *Setting) { s.Depth = deep(0) }), Loader{Batch: 100, Hops: 1, Ahead: 2, Fanouts: []int{3}}, 1, ""},
		"a sampler's hops":  {Loader{Sampler: sample.Labor{Fanouts: []int{1, 2, 3}}}, with(func(s *Setting) { s.Depth = func() (int, error) { return 0, differ } }), Loader{Batch: 100, Hops: 3, Ahead: 2}, 1, ""},
		"networks differ":   {Loader{}, with(func(s *Setting) { s.Depth = func() (int, error) { return 0, differ } }), Loader{}, 0, "networks differ"},
		"no network":        {Loader{}, with(func(s *Setting) { s.Depth = deep(0) }), Loader{}, 0, "needs Fanouts, or Hops"},
		"both batches":      {Loader{Batch: 1, BatchPerWorker: 1}, setting, Loader{}, 0, "not both"},
		"negative":          {Loader{MaxSteps: -1}, setting, Loader{}, 0, "cannot be negative"},
		"two samplers":      {Loader{Sampler: sample.Fanouts{1}, Frontier: frontier{}}, setting, Loader{}, 0, "one of Sampler and Frontier"},
		"sampler, fanouts":  {Loader{Sampler: sample.Fanouts{1}, Fanouts: []int{1}}, setting, Loader{}, 0, "give the sampler its fanouts itself"},
		"together":          {Loader{Cooperative: true}, with(func(s *Setting) { s.Virtual = 1 }), Loader{Batch: 100, Hops: 2, Ahead: 1, Cooperative: true}, 1, ""},
		"together, alone":   {Loader{Cooperative: true}, with(func(s *Setting) { s.World, s.Virtual = 1, 1 }), Loader{Batch: 100, Hops: 2, Ahead: 1}, 1, ""},
		"together, virtual": {Loader{Cooperative: true}, setting, Loader{}, 0, "3 virtual ranks per worker"},
	} {
		t.Run(name, func(t *testing.T) {
			got, steps, err := c.l.Complete(c.s)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("error %v, want one about %q", err, c.fails)
				}
				return
			}
			if err != nil || steps != c.steps || got.Batch != c.want.Batch || got.Hops != c.want.Hops || got.Ahead != c.want.Ahead || got.Cooperative != c.want.Cooperative {
				t.Errorf("%+v, %d steps, %v; want %+v and %d", got, steps, err, c.want, c.steps)
			}
			if c.want.Fanouts != nil && !slices.Equal(got.Fanouts, c.want.Fanouts) {
				t.Errorf("fanouts %v, want %v", got.Fanouts, c.want.Fanouts)
			}
		})
	}
}
