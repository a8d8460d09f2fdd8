package live

import (
	"runtime"
	"testing"
	"time"
)

// After a drawing, the pump rests until the interval is over. It rests longer if drawing takes
// long, so that drawing uses 0.5 % of the machine but the panel still moves; with a slow reader it
// rests half of the time.
func TestRest(t *testing.T) {
	p := &pump{interval: 50 * time.Millisecond, drawn: eagerFrames + 1}
	cpus := time.Duration(runtime.NumCPU())
	for _, c := range []struct{ took, want time.Duration }{
		{0, 50 * time.Millisecond},
		{cpus * 50 * time.Microsecond, max(50*time.Millisecond-cpus*50*time.Microsecond, 10*time.Millisecond)},
		{cpus * 500 * time.Microsecond, 100 * time.Millisecond},
		{cpus * 10 * time.Millisecond, max(longestRest, cpus*10*time.Millisecond)},
		{time.Second, time.Second},
	} {
		if got := p.rest(c.took); got != c.want {
			t.Errorf("after a drawing of %v the pump rests %v, want %v", c.took, got, c.want)
		}
	}
	p.drawn = eagerFrames
	if got := p.rest(10 * time.Millisecond); got != 40*time.Millisecond {
		t.Errorf("after one of the first frames the pump rests %v, want 40ms", got)
	}
}
