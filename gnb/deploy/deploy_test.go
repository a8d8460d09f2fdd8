package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/deploy"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/tables"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
)

func TestMain(m *testing.M) { runtest.MainWithRuns(m) }

func launch(t *testing.T) (o gnb.LaunchOptions) {
	o.Quiet, o.Threads, o.Workers, o.Seed, o.RunDir = true, 1, 1, 3, filepath.Join(t.TempDir(), "run")
	return o
}

func train(t *testing.T, ds *gnb.Dataset, model gnb.AnyModel, m gnb.ModelOptions) *runs.Run {
	t.Helper()
	o := gnb.TrainOptions{ModelOptions: m}
	o.LaunchOptions, o.Epochs, o.Batch, o.Hidden = launch(t), 2, 32, 16
	run, err := gnb.Train(t.Context(), ds, model, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// planted is a graph in memory with labels.
func planted(t *testing.T) *gnb.Dataset {
	t.Helper()
	ds, err := datasets.Load("planted?nodes=300&features=8&classes=4")
	if err != nil {
		t.Fatal(err)
	}
	ds.Meta.ClassNames = []string{"north", "east", "south", "west"}
	return ds
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// churn is a dataset of two tables; its edges have weights and features.
func churn(t *testing.T) *gnb.Dataset {
	t.Helper()
	var nodes, edges strings.Builder
	nodes.WriteString("id,plan,spent,since,churned\n")
	edges.WriteString("caller,callee,weight,minutes\n")
	for i := range 80 {
		fmt.Fprintf(&nodes, "c%d,%s,%d,20%02d-0%d-11,%s\n", i, []string{"free", "pro", "team"}[i*i%3], i*7%90, 10+i%10, 1+i%9, []string{"no", "yes"}[i*i*i%7%2])
		for k := range 3 {
			fmt.Fprintf(&edges, "c%d,c%d,%d,%d\n", i, (i*(k+2)+k+1)%80, 1+i%4, i*k%50)
		}
	}
	dir := t.TempDir()
	ds, err := tables.Read(t.Context(), filepath.Join(dir, "churn"), tables.Of(write(t, dir, "customers.csv", nodes.String()), write(t, dir, "calls.csv", edges.String())),
		tables.Options{Quiet: true, Kinds: map[string]tables.Kind{"churned": tables.Label, "minutes": tables.Number}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

// shop is a dataset with types of three tables; users have numbers to predict.
func shop(t *testing.T) *gnb.Dataset {
	t.Helper()
	var users, items, buys strings.Builder
	users.WriteString("id,age,value\n")
	items.WriteString("id,price\n")
	buys.WriteString("source,target,weight\n")
	for i := range 40 {
		fmt.Fprintf(&users, "u%d,%d,%d.5\n", i, 18+i*i%60, i*13%40)
		fmt.Fprintf(&items, "%d,%d.25\n", i, i*5%9)
		for k := range 4 {
			fmt.Fprintf(&buys, "u%d,%d,%d\n", i, (i*(k+3)+k)%40, 1+k)
		}
	}
	dir := t.TempDir()
	ds, err := tables.Read(t.Context(), filepath.Join(dir, "shop"), tables.Files{
		Nodes: []tables.Nodes{{Type: "item", Path: write(t, dir, "items.csv", items.String())}, {Type: "user", Path: write(t, dir, "users.csv", users.String())}},
		Edges: []tables.Edges{{Source: "user", Relation: "buys", Target: "item", Path: write(t, dir, "buys.csv", buys.String())}},
	}, tables.Options{Quiet: true, Reverses: true, Kinds: map[string]tables.Kind{"value": tables.Target}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

// question is what a test asks of both predictors.
type question struct {
	ids   []string
	added predict.Additions
	pairs []predict.Pair
}

// ask returns the rows and scores of the answers.
func (q question) ask(t *testing.T, p *predict.Predictor) (rows []float32, text string) {
	t.Helper()
	a, err := p.Nodes(t.Context(), q.ids...)
	if err != nil {
		t.Fatal(err)
	}
	rows, text = slices.Clone(a.Rows.F32), a.String()
	if len(q.added.Nodes) > 0 {
		fresh, err := p.New(t.Context(), q.added)
		if err != nil {
			t.Fatal(err)
		}
		rows, text = append(rows, fresh.Rows.F32...), text+fresh.String()
	}
	if len(q.pairs) > 0 {
		scores, err := p.Score(t.Context(), q.pairs, predict.Additions{})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, scores...)
	}
	return rows, fmt.Sprint(text, p.Kind(), p.Columns())
}

func open(t *testing.T, run *runs.Run, ds *gnb.Dataset, o predict.Options) *predict.Predictor {
	t.Helper()
	o.Quiet = true
	p, err := predict.Open(t.Context(), run, ds, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// exported opens an exported directory.
func exported(t *testing.T, dir string) (*runs.Run, *gnb.Dataset) {
	t.Helper()
	run, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ds, err := gnb.Load(t.Context(), run.DatasetSpec())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return run, ds
}

// program is a small program of the format that apps need: this test.
func program(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("apps are ELF programs")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func build(t *testing.T, dir string) string {
	t.Helper()
	app := filepath.Join(t.TempDir(), "app")
	b, err := deploy.Build(t.Context(), dir, app, deploy.BuildOptions{Program: program(t)})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(app); err != nil || info.Size() != b.Bytes || info.Mode().Perm() != 0o755 {
		t.Fatalf("%+v is %v, %v", b, info, err)
	}
	return app
}

// An exported directory, moved elsewhere, and an app answer with the bits of the run, and have nothing else than answers need; the
// originals are gone by then.
func TestExportedAnswersAreThoseOfTheRun(t *testing.T) {
	row := make([]float32, 8)
	row[3] = 1.5
	added := predict.Additions{Nodes: []predict.Node{{ID: "n", Features: row}}, Edges: []predict.Edge{{Source: "n", Target: "7"}, {Source: "8", Target: "n"}}}
	customer := predict.Additions{
		Nodes: []predict.Node{{ID: "n", Columns: map[string]string{"plan": "pro", "spent": "12", "since": "2012-03-04"}}},
		Edges: []predict.Edge{{Source: "n", Target: "c7", Columns: map[string]string{"weight": "2", "minutes": "9"}}, {Source: "c9", Target: "n", Columns: map[string]string{"weight": "1", "minutes": "3"}}},
	}
	user := predict.Additions{
		Nodes: []predict.Node{{ID: "new", Type: "user", Columns: map[string]string{"age": "33"}}},
		Edges: []predict.Edge{{Source: "new", Target: "12", Relation: "user:buys:item", Columns: map[string]string{"weight": "2"}}},
	}
	for name, c := range map[string]struct {
		ds    func(t *testing.T) *gnb.Dataset
		train func(t *testing.T, ds *gnb.Dataset) *runs.Run
		q     question
	}{
		"classes": {planted, func(t *testing.T, ds *gnb.Dataset) *runs.Run { return train(t, ds, gnb.SAGE, gnb.ModelOptions{}) }, question{[]string{"0", "299", "17"}, added, nil}},
		"labels": {func(t *testing.T) *gnb.Dataset {
			ds := planted(t)
			ds.MultiLabels = &dataset.Multi{Rows: ds.Nodes(), Cols: 3, Data: make([]int8, 3*ds.Nodes())}
			for i := range ds.MultiLabels.Data {
				ds.MultiLabels.Data[i] = int8(i * 7 % 5 % 2)
			}
			ds.Labels, ds.Meta.NumClasses, ds.Meta.ClassNames = nil, 0, nil
			return ds
		}, func(t *testing.T, ds *gnb.Dataset) *runs.Run { return train(t, ds, gnb.GCN, gnb.ModelOptions{}) }, question{[]string{"0", "299"}, added, nil}},
		"learned rows": {planted, func(t *testing.T, ds *gnb.Dataset) *runs.Run {
			return train(t, ds, gnb.SAGE, gnb.ModelOptions{Embedding: 12})
		}, question{ids: []string{"0", "299"}}},
		"half": {func(t *testing.T) *gnb.Dataset {
			ds := planted(t)
			var err error
			if ds.Features, err = ds.Features.Float16(); err != nil {
				t.Fatal(err)
			}
			return ds
		}, func(t *testing.T, ds *gnb.Dataset) *runs.Run { return train(t, ds, gnb.SAGE, gnb.ModelOptions{}) }, question{[]string{"0", "299"}, added, nil}},
		"tables": {churn, func(t *testing.T, ds *gnb.Dataset) *runs.Run {
			return train(t, ds, gnb.GATv2, gnb.ModelOptions{Heads: 2})
		}, question{[]string{"c0", "c79"}, customer, nil}},
		"numbers with types": {shop, func(t *testing.T, ds *gnb.Dataset) *runs.Run {
			var o numbers.Options
			o.LaunchOptions, o.Hidden, o.Batch, o.Epochs = launch(t), 16, 16, 2
			run, err := numbers.Train(t.Context(), ds, o)
			if err != nil {
				t.Fatal(err)
			}
			return run
		}, question{[]string{"u3", "u39"}, user, nil}},
		"links": {planted, func(t *testing.T, ds *gnb.Dataset) *runs.Run {
			var o links.Options
			o.LaunchOptions, o.Hidden, o.Dim, o.Batch, o.Epochs = launch(t), 16, 8, 64, 1
			run, err := links.Train(t.Context(), ds, o)
			if err != nil {
				t.Fatal(err)
			}
			return run
		}, question{[]string{"0", "299"}, added, []predict.Pair{{Source: "1", Target: "2"}, {Source: "7", Target: "290"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			ds := c.ds(t)
			run := c.train(t, ds)
			want, text := c.q.ask(t, open(t, run, ds, predict.Options{}))
			dir := filepath.Join(t.TempDir(), "ex")
			e, err := deploy.Export(t.Context(), run, ds, dir, deploy.ExportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if e.Compared < 8 || e.Bytes() == 0 {
				t.Errorf("it says %+v", e)
			}
			for _, f := range e.Files {
				if strings.Contains(f.Name, "split") || strings.Contains(f.Name, "labels") || strings.Contains(f.Name, "targets") || strings.Contains(f.Name, "checkpoint") || strings.Contains(f.Name, "metrics") {
					t.Errorf("%s was exported", f.Name)
				}
			}
			if err := os.RemoveAll(run.Dir); err != nil {
				t.Fatal(err)
			}
			moved := filepath.Join(t.TempDir(), "elsewhere")
			if err := os.Rename(dir, moved); err != nil {
				t.Fatal(err)
			}
			r, d := exported(t, moved)
			if err := d.CheckWith(t.Context(), nil); err != nil {
				t.Error(err)
			}
			check := func(what string, p *predict.Predictor) {
				rows, said := c.q.ask(t, p)
				if !slices.EqualFunc(rows, want, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }) || said != text {
					t.Errorf("%s answers %v %s, and the run %v %s", what, rows, said, want, text)
				}
			}
			check("the directory", open(t, r, d, predict.Options{}))
			app, err := deploy.OpenApp(build(t, moved))
			if err != nil || app == nil {
				t.Fatal(app, err)
			}
			defer app.Close()
			if err := os.RemoveAll(moved); err != nil {
				t.Fatal(err)
			}
			if r, d, err = app.Run(); err != nil {
				t.Fatal(err)
			}
			p := open(t, r, d, predict.Options{})
			check("the app", p)
			_ = p.Close()
		})
	}
}

// The final weights are exported on request, and a second export of an export is one too.
func TestExportOptions(t *testing.T) {
	ds := planted(t)
	run := train(t, ds, gnb.SAGE, gnb.ModelOptions{})
	q := question{ids: []string{"5", "55"}}
	want, _ := q.ask(t, open(t, run, ds, predict.Options{Final: true}))
	dir := t.TempDir() // exists, and is empty
	e, err := deploy.Export(t.Context(), run, ds, dir, deploy.ExportOptions{Final: true})
	if err != nil {
		t.Fatal(err)
	}
	r, d := exported(t, dir)
	if rows, _ := q.ask(t, open(t, r, d, predict.Options{})); !slices.Equal(rows, want) {
		t.Errorf("the answers are %v, want %v", rows, want)
	}
	if !strings.Contains(e.String(), "model.safetensors") || !strings.Contains(e.String(), "left out") {
		t.Errorf("it says %s", e)
	}
	again, err := deploy.Export(t.Context(), r, d, filepath.Join(t.TempDir(), "again"), deploy.ExportOptions{FeatureType: "f16"})
	if err != nil {
		t.Fatal(err)
	}
	r, d = exported(t, again.Dir)
	if !d.Features.Half() || again.Bytes() >= e.Bytes() {
		t.Errorf("%d bytes with features of 16 bits, and %d before", again.Bytes(), e.Bytes())
	}
	// A network is not trained on what has no labels, and the sentence says so.
	if _, err := gnb.Train(t.Context(), d, gnb.SAGE, gnb.TrainOptions{}); err == nil || !strings.Contains(err.Error(), "label") && !strings.Contains(err.Error(), "split") {
		t.Errorf("training on an exported dataset: %v", err)
	}
	if r.Config.Identity != nil || r.Config.DatasetDir != "dataset" {
		t.Errorf("its run is %+v", r.Config)
	}
}

// An empty directory stays the same one, which may be a mount point, and a link to one stays a link. A killed export leaves no trouble.
func TestExportIntoAnEmptyDirectory(t *testing.T) {
	ds := planted(t)
	run := train(t, ds, gnb.SAGE, gnb.ModelOptions{})
	dir := filepath.Join(t.TempDir(), "ex")
	if err := os.MkdirAll(filepath.Join(dir, ".export.tmp-17", "dataset"), 0o700); err != nil { // of a killed export
		t.Fatal(err)
	}
	was, err := os.Open(dir) // so that no other directory gets its number
	if err != nil {
		t.Fatal(err)
	}
	defer was.Close()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	e, err := deploy.Export(t.Context(), run, ds, link, deploy.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before, err1 := was.Stat()
	after, err2 := os.Lstat(dir)
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(before, after) || after.Mode().Perm() != 0o700 {
		t.Errorf("the directory is another one, %v: %v", after, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is %v, %v", info, err)
	}
	var names []string
	for _, f := range e.Files {
		top, _, _ := strings.Cut(f.Name, "/")
		names = append(names, top)
	}
	entries, err := os.ReadDir(dir)
	if names = slices.Compact(slices.Sorted(slices.Values(names))); err != nil || len(entries) != len(names) {
		t.Errorf("the directory has %v, and not %v: %v", entries, names, err)
	}
	q := question{ids: []string{"5", "55"}}
	r, d := exported(t, dir)
	want, _ := q.ask(t, open(t, run, ds, predict.Options{}))
	if rows, _ := q.ask(t, open(t, r, d, predict.Options{})); !slices.Equal(rows, want) {
		t.Errorf("the answers are %v, want %v", rows, want)
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	if err := os.Symlink("gone", nowhere); err != nil {
		t.Fatal(err)
	}
	if _, err := deploy.Export(t.Context(), run, ds, nowhere, deploy.ExportOptions{}); err == nil || !strings.Contains(err.Error(), "a link to gone") {
		t.Errorf("a link to nothing: %v", err)
	}
}

// After an export that fails, an empty directory is empty again. What others wrote there meanwhile stays.
func TestFailedExportIntoAnEmptyDirectory(t *testing.T) {
	ds := planted(t)
	run := train(t, ds, gnb.SAGE, gnb.ModelOptions{})
	for name, c := range map[string]struct {
		during func(t *testing.T, dir string, end func())
		kind   error
		left   []string
	}{
		"an interrupt": {func(_ *testing.T, _ string, end func()) { end() }, context.Canceled, nil},
		"another's file": {func(t *testing.T, dir string, _ func()) { // it has the name of the last file but one
			write(t, dir, "result.json", "mine")
		}, fs.ErrExist, []string{"result.json"}},
		"another's description": {func(t *testing.T, dir string, _ func()) { write(t, dir, "config.json", "mine") }, fs.ErrExist, []string{"config.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, end := context.WithCancel(t.Context())
			defer end()
			o := deploy.ExportOptions{Progress: func(int64, int64) { c.during(t, dir, end) }}
			if _, err := deploy.Export(ctx, run, ds, dir, o); !errors.Is(err, c.kind) {
				t.Errorf("%v, want %v", err, c.kind)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, e := range entries {
				text, err := os.ReadFile(filepath.Join(dir, e.Name()))
				if left = append(left, e.Name()); err != nil || string(text) != "mine" {
					t.Errorf("%s is %.20q, %v", e.Name(), text, err)
				}
			}
			if !slices.Equal(left, c.left) {
				t.Errorf("it left %v, want %v", left, c.left)
			}
		})
	}
}

// What cannot be exported is refused with a reason, and leaves nothing behind.
func TestExportRefuses(t *testing.T) {
	ds := planted(t)
	run := train(t, ds, gnb.SAGE, gnb.ModelOptions{})
	parent := t.TempDir()
	full := filepath.Join(parent, "full")
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, full, "mine.txt", "mine")
	if _, err := deploy.Export(t.Context(), run, ds, full, deploy.ExportOptions{}); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a directory with files: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(full, "mine.txt")); err != nil || string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
	dir := filepath.Join(parent, "ex")
	other, err := datasets.Load("planted?nodes=300&features=9&classes=4")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deploy.Export(t.Context(), run, other, dir, deploy.ExportOptions{}); err == nil || !strings.Contains(err.Error(), "9 features") {
		t.Errorf("with another dataset: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := deploy.Export(ended, run, ds, dir, deploy.ExportOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
	if _, err := deploy.Build(t.Context(), run.Dir, filepath.Join(parent, "app"), deploy.BuildOptions{Program: program(t)}); err == nil || !strings.Contains(err.Error(), "export the run first") {
		t.Errorf("an app of a run's directory: %v", err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 1 {
		t.Errorf("it left %v, %v", entries, err)
	}
	if _, err := deploy.Export(t.Context(), run, ds, dir, deploy.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := deploy.Build(t.Context(), dir, filepath.Join(parent, "app"), deploy.BuildOptions{Program: write(t, parent, "script", "#!/bin/sh\n")}); err == nil || !strings.Contains(err.Error(), "ELF") {
		t.Errorf("an app of a script: %v", err)
	}
}

// An app that was changed anywhere, or cut anywhere behind its program, is refused with a reason; a program is no app.
func TestDamagedApps(t *testing.T) {
	ds := planted(t)
	run := train(t, ds, gnb.SAGE, gnb.ModelOptions{})
	dir := filepath.Join(t.TempDir(), "ex")
	if _, err := deploy.Export(t.Context(), run, ds, dir, deploy.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if app, err := deploy.OpenApp(program(t)); app != nil || err != nil {
		t.Errorf("a program is the app %v, %v", app, err)
	}
	if app, err := deploy.OpenApp(write(t, t.TempDir(), "x", "text")); app != nil || err != nil {
		t.Errorf("a text is the app %v, %v", app, err)
	}
	path := build(t, dir)
	app, err := deploy.OpenApp(path)
	if err != nil {
		t.Fatal(err)
	}
	table := app.Table
	if err := app.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head := bytes.Index(whole[table.Program.Size-1:], []byte("GNBAPP01")) + int(table.Program.Size) - 1
	damaged := func(what string, data []byte) {
		t.Helper()
		bad := filepath.Join(t.TempDir(), "app")
		if err := os.WriteFile(bad, data, 0o755); err != nil {
			t.Fatal(err)
		}
		a, err := deploy.OpenApp(bad)
		if !errors.Is(err, deploy.ErrDamaged) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v", what, a, err)
		}
	}
	for _, n := range []int{head + 8, head + 31, head + 100, int(table.Files[3].Offset) + 5, len(whole) - 1} {
		damaged(fmt.Sprintf("cut to %d of %d bytes", n, len(whole)), whole[:n])
	}
	damaged("with a byte more", append(slices.Clone(whole), 0))
	for name, at := range map[string]int{"the program": 100_000, "the size": head + 9, "the table's length": head + 17, "the table's sum": head + 25, "the table": head + 40, "weights": int(table.Files[len(table.Files)-1].Offset) + 200} {
		data := slices.Clone(whole)
		data[at] ^= 4
		damaged("changed in "+name, data)
	}
	// What is not compared at first is compared later.
	data := slices.Clone(whole)
	data[len(data)-4096] ^= 1
	late := write(t, t.TempDir(), "app", string(data))
	if app, err = deploy.OpenAppFirst(late, 2000); err != nil || app.Unchecked() == 0 {
		t.Fatal(app, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := app.CheckUntil(ended); err != nil {
		t.Errorf("a comparison that has ended: %v", err)
	}
	if err := app.CheckUntil(t.Context()); !errors.Is(err, deploy.ErrDamaged) || app.Check() == nil {
		t.Errorf("a file that is compared later: %v", err)
	}
	if err := app.Close(); err != nil {
		t.Error(err)
	}
	// A second app from the first has one model.
	b, err := deploy.Build(t.Context(), dir, filepath.Join(t.TempDir(), "second"), deploy.BuildOptions{Program: path, Fanout: "5,5"})
	if err != nil || b.Bytes != int64(len(whole)) {
		t.Errorf("%+v, %v", b, err)
	}
	if app, err = deploy.OpenApp(b.Path); err != nil || app.Table.Fanout != "5,5" {
		t.Fatal(app, err)
	}
	defer app.Close()
	if app.Unchecked() != 0 || app.Check() != nil {
		t.Errorf("%d bytes of a small app were not checked", app.Unchecked())
	}
	r, d, err := app.Run()
	if err != nil {
		t.Fatal(err)
	}
	// Arrays are those of the mapped file.
	if again, _, _ := app.Run(); !reflect.DeepEqual(again.Config, r.Config) || d.Features == nil || d.Dir() != "" {
		t.Errorf("the run is %+v", r.Config)
	}
}
