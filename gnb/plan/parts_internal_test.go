package plan

import "testing"

// A batch that finds its slot too small replaces it by one with room for an eighth more.
func TestSlotRows(t *testing.T) {
	s := &slotRows{slots: 2, of: map[int][]int64{}, turn: map[int]int{}}
	for _, bytes := range []int64{800, 160, 880, 240, 1600} {
		s.add(0, bytes)
	}
	if kept, left := s.found(9); kept != 1800+270 || left != 900+180 {
		t.Errorf("slots have %d bytes and %d were replaced", kept, left)
	}
	if kept, _ := s.found(1); kept != 1800 {
		t.Errorf("a single batch has %d bytes", kept)
	}
	s.add(1, 80)
	if kept, left := s.found(9); kept != (1800+270+90+90)/2 || left != (900+180)/2 {
		t.Errorf("slots of two ranks have %d bytes and %d were replaced, in the mean", kept, left)
	}
}

// A rank evaluates its parts one after the other, and has its rows and its halo alone.
func TestEvaluationOfParts(t *testing.T) {
	j := job(t)
	whole, err := j.fullEvaluation()
	if err != nil {
		t.Fatal(err)
	}
	j.Data, j.Workers = inTwo(t, j.Data), 2
	p, err := j.largestPart()
	if err != nil || p.own != 1500 || p.all != 1500 || p.nodes != p.own+p.halo || p.halo < 1000 || p.apart {
		t.Fatalf("%+v, %v", p, err)
	}
	e, err := j.fullEvaluation()
	if err != nil {
		t.Fatal(err)
	}
	// The second layer reads 32 columns and writes 4: rows of own nodes, of the halo as sent, got and kept, and of a part.
	want := 4 * int64(4*1500+32*(1500+3*p.halo+p.nodes))
	if e.matrices != 0 || e.times != 1 || e.batch < want || e.batch > want+whole.batch+8*j.Data.Edges() {
		t.Errorf("%d bytes of matrices and %d of batches, want at least %d (%+v)", e.matrices, e.batch, want, e)
	}
	j.Workers, j.Virtual = 1, 2
	if p, err = j.largestPart(); err != nil || p.all != 3000 || p.halo != 0 {
		t.Errorf("one worker has %+v, %v", p, err)
	}
	if e, err = j.fullEvaluation(); err != nil || e.times != 2 {
		t.Errorf("one worker passes over %v parts (%v)", e.times, err)
	}
}
