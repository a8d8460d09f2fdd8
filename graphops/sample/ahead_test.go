package sample_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/parallel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counting yields 0, 1, …, n-1 and counts what it made and whether it ended.
func counting(n int, made *atomic.Int64, ended *atomic.Bool) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		defer ended.Store(true)
		for i := range n {
			made.Add(1)
			if !yield(i, nil) {
				return
			}
		}
	}
}

func TestAheadKeepsOrder(t *testing.T) {
	for depth := range 5 {
		var made atomic.Int64
		var ended atomic.Bool
		seq := sample.Ahead(t.Context(), depth, counting(100, &made, &ended))
		for range 2 { // ranging again starts again
			want := 0
			for v, err := range seq {
				if v != want || err != nil {
					t.Fatalf("depth %d: got %d, %v, want %d", depth, v, err, want)
				}
				want++
			}
			if want != 100 || !ended.Load() {
				t.Errorf("depth %d: %d values", depth, want)
			}
		}
	}
}

// While the consumer holds value i, the producer gets to make values up to
// i + depth + 1 and no further: depth are ready, one is being made.
func TestAheadIsBounded(t *testing.T) {
	for depth := 1; depth < 4; depth++ {
		var made atomic.Int64
		var ended atomic.Bool
		for v := range sample.Ahead(t.Context(), depth, counting(50, &made, &ended)) {
			want := int64(min(v+1+depth, 50))
			for range 2000 { // it does run ahead
				if made.Load() >= want {
					break
				}
				time.Sleep(time.Millisecond)
			}
			for range 20 { // and no further
				runtime.Gosched()
			}
			if got := made.Load(); got < want || got > want+1 {
				t.Fatalf("depth %d: at value %d, %d values were made, want %d", depth, v, got, want)
			}
		}
	}
}

func TestAheadBreak(t *testing.T) {
	for depth := range 3 {
		var made atomic.Int64
		var ended atomic.Bool
		for v := range sample.Ahead(t.Context(), depth, counting(1<<40, &made, &ended)) {
			if v == 3 {
				break
			}
		}
		if !ended.Load() {
			t.Errorf("depth %d: the producer was still running after the loop", depth)
		}
	}
}

func TestAheadConsumerPanics(t *testing.T) {
	var made atomic.Int64
	var ended atomic.Bool
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		for range sample.Ahead(t.Context(), 2, counting(1<<40, &made, &ended)) {
			panic("mine")
		}
	}()
	if !ended.Load() {
		t.Error("the producer was still running after the loop's panic")
	}
}

func TestAheadCarriesErrors(t *testing.T) {
	for depth := range 3 {
		n := 0
		var last error
		for _, err := range sample.Ahead(t.Context(), depth, func(yield func(int, error) bool) {
			_ = yield(1, nil) && yield(0, io.ErrUnexpectedEOF)
		}) {
			n++
			last = err
		}
		if n != 2 || !errors.Is(last, io.ErrUnexpectedEOF) {
			t.Errorf("depth %d: %d values, the last with %v", depth, n, last)
		}
	}
}

func TestAheadCancel(t *testing.T) {
	cause := errors.New("interrupted")
	for depth := range 3 {
		for at := range 3 {
			var made atomic.Int64
			var ended atomic.Bool
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if at == 0 {
				cancel(cause)
				ended.Store(true) // where it never starts
			}
			var last error
			after := 0
			for v, err := range sample.Ahead(ctx, depth, counting(1<<40, &made, &ended)) {
				last = err
				if v+1 == at && err == nil {
					cancel(cause)
				} else if v >= at && err == nil {
					after++
				}
			}
			if !errors.Is(last, cause) || after > 0 || !ended.Load() {
				t.Errorf("depth %d, cancelled after %d: last error %v, %d values after it, ended %v", depth, at, last, after, ended.Load())
			}
		}
	}
	// A producer that never yields again is left as soon as it returns.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range sample.Ahead(ctx, 1, func(yield func(int, error) bool) {
		cancel()
		<-ctx.Done()
	}) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("last error %v", last)
	}
}

func TestAheadCarriesPanics(t *testing.T) {
	cases := []struct {
		name string
		fail func()
		want string
	}{
		{"error", func() { panic(fault{io.ErrUnexpectedEOF}) }, "unexpected EOF"},
		{"carried", func() { panic(&parallel.Panic{Value: io.ErrUnexpectedEOF, Stack: []byte("ahead_test.go")}) }, "unexpected EOF"},
		{"goexit", runtime.Goexit, "Goexit"},
	}
	for _, c := range cases {
		got := 0
		func() {
			defer func() {
				p, ok := recover().(*parallel.Panic)
				if !ok || !strings.Contains(p.Error(), c.want) {
					t.Errorf("%s: recovered %v, want %q", c.name, p, c.want)
					return
				}
				if c.name != "goexit" && !strings.Contains(string(p.Stack), "ahead_test.go") {
					t.Errorf("%s: the producer's stack is missing:\n%s", c.name, p.Stack)
				}
				var f fault
				if c.name == "error" && !errors.As(p, &f) {
					t.Errorf("%v lost the fault", p)
				}
			}()
			for range sample.Ahead(t.Context(), 3, func(yield func(int, error) bool) {
				for i := range 2 {
					yield(i, nil)
				}
				c.fail()
			}) {
				got++
			}
			t.Errorf("%s: the loop ended without the panic", c.name)
		}()
		if got != 2 {
			t.Errorf("%s: %d values before the panic, want 2", c.name, got)
		}
	}
}

// The producer fails while it is being stopped: that is not swallowed.
func TestAheadPanicAfterBreak(t *testing.T) {
	defer func() {
		if p, ok := recover().(*parallel.Panic); !ok || p.Value != "closing" {
			t.Errorf("recovered %v", p)
		}
	}()
	for range sample.Ahead(t.Context(), 1, func(yield func(int, error) bool) {
		defer func() { panic("closing") }()
		for yield(0, nil) {
		}
	}) {
		break
	}
}

// A sampler as a producer: batches are those of a loop without it, and stay
// valid while later ones are made.
func TestAheadOfASampler(t *testing.T) {
	g := random(2000, 10, 1)
	batches := func(yield func(*sample.Batch, error) bool) {
		s, err := sample.New(g, sample.Config{Picker: sample.Fanouts{5, 5}, Seed: 2, Threads: 2})
		if err != nil {
			yield(nil, err)
			return
		}
		for step := range 10 {
			if b, err := s.Sample(0, step, all(2000)[200*step:200*step+200]); !yield(b, err) || err != nil {
				return
			}
		}
	}
	want := sample.NewDigest()
	for b, err := range batches {
		if err != nil {
			t.Fatal(err)
		}
		want.AddBatch(b)
	}
	for _, release := range []bool{false, true} {
		got := sample.NewDigest()
		for b, err := range sample.Ahead(t.Context(), 3, batches) {
			if err != nil {
				t.Fatal(err)
			}
			runtime.Gosched() // let the producer run while the batch is held
			got.AddBatch(b)
			if release {
				b.Release()
			}
		}
		if got.Sum() != want.Sum() {
			t.Errorf("release %v: digest %s, want %s", release, got.Sum(), want.Sum())
		}
	}
}
