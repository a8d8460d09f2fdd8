package dataset

import (
	"context"
	"errors"
	"testing"
)

// A check reports its progress, which never decreases, and stops when its context is cancelled.
func TestCheckProgress(t *testing.T) {
	d := planted(t, 3000, 50)
	var before, total int64
	calls := 0
	if err := d.CheckWith(t.Context(), func(done, of int64) {
		if done < before || done > of || total != 0 && of != total {
			t.Errorf("report %d: %d of %d after %d of %d", calls, done, of, before, total)
		}
		before, total = done, of
		calls++
	}); err != nil {
		t.Fatal(err)
	}
	if calls < 5 || before != total || total < d.Bytes() {
		t.Errorf("%d reports, the last of %d bytes of %d; the dataset has %d", calls, before, total, d.Bytes())
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls = 0
	err := d.CheckWith(ctx, func(done, _ int64) {
		if calls++; done > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a check that was cancelled after %d reports ends with %v", calls, err)
	}
}
