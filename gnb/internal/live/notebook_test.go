package live

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	if fakeCell() {
		return
	}
	goleak.VerifyTestMain(m)
}

func TestManyUpdatesFewFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &tape{}
		sink := New(Options{Display: d})
		start := time.Now()
		s := sampleRun(1000, 2, 0.5, Running)
		for i := range 3000 {
			s.Step = i
			sink.Update(s)
			time.Sleep(time.Millisecond)
		}
		frames := len(d.all())
		if most := int(time.Since(start).Seconds()*20) + 1; frames > most || frames < most/2 {
			t.Errorf("3000 updates in %v made %d frames, want about %d and no more", time.Since(start), frames, most)
		}
		times := d.when()
		for i := 1; i < len(times); i++ {
			if gap := times[i].Sub(times[i-1]); gap < 50*time.Millisecond {
				t.Fatalf("frames %d and %d are %v apart, want 50 ms or more", i-1, i, gap)
			}
		}
		// The last state is shown although no update follows it.
		s.Step, s.Detail = 77, "the last one"
		sink.Update(s)
		time.Sleep(time.Second)
		all := d.all()
		if h := htmlOf(all[len(all)-1]); !strings.Contains(h, "the last one") {
			t.Error("the last update was not shown")
		}
		if err := sink.Close(sampleRun(1000, 2, 1, Done)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFrameRateOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &tape{}
		sink := New(Options{Display: d, MaxFPS: 2})
		for range 1000 {
			sink.Update(sampleRun(10, 1, 0.5, Running))
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(d.all()); n > 21 || n < 10 {
			t.Errorf("10 s at 2 frames a second made %d frames", n)
		}
		if err := sink.Close(Snapshot{State: Done}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSavedNotebook(t *testing.T) {
	for _, state := range []string{Done, Interrupted, Failed} {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &tape{}
				sink := New(Options{Display: d})
				for i := range 5 {
					sink.Update(sampleRun(1000, 2, float64(i)/10, Running))
					time.Sleep(time.Millisecond)
				}
				sink.Print("a line of the log")
				final := sampleRun(1000, 2, 0.6, state)
				if err := sink.Close(final); err != nil {
					t.Fatal(err)
				}
				n := len(d.all())
				sink.Update(final)
				sink.Print("late")
				if err := sink.Close(final); err != nil || len(d.all()) != n {
					t.Errorf("a closed sink still acts: error %v, %d more outputs", err, len(d.all())-n)
				}

				out := d.outputs()
				reason := final.Detail
				if final.stopped() { // the reason is shown once, above the charts
					if len(out) == 0 || out[0].DisplayID == "" || strings.Count(htmlOf(out[0]), esc(reason)) != 1 || strings.Count(plainOf(out[0]), reason) != 1 || strings.Contains(htmlOf(out[0]), "<img") {
						t.Fatalf("the first of %d outputs is not the reason %q", len(out), reason)
					}
					checkHTML(t, htmlOf(out[0]))
					out = out[1:]
					for _, o := range out {
						if strings.Contains(htmlOf(o)+plainOf(o), reason) {
							t.Errorf("the reason is repeated in %s", plainOf(o))
						}
					}
				}
				if len(out) != 2 {
					t.Fatalf("the notebook holds %d outputs, want a figure and a table", len(out))
				}
				figure, table := out[0], out[1]
				checkFigure(t, figure)
				if len(table.Data) != 2 || strings.Count(htmlOf(table), "<table") != 1 {
					t.Errorf("the second output is not a table with a text: %v", table.Data)
				}
				checkHTML(t, htmlOf(table))
				for _, o := range []string{plainOf(figure), plainOf(table), htmlOf(table)} {
					for _, want := range []string{"sage on planted", state, "13/20"} {
						if !strings.Contains(o, want) {
							t.Errorf("%q is missing in %s", want, o)
						}
					}
				}
				if !strings.Contains(htmlOf(table), "a line of the log") {
					t.Error("the log is missing")
				}
				if d.syncs != 1 {
					t.Errorf("%d syncs at the end, want 1", d.syncs)
				}
			})
		})
	}
}

// checkFigure checks that the output is one compact PNG that shows a picture, with a text.
func checkFigure(t *testing.T, d *protocol.DisplayData) {
	t.Helper()
	if len(d.Data) != 2 || len(plainOf(d)) < 20 {
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

// cssAllowed holds the style values that JupyterLab's sanitizer accepts
// (jupyterlab/packages/apputils/src/sanitizer.ts).
var cssAllowed = map[string]string{
	"background":       `transparent`,
	"background-color": `#[0-9a-f]{6}|rgba\(\d+,\d+,\d+,0\.\d+\)`,
	"color":            `#[0-9a-f]{6}|rgba\(\d+,\d+,\d+,0\.\d+\)`,
	"opacity":          `0\.\d+`,
	"border":           `0`,
	"border-top":       `1px solid rgba\(\d+,\d+,\d+,0\.\d+\)`,
	"border-bottom":    `1px solid rgba\(\d+,\d+,\d+,0\.\d+\)`,
	"border-left":      `3px solid #[0-9a-f]{6}`,
	"border-radius":    `\dpx`, "border-collapse": `collapse`,
	"table-layout": `auto`, "width": `\d+(\.\d+)?(px|%)`, "max-width": `\d+px`, "height": `\dpx|\d\dpx|auto`,
	"padding": `((0|\d+px) ?)+`, "padding-top": `\dpx`, "margin": `((0|\d+px) ?)+`,
	"display": `flex`, "overflow": `hidden`, "text-align": `left|right`, "vertical-align": `top`,
	"white-space": `nowrap|normal|pre-wrap`, "font-size": `1\dpx`, "font-family": `monospace`, "line-height": `1\.\d+`,
	"text-overflow": `ellipsis`,
	"align-items":   `baseline`, "font-variant-numeric": `tabular-nums`, // JupyterLab may drop these two
}

// checkHTML checks that elements are balanced and harmless, and returns the text.
func checkHTML(t *testing.T, s string) (text string) {
	t.Helper()
	elements := map[string]bool{"div": true, "span": true, "b": true, "br": true, "img": true, "table": true, "tr": true, "td": true}
	attrs := map[string]bool{"style": true, "title": true, "alt": true, "src": true, "colspan": true}
	dec := xml.NewDecoder(strings.NewReader(s))
	dec.Strict, dec.AutoClose, dec.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var b strings.Builder
	open := 0
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			if open != 0 {
				t.Errorf("%d elements are not closed", open)
			}
			return b.String()
		}
		if err != nil {
			t.Fatalf("the HTML is broken: %v", err)
		}
		switch e := tok.(type) {
		case xml.CharData:
			b.Write(e)
		case xml.EndElement:
			open--
		case xml.StartElement:
			open++
			if !elements[e.Name.Local] {
				t.Errorf("element <%s>", e.Name.Local)
			}
			for _, a := range e.Attr {
				if !attrs[a.Name.Local] {
					t.Errorf("attribute %s of <%s>", a.Name.Local, e.Name.Local)
				}
				if a.Name.Local == "src" && !strings.HasPrefix(a.Value, "data:image/svg+xml;base64,") {
					t.Errorf("image from %.40s", a.Value)
				}
				if a.Name.Local != "style" {
					continue
				}
				for _, decl := range strings.Split(a.Value, ";") {
					prop, val, _ := strings.Cut(decl, ":")
					want, ok := cssAllowed[prop]
					if !ok || !regexp.MustCompile(`^(`+want+`)$`).MatchString(val) {
						t.Errorf("style %q of <%s>", decl, e.Name.Local)
					}
				}
			}
		}
	}
}

func TestEscaping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const evil = `"><script>alert('x')</script><b id=a style="position:fixed">&amp;` + "\x1b[31m\x00\u202e"
		s := sampleRun(100, 2, 0.5, Running)
		s.Title, s.Detail, s.Metric = evil, evil+"\nsecond line", evil
		s.Metrics[1].Name = evil
		s.Workers[0].Stage, s.Workers[1].Stages[0].Name = evil, evil
		s.Text = []string{evil}
		d := &tape{}
		sink := New(Options{Display: d})
		sink.Update(s)
		sink.Print(evil)
		s.State = Failed
		time.Sleep(20 * time.Millisecond)
		if err := sink.Close(s); err != nil {
			t.Fatal(err)
		}
		pages := 0
		for _, o := range d.all() {
			h := htmlOf(o)
			if h == "" {
				continue
			}
			pages++
			text := checkHTML(t, h)
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
	s := sampleRun(1000, 8, 0.31, Evaluating)
	n := &notebook{id: "x"}
	n.log = []string{"one", "two"}
	o := n.liveData(&s)
	if len(o.Data) != 2 || o.DisplayID != "x" {
		t.Errorf("the panel has %d MIME types and the id %q, want HTML and text under its id", len(o.Data), o.DisplayID)
	}
	text := checkHTML(t, htmlOf(o))
	for _, want := range []string{
		"sage on planted", "evaluating", "epoch 7/20", "left", "sample", "21 %", "MiB", "one", "two",
		"learning rate 0.003", "the run computes: 59 % of the step", "41.0 GFLOP/s", "14 % of 287 GFLOP/s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if !strings.Contains(htmlOf(o), "<img ") || strings.Count(htmlOf(o), "<tr") != 11 {
		t.Error("the panel needs an image, a head, a row for all workers, one per worker, and one for the machine")
	}
	if p := plainOf(o); !strings.Contains(p, "epoch 7/20") || strings.Contains(p, "\n") {
		t.Errorf("the text is %q", p)
	}
}

// Callers reuse the memory of Workers, so a sink keeps its own copy.
func TestUpdateCopiesWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &tape{}
		sink := New(Options{Display: d})
		s := sampleRun(100, 1, 0.5, Running)
		sink.Update(s)
		time.Sleep(time.Second)
		s.Workers[0].Stage = "mine"
		sink.Update(s)
		s.Workers[0].Stage = "changed"
		s.Workers[0].Stages[0].Name = "changed"
		time.Sleep(time.Second)
		all := d.all()
		if h := htmlOf(all[len(all)-1]); !strings.Contains(h, "mine") || strings.Contains(h, "changed") {
			t.Error("the sink shows a change made after Update")
		}
		if err := sink.Close(s); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStuckDisplay(t *testing.T) {
	for state, most := range map[string]time.Duration{Done: 5 * time.Second, Interrupted: 1500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			d := &tape{stall: make(chan struct{})}
			sink := New(Options{Display: d})
			start := time.Now()
			for range 100 {
				sink.Update(sampleRun(10, 1, 0.5, Running))
				sink.Print("a line")
			}
			if spent := time.Since(start); spent != 0 {
				t.Errorf("updates waited %v for the display", spent)
			}
			err := sink.Close(Snapshot{State: state})
			if !errors.Is(err, errStuck) || time.Since(start) != most {
				t.Errorf("%s: Close of a stuck display returned %v after %v, want errStuck after %v", state, err, time.Since(start), most)
			}
			close(d.stall)
		})
	}
}

func TestBrokenDisplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken pipe")
		d := &tape{fail: broken}
		sink := New(Options{Display: d, MaxFPS: 1000})
		for range 50 {
			sink.Update(sampleRun(10, 1, 0.5, Running))
			time.Sleep(time.Millisecond)
		}
		if err := sink.Close(Snapshot{State: Done}); !errors.Is(err, broken) {
			t.Errorf("Close returned %v", err)
		}
		if n := len(d.all()); n != 1 {
			t.Errorf("%d outputs were sent to a broken display, want 1", n)
		}
	})
}

// Without a browser the panel is the same, because its messages can be recorded.
func TestHeadlessNotebook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Setenv("GNB_HEADLESS", "1")
		d := &tape{}
		sink := New(Options{Display: d, MaxFPS: 1000})
		for range 10 {
			sink.Update(sampleRun(100, 1, 0.5, Running))
			time.Sleep(2 * time.Millisecond)
		}
		if len(d.all()) == 0 {
			t.Error("no live frames")
		}
		if err := sink.Close(sampleRun(100, 1, 1, Done)); err != nil {
			t.Fatal(err)
		}
		if len(d.outputs()) != 2 {
			t.Errorf("%d outputs, want the figure and the table", len(d.outputs()))
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &tape{}
		sink := New(Options{Display: d, MaxFPS: 200})
		var wg sync.WaitGroup
		for k := range 4 {
			wg.Go(func() {
				s := sampleRun(100, 2, 0.1, Running)
				for i := range 100 {
					s.Loss = append(s.Loss, Point{Step: len(s.Loss) + 1, Y: float64(k)})
					s.Step = i
					sink.Update(s)
					sink.Print("x")
				}
			})
		}
		wg.Wait()
		if err := sink.Close(sampleRun(100, 2, 1, Done)); err != nil {
			t.Fatal(err)
		}
	})
}

// A picture is drawn for any numbers and texts, without the help of guarded, which catches panics.
func TestAnySnapshot(t *testing.T) {
	float := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-3, 3), rapid.SampledFrom([]float64{0, 1, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, math.MaxFloat64}))
	count := rapid.OneOf(rapid.IntRange(-2, 30), rapid.IntRange(0, 100000), rapid.Int())
	points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Point {
		return Point{Step: count.Draw(t, "step"), Y: float.Draw(t, "y")}
	}), 0, 40)
	rapid.Check(t, func(t *rapid.T) {
		s := Snapshot{
			Title: rapid.String().Draw(t, "title"), Detail: rapid.String().Draw(t, "detail"),
			State: rapid.SampledFrom([]string{"", Running, Done, Failed, "odd"}).Draw(t, "state"),
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
		for _, txt := range []string{plainLine(&s), tablePlain(&s, nil), termStyle().bar(&s, 60)} {
			if strings.ContainsRune(txt, '\x00') {
				t.Fatalf("control character in %q", txt)
			}
		}
		liveHTML(&s, charts, nil)
		tableHTML(&s, nil)
	})
}

func TestPanicOfPlot(t *testing.T) {
	_, err := guarded(func() ([]byte, error) { panic("plot: no") })
	if err == nil || !strings.Contains(err.Error(), "plot: no") {
		t.Errorf("a panic was returned as %v", err)
	}
}

// All of a program's output stays in the cell, in order, for any number of lines; the log shows
// only the last few lines.
func TestSaidInCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, said := &tape{}, &strings.Builder{}
		sink := New(Options{Display: d, Said: said})
		want := ""
		for i := range 500 {
			line := fmt.Sprintf("step %d", i)
			sink.Say(line)
			want += line + "\n"
		}
		sink.Say("two\nlines")
		sink.Print("a line of the log")
		if err := sink.Close(sampleRun(10, 1, 1, Done)); err != nil {
			t.Fatal(err)
		}
		sink.Say("late")
		if want += "two\nlines\n"; said.String() != want {
			t.Errorf("the cell holds %d lines, ending in %q; want 502, everything printed", strings.Count(said.String(), "\n"), said.String()[max(0, said.Len()-40):])
		}
		table := htmlOf(d.outputs()[1])
		if strings.Contains(table, "step 499") || !strings.Contains(table, "a line of the log") {
			t.Errorf("the log is not what Print was given: %s", table)
		}
	})
}
