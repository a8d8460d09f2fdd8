package live

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/internal/phrase"
)

// buffer is a writer that a test may read while a sink writes to it.
type buffer struct {
	mu     sync.Mutex
	b      bytes.Buffer
	writes int
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes++
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes
}

// screen emulates a terminal of the given width and returns its lines. It handles carriage returns,
// line feeds, erasing to the end of the line and of the screen, moving up, and colours.
func screen(t *testing.T, out string, w int) []string {
	t.Helper()
	rows := [][]rune{{}}
	y, x := 0, 0
	r := []rune(out)
	for i := 0; i < len(r); i++ {
		switch c := r[i]; {
		case c == '\r':
			x = 0
		case c == '\n':
			y, x = y+1, 0 // the line discipline adds a carriage return
			if y == len(rows) {
				rows = append(rows, nil)
			}
		case c == 0x1b && strings.HasPrefix(string(r[i:min(i+3, len(r))]), eraseLine):
			rows[y] = rows[y][:min(x, len(rows[y]))]
			i += 2
		case c == 0x1b:
			end := phrase.EscapeEnd(r, i)
			switch r[end] {
			case 'm':
			case 'A': // moves up
				n, err := strconv.Atoi(string(r[i+2 : end]))
				if err != nil || n > y {
					t.Fatalf("%d lines up from line %d (%v)", n, y, err)
				}
				y -= n
			case 'J': // erases everything from here on
				rows = rows[:y+1]
				rows[y] = rows[y][:min(x, len(rows[y]))]
			default:
				t.Fatalf("escape sequence %q", string(r[i:end+1]))
			}
			i = end
		default:
			if x >= w {
				t.Fatalf("a line is longer than the terminal's %d columns: %q", w, string(rows[y]))
			}
			for len(rows[y]) <= x {
				rows[y] = append(rows[y], ' ')
			}
			rows[y][x] = c
			x++
		}
	}
	lines := make([]string, len(rows))
	for i := range rows {
		lines[i] = strings.TrimRight(string(rows[i]), " ")
	}
	return lines
}

func testTerminal(t *testing.T, w int) (*terminal, *buffer) {
	t.Setenv("LC_ALL", "C.UTF-8")
	out := &buffer{}
	s := newTerminal(Options{Out: out, MaxFPS: 20})
	s.width = func() int { return w }
	return s, out
}

func TestTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("LC_ALL", "C.UTF-8")
	synctest.Test(t, func(t *testing.T) {
		out := &buffer{}
		sink := newTerminal(Options{Out: out, MaxFPS: 20})
		sink.width = func() int { return 90 }
		s := sampleRun(1000, 4, 0.62, Running)
		s.Text = nil
		sink.Update(s)
		time.Sleep(time.Second)
		sc := screen(t, out.String(), 90)
		const want = "epoch 13/20 ━━━━━━━"
		if len(sc) != 1 || !strings.HasPrefix(sc[0], want) || !strings.Contains(sc[0], "62 %  loss 0.") ||
			!strings.Contains(sc[0], "val 0.8") || !strings.Contains(sc[0], "k seeds/s") || !strings.HasSuffix(sc[0], "00:03 left") {
			t.Errorf("the terminal shows %q", sc)
		}
		if !strings.Contains(out.String(), sgrCyan) {
			t.Error("no colour")
		}
		sink.Print("first\nsecond\x1b[2J")
		s.Left = 0
		sink.Update(s)
		time.Sleep(time.Second)
		sc = screen(t, out.String(), 90)
		if len(sc) != 3 || sc[0] != "first" || sc[1] != "second" || !strings.HasPrefix(sc[2], want) {
			t.Errorf("the log is not above the bar: %q", sc)
		}
		s = sampleRun(1000, 4, 0.625, Failed)
		if err := sink.Close(s); err != nil {
			t.Fatal(err)
		}
		sc = screen(t, out.String(), 400)
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
		out := &buffer{}
		sink := newTerminal(Options{Out: out, MaxFPS: 20})
		s := sampleRun(10, 1, 0.5, Running)
		for range 2000 {
			sink.Update(s)
			time.Sleep(time.Millisecond)
		}
		if n := out.count(); n > 41 || n < 30 {
			t.Errorf("%d writes in 2 s, want 40 or 41", n)
		}
		if err := sink.Close(Snapshot{State: Done}); err != nil {
			t.Fatal(err)
		}
	})
}

// The bar is never wider than requested, for any state and width.
func TestBarFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sampleRun(100, rapid.IntRange(0, 3).Draw(t, "workers"), rapid.Float64Range(0, 1).Draw(t, "done"),
			rapid.SampledFrom([]string{Running, Starting, Evaluating}).Draw(t, "state"))
		if rapid.Bool().Draw(t, "early") {
			s = Snapshot{Left: s.Left}
		}
		w := rapid.IntRange(1, 120).Draw(t, "width")
		st := style{ascii: rapid.Bool().Draw(t, "ascii")}
		line := st.bar(&s, w)
		if width(line) > w {
			t.Fatalf("%q has %d columns, want %d at most", line, width(line), w)
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
	sink.style = termStyle()
	sink.Update(sampleRun(100, 1, 0.5, Running))
	time.Sleep(20 * time.Millisecond)
	if err := sink.Close(sampleRun(100, 1, 1, Done)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b[3") || strings.Contains(out.String(), "\x1b[2m") {
		t.Errorf("colours despite NO_COLOR: %q", out.String())
	}
	t.Setenv("LC_ALL", "POSIX")
	if g := termStyle().gauge(0.5, 10); g != "#####-----" {
		t.Errorf("without UTF-8 the gauge is %q", g)
	}
}

func TestPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &buffer{}
		sink := New(Options{Out: out})
		if _, ok := sink.(*plain); !ok {
			t.Fatalf("the sink of a pipe is %T", sink)
		}
		// 2 steps per second and 20 epochs of 50 steps: an epoch takes 25 s.
		for i := range 101 {
			s := sampleRun(1000, 2, float64(i)/1000, Running)
			s.Text = nil
			sink.Update(s)
			if i == 70 {
				sink.Print("a line of the log")
			}
			time.Sleep(500 * time.Millisecond)
		}
		s := sampleRun(1000, 2, 0.1, Interrupted)
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
	out := &buffer{}
	sink := New(Options{Out: out})
	for e := 1; e <= 30; e++ {
		sink.Update(Snapshot{Epoch: e, Epochs: 30, Loss: []Point{{Step: e, Y: 1 / float64(e)}}})
	}
	if err := sink.Close(Snapshot{State: Done, Epoch: 30, Epochs: 30}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\nepoch "); n != 30 {
		t.Errorf("%d lines for 30 epochs:\n%s", n, out)
	}
}

func TestLogIsNeverLostSilently(t *testing.T) {
	p := &pump{wake: make(chan struct{}, 1)}
	for range maxQueued + 500 {
		p.print("x")
	}
	if len(p.next.lines) != maxQueued || p.next.lost != 500 {
		t.Errorf("the log keeps %d lines and counts %d as lost", len(p.next.lines), p.next.lost)
	}
	var b strings.Builder
	writeLog(&b, &p.next, "", "\n")
	if !strings.HasPrefix(b.String(), "… 500 lines left out\n") {
		t.Errorf("the log starts with %.40q", b.String())
	}
}

func TestPick(t *testing.T) {
	out := &buffer{}
	for _, c := range []struct {
		name string
		env  map[string]string
		o    Options
		want mode
	}{
		{"pipe", nil, Options{Out: out}, modePlain},
		{"display", nil, Options{Display: &tape{}}, modeNotebook},
		{"quiet", nil, Options{Display: &tape{}, Quiet: true}, modeNone},
		{"worker", map[string]string{"GNB_WORKER": "1"}, Options{}, modeNone},
		{"tests are no terminal", map[string]string{"TERM": "dumb"}, Options{}, modePlain},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			if got := pick(&c.o); got != c.want {
				t.Errorf("pick returned %d, want %d", got, c.want)
			}
			if c.o.MaxFPS != 20 {
				t.Errorf("the default is %d frames per second", c.o.MaxFPS)
			}
		})
	}
	sink := New(Options{Quiet: true})
	sink.Update(Snapshot{})
	sink.Print("x")
	if err := sink.Close(Snapshot{}); err != nil {
		t.Error(err)
	}
}

func TestPlainWriteError(t *testing.T) {
	sink := New(Options{Out: failing{}})
	sink.Print("x")
	if err := sink.Close(Snapshot{State: Done}); !errors.Is(err, errFull) {
		t.Errorf("Close returned %v", err)
	}
}

var errFull = errors.New("disk full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }
