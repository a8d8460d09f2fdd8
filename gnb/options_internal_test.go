package gnb

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/launch"
	"github.com/graphnb/graphnb/internal/machine"
)

// fieldDocs returns the comments of a struct's fields from its package's source.
func fieldDocs(t *testing.T, of reflect.Type) map[string]string {
	t.Helper()
	dir := map[string]string{"gnb": ".", "nn": "../graphops/nn"}[filepath.Base(of.PkgPath())]
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the source of %v cannot be read: %v", of, err)
	}
	docs := map[string]string{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.TypeSpec)
			if !ok || s.Name.Name != of.Name() {
				return true
			}
			st, ok := s.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range st.Fields.List {
				for _, name := range field.Names {
					docs[name.Name] = strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
				}
			}
			return false
		})
	}
	return docs
}

// A field accepts None if its comment says so, and None then means 0 or nothing. All other fields
// refuse None, and all refuse values out of bounds and values that are not numbers.
func TestNoneAndBounds(t *testing.T) {
	ds, err := Load(context.Background(), "planted?nodes=300&features=8&classes=3&seed=2")
	if err != nil {
		t.Fatal(err)
	}
	try := func(o TrainOptions) error {
		if _, err := o.args(ds, "sage"); err != nil {
			return err
		}
		return launch.Settings{Workers: o.Workers, VirtualRanks: o.VirtualRanks, Threads: o.Threads, FirstGPU: o.FirstGPU, CheckpointEvery: o.CheckpointEvery, KeepCheckpoints: o.KeepCheckpoints, Restarts: o.Restarts, Prefetch: o.Prefetch}.InBounds()
	}
	refused := func(name string, o TrainOptions, v any) {
		t.Helper()
		err := try(o)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %v: %v", name, v, err)
		}
	}
	of := reflect.TypeFor[TrainOptions]()
	docs := fieldDocs(t, of)
	none := 0
	for i := range of.NumField() {
		f := of.Field(i)
		var o TrainOptions
		v := reflect.ValueOf(&o).Elem().Field(i)
		switch {
		case f.Type.Kind() == reflect.Int:
			v.SetInt(None)
			if strings.Contains(docs[f.Name], "[None]") {
				none++
				if err := try(o); err != nil {
					t.Errorf("the comment of %s says that it takes None, but the error is %v", f.Name, err)
				}
			} else {
				refused(f.Name, o, None)
			}
			for _, x := range []int64{-2, math.MinInt64, math.MaxInt64} {
				v.SetInt(x)
				refused(f.Name, o, x)
			}
		case f.Type.Kind() == reflect.Float64:
			v.SetFloat(None)
			if strings.Contains(docs[f.Name], "[None]") {
				none++
				if err := try(o); err != nil {
					t.Errorf("the comment of %s says that it takes None, but the error is %v", f.Name, err)
				}
			} else {
				refused(f.Name, o, None)
			}
			for _, x := range []float64{-2, -0.5, math.Inf(1), math.Inf(-1), math.NaN()} {
				v.SetFloat(x)
				refused(f.Name, o, x)
				if err := try(o); x != x && err != nil && !strings.Contains(err.Error(), "not a number") {
					t.Errorf("%s NaN: %v", f.Name, err)
				}
			}
		}
	}
	if none != 4 {
		t.Errorf("%d fields take None; want Dropout, Epochs, LR and CheckpointEvery", none)
	}
	a, err := TrainOptions{LR: None, Dropout: None, Epochs: None}.args(ds, "sage")
	if err != nil || a.LR != 0 || a.Sizes.Dropout != 0 || a.Epochs != 0 {
		t.Errorf("None is %+v, %v", a, err)
	}
	for _, o := range []TrainOptions{{Fanouts: []int{-2}}, {Fanouts: []int{5, math.MaxInt}}, {Fanouts: make([]int, 300)}} {
		if err := try(o); err == nil || !strings.Contains(err.Error(), "anout") {
			t.Errorf("%d fanouts: %v", len(o.Fanouts), err)
		}
	}
}

// Train accepts exactly the fanouts that a Loader's sampler accepts.
func TestOneJudgeOfFanouts(t *testing.T) {
	ds, err := Load(context.Background(), "karate")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{-3, -2, -1, 0, 1, 10, 1 << 18, 1<<18 + 1, math.MaxInt, math.MinInt} {
		f := []int{k, 2}
		_, train := TrainOptions{Fanouts: f}.args(ds, "sage")
		if loader := Fanouts(f).Check(); (train == nil) != (loader == nil) {
			t.Errorf("fanout %d: Train says %v, samplers %v", k, train, loader)
		}
	}
}

// Limits that depend on the machine leave room for other programs.
func TestBoundsOfTheMachine(t *testing.T) {
	if n := entry.MaxWorkers(); n < 64 && runtime.GOOS == "linux" || n > 1024 || machine.MaxThreads() < 8*runtime.NumCPU() {
		t.Errorf("%d workers, %d threads", n, machine.MaxThreads())
	}
	o := launch.Settings{Workers: entry.MaxWorkers() + 1}
	if err := o.InBounds(); err == nil || !strings.Contains(err.Error(), "Workers is "+strconv.Itoa(o.Workers)+"; it is 1 to "+strconv.Itoa(entry.MaxWorkers())) {
		t.Error(err)
	}
}

// TrainOptions repeats the fields of LaunchOptions with the same names, types and comments, so that
// a cell needs only one flat literal. The exceptions are the dataset and the title, which Train
// sets, and fields that only programs set.
func TestTrainOptionsRepeatLaunchOptions(t *testing.T) {
	left := map[string]bool{"Data": true, "Title": true, "StallAfter": true, "FirstGPU": true}
	of, train := reflect.TypeFor[LaunchOptions](), reflect.TypeFor[TrainOptions]()
	docs, again := fieldDocs(t, of), fieldDocs(t, train)
	for i := range of.NumField() {
		f := of.Field(i)
		g, there := train.FieldByName(f.Name)
		if !f.IsExported() || left[f.Name] && !there {
			continue
		}
		switch {
		case !there:
			t.Errorf("TrainOptions lacks %s; repeat it there, or say here why Train does not take it", f.Name)
		case g.Type != f.Type:
			t.Errorf("%s is %v in TrainOptions and %v in LaunchOptions", f.Name, g.Type, f.Type)
		case docs[f.Name] == "" || again[f.Name] != docs[f.Name]:
			t.Errorf("%s says %q in TrainOptions and %q in LaunchOptions", f.Name, again[f.Name], docs[f.Name])
		}
	}
}
