package screen

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

func TestBarInCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &screentest.Tape{}
		b := Progress("download <arxiv>", 100<<20, BarOptions{Options: Options{Display: d}, Unit: "B"})
		for range 50 {
			time.Sleep(200 * time.Millisecond)
			b.Add(1 << 20)
		}
		time.Sleep(250 * time.Millisecond)
		all := d.All()
		last := all[len(all)-1]
		// 50 of 100 MiB took 10 s, so the rest takes about as long.
		if p := screentest.PlainOf(last); !strings.HasPrefix(p, "download <arxiv>  50.0 MiB of 100 MiB  ") || !strings.HasSuffix(p, " left") ||
			!(strings.Contains(p, "00:09") || strings.Contains(p, "00:10") || strings.Contains(p, "00:11")) {
			t.Errorf("half-way the bar shows %q", p)
		}
		if n := len(all); n > 104 {
			t.Errorf("%d updates in 10 s", n)
		}
		if text := screentest.CheckHTML(t, screentest.HTMLOf(last)); !strings.Contains(text, "download <arxiv>") || !strings.Contains(screentest.HTMLOf(last), "width:50.0%") {
			t.Errorf("the HTML is %s", screentest.HTMLOf(last))
		}
		b.Add(50 << 20)
		b.Done()
		b.Done()
		out := d.Outputs()
		if len(out) != 1 || d.Syncs != 1 {
			t.Fatalf("%d outputs, %d syncs, want one of each", len(out), d.Syncs)
		}
		if p := screentest.PlainOf(out[0]); p != "download <arxiv>  100 MiB  9.8 MiB/s  00:10" {
			t.Errorf("at the end the bar shows %q", p)
		}
		screentest.CheckHTML(t, screentest.HTMLOf(out[0]))
		if _, ok := out[0].Data[protocol.MIMETextPlain]; !ok || len(out[0].Data) != 2 {
			t.Errorf("the last output is %v", out[0].Data)
		}
	})
}

func TestBarOnTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	t.Setenv("LC_ALL", "C.UTF-8")
	out := &screentest.Buffer{}
	now := time.Now()
	b := &Bar{label: "convert", now: func() time.Time { return now }, o: BarOptions{Options: Options{Out: out}, Unit: "rows"}}
	b.start = b.now().Add(-2 * time.Second)
	b.lastT = b.start
	b.SetTotal(2000)
	b.Add(1000)
	show := b.terminal()
	line, share := b.line(false)
	if err := show(line, share, false); err != nil {
		t.Fatal(err)
	}
	// The output is not a terminal, so a width of 20 columns is assumed; the text is cut first.
	if got := screentest.Terminal(t, out.String(), 20); len(got) != 1 || !strings.HasPrefix(got[0], "50 %  convert  1,0") {
		t.Errorf("it shows %q", got)
	}
	line, share = b.line(true)
	if err := show(line, share, true); err != nil {
		t.Fatal(err)
	}
	if got := screentest.Terminal(t, out.String(), 80); len(got) != 2 || !strings.HasPrefix(got[0], "convert  1,000 of 2,000 rows") || !strings.Contains(got[0], "stopped after 2.0 s") || got[1] != "" {
		t.Errorf("at the end the bar shows %q", got)
	}
}

func TestBarInPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &screentest.Buffer{}
		b := Progress("", 0, BarOptions{Options: Options{Out: out}})
		for range 120 {
			time.Sleep(100 * time.Millisecond)
			if n, err := io.Copy(b, strings.NewReader("12345")); n != 5 || err != nil {
				t.Fatal(n, err)
			}
		}
		b.Done()
		ls := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(ls) != 3 || !strings.HasSuffix(ls[0], "00:05") || ls[2] != "600  50/s  00:12" {
			t.Errorf("it wrote %q", ls)
		}
	})
}

// The unit % shows progress as a share, once there is a total.
func TestBarOfAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &screentest.Tape{}
		b := Progress("generating", 0, BarOptions{Options: Options{Display: d}, Unit: "%"})
		time.Sleep(2*time.Second + 50*time.Millisecond)
		b.SetTotal(1 << 40)
		b.Add(1 << 38)
		time.Sleep(4 * time.Second)
		b.Add(1 << 38)
		time.Sleep(100 * time.Millisecond)
		all := d.All()
		first, now := screentest.PlainOf(all[0]), screentest.PlainOf(all[len(all)-1])
		b.Add(1 << 39)
		b.Done()
		all = d.All()
		if last := screentest.PlainOf(all[len(all)-1]); first != "generating  00:00" || !strings.HasPrefix(now, "generating  50 %  00:") || !strings.HasSuffix(now, " left") || last != "generating  100 %  6.2 s" {
			t.Errorf("the bar shows %q, %q and %q", first, now, last)
		}
	})
}

// A task that ends at once writes only its last line.
func TestBarOfNothing(t *testing.T) {
	d := &screentest.Tape{}
	b := Progress("x", 10, BarOptions{Options: Options{Display: d}})
	b.Add(10)
	b.Done()
	if n := len(d.All()); n != 1 {
		t.Errorf("%d updates", n)
	}
	q := Progress("x", 10, BarOptions{Options: Options{Quiet: true}})
	q.Add(1)
	q.Done()
}

// A task that ends before After shows nothing, and one without a count shows its time.
func TestBarAfter(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		want  string
	}{{900 * time.Millisecond, ""}, {3 * time.Second, "making  3.0 s"}} {
		synctest.Test(t, func(t *testing.T) {
			d := &screentest.Tape{}
			b := Progress("making", 0, BarOptions{Options: Options{Display: d}, After: time.Second})
			time.Sleep(c.takes)
			b.Done()
			all := d.All()
			if c.want == "" && len(all) > 0 || c.want != "" && (len(all) < 10 || screentest.PlainOf(all[len(all)-1]) != c.want) {
				t.Errorf("after %v there were %d updates, want the last to be %q", c.takes, len(all), c.want)
			}
		})
	}
}
