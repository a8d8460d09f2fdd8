package gnb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/nbtest"
)

func TestCompareShowsWhatDiffers(t *testing.T) {
	ds := load(t, "karate")
	dir := t.TempDir()
	var found []*runs.Run
	for i, lr := range []float64{0.01, 0.02} {
		run := train(t, ds, gnb.TrainOptions{Workers: 1 + i, Threads: 1, Epochs: 2, Hidden: 8, LR: lr, RunDir: filepath.Join(dir, "r"+string('0'+rune(i)))})
		again, err := runs.Open(run.Dir)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, again)
	}
	c := runs.Compare(found...)
	differ := map[string][]string{}
	for _, r := range c.Settings {
		differ[r.Name] = r.Values
	}
	if len(differ) != 2 || strings.Join(differ["args.LR"], " ") != "0.01 0.02" || strings.Join(differ["workers"], " ") != "1 2" {
		t.Errorf("settings that differ: %v, want args.LR and workers", differ)
	}
	reported := 0
	for _, r := range c.Results {
		if r.Name == "val_accuracy" || r.Name == "loss" {
			reported++
		}
	}
	if reported != 2 {
		t.Errorf("results: %v", c.Results)
	}
	for _, want := range []string{found[0].Config.ID, "args.LR", "val_accuracy", "loss by step, 1 to 2", "val accuracy by epoch, 1 to 2", "LR 0.01, workers 1\n", "LR 0.02, workers 2\n"} {
		if !strings.Contains(c.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, c)
		}
	}
}

// The curves are those of the metrics, on one scale, labelled by what differs; what
// cannot be read is left out.
func TestCompareDrawsCurves(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", dir)
	lines := func(losses ...any) string {
		out := ""
		for i, l := range losses {
			raw, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			out += fmt.Sprintf(`{"event":"steps","records":[{"total":%d,"loss":%s}]}`+"\n", i+1, raw)
		}
		return out + `{"event":"metrics","epoch":0,"values":[{"name":"val_auc","value":0.5},{"name":"test_auc","value":0.1}]}` + "\n"
	}
	var found []*runs.Run
	for i, m := range []string{lines(4.0, 3.0, 2.0, 1.0), lines(4.0, nil), ""} {
		name := filepath.Join(dir, string('a'+rune(i)))
		putRun(t, name, 2*i, trained(0.1, 8<<min(i, 1), "sage"), ended("done", 0.5, 0.5))
		if m != "" {
			if err := os.WriteFile(filepath.Join(name, "metrics.jsonl"), []byte(m), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r, err := runs.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, r)
	}
	c := runs.Compare(found...)
	for _, want := range []string{
		"loss by step, 1 to 4, from 1 to 4\n", "█▆▃▁  1  Fanouts [10,8], hidden 8\n", "█     4  Fanouts [10,16], hidden 16, b\n", "      –  Fanouts [10,16], hidden 16, c\n",
		"val auc by epoch, 1 to 1, from 0.5 to 0.5\n▁  0.5  ",
	} {
		if !strings.Contains(c.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, c)
		}
	}
	raw, err := c.PNG()
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil || nbtest.Drawn(img) < 1000 {
		t.Errorf("the picture: %v", err)
	}
	if c := runs.Compare(nil, found[0], nil); len(c.Runs) != 1 || c.Runs[0] != found[0] {
		t.Errorf("beside nil: %d runs", len(c.Runs))
	}
	if raw, err := runs.Compare().PNG(); err != nil || len(raw) == 0 {
		t.Errorf("no runs: %v", err)
	}
}

// A live comparison ends with the last of its runs, and has all of them as they
// ended; a cancelled one leaves them going.
func TestCompareLive(t *testing.T) {
	ds := load(t, smallSet)
	dir := t.TempDir()
	begun := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		var once sync.Once
		_, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{
			Workers: 1, Threads: 1, Epochs: 40, Hidden: 32, Batch: 32, RunDir: filepath.Join(dir, "a"), Quiet: true,
			Events: func(e runs.Event) {
				if e.Kind == "epoch" {
					once.Do(func() { close(begun) })
				}
			},
		})
		ended <- err
	}()
	done := train(t, ds, gnb.TrainOptions{Workers: 1, Threads: 1, Epochs: 2, Hidden: 8, RunDir: filepath.Join(dir, "b")})
	<-begun
	going, err := runs.Open(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := runs.CompareLive(ctx, going, done); len(c.Runs) != 2 || err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %d runs, %v", len(c.Runs), err)
	}
	c, err := runs.CompareLive(t.Context(), going, done)
	if err != nil {
		t.Fatal(err)
	}
	if c.Runs[0].Result.State != runs.StateDone || c.Runs[0].Result.Epochs != 40 || c.Runs[1].Result.Epochs != 2 {
		t.Errorf("compared %v and %v", c.Runs[0], c.Runs[1])
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := runs.CompareLive(t.Context(), &runs.Run{Dir: filepath.Join(dir, "none")}); err == nil {
		t.Error("no run: no error")
	}
}

// Names of anybody's choosing do not break the text's lines or do things to a terminal.
func TestComparisonIsPlainText(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", dir)
	const nasty = "a\x1b[2Jb\nc\td\u009be"
	var found []*runs.Run
	for i, name := range []string{nasty, "plain"} {
		at := filepath.Join(dir, name)
		args, err := json.Marshal(map[string]any{"lr" + nasty: i})
		if err != nil {
			t.Fatal(err)
		}
		first := filepath.Join(dir, "first")
		putRun(t, first, 1, string(args), `{"state": "done", "values": {"val_f1": 0.5}}`)
		if err := os.Rename(first, at); err != nil {
			t.Fatal(err)
		}
		metrics := `{"event":"steps","records":[{"total":1,"loss":2}]}` + "\n"
		if err := os.WriteFile(filepath.Join(at, "metrics.jsonl"), []byte(metrics), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := runs.Open(at)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, r)
	}
	for _, found := range [][]*runs.Run{found, {found[0], found[0]}} { // told apart by a setting, and by their names
		text := runs.Compare(found...).String()
		if !strings.Contains(text, "a[2Jb c d") || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) || strings.Contains(text, "\nc") {
			t.Errorf("it says\n%q", text)
		}
	}
}
