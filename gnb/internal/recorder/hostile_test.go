package recorder

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A run's record that somebody else wrote shows text and pictures in a notebook, but runs nothing there.
func TestHostileRecord(t *testing.T) {
	testneed.NotUnderRace(t, "a panel that ends waits 5 seconds for its drawing, which takes longer then")
	for what, text := range screentest.Hostile {
		t.Run(what, func(t *testing.T) {
			events := []runs.Event{
				{Kind: runs.KindPlan, Epochs: 2},
				{Kind: runs.KindStart, Text: text},
				{Kind: runs.KindSteps, Records: []runs.Step{{Total: 1, Loss: 1}, {Total: 2, Loss: 0.5}}},
				{Kind: runs.KindMetrics, Values: []runs.NamedValue{{Name: text, Value: 0.5}, {Name: "val_" + text, Value: 0.5}}},
				{Kind: runs.KindLog, Total: 2, Values: []runs.NamedValue{{Name: text, Value: 0.5}}, Text: text},
				{Kind: runs.KindDrawn, Drawn: &runs.Drawn{Name: text, Kind: text, Text: text, PNG: []byte(text), Width: 440, Height: 200, Areas: text}},
				{Kind: runs.KindDrawn, Drawn: &runs.Drawn{Name: text + "2", Kind: "table", Head: []string{text}, Rows: [][]string{{text, text}, {}}}},
			}
			dir := t.TempDir()
			var lines []byte
			for _, e := range events {
				line, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(append(lines, line...), '\n')
			}
			if err := os.WriteFile(filepath.Join(dir, "metrics.jsonl"), lines, 0o600); err != nil {
				t.Fatal(err)
			}
			d := &screentest.Tape{}
			p := newPanelOn(live.New(screen.Options{Display: d}), runs.Config{Dataset: text}, text, 2)
			if _, err := runfile.ReadMetrics(dir, 0, p.Observe); err != nil {
				t.Fatal(err)
			}
			p.update()
			p.end(screen.Failed, text, 0)
			p.close()
			drawn := 0
			for _, o := range d.All() {
				html := screentest.HTMLOf(o)
				screentest.CheckHTML(t, html)
				if strings.HasSuffix(o.DisplayID, "_drawn") {
					drawn++
				}
			}
			if drawn == 0 {
				t.Error("what the run has drawn was not shown")
			}
		})
	}
}
