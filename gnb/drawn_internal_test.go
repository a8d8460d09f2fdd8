package gnb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
)

// Of many drawings of a name the first are kept, then ever fewer, and the last with the next sync; each is drawn only if it
// is kept.
func TestDrawnIsThinned(t *testing.T) {
	o, got, _ := openOutbox(t)
	var drawn []int
	for i := range 1000 {
		err := o.sendDrawn(runs.Event{Kind: runs.KindDrawn}, "weights", func() (runfile.Drawn, error) {
			drawn = append(drawn, i)
			return runfile.Drawn{Kind: "chart", PNG: []byte{1}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before := len(drawn)
	if err := o.sync(); err != nil {
		t.Fatal(err)
	}
	if n := len(drawn); n != before+1 || n > 250 || n < 150 || drawn[63] != 63 || drawn[n-1] != 999 || !slices.IsSorted(drawn) {
		t.Errorf("%d of 1000 were drawn: %v", n, drawn)
	}
	if kinds := got(); len(kinds) != len(drawn) || kinds[0] != "drawn" {
		t.Errorf("%d events were sent for %d drawings", len(kinds), len(drawn))
	}
	if err := o.sync(); err != nil || len(drawn) != before+1 {
		t.Errorf("the last was drawn again, or %v", err)
	}
}

func TestDrawnIsBounded(t *testing.T) {
	o, got, _ := openOutbox(t)
	large := func() (runfile.Drawn, error) { return runfile.Drawn{PNG: make([]byte, 9<<20)}, nil }
	for i := range mostNames {
		if err := o.sendDrawn(runs.Event{Kind: runs.KindDrawn}, fmt.Sprint(i), large); err != nil {
			t.Fatal(err)
		}
	}
	kinds := got()
	drawings := slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k != "drawn" })
	if len(drawings) != mostDrawn/(12<<20) || !slices.Equal(kinds, append(drawings, "print")) {
		t.Errorf("drawings of 12 MiB were sent as %q, want %d, and then a sentence, once", kinds, mostDrawn/(12<<20))
	}
	if err := o.sendDrawn(runs.Event{}, "more", large); err == nil || !strings.Contains(err.Error(), `"more" is the name of one more drawing than the 24`) {
		t.Errorf("one name too many: %v", err)
	}
	bad := errors.New("bad")
	var p outbox
	if err := p.sendDrawn(runs.Event{}, "x", func() (runfile.Drawn, error) { return runfile.Drawn{}, bad }); !errors.Is(err, bad) {
		t.Errorf("%v, want %v", err, bad)
	}
}
