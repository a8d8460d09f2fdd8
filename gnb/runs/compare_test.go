package runs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/nbtest"
)

// The curves show the metrics on one scale and are labelled by the settings that differ. Values
// that cannot be read are left out.
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
		t.Errorf("comparing one run with nil gives %d runs", len(c.Runs))
	}
	if raw, err := runs.Compare().PNG(); err != nil || len(raw) == 0 {
		t.Errorf("no runs: %v", err)
	}
}

// Control characters in a run's name neither break the lines of the text nor reach the terminal.
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
	for _, found := range [][]*runs.Run{found, {found[0], found[0]}} { // runs that differ in a setting, and runs that differ only in their names
		text := runs.Compare(found...).String()
		if !strings.Contains(text, "a[2Jb c d") || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) || strings.Contains(text, "\nc") {
			t.Errorf("it says\n%q", text)
		}
	}
}
