package multigpu

import "testing"

// However often a meter is read, it looks seldom; what it saw highest stays.
func TestMeterLooksSeldom(t *testing.T) {
	var m meter
	looks := 0
	for range 1000 {
		m.read(func() int64 { looks++; return int64(10 - looks) })
	}
	if looks == 0 || looks > 20 {
		t.Errorf("%d looks in 1000 readings, want few", looks)
	}
	if m.highest() != 9 {
		t.Errorf("highest %d, want 9", m.highest())
	}
}
