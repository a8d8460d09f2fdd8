package live

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"

	"github.com/graphnb/graphnb/internal/testneed"
)

func TestMain(m *testing.M) {
	if fakeCell() {
		return
	}
	goleak.VerifyTestMain(m)
}

func TestManyUpdatesFewFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &screentest.Tape{}
		sink := New(screen.Options{Display: d})
		start := time.Now()
		s := sampleRun(1000, 2, 0.5, screen.Running)
		for i := range 3000 {
			s.Step = i
			sink.Update(s)
			time.Sleep(time.Millisecond)
		}
		frames := len(d.All())
		if most := int(time.Since(start).Seconds()*20) + 1; frames > most || frames < most/2 {
			t.Errorf("3000 updates in %v made %d frames, want about %d and no more", time.Since(start), frames, most)
		}
		times := d.When()
		for i := 1; i < len(times); i++ {
			if gap := times[i].Sub(times[i-1]); gap < 50*time.Millisecond {
				t.Fatalf("frames %d and %d are %v apart, want 50 ms or more", i-1, i, gap)
			}
		}
		// The last state is shown although no update follows it.
		s.Step, s.Detail = 77, "the last one"
		sink.Update(s)
		time.Sleep(time.Second)
		all := d.All()
		if h := screentest.HTMLOf(all[len(all)-1]); !strings.Contains(h, "the last one") {
			t.Error("the last update was not shown")
		}
		if err := sink.Close(sampleRun(1000, 2, 1, screen.Done)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFrameRateOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &screentest.Tape{}
		sink := New(screen.Options{Display: d, MaxFPS: 2})
		for range 1000 {
			sink.Update(sampleRun(10, 1, 0.5, screen.Running))
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(d.All()); n > 21 || n < 10 {
			t.Errorf("10 s at 2 frames a second made %d frames", n)
		}
		if err := sink.Close(Snapshot{State: screen.Done}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSavedNotebook(t *testing.T) {
	testneed.NotUnderRace(t, "it draws for long, in one goroutine")
	for _, state := range []string{screen.Done, screen.Interrupted, screen.Failed} {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &screentest.Tape{}
				sink := New(screen.Options{Display: d})
				for i := range 5 {
					sink.Update(sampleRun(1000, 2, float64(i)/10, screen.Running))
					time.Sleep(time.Millisecond)
				}
				sink.Print("a line of the log")
				final := sampleRun(1000, 2, 0.6, state)
				if err := sink.Close(final); err != nil {
					t.Fatal(err)
				}
				n := len(d.All())
				sink.Update(final)
				sink.Print("late")
				if err := sink.Close(final); err != nil || len(d.All()) != n {
					t.Errorf("a closed sink still acts: error %v, %d more outputs", err, len(d.All())-n)
				}

				out := d.Outputs()
				reason := final.Detail
				if final.stopped() { // the reason is shown once, above the charts
					if len(out) == 0 || out[0].DisplayID == "" || strings.Count(screentest.HTMLOf(out[0]), screen.Escape(reason)) != 1 || strings.Count(screentest.PlainOf(out[0]), reason) != 1 || strings.Contains(screentest.HTMLOf(out[0]), "<img") {
						t.Fatalf("the first of %d outputs is not the reason %q", len(out), reason)
					}
					screentest.CheckHTML(t, screentest.HTMLOf(out[0]))
					out = out[1:]
					for _, o := range out {
						if strings.Contains(screentest.HTMLOf(o)+screentest.PlainOf(o), reason) {
							t.Errorf("the reason is repeated in %s", screentest.PlainOf(o))
						}
					}
				}
				if len(out) != 2 {
					t.Fatalf("the notebook holds %d outputs, want a figure and a table", len(out))
				}
				figure, table := out[0], out[1]
				checkFigure(t, figure)
				if len(table.Data) != 2 || strings.Count(screentest.HTMLOf(table), "<table") != 1+strings.Count(screentest.HTMLOf(table), "<details>") {
					t.Errorf("the second output is not a table with a text: %v", table.Data)
				}
				// The speed of a small run is folded; why a run ended early, and how fast it was, is not.
				if folded := strings.Contains(screentest.HTMLOf(table), "<details>"); folded != (state == screen.Done) {
					t.Errorf("%s: folded is %t", state, folded)
				}
				screentest.CheckHTML(t, screentest.HTMLOf(table))
				for _, o := range []string{screentest.PlainOf(figure), screentest.PlainOf(table), screentest.HTMLOf(table)} {
					for _, want := range []string{"sage on planted", state, "13/20"} {
						if !strings.Contains(o, want) {
							t.Errorf("%q is missing in %s", want, o)
						}
					}
				}
				if !strings.Contains(screentest.HTMLOf(table), "a line of the log") {
					t.Error("the log is missing")
				}
				if d.Syncs != 1 {
					t.Errorf("%d syncs at the end, want 1", d.Syncs)
				}
			})
		})
	}
}

// checkFigure checks that the output is one compact PNG that shows a picture, with a text.
func checkFigure(t *testing.T, d *protocol.DisplayData) {
	t.Helper()
	if len(d.Data) != 2 || len(screentest.PlainOf(d)) < 20 {
		t.Errorf("the figure's output has %v", d.Data)
	}
	b, _ := d.Data[protocol.MIMEImagePNG].([]byte)
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("the figure is not a PNG: %v", err)
	}
	drawn := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if _, _, _, a := img.At(x, y).RGBA(); a > 0x1000 {
				drawn++
			}
		}
	}
	if drawn < 1000 {
		t.Errorf("the figure has %d pixels that are not background", drawn)
	}
	if len(b) > 80_000 {
		t.Errorf("the figure has %d bytes, want at most 80 kB", len(b))
	}
	size, ok := d.Metadata["image/png"].(map[string]int)
	if !ok || size["width"]*2 != img.Bounds().Dx() || size["height"] < img.Bounds().Dy()/2-1 {
		t.Errorf("an image of %v is shown with the size %v, want half of it", img.Bounds(), size)
	}
}

func TestEscaping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const evil = `"><script>alert('x')</script><b id=a style="position:fixed">&amp;` + "\x1b[31m\x00\u202e"
		s := sampleRun(100, 2, 0.5, screen.Running)
		s.Title, s.Detail, s.Metric = evil, evil+"\nsecond line", evil
		s.Metrics[1].Name = evil
		s.Workers[0].Stage, s.Workers[1].Stages[0].Name = evil, evil
		s.Text = []string{evil}
		d := &screentest.Tape{}
		sink := New(screen.Options{Display: d})
		sink.Update(s)
		sink.Print(evil)
		s.State = screen.Failed
		time.Sleep(20 * time.Millisecond)
		if err := sink.Close(s); err != nil {
			t.Fatal(err)
		}
		pages := 0
		for _, o := range d.All() {
			h := screentest.HTMLOf(o)
			if h == "" {
				continue
			}
			pages++
			text := screentest.CheckHTML(t, h)
			if want := strings.TrimSuffix(evil, "\x1b[31m\x00\u202e"); !strings.Contains(text, want) {
				t.Errorf("the text differs from the input:\n%s", text)
			}
			if i := strings.IndexAny(h, "\x1b\x00\u202e"); i >= 0 {
				t.Errorf("a control character at %d", i)
			}
		}
		if pages < 2 {
			t.Errorf("%d HTML outputs, want the panel and the table", pages)
		}
	})
}

func TestLivePanel(t *testing.T) {
	s := sampleRun(1000, 8, 0.31, screen.Evaluating)
	n := &notebook{id: "x"}
	n.log = []string{"one", "two"}
	o := n.liveData(&s)
	if len(o.Data) != 2 || o.DisplayID != "x" {
		t.Errorf("the panel has %d MIME types and the id %q, want HTML and text under its id", len(o.Data), o.DisplayID)
	}
	text := screentest.CheckHTML(t, screentest.HTMLOf(o))
	for _, want := range []string{
		"sage on planted", "evaluating", "epoch 7/20", "left", "sample", "21 %", "MiB", "one", "two",
		"learning rate 0.003", "the run computes: 59 % of the step", "41.0 GFLOP/s", "14 % of 287 GFLOP/s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if !strings.Contains(screentest.HTMLOf(o), "<img ") || strings.Count(screentest.HTMLOf(o), "<tr") != 11 {
		t.Error("the panel needs an image, a head, a row for all workers, one per worker, and one for the machine")
	}
	if p := screentest.PlainOf(o); !strings.Contains(p, "epoch 7/20") || strings.Contains(p, "\n") {
		t.Errorf("the text is %q", p)
	}
}

// Callers reuse the memory of Workers, so a sink keeps its own copy.
func TestUpdateCopiesWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &screentest.Tape{}
		sink := New(screen.Options{Display: d})
		s := sampleRun(100, 1, 0.5, screen.Running)
		sink.Update(s)
		time.Sleep(time.Second)
		s.Workers[0].Stage = "mine"
		sink.Update(s)
		s.Workers[0].Stage = "renamed"
		s.Workers[0].Stages[0].Name = "renamed"
		time.Sleep(time.Second)
		all := d.All()
		if h := screentest.HTMLOf(all[len(all)-1]); !strings.Contains(h, "mine") || strings.Contains(h, "renamed") {
			t.Error("the sink shows a change made after Update")
		}
		if err := sink.Close(s); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStuckDisplay(t *testing.T) {
	for state, most := range map[string]time.Duration{screen.Done: 5 * time.Second, screen.Interrupted: 1500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			d := &screentest.Tape{Stall: make(chan struct{})}
			sink := New(screen.Options{Display: d})
			start := time.Now()
			for range 100 {
				sink.Update(sampleRun(10, 1, 0.5, screen.Running))
				sink.Print("a line")
			}
			if spent := time.Since(start); spent != 0 {
				t.Errorf("updates waited %v for the display", spent)
			}
			err := sink.Close(Snapshot{State: state})
			if !errors.Is(err, screen.ErrStuck) || time.Since(start) != most {
				t.Errorf("%s: Close of a stuck display returned %v after %v, want errStuck after %v", state, err, time.Since(start), most)
			}
			close(d.Stall)
		})
	}
}

func TestBrokenDisplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken pipe")
		d := &screentest.Tape{Fail: broken}
		sink := New(screen.Options{Display: d, MaxFPS: 1000})
		for range 50 {
			sink.Update(sampleRun(10, 1, 0.5, screen.Running))
			time.Sleep(time.Millisecond)
		}
		if err := sink.Close(Snapshot{State: screen.Done}); !errors.Is(err, broken) {
			t.Errorf("Close returned %v", err)
		}
		if n := len(d.All()); n != 1 {
			t.Errorf("%d outputs were sent to a broken display, want 1", n)
		}
	})
}

// Without a browser the panel is the same, because its messages can be recorded.
func TestHeadlessNotebook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Setenv("GNB_HEADLESS", "1")
		d := &screentest.Tape{}
		sink := New(screen.Options{Display: d, MaxFPS: 1000})
		for range 10 {
			sink.Update(sampleRun(100, 1, 0.5, screen.Running))
			time.Sleep(2 * time.Millisecond)
		}
		if len(d.All()) == 0 {
			t.Error("no live frames")
		}
		if err := sink.Close(sampleRun(100, 1, 1, screen.Done)); err != nil {
			t.Fatal(err)
		}
		if len(d.Outputs()) != 2 {
			t.Errorf("%d outputs, want the figure and the table", len(d.Outputs()))
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &screentest.Tape{}
		sink := New(screen.Options{Display: d, MaxFPS: 200})
		var wg sync.WaitGroup
		for k := range 4 {
			wg.Go(func() {
				s := sampleRun(100, 2, 0.1, screen.Running)
				for i := range 100 {
					s.Loss = append(s.Loss, chart.Point{Step: len(s.Loss) + 1, Y: float64(k)})
					s.Step = i
					sink.Update(s)
					sink.Print("x")
				}
			})
		}
		wg.Wait()
		if err := sink.Close(sampleRun(100, 2, 1, screen.Done)); err != nil {
			t.Fatal(err)
		}
	})
}

// A picture is drawn for any numbers and texts, without the help of guarded, which catches panics.
func TestAnySnapshot(t *testing.T) {
	float := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-3, 3), rapid.SampledFrom([]float64{0, 1, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, math.MaxFloat64}))
	count := rapid.OneOf(rapid.IntRange(-2, 30), rapid.IntRange(0, 100000), rapid.Int())
	points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) chart.Point {
		return chart.Point{Step: count.Draw(t, "step"), Y: float.Draw(t, "y")}
	}), 0, 40)
	rapid.Check(t, func(t *rapid.T) {
		s := Snapshot{
			Title: rapid.String().Draw(t, "title"), Detail: rapid.String().Draw(t, "detail"),
			State: rapid.SampledFrom([]string{"", screen.Running, screen.Done, screen.Failed, "odd"}).Draw(t, "state"),
			Epoch: count.Draw(t, "epoch"), Epochs: count.Draw(t, "epochs"), Step: count.Draw(t, "step"), Steps: count.Draw(t, "steps"),
			Elapsed: time.Duration(rapid.Int64().Draw(t, "elapsed")), Left: time.Duration(rapid.Int64().Draw(t, "left")),
			Loss: points.Draw(t, "loss"), LR: points.Draw(t, "lr"),
			Rates: []Rate{{rapid.String().Draw(t, "unit"), float.Draw(t, "per sec"), float.Draw(t, "limit")}},
		}
		for range rapid.IntRange(0, 4).Draw(t, "series") {
			s.Metrics = append(s.Metrics, Series{rapid.String().Draw(t, "name"), points.Draw(t, "points")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "workers") {
			s.Workers = append(s.Workers, Worker{
				Rank: count.Draw(t, "rank"), SeedsPerSec: float.Draw(t, "rate"), RSS: rapid.Int64().Draw(t, "rss"),
				Stages: []StageShare{{rapid.String().Draw(t, "stage"), float.Draw(t, "share")}, {"wait", float.Draw(t, "share")}},
			})
		}
		var p painter
		charts, err := p.SVGs(&s)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range charts {
			if bytes.Contains(c.svg, []byte("NaN")) || bytes.Contains(c.svg, []byte("Inf")) {
				t.Fatalf("a drawing has NaN or Inf:\n%s", c.svg)
			}
			if len(c.svg) > 100_000 {
				t.Fatalf("a picture has %d bytes", len(c.svg))
			}
		}
		for _, txt := range []string{Line(&s), tablePlain(&s, nil), barLine(screen.TermStyle(), &s, 60)} {
			if strings.ContainsRune(txt, '\x00') {
				t.Fatalf("control character in %q", txt)
			}
		}
		liveHTML("x", &s, charts, nil)
		tableHTML("x", &s, nil, charts[0].areas)
	})
}

func TestPanicOfPlot(t *testing.T) {
	_, err := screen.Guarded(func() ([]byte, error) { panic("plot: no") })
	if err == nil || !strings.Contains(err.Error(), "plot: no") {
		t.Errorf("a panic was returned as %v", err)
	}
}

// All of a program's output stays in the cell, in order, for any number of lines; the log shows
// only the last few lines.
func TestSaidInCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, said := &screentest.Tape{}, &strings.Builder{}
		sink := New(screen.Options{Display: d, Said: said})
		want := ""
		for i := range 500 {
			line := fmt.Sprintf("step %d", i)
			sink.Say(line)
			want += line + "\n"
		}
		sink.Say("two\nlines")
		sink.Print("a line of the log")
		if err := sink.Close(sampleRun(10, 1, 1, screen.Done)); err != nil {
			t.Fatal(err)
		}
		sink.Say("late")
		if want += "two\nlines\n"; said.String() != want {
			t.Errorf("the cell holds %d lines, ending in %q; want 502, everything printed", strings.Count(said.String(), "\n"), said.String()[max(0, said.Len()-40):])
		}
		table := screentest.HTMLOf(d.Outputs()[1])
		if strings.Contains(table, "step 499") || !strings.Contains(table, "a line of the log") {
			t.Errorf("the log is not what Print was given: %s", table)
		}
	})
}
