package multigpu

import "testing"

// A meter measures rarely, however often it is read, and keeps the highest value it has measured.
func TestMeterLooksSeldom(t *testing.T) {
	var m meter
	looks := 0
	for range 1000 {
		m.read(func() int64 { looks++; return int64(10 - looks) })
	}
	if looks == 0 || looks > 20 {
		t.Errorf("%d measurements in 1000 readings, want 1 to 20", looks)
	}
	if m.highest() != 9 {
		t.Errorf("highest %d, want 9", m.highest())
	}
}
