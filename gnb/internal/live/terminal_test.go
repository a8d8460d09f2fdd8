package live

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

func testTerminal(t *testing.T, w int) (*terminal, *screentest.Buffer) {
	t.Setenv("LC_ALL", "C.UTF-8")
	out := &screentest.Buffer{}
	s := newTerminal(screen.Options{Out: out, MaxFPS: 20})
	s.width = func() int { return w }
	return s, out
}

func TestTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("LC_ALL", "C.UTF-8")
	synctest.Test(t, func(t *testing.T) {
		out := &screentest.Buffer{}
		sink := newTerminal(screen.Options{Out: out, MaxFPS: 20})
		sink.width = func() int { return 90 }
		s := sampleRun(1000, 4, 0.62, screen.Running)
		s.Text = nil
		sink.Update(s)
		time.Sleep(time.Second)
		sc := screentest.Terminal(t, out.String(), 90)
		const want = "epoch 13/20 ━━━━━━━"
		if len(sc) != 1 || !strings.HasPrefix(sc[0], want) || !strings.Contains(sc[0], "62 %  loss 0.") ||
			!strings.Contains(sc[0], "val 0.8") || !strings.Contains(sc[0], "k seeds/s") || !strings.HasSuffix(sc[0], "00:03 left") {
			t.Errorf("the terminal shows %q", sc)
		}
		if !strings.Contains(out.String(), screen.SgrCyan) {
			t.Error("no colour")
		}
		sink.Print("first\nsecond\x1b[2J")
		s.Left = 0
		sink.Update(s)
		time.Sleep(time.Second)
		sc = screentest.Terminal(t, out.String(), 90)
		if len(sc) != 3 || sc[0] != "first" || sc[1] != "second" || !strings.HasPrefix(sc[2], want) {
			t.Errorf("the log is not above the bar: %q", sc)
		}
		s = sampleRun(1000, 4, 0.625, screen.Failed)
		if err := sink.Close(s); err != nil {
			t.Fatal(err)
		}
		sc = screentest.Terminal(t, out.String(), 400)
		tail := sc[len(sc)-2:]
		if !strings.HasPrefix(tail[0], "sage on planted: failed, epoch 13/20, step 25/50, loss") || tail[1] != "" {
			t.Errorf("at the end the terminal shows %q", sc)
		}
		if strings.Contains(strings.Join(sc, "\n"), s.Detail) {
			t.Error("the sink printed the reason, which the launching program prints itself")
		}
		if strings.Count(strings.Join(sc, "\n"), "━") != 0 {
			t.Error("the bar remains on the screen")
		}
	})
}

func TestTerminalRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &screentest.Buffer{}
		sink := newTerminal(screen.Options{Out: out, MaxFPS: 20})
		s := sampleRun(10, 1, 0.5, screen.Running)
		for range 2000 {
			sink.Update(s)
			time.Sleep(time.Millisecond)
		}
		if n := out.Count(); n > 41 || n < 30 {
			t.Errorf("%d writes in 2 s, want 40 or 41", n)
		}
		if err := sink.Close(Snapshot{State: screen.Done}); err != nil {
			t.Fatal(err)
		}
	})
}

// The bar is never wider than requested, for any state and width.
func TestBarFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sampleRun(100, rapid.IntRange(0, 3).Draw(t, "workers"), rapid.Float64Range(0, 1).Draw(t, "done"),
			rapid.SampledFrom([]string{screen.Running, screen.Starting, screen.Evaluating}).Draw(t, "state"))
		if rapid.Bool().Draw(t, "early") {
			s = Snapshot{Left: s.Left}
		}
		w := rapid.IntRange(1, 120).Draw(t, "width")
		st := screen.Style{ASCII: rapid.Bool().Draw(t, "ascii")}
		line := barLine(st, &s, w)
		if screen.Width(line) > w {
			t.Fatalf("%q has %d columns, want %d at most", line, screen.Width(line), w)
		}
		if s.Left > time.Second && w > 60 && !strings.Contains(line, "left") {
			t.Fatalf("the time left is missing in %q", line)
		}
	})
}

func TestNoColor(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	t.Setenv("LC_ALL", "POSIX")
	sink, out := testTerminal(t, 80)
	sink.style = screen.TermStyle()
	sink.Update(sampleRun(100, 1, 0.5, screen.Running))
	time.Sleep(20 * time.Millisecond)
	if err := sink.Close(sampleRun(100, 1, 1, screen.Done)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b[3") || strings.Contains(out.String(), "\x1b[2m") {
		t.Errorf("colours despite NO_COLOR: %q", out.String())
	}
	t.Setenv("LC_ALL", "POSIX")
	if g := screen.TermStyle().Gauge(0.5, 10); g != "#####-----" {
		t.Errorf("without UTF-8 the gauge is %q", g)
	}
}

func TestPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &screentest.Buffer{}
		sink := New(screen.Options{Out: out})
		if _, ok := sink.(*plain); !ok {
			t.Fatalf("the sink of a pipe is %T", sink)
		}
		// 2 steps per second and 20 epochs of 50 steps: an epoch takes 25 s.
		for i := range 101 {
			s := sampleRun(1000, 2, float64(i)/1000, screen.Running)
			s.Text = nil
			sink.Update(s)
			if i == 70 {
				sink.Print("a line of the log")
			}
			time.Sleep(500 * time.Millisecond)
		}
		s := sampleRun(1000, 2, 0.1, screen.Interrupted)
		s.Text = nil
		if err := sink.Close(s); err != nil {
			t.Fatal(err)
		}
		ls := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		epochs, progress := 0, 0
		for _, l := range ls {
			if strings.ContainsAny(l, "\r\x1b") {
				t.Errorf("control characters in %q", l)
			}
			if strings.HasPrefix(l, "epoch ") {
				if strings.Contains(l, "step") {
					progress++
				} else {
					epochs++
				}
			}
		}
		if epochs != 2 || progress < 6 || progress > 10 {
			t.Errorf("%d epoch lines and %d progress lines in 50 s, want 2 and about 8:\n%s", epochs, progress, out)
		}
		if ls[0] != "sage on planted: running" || !strings.Contains(out.String(), "\na line of the log\n") {
			t.Errorf("the first line or the log is missing:\n%s", out)
		}
		if n := len(ls); !strings.HasPrefix(ls[n-1], "sage on planted: interrupted, epoch 3/20") || strings.Contains(out.String(), s.Detail) {
			t.Errorf("the end is %q", ls[n-2:])
		}
	})
}

// Every epoch is printed, even if epochs take no time: only drawings are skipped.
func TestPlainTellsEveryEpoch(t *testing.T) {
	out := &screentest.Buffer{}
	sink := New(screen.Options{Out: out})
	for e := 1; e <= 30; e++ {
		sink.Update(Snapshot{Epoch: e, Epochs: 30, Loss: []chart.Point{{Step: e, Y: 1 / float64(e)}}})
	}
	if err := sink.Close(Snapshot{State: screen.Done, Epoch: 30, Epochs: 30}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\nepoch "); n != 30 {
		t.Errorf("%d lines for 30 epochs:\n%s", n, out)
	}
}

func TestPlainWriteError(t *testing.T) {
	sink := New(screen.Options{Out: failing{}})
	sink.Print("x")
	if err := sink.Close(Snapshot{State: screen.Done}); !errors.Is(err, errFull) {
		t.Errorf("Close returned %v", err)
	}
}

var errFull = errors.New("disk full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// A sink that shows nothing takes everything.
func TestQuiet(t *testing.T) {
	sink := New(screen.Options{Quiet: true})
	sink.Update(Snapshot{})
	sink.Print("x")
	if err := sink.Close(Snapshot{}); err != nil {
		t.Error(err)
	}
}
