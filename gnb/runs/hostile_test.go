package runs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

// A run's record that somebody else wrote shows text and pictures in a notebook, but runs nothing there.
func TestHostileRecord(t *testing.T) {
	for what, text := range screentest.Hostile {
		t.Run(what, func(t *testing.T) {
			events := []Event{
				{Kind: KindPlan, Epochs: 2},
				{Kind: KindStart, Text: text},
				{Kind: KindSteps, Records: []Step{{Total: 1, Loss: 1}, {Total: 2, Loss: 0.5}}},
				{Kind: KindMetrics, Values: []NamedValue{{Name: text, Value: 0.5}, {Name: "val_" + text, Value: 0.5}}},
				{Kind: KindLog, Total: 2, Values: []NamedValue{{Name: text, Value: 0.5}}, Text: text},
				{Kind: KindDrawn, Drawn: &Drawn{Name: text, Kind: text, Text: text, PNG: []byte(text), Width: 440, Height: 200, Areas: text}},
				{Kind: KindDrawn, Drawn: &Drawn{Name: text + "2", Kind: "table", Head: []string{text}, Rows: [][]string{{text, text}, {}}}},
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
			p := newPanel(Config{Dataset: text}, live.New(screen.Options{Display: d}), text, 2)
			if _, err := readFrom(dir, 0, p.Observe); err != nil {
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

// A run's record names no servers: a program would show them its token.
func TestRecordNamesNoServers(t *testing.T) {
	const address = "grpcs://evil.example:7700?ca=/tmp/ca.pem"
	for _, c := range []Config{{DatasetDir: address}, {DatasetSource: generatedBy + address}, {DatasetDir: address, DatasetSource: generatedBy + address}} {
		if spec := (&Run{Config: c}).DatasetSpec(); spec != "" {
			t.Errorf("the dataset of %+v is %q", c, spec)
		}
	}
	if spec := (&Run{Config: Config{DatasetSource: generatedBy + "planted?nodes=7"}}).DatasetSpec(); spec != "planted?nodes=7" {
		t.Errorf("a generated dataset is %q", spec)
	}
}
