package boards

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

func sampleSweep(trials int, state string) Sweep {
	s := Sweep{Title: "tpe of sage on <cora>", State: state, Metric: "val_accuracy", Done: trials, Total: 40, Elapsed: 83 * time.Second, Axes: []SweepAxis{
		{"lr", []SweepMark{{0, "0.0001"}, {0.5, "0.003"}, {1, "0.1"}}},
		{"hidden", []SweepMark{{0.17, "16"}, {0.5, "64"}, {0.83, "256"}}},
		{"dropout", []SweepMark{{0, "0"}, {1, "0.7"}}},
		{"<b>norm", []SweepMark{{0.25, "none"}, {0.75, "layer"}}},
	}}
	for i := range trials {
		x := float64(i) / float64(max(trials, 1))
		t := SweepTrial{
			Number: (i * 7) % max(trials, 1), State: screen.Done, Value: 0.82 - 0.4*x*x, Epochs: 30, Seconds: 2 + 3*x,
			At:     []float64{0.6 + 0.4*math.Sin(40*x)*x, []float64{0.17, 0.5, 0.83}[i%3], math.Mod(0.3+3.1*x, 1), 0.25 + 0.5*float64(i%2)},
			Values: []string{fmt.Sprintf("%.4g", 0.01*(1+x)), "64", "0.3", "<none>"},
		}
		switch {
		case i > trials/2 && i%4 == 0:
			t.State, t.Epochs = "stopped", 3
		case i == trials-2:
			t.State, t.At[1], t.Values[1] = screen.Running, math.NaN(), ""
		case i == trials-1:
			t.State, t.Value, t.Note = screen.Failed, math.NaN(), "gnb: 10 hidden columns do not divide among <3> heads"
		}
		s.Trials = append(s.Trials, t)
	}
	if trials >= 10 {
		s.Shares = []SweepShare{{"lr", 0.62}, {"dropout", 0.11}, {"hidden", 0.04}, {"<b>norm", 0}}
	}
	return s
}

// A sweep is drawn for any numbers. If GNB_LOOK names a directory, the pictures are written there
// for review.
func TestSweepPNG(t *testing.T) {
	odd := sampleSweep(6, screen.Running)
	odd.Trials[0].Value, odd.Trials[1].Value, odd.Trials[2].At = math.Inf(1), math.NaN(), nil
	odd.Trials[3].At[0] = math.Inf(-1)
	same := sampleSweep(5, screen.Done)
	for i := range same.Trials {
		same.Trials[i].Value = 0.5
	}
	for name, s := range map[string]Sweep{
		"none": {Title: strings.Repeat("long ", 100), Metric: "val_loss"}, "one": sampleSweep(3, screen.Running), "odd": odd, "same": same, "forty": sampleSweep(40, screen.Done),
	} {
		screentest.CheckPicture(t, "sweep-"+name, func() (chart.Picture, error) { return SweepPNG(s) })
		d, err := s.drawing()
		if err != nil || !bytes.Contains(d.SVG, []byte("</svg>")) {
			t.Errorf("%s: %v", name, err)
		}
		if dir := os.Getenv("GNB_LOOK"); dir != "" {
			head := s.snapshot()
			screentest.Put(t, filepath.Join(dir, "sweep-"+name+".html"), []byte(screentest.Page(sweepHTML("id", &s, &head, d, "", 10))))
		}
	}
}

// In a cell a sweep is one output that is updated in place. At the end it is a picture and a table
// with all parameters and results; user text is escaped.
func TestSweepCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &screentest.Tape{}
		sink := NewSweep(screen.Options{Display: d})
		sink.Update(sampleSweep(12, screen.Running))
		for len(d.All()) == 0 {
			time.Sleep(time.Millisecond)
		}
		sink.Tell("not shown")
		if err := sink.Close(sampleSweep(40, screen.Done)); err != nil {
			t.Fatal(err)
		}
		sent := d.All()
		first, last := sent[0], sent[len(sent)-1]
		panel := strings.ReplaceAll(screentest.HTMLOf(first), chart.Script(), "")
		for _, want := range []string{"data:image/svg+xml;base64,", "tpe of sage on &lt;cora&gt;", "&lt;b&gt;norm", "&lt;none&gt;", "12/40 trials, best val_accuracy 0.820", "running", "among &lt;3&gt; heads"} {
			if !strings.Contains(screentest.HTMLOf(first), want) {
				t.Errorf("the panel lacks %q:\n%s", want, screentest.HTMLOf(first))
			}
		}
		for _, never := range []string{"<b>norm", "<none>", "<script", "<style", "<svg", " id="} {
			if strings.Contains(panel, never) {
				t.Errorf("the panel has %q", never)
			}
		}
		if out := d.Outputs(); len(out) != 2 {
			t.Errorf("%d outputs, want a picture and a table", len(out))
		} else if b, ok := out[0].Data["image/png"].([]byte); !ok || len(b) < 1000 {
			t.Errorf("no picture: %v", out[0].Data)
		}
		if !strings.Contains(screentest.HTMLOf(last), "and 8 more trials") || strings.Contains(screentest.HTMLOf(last), "<img") || d.Syncs == 0 {
			t.Errorf("the table:\n%s", screentest.HTMLOf(last))
		}
	})
}

// Outside of a notebook a sweep is printed as lines.
func TestSweepLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		sink := NewSweep(screen.Options{Out: &out})
		sink.Update(sampleSweep(0, screen.Starting))
		sink.Tell("trial 3 done")
		s := sampleSweep(40, screen.Done)
		if err := sink.Close(s); err != nil {
			t.Fatal(err)
		}
		want := "tpe of sage on <cora>: starting\ntrial 3 done\ntpe of sage on <cora>: done, best val_accuracy 0.820, 01:23\n"
		if out.String() != want {
			t.Errorf("it wrote\n%s\nwant\n%s", out.String(), want)
		}
		run := s.snapshot()
		run.State, run.Left = screen.Running, time.Minute
		if got := live.ProgressLine(&run); got != "trial 40/40  100 %  best val_accuracy 0.820  01:00 left" {
			t.Errorf("progress is %q", got)
		}
	})
}
