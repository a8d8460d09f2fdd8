package runs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
)

// putRun writes a run's directory: its start time, its arguments as JSON, and its result ("" for
// none).
func putRun(t testing.TB, dir string, minute int, args, result string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"id": %q, "program": "gnb.train", "args": %s, "dataset": "planted", "seed": 1, "workers": %d, "created": "2026-11-21T10:%02d:00Z"}`,
		filepath.Base(dir), args, 1+minute%2, minute)
	for name, text := range map[string]string{"config.json": config, "result.json": result} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func trained(lr float64, hidden int, model string) string {
	return fmt.Sprintf(`{"Model": %q, "LR": %v, "Sizes": {"hidden": %d, "dropout": 0.5}, "Fanouts": [10, %d], "WeightDecay": 0.0005}`, model, lr, hidden, hidden)
}

func ended(state string, val, test float64) string {
	return fmt.Sprintf(`{"state": %q, "epochs": 3, "steps": 30, "loss": 0.5, "seconds": 2.123456789, "values": {"val_accuracy": %v, "test_accuracy": %v}}`, state, val, test)
}

// fiveRuns returns a directory with runs a to e, a sweep with two trials, a directory that is not a
// run, and damaged runs.
func fiveRuns(t testing.TB) (dir string) {
	dir = t.TempDir()
	t.Setenv("GNB_RUNS", dir)
	put := func(name string, minute int, args, result string) {
		putRun(t, filepath.Join(dir, name), minute, args, result)
	}
	put("a", 1, trained(0.1, 8, "sage"), ended("done", 0.7, 0.61))
	put("b", 2, trained(0.01, 16, "sage"), ended("done", 0.9, 0.72))
	put("c", 3, trained(0.001, 16, "gcn"), ended("failed", 0.7, 0.75))
	put("d", 4, trained(0.02, 100, "gat"), "")                                                                     // killed
	put("e", 0, `{"Deep": {"Hidden": 3}, "A": {"x": 1}, "B": {"x": 2}, "kind": "of a/9 xz"}`, `{"state": "done"}`) // the oldest run, of another program
	config := filepath.Join(dir, "e", "config.json")
	raw, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, bytes.Replace(raw, []byte("gnb.train"), []byte("other"), 1), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	put("s/trial-0000", 5, trained(0.5, 8, "sage"), ended("done", 0.3, 0.2))  // a trial of a sweep
	put("s/trial-0012", 6, trained(0.5, 9, "sage"), ended("done", 0.95, 0.9)) // a trial of a sweep
	put("damaged result", 7, trained(0.1, 8, "sage"), `{"state": "do`)
	for name, text := range map[string]string{
		"s/sweep.json": `{"id": "s", "created": "2026-11-21T10:05:00Z"}`, "damaged config/config.json": `{"id": 7`, "wrong config/config.json": `[1, 2]`,
		"no run/notes.txt": "hello", "file": "hello", "d/metrics.jsonl": strings.Join([]string{
			`{"event":"steps","records":[{"epoch":0,"step":0,"total":1,"at":[0,0,0],"loss":1.5,"accuracy":0.1},{"epoch":0,"step":1,"total":2,"at":[0,0,1],"loss":null,"accuracy":0.1}]}`,
			`{"event":"epoch","epoch":0,"total":2,"loss":1.25,"seconds":0.5}`,
			`{"event":"metrics","epoch":0,"total":2,"values":[{"name":"val_accuracy","value":0.25},{"name":"test_accuracy","value":null}]}`,
			`{"event":"steps","records":[{"ep`, // a truncated line
		}, "\n"),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func names(found runs.Table) string {
	var out []string
	for _, r := range found {
		out = append(out, r.Fields()["name"])
	}
	return strings.Join(out, " ")
}

// Runs are found by their title, tags and notes, and tables show titles and tags where users gave some.
func TestTitlesAndTags(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", dir)
	for i, config := range []string{
		`"title": "sage on planted"`, `"title": "wide and deep", "tags": ["baseline", "paper"], "notes": "before the <b>fix</b>"`, `"tags": ["paper-2"]`,
	} {
		name := filepath.Join(dir, string(rune('a'+i)))
		putRun(t, name, i, trained(0.1, 8, "sage"), ended("done", 0.7, 0.61))
		raw, err := os.ReadFile(filepath.Join(name, "config.json"))
		if err == nil {
			err = os.WriteFile(filepath.Join(name, "config.json"), bytes.Replace(raw, []byte("{"), []byte("{"+config+", "), 1), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for filter, want := range map[string]string{
		"title=wide*": "b", `title="sage on planted"`: "a", "tag=baseline": "b", "tag=paper": "b", "tag=paper*": "b c", "tag=baseline|paper-2": "b c", "tag!=paper": "a c", "notes=*fix*": "b",
	} {
		found, err := runs.List(t.Context(), runs.Options{Filter: filter})
		if err != nil || names(found) != want {
			t.Errorf("%s finds %q, want %q (%v)", filter, names(found), want, err)
		}
	}
	all, err := runs.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text := all.String(); !strings.Contains(text, "wide and deep    baseline,paper") {
		t.Errorf("the table lacks the title and the tags:\n%s", text)
	}
	if text := all[:1].String(); strings.Contains(text, "title") || strings.Contains(text, "tag") {
		t.Errorf("the table has the title of a run that nobody named:\n%s", text)
	}
	if text := all[1].String(); !strings.HasPrefix(text, "wide and deep  #baseline  #paper\n") || !strings.Contains(text, "\nnotes: before the <b>fix</b>\n") {
		t.Errorf("the run prints as\n%s", text)
	}
	for _, tag := range []string{"", "two words", "a,b", "a|b", "a*", "[x]", "\"q\""} {
		if err := runfile.CheckTags([]string{"fine", tag}); err == nil {
			t.Errorf("the tag %q is accepted", tag)
		}
	}
}

func TestRunsFilterAndSort(t *testing.T) {
	fiveRuns(t)
	for _, tc := range []struct{ filter, sort, want string }{
		{"", "", "e a b c d"},
		{"", "-val_accuracy", "b a c d e"}, // a and c have the same value; e has none
		{"", "val_accuracy", "d a c b e"},
		{"", "-val_accuracy -lr", "b a c d e"},
		{"", "val_accuracy,lr", "d c a b e"},
		{"", "hidden", "e a b c d"}, // compared as numbers: 100 comes after 16
		{"", "-created", "d c b a e"},
		{"model=sage", "", "a b"},
		{"model=SAGE|gat", "", "a b d"},
		{"model!=sage", "", "e c d"}, // a run without a model also differs from this one
		{"model=g*", "-lr", "d c"},
		{"model=sage lr<0.1", "", "b"},
		{"lr<=1e-2 test_accuracy>0.7", "-test-accuracy", "c b"},
		{"  lr>=0.02\ttest_accuracy > 0.7", "", "error: not a comparison"},
		{"hidden=16", "", "b c"},
		{"args.Sizes.hidden=16.0", "", "b c"},
		{"weight-decay=5e-4", "", "a b c d"},
		{"fanouts=[10,16]", "", "b c"},
		{"fanouts=10,16", "", "b c"},
		{"state=killed", "", "d"},
		{"state==done epochs>=3", "", "a b"},
		{"workers=2 state=done", "", "a"},
		{"created>=2026-11-21T10:03", "", "c d"},
		{`dataset="planted" model="gcn"`, "", "c"},
		{"val_accuracy=0.25", "", "d"}, // the value that the killed run had reached
		{"state=running", "", ""},
		{"speed=3", "", `error: no run has a field "speed"; the nearest names are seed, `},
		{"", "-speed", `error: no run has a field "speed"`},
		{"", "x", `error: the field "x" can be args.A.x or args.B.x`},
		{"a.x=1", "", "e"},
		{"model", "", "error: not a comparison"},
		{"model=", "", "error: value behind it"},
		{"lr!0.1", "", "error: lacks one of"},
		{"=sage", "", "error: not a comparison"},
		{`model="sage`, "", "error: quote without"},
		{"model=[x", "", "error: one bracket of two"},
		{"model=[sage|gat]", "", `error: the value "[sage" has one bracket of two`},
		{"fanouts=[10,8]|[10,16] model=sage", "", "a b"},
		{"fanouts=10,8|10,16 model=sage", "", "a b"},
		{"fanouts=10,*6", "", "b c"},
		{"hidden=[1,8]", "", ""}, // a list, not a set of characters
		{"model=sage|", "", "error: no value beside a |"},
		{"model!=|", "", "error: no value beside a |"},
		{"lr<0.1|0.2", "", "error: several values"},
		{"lr>=0.0*", "", "error: a pattern"},
		{"lr=<0.1", "", "error: another comparison behind ="},
		{"model<>sage", "", "error: another comparison behind <;"},
		{"lr>=<5", "", "error: another comparison behind >=;"},
		{"lr<<1", "", "error: another comparison behind <;"},
		{"kind=*/9 *", "", "error: not a comparison"},
		{`kind="* a/9 ?z"`, "", "e"},
		{"b.X=2", "", "e"},
		{"deep.hidden=3", "", "e"},
	} {
		found, err := runs.List(t.Context(), runs.Options{Filter: tc.filter, Sort: tc.sort})
		if want, fails := strings.CutPrefix(tc.want, "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("filter %q, sort %q: error %v, want one with %q", tc.filter, tc.sort, err, want)
			}
			continue
		}
		if got := names(found); err != nil || got != tc.want {
			t.Errorf("filter %q, sort %q: %q, want %q (%v)", tc.filter, tc.sort, got, tc.want, err)
		}
	}
}

// A name identifies one field of a run, always the same; an ambiguous name is an error that says
// how to name each field.
func TestFieldsOfOneName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", dir)
	values := func(names ...string) string {
		var v []string
		for i, n := range names {
			v = append(v, fmt.Sprintf("%q: %d", n, i+1))
		}
		return `{"state": "done", "epochs": 7, "values": {` + strings.Join(v, ", ") + `}}`
	}
	putRun(t, filepath.Join(dir, "a"), 1, `{"lr": 1, "opt": {"lr": 2}}`, values("valF1", "val_f1"))
	putRun(t, filepath.Join(dir, "b"), 2, `{"opt": {"momentum": 3}}`, values("val_f1", "epochs", "workers"))
	putRun(t, filepath.Join(dir, "c"), 3, `{"sgd": {"momentum": 4}}`, values("val-f1"))
	for _, tc := range []struct{ filter, want string }{
		{"lr=1", `error: the field "lr" can be args.lr or args.opt.lr; write it out`},
		{"args.lr=1", "a"},
		{"opt.lr=2", "a"},
		{"momentum>=3", "b c"}, // each of these runs has exactly one such field
		{"val_f1=2", "a"},
		{"val_f1=1", "b"}, // with the field's exact name
		{"val-f1=1", "c"},
		{"VAL_F1=1", `error: the field "VAL_F1" can be valF1 or val_f1; write it out`},
		{"epochs=7", "a b c"},
		{"values.epochs=2", "b"},
		{"workers=1 values.workers=3", "b"},
	} {
		for range 20 { // Go's maps are read in a different order each time
			found, err := runs.List(t.Context(), runs.Options{Filter: tc.filter})
			got := names(found)
			if err != nil {
				got = strings.Replace(err.Error(), "runs: ", "error: ", 1)
			}
			if got != tc.want {
				t.Fatalf("%s: %q, want %q", tc.filter, got, tc.want)
			}
		}
	}
	all, err := runs.List(t.Context(), runs.Options{Filter: "name=b|c"})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := all.Text("name", "VAL_f1"); err != nil || text != "name  val-f1\nb     1\nc     1\n" {
		t.Errorf("runs in which the field has different names: %q (%v)", text, err)
	}
}

// A run that cannot be read does not hide the others, and is listed on request.
func TestRunsWithDamage(t *testing.T) {
	dir := fiveRuns(t)
	found, err := runs.List(t.Context(), runs.Options{Damaged: true, Trials: true, Sort: "state,name"})
	if got := names(found); err != nil || got != "damaged config damaged result wrong config a b e s/trial-0000 s/trial-0012 c d" {
		t.Fatalf("%q (%v)", got, err)
	}
	for _, r := range found[:3] {
		if r.Result.State != runs.StateDamaged || !strings.Contains(r.Result.Error, "is damaged") {
			t.Errorf("%s: %+v", r.Dir, r.Result)
		}
	}
	if found[1].Config.Program != "gnb.train" {
		t.Error("the configuration beside a damaged result was not read")
	}
	r, err := runs.Open(filepath.Join(dir, "damaged result"))
	if damaged, ok := errors.AsType[*runs.DamagedResult](err); !ok || r == nil || r.Config.Program != "gnb.train" || r.Result.State != runs.StateKilled {
		t.Errorf("opening a run with a damaged result gave %v, %v (%v)", r, err, damaged)
	}
	if r, err := runs.Open(filepath.Join(dir, "damaged config")); r != nil || err == nil {
		t.Errorf("opening a run with damaged settings gave %v, %v", r, err)
	}
	trials, err := runs.List(t.Context(), runs.Options{Trials: true, Filter: "trial=12 sweep=s"})
	if got := names(trials); err != nil || got != "s/trial-0012" {
		t.Errorf("trials: %q (%v)", got, err)
	}
	if last, err := runs.Last(t.Context()); err != nil || last.Config.ID != "d" {
		t.Errorf("the last run is %v (%v), want d", last, err)
	}
	if _, err := json.Marshal(found); err != nil {
		t.Errorf("writing the table as JSON gave %v", err)
	}
	if none, err := runs.List(t.Context(), runs.Options{Dir: filepath.Join(dir, "none"), Filter: "speed=1"}); err != nil || len(none) != 0 || none.String() != "no runs\n" {
		t.Errorf("listing a directory that does not exist gave %v (%v)", none, err)
	}
	if _, err := runs.List(t.Context(), runs.Options{}, runs.Options{}); err == nil {
		t.Error("listing with two options gave no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runs.List(ctx); err == nil {
		t.Error("cancelled: no error")
	}
}

// For a run that was killed after a long time, only the end of its metrics is read, which begins
// within a line.
func TestOpenRunReadsTheEndOfMetrics(t *testing.T) {
	dir := t.TempDir()
	putRun(t, dir, 1, trained(0.1, 8, "sage"), "")
	var b strings.Builder
	for i := 1; b.Len() < 3<<20; i++ {
		fmt.Fprintf(&b, `{"event":"steps","records":[{"total":%d,"loss":1}]}`+"\n", i)
		if i%100 == 0 {
			fmt.Fprintf(&b, `{"event":"epoch","epoch":%d,"total":%d,"loss":0.5,"seconds":0.1}`+"\n", i/100-1, i)
			fmt.Fprintf(&b, `{"event":"metrics","epoch":%d,"values":[{"name":"val_accuracy","value":%d}]}`+"\n", i/100-1, i)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "metrics.jsonl"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	steps := strings.Count(b.String(), "steps")
	r, err := runs.Open(dir)
	if err != nil || r.Result.Steps != int64(steps) || r.Result.Epochs != steps/100 || r.ValAccuracy() != float64(steps/100*100) {
		t.Errorf("%+v (%v), want %d steps", r, err, steps)
	}
	if n := len(r.Result.EpochSeconds); n == 0 || n > steps/200 {
		t.Errorf("%d of %d epochs were read, want only the last ones", n, steps/100)
	}
}

func TestRunTableText(t *testing.T) {
	fiveRuns(t)
	found, err := runs.List(t.Context(), runs.Options{Filter: "model=sage|gcn", Sort: "name"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `name  state   model  dataset  Fanouts  LR     hidden  workers  test_accuracy  val_accuracy  loss  epochs  seconds
a     done    sage   planted  [10,8]   0.1    8       2        0.61           0.7           0.5   3       2.1235
b     done    sage   planted  [10,16]  0.01   16      1        0.72           0.9           0.5   3       2.1235
c     failed  gcn    planted  [10,16]  0.001  16      2        0.75           0.7           0.5   3       2.1235
`
	all, err := runs.List(t.Context(), runs.Options{Damaged: true})
	if err != nil {
		t.Fatal(err)
	}
	// Fields that a damaged run or a run of another program lacks do not change the columns of the
	// other runs.
	if head, _, _ := strings.Cut(all.String(), "\n"); strings.Join(strings.Fields(head), " ") != "name state model dataset Fanouts LR args.Sizes.hidden program workers test_accuracy val_accuracy loss epochs seconds" {
		t.Errorf("the columns of all runs are %s", head)
	}
	if got := found.String(); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	found[0].Config.Dataset = "two\nlines\x1b[31m"
	if text, err := found[:1].Text("dataset", "state"); err != nil || text != "dataset        state\ntwo lines[31m  done\n" {
		t.Errorf("a name with control characters: %q (%v)", text, err)
	}
	text, err := found.Text("name", "lr", "VAL_accuracy")
	if want := "name  LR     val_accuracy\na     0.1    0.7\nb     0.01   0.9\nc     0.001  0.7\n"; err != nil || text != want {
		t.Errorf("chosen columns:\n%s(%v)", text, err)
	}
	if _, err := found.Text("nothing"); err == nil {
		t.Error("a column that does not exist gave no error")
	}
}

// A run has a name that finds it even if GNB_RUNS names the run's own directory or one below it.
func TestNameOfTheRunsDirectoryItself(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	putRun(t, dir, 1, `{}`, `{"state": "done"}`)
	r, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for found, want := range map[string]string{filepath.Dir(dir): "a", dir: dir, filepath.Join(dir, "below"): dir} {
		t.Setenv("GNB_RUNS", found)
		if got := r.Fields()["name"]; got != want {
			t.Errorf("with GNB_RUNS=%s the run's name is %q, want %q", found, got, want)
		}
	}
}
