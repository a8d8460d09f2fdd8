package live

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"

	"github.com/graphnb/graphnb/internal/testneed"
)

func sampleComparison(runs int) Comparison {
	c := Comparison{Title: "runs of sage on <reddit>", Note: "they differ in hidden and lr", Metric: "val accuracy"}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range runs {
		r := ComparedRun{Name: fmt.Sprintf("hidden %d, lr %.3g", 8<<(i%5), 0.1/float64(i+1)), Result: fmt.Sprintf("done, val accuracy %.3f", 0.7+0.02*float64(i%7))}
		for s := range 400 + 100*i {
			r.Loss = append(r.Loss, chart.Point{Step: s + 1, Y: 0.3 + 0.05*float64(i) + 2*math.Exp(-float64(s)/(60+20*float64(i))) + 0.1*rng.Float64()})
		}
		for e := range 10 {
			r.Metric = append(r.Metric, chart.Point{Step: e + 1, Y: 0.7 + 0.02*float64(i%7) - 0.3*math.Exp(-float64(e)/2)})
		}
		c.Runs = append(c.Runs, r)
	}
	return c
}

// A comparison is drawn for any numbers. If GNB_LOOK names a directory, the pictures are written
// there for review.
func TestComparisonPNG(t *testing.T) {
	testneed.NotUnderRace(t, "it draws for long, in one goroutine")
	odd := sampleComparison(5)
	odd.Runs[0].Loss = []chart.Point{{Step: 1, Y: math.NaN()}, {Step: 2, Y: math.Inf(1)}, {Step: 5, Y: 1e300}}
	odd.Runs[1].Loss, odd.Runs[1].Metric = nil, nil
	odd.Runs[2].Metric = []chart.Point{{Step: 3, Y: 0.7}}
	odd.Runs[3].Name, odd.Runs[3].Result = strings.Repeat("long ", 200), strings.Repeat("\x1b[31mred\n", 3)
	for i := range odd.Runs[4].Loss {
		odd.Runs[4].Loss[i].Y *= 1e4 // far outside of the other curves
	}
	for name, c := range map[string]Comparison{
		"none": {Title: strings.Repeat("long ", 100)}, "one": sampleComparison(1), "three": sampleComparison(3), "many": sampleComparison(40), "odd": odd,
		"empty": {Metric: "val accuracy", Runs: []ComparedRun{{Name: "a"}, {Name: "b"}}},
	} {
		screentest.CheckPicture(t, "compare-"+name, func() (chart.Picture, error) { return ComparisonPNG(c) })
	}
}

// In a cell a comparison is one picture with its text, which is redrawn in place when the
// comparison changes. Outside of a notebook it draws no picture.
func TestShowComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &screentest.Tape{}
		sink := NewComparison(screen.Options{Display: d})
		for i, n := range []int{2, 2, 3} {
			sink.Update(sampleComparison(n), fmt.Sprint(n, " runs"))
			time.Sleep(time.Minute)
			synctest.Wait()
			if sent := d.All(); len(sent) != max(i, 1) {
				t.Fatalf("%d pictures after update %d", len(sent), i)
			}
		}
		if err := sink.Close(sampleComparison(4), "the numbers"); err != nil {
			t.Fatal(err)
		}
		sent := d.All()
		last, pointer := sent[len(sent)-2], screentest.HTMLOf(sent[len(sent)-1])
		screentest.CheckHTML(t, pointer)
		if !strings.Contains(pointer, "data-gnb=") {
			t.Errorf("the last picture's charts do not answer to the pointer: %s", pointer)
		}
		if len(sent) != 4 || d.Syncs != 3 || last.DisplayID == "" || last.DisplayID != sent[0].DisplayID || sent[0].Data["text/plain"] != "2 runs" || last.Data["text/plain"] != "the numbers" {
			t.Fatalf("the display got %v and %d syncs", sent, d.Syncs)
		}
		if b, ok := last.Data["image/png"].([]byte); !ok || len(b) < 1000 {
			t.Errorf("no picture: %T", last.Data["image/png"])
		}
	})
	var out bytes.Buffer
	if err := showComparison(sampleComparison(1), "", screen.Options{Out: &out}); err != nil || out.Len() > 0 {
		t.Errorf("outside of a notebook it wrote %q (%v)", out.String(), err)
	}
}

// In a terminal the text of a comparison is redrawn in place, cut to the height of the terminal.
// The last text remains completely.
func TestComparisonInATerminal(t *testing.T) {
	var b bytes.Buffer
	const cols, rows = 30, 5
	term := &comparisonTerminal{screen.Block{W: &b, Size: func() (int, int) { return cols, rows }}}
	text := func(epoch, lines int) (out string) {
		for i := range lines {
			out += fmt.Sprintf("epoch %d of line %d\n", epoch, i)
		}
		return out
	}
	for _, c := range []struct {
		text, want string
	}{
		{text(1, 3), text(1, 3)},
		{text(2, 2) + strings.Repeat("wide ", 20), text(2, 2) + "wide wide wide wide wide wid…\n"},
		{text(3, 8), text(3, 3) + "and 5 more lines, for which …\n"},
		{text(4, 1), text(4, 1)},
	} {
		if err := term.frame(nil, c.text, false); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(screentest.Terminal(t, b.String(), cols), "\n"); got != c.want {
			t.Errorf("the screen is\n%s\nwant\n%s", got, c.want)
		}
	}
	if err := term.frame(nil, text(5, 8), true); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(screentest.Terminal(t, b.String(), cols), "\n"); got != text(5, 8) {
		t.Errorf("at the end the screen shows\n%s", got)
	}
}

// A pipe gets a block of text for each change, at most one per ten seconds, and the last one.
func TestComparisonInAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &screentest.Buffer{}
		sink := NewComparison(screen.Options{Out: out})
		c := Comparison{State: screen.Running}
		for i := range 100 { // one update per second
			sink.Update(c, fmt.Sprintln("change", i/50))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		c.State = screen.Interrupted
		if err := sink.Close(c, "the last\nno longer watched"); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != "change 0\n\nchange 1\n\nthe last\nno longer watched\n" {
			t.Errorf("wrote %q", got)
		}
		out = &screentest.Buffer{}
		sink = NewComparison(screen.Options{Out: out})
		for i := range 100 {
			sink.Update(c, fmt.Sprintln("change", i))
			time.Sleep(time.Second)
		}
		if err := sink.Close(c, fmt.Sprintln("change", 99)); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "change"); n < 10 || n > 12 || !strings.HasSuffix(out.String(), "\nchange 99\n") {
			t.Errorf("%d blocks in 100 seconds:\n%s", n, out.String())
		}
	})
}
