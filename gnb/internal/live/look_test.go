package live

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"

	"github.com/graphnb/graphnb/internal/testneed"
)

// TestLook draws the panels. If GNB_LOOK names a directory, they are written there for review.
func TestLook(t *testing.T) {
	testneed.NotUnderRace(t, "it draws for long, in one goroutine")
	dir := os.Getenv("GNB_LOOK")
	if dir == "" {
		dir = t.TempDir()
	}
	for _, c := range []struct {
		name           string
		steps, workers int
		done           float64
		state          string
	}{
		{"start", 10000, 2, 0, screen.Starting},
		{"early", 10000, 2, 0.002, screen.Running},
		{"running", 10000, 2, 0.62, screen.Running},
		{"ten", 10, 1, 0.6, screen.Running},
		{"eight", 10000, 8, 0.31, screen.Evaluating},
		{"done", 10000, 8, 1, screen.Done},
		{"done1", 10000, 1, 1, screen.Done},
		{"done10", 10, 1, 1, screen.Done},
		{"interrupted", 10000, 2, 0.62, screen.Interrupted},
		{"failed", 10000, 2, 0.625, screen.Failed},
		{"failed0", 10000, 2, 0, screen.Failed},
		{"schedule", 10000, 2, 0.62, screen.Running},
		{"scheduledone", 10000, 2, 1, screen.Done},
		{"logged", 10000, 2, 0.62, screen.Running},
		{"loggeddone", 10000, 2, 1, screen.Done},
		{"loggedone", 10000, 2, 1, screen.Done},
	} {
		s := sampleRun(c.steps, c.workers, c.done, c.state)
		if strings.HasPrefix(c.name, "schedule") {
			s.LR = cosine(c.steps, len(s.Loss))
		}
		if strings.HasPrefix(c.name, "logged") {
			s.Logged = loggedSample(len(s.Loss))
			if c.name == "loggedone" {
				s.Logged = s.Logged[2:3]
			}
		}
		d := &screentest.Tape{}
		synctest.Test(t, func(t *testing.T) { // here drawing takes no time, so Close, which waits for the drawing for a limited time, sees it done
			sink := New(screen.Options{Display: d})
			if !s.final() {
				sink.Update(s)
				synctest.Wait()
				screentest.Put(t, filepath.Join(dir, c.name+".html"), []byte(screentest.Page(screentest.HTMLOf(d.All()[0]))))
			}
			if err := sink.Close(s); err != nil {
				t.Fatal(err)
			}
		})
		out := d.Outputs()
		if s.stopped() {
			screentest.Put(t, filepath.Join(dir, c.name+"-reason.html"), []byte(screentest.Page(screentest.HTMLOf(out[0]))))
			out = out[1:]
		}
		png, ok := out[0].Data["image/png"].([]byte)
		if !ok {
			t.Fatalf("%s: the picture is missing: %s", c.name, screentest.PlainOf(out[0]))
		}
		t.Log(c.name, len(png), "bytes of PNG")
		screentest.Put(t, filepath.Join(dir, c.name+".png"), png)
		screentest.Put(t, filepath.Join(dir, c.name+"-table.html"), []byte(screentest.Page(`<img width=880 src="`+c.name+`.png">`+screentest.HTMLOf(out[1])+`<pre>`+screentest.PlainOf(out[0])+"\n\n"+screentest.PlainOf(out[1])+`</pre>`)))
	}
}

// loggedSample returns curves that a program might log: two of one measure, one of long steps, one with a gap, one with a
// long name.
func loggedSample(n int) []Series {
	out := []Series{{Name: "val_f1"}, {Name: "test_f1"}, {Name: "grad_norm"}, {Name: "temperature"}, {Name: "weights <of> the layer with a name that is far too long for a chart"}}
	for i := 100; i <= n; i += 100 {
		x := float64(i)
		for k, y := range []float64{1 - math.Exp(-x/3000), 0.93 - math.Exp(-x/3000), 40 / (1 + x/500), math.Cos(x / 900), 1e7 * x} {
			if k == 3 && i%1000 == 0 {
				y = math.NaN()
			}
			out[k].Points = append(out[k].Points, chart.Point{Step: i, Y: y})
		}
	}
	return out
}

// cosine returns a learning rate that rises over 500 steps and then falls along a cosine.
func cosine(steps, n int) (lr []chart.Point) {
	for i := range n {
		y := 0.003 * min(1, float64(i+1)/500) * (1 + math.Cos(math.Pi*float64(i)/float64(steps))) / 2
		lr = append(lr, chart.Point{Step: i + 1, Y: y})
	}
	return lr
}
