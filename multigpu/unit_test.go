package multigpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/multigpu/collective"
)

func TestErrorsAreOneSentence(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{
			&WorkerError{Rank: 1, PID: 7, Epoch: 2, Step: 17, Stage: "sample", Reason: "it was killed by signal 9 (killed)"},
			"multigpu: rank 1 (pid 7) failed at epoch 2, step 17, stage sample: it was killed by signal 9 (killed)",
		},
		{
			&WorkerError{Rank: 0, Epoch: -1, Step: -1, Stage: "starting", Reason: "it ended with status 2"},
			"multigpu: rank 0 failed at stage starting: it ended with status 2",
		},
		{
			&Interrupted{Epoch: 1, Step: 5},
			"multigpu: the run was interrupted at epoch 1, step 5",
		},
		{
			&Interrupted{Epoch: -1, Step: -1, Forced: []int{0, 2}},
			"multigpu: the run was interrupted; ranks 0, 2 did not stop when asked and had to be ended",
		},
		{
			&Interrupted{Epoch: -1, Step: -1, Forced: []int{1}, Err: errors.New("the disk is full")},
			"multigpu: the run was interrupted; rank 1 did not stop when asked and had to be ended; while stopping: the disk is full",
		},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

// A rank's last words are cut to the room that they have, at their end.
func TestLastWordsFit(t *testing.T) {
	for _, fill := range []string{"a", "\x00", "\n", "é", "<"} {
		for _, n := range []int{0, 10, maxWords, 10 * maxWords} {
			w := lastWords{Error: "why " + strings.Repeat(fill, n), Stack: "goroutine " + strings.Repeat(fill, n)}
			page := newStatusPage(2)
			page.rank(0).say(w.encode())
			if page.rank(1).state() != stateStarting || len(page.rank(1).words()) != 0 {
				t.Fatal("the words of one rank reach into the part of another rank")
			}
			var got lastWords
			if err := json.Unmarshal(page.rank(0).words(), &got); err != nil {
				t.Fatalf("%q × %d: %v", fill, n, err)
			}
			if !strings.HasPrefix(got.Error, "why ") || !strings.HasPrefix(got.Stack, "goroutine ") {
				t.Errorf("%q × %d: got %.20q, %.20q", fill, n, got.Error, got.Stack)
			}
		}
	}
}

func TestErrorsCrossProcesses(t *testing.T) {
	carry := func(w *lastWords) error {
		var got lastWords
		if err := json.Unmarshal(w.encode(), &got); err != nil {
			t.Fatal(err)
		}
		return got.carried()
	}
	m := &collective.Mismatch{RankB: 3, A: collective.Site{Kind: "step", At: "a.go:1"}, B: collective.Site{Kind: "finish", Epoch: -1}}
	for name, err := range map[string]error{
		"returned": carry(errorWords(fmt.Errorf("training: %w", m))),
		"panicked": carry(panicWords(m, nil)),
		"carried":  carry(panicWords(&parallel.Panic{Value: m, Stack: []byte("s")}, nil)),
	} {
		if got, ok := errors.AsType[*collective.Mismatch](err); !ok || *got != *m {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := carry(errorWords(fmt.Errorf("in the loop: %w", collective.ErrAborted))); !errors.Is(err, collective.ErrAborted) {
		t.Errorf("got %v", err)
	}
	const cold, warm = ErrorKind("too cold"), ErrorKind("too warm")
	joined := errors.Join(errors.New("at noon"), fmt.Errorf("it was %w", cold))
	if err := error(&WorkerError{Err: carry(errorWords(joined))}); !errors.Is(err, cold) || errors.Is(err, warm) {
		t.Errorf("%v is %v, want the kind %q alone", err, kindsOf(err), cold)
	}
	if w := panicWords(&parallel.Panic{Value: "boom", Stack: []byte("there")}, []byte("here")); w.Stack != "there" || w.Error != "panic: boom" {
		t.Errorf("got %+v", w)
	}
}

// Every moment counts for exactly one stage, even if there are more stages than the page has room
// for, or names longer than their field.
func TestStageClock(t *testing.T) {
	page := newStatusPage(1)
	c := startClock(page.rank(0))
	began := c.since
	for i := range 100 {
		c.enter(fmt.Sprintf("stage %d %s", i%50, strings.Repeat("x", i)))
		if i%7 == 0 {
			time.Sleep(time.Millisecond)
		}
		c.beat()
	}
	times := c.times()
	sum := time.Duration(0)
	for _, d := range times {
		sum += d
	}
	if total := c.since.Sub(began); sum != total {
		t.Errorf("the stages add up to %v of %v", sum, total)
	}
	if len(times) > maxStages || times[otherStage] == 0 {
		t.Errorf("%d stages, %v under %q", len(times), times[otherStage], otherStage)
	}
	if got := page.rank(0).beats(); got != 100 {
		t.Errorf("%d beats", got)
	}
	if _, _, stage := page.rank(0).position(); stage != otherStage {
		t.Errorf("the stage is %q", stage)
	}
}

// move counts time for another stage, at most as much as the first stage has.
func TestMoveTime(t *testing.T) {
	page := newStatusPage(1)
	c := startClock(page.rank(0))
	c.enter("all-reduce")
	time.Sleep(5 * time.Millisecond)
	c.enter("program")
	before := c.times()
	c.move("all-reduce", "idle", 2*time.Millisecond)
	after := c.times()
	if after["idle"] != 2*time.Millisecond || before["all-reduce"]-after["all-reduce"] != 2*time.Millisecond {
		t.Errorf("after moving 2 ms the times are %v, before %v", after, before)
	}
	c.move("all-reduce", "idle", time.Hour) // more time than the stage has
	if last := c.times(); last["all-reduce"] != 0 || last["idle"] != before["all-reduce"] {
		t.Errorf("after moving all time the times are %v, before %v", last, before)
	}
}

func TestReadLines(t *testing.T) {
	for in, want := range map[string][]string{
		"":               nil,
		"a":              {"a"},
		"a\n":            {"a"},
		"a\r\n\n b":      {"a", "", " b"},
		"\n":             {""},
		"10 %\r20 %\nok": {"10 %\r20 %", "ok"},
	} {
		var got []string
		readLines(strings.NewReader(in), func(line string) { got = append(got, line) })
		if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != len(want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestReadEventsDropsTheUnfinishedOne(t *testing.T) {
	var got []string
	readEvents(strings.NewReader("{}\n[1]\n{\"cut"), func(line []byte) { got = append(got, string(line)) })
	if fmt.Sprint(got) != "[{} [1]]" {
		t.Errorf("got %q", got)
	}
}

// The tail keeps the last lines, and the first lines of a panic that is further up.
func TestTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := rapid.IntRange(0, 300).Draw(t, "before"), rapid.IntRange(0, 1000).Draw(t, "after")
		var tl tail
		var all []string
		add := func(s string) { all = append(all, s); tl.add(s) }
		for i := range before {
			add(fmt.Sprint("before ", i))
		}
		add("panic: why")
		for i := range after {
			add(fmt.Sprint("after ", i))
		}
		last, reason, stack := tl.get()
		if want := all[max(0, len(all)-tailLines):]; fmt.Sprint(last) != fmt.Sprint(want) {
			t.Fatalf("the tail is %q", last)
		}
		if reason != "panic: why" || strings.Count(stack, "\n") != min(after, panicLines-1) {
			t.Fatalf("reason %q, %d lines", reason, strings.Count(stack, "\n"))
		}
	})
}

// The queue delivers every event, in order.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3*maxEvents).Draw(t, "events")
		var got []string
		q := newQueue(Spec{OnEvent: func(_ int, data json.RawMessage) { got = append(got, string(data)) }})
		done := make(chan struct{})
		go func() { q.deliver(); close(done) }()
		for i := range n {
			q.event(0, json.RawMessage(fmt.Sprint(i)))
		}
		q.close()
		<-done
		if len(got) != n {
			t.Fatalf("%d of %d events arrived", len(got), n)
		}
		for i, g := range got {
			if g != fmt.Sprint(i) {
				t.Fatalf("event %d is %s", i, g)
			}
		}
	})
}

func TestHandleTwicePanics(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "twice") {
			t.Errorf("recovered %v", r)
		}
	}()
	Handle(func(*Process) error { return nil })
}

// Setting the machine's clock does not end a run: deadlines and silences are differences of times
// that carry the monotonic clock. The table lists the calls that drop or lack it, each with its
// purpose.
func TestTimesAreMonotonic(t *testing.T) {
	wall := regexp.MustCompile(`\.(Unix(Nano|Milli|Micro)?|UTC|AddDate)\(|Round\(0\)|time\.(Date|Parse\w*)\(|CLOCK_REALTIME|ModTime\(`)
	allowed := map[string]string{
		"collective/wire.go": "var longAgo = time.Unix(1, 0)", // a deadline in the past
		"cluster/submit.go":  "Submitted: time.Now().UTC()",   // shown to the user
	}
	files := 0
	for _, dir := range []string{".", "cluster", "collective", "mpi"} {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files++
			for line := range strings.Lines(string(text)) {
				if ok := allowed[filepath.ToSlash(name)]; wall.MatchString(line) && (ok == "" || !strings.Contains(line, ok)) {
					t.Errorf("%s reads the wall clock: %s", name, strings.TrimSpace(line))
				}
			}
		}
	}
	if files < 30 {
		t.Errorf("only %d files", files)
	}
}
