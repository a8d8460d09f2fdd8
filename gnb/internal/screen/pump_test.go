package screen

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// After a drawing, the pump rests until the interval is over. It rests longer if drawing takes
// long, so that drawing uses 0.5 % of the machine but the panel still moves; with a slow reader it
// rests half of the time.
func TestRest(t *testing.T) {
	p := &Pump{interval: 50 * time.Millisecond, drawn: eagerFrames + 1}
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

func TestLogIsNeverLostSilently(t *testing.T) {
	p := &Pump{wake: make(chan struct{}, 1)}
	for range maxQueued + 500 {
		p.Print("x")
	}
	if len(p.next.Lines) != maxQueued || p.next.lost != 500 {
		t.Errorf("the log keeps %d lines and counts %d as lost", len(p.next.Lines), p.next.lost)
	}
	var b strings.Builder
	p.next.Log(&b, "", "\n")
	if !strings.HasPrefix(b.String(), "… 500 lines left out\n") {
		t.Errorf("the log starts with %.40q", b.String())
	}
}
