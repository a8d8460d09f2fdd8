package screen

import (
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

func TestPick(t *testing.T) {
	out := &screentest.Buffer{}
	for _, c := range []struct {
		name string
		env  map[string]string
		o    Options
		want mode
	}{
		{"pipe", nil, Options{Out: out}, Plain},
		{"display", nil, Options{Display: &screentest.Tape{}}, Notebook},
		{"quiet", nil, Options{Display: &screentest.Tape{}, Quiet: true}, modeNone},
		{"worker", map[string]string{"GNB_WORKER": "1"}, Options{}, modeNone},
		{"tests are no terminal", map[string]string{"TERM": "dumb"}, Options{}, Plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			if got := Pick(&c.o); got != c.want {
				t.Errorf("pick returned %d, want %d", got, c.want)
			}
			if c.o.MaxFPS != 20 {
				t.Errorf("the default is %d frames per second", c.o.MaxFPS)
			}
		})
	}
}
