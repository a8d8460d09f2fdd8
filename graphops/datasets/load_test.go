package datasets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
)

var errFull = errors.New("full")

func TestLoadPublished(t *testing.T) {
	home := t.TempDir()
	t.Setenv("GNB_HOME", home)
	t.Chdir(t.TempDir())
	_, err := Load("cora")
	if err == nil || !strings.Contains(err.Error(), `"gnb data get cora" gets it`) || !strings.Contains(err.Error(), filepath.Join(home, "raw", "cora")) {
		t.Errorf("not there: %v", err)
	}
	if _, err := LoadWith(t.Context(), "cora", LoadOptions{Get: func(context.Context, registry.Entry) error { return errFull }}); !errors.Is(err, errFull) {
		t.Errorf("cannot be obtained: %v", err)
	}
	// A folder with raw files does not count as the dataset, so Load obtains the dataset.
	if err := os.Mkdir("cora", 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := LoadWith(t.Context(), "Cora", LoadOptions{Get: func(_ context.Context, e registry.Entry) error {
		dir, err := e.Dir()
		if err != nil {
			return err
		}
		return dataset.Write(dir, small(t))
	}})
	if err != nil || d.Dir() != filepath.Join(home, "datasets", "cora") {
		t.Fatalf("got: %v, %v", d, err)
	}
	if d, err = Load("cora"); err != nil || d.Name() != "small" {
		t.Errorf("the second Load gave %v, %v", d, err)
	}
	// A dataset directory with that name takes precedence.
	if err := os.Remove("cora"); err != nil {
		t.Fatal(err)
	}
	if err := dataset.Write("cora", dataset.Karate()); err != nil {
		t.Fatal(err)
	}
	if d, err = Load("cora"); err != nil || d.Name() != "karate" {
		t.Errorf("loading a directory gave %v, %v", d, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := LoadWith(ctx, "karate", LoadOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A generated dataset that is only written has the bits of one in memory, and its features are never all in memory.
func TestToWrite(t *testing.T) {
	for _, spec := range []string{"planted?nodes=3000&features=30&seed=3", "rmat?scale=9&features=40&classes=4", "rmat?scale=8&features=7&classes=0", "karate"} {
		whole, err := Load(spec)
		if err != nil {
			t.Fatal(err)
		}
		d, err := LoadWith(t.Context(), spec, LoadOptions{ToWrite: true})
		if err != nil {
			t.Fatal(err)
		}
		if spec != "karate" && d.Features.F32 != nil {
			t.Errorf("%s: the features are in memory", spec)
		}
		dir := filepath.Join(t.TempDir(), "d")
		if err := dataset.Write(dir, d); err != nil {
			t.Fatal(err)
		}
		got, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		want, err := whole.Digest(t.Context())
		if err != nil || got.RecordedDigest() != want || got.Check(t.Context()) != nil {
			t.Errorf("%s: the files have the digest %s, want %s (%v)", spec, got.RecordedDigest(), want, err)
		}
	}
}

func TestList(t *testing.T) {
	home := t.TempDir()
	t.Setenv("GNB_HOME", home)
	t.Chdir(t.TempDir())
	for _, name := range []string{"cora", "mine", "bad name"} {
		if err := dataset.Write(filepath.Join(home, "datasets", name), small(t)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]Listed{}
	for _, l := range all {
		of[l.Name] = l
	}
	if l := of["karate"]; l.Kind != "generator" || l.Dir != "" || !strings.Contains(l.Summary, "34 nodes") {
		t.Errorf("%+v", l)
	}
	if l := of["cora"]; l.Kind != "published" || l.Dir != filepath.Join(home, "datasets", "cora") || l.Entry == nil || l.Entry.Name != "cora" {
		t.Errorf("%+v", l)
	}
	if l := of["pubmed"]; l.Kind != "published" || l.Dir != "" {
		t.Errorf("%+v", l)
	}
	if l := of["mine"]; l.Kind != "own" || l.Dir == "" {
		t.Errorf("%+v", l)
	}
	if _, ok := of["bad name"]; ok {
		t.Error("a name that Load does not take is listed")
	}
	if d, err := Load("mine"); err != nil || d.Name() != "small" {
		t.Errorf("%v, %v", d, err)
	}
}

// small is a dataset of five nodes.
func small(t *testing.T) *dataset.Dataset {
	t.Helper()
	g, err := graphops.FromEdges(5, []int32{0, 1, 2}, []int32{1, 2, 4}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &dataset.Dataset{
		Graph: g, Features: &dataset.Matrix{Rows: 5, Cols: 1, F32: []float32{1, 2, 3, 4, 5}}, Labels: []int32{0, 1, 0, 1, 0},
		Splits: map[string][]int32{"train": {0, 1}}, Meta: dataset.Metadata{Name: "small", NumClasses: 2},
	}
}

func TestLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := dataset.Write("karate", small(t)); err != nil {
		t.Fatal(err)
	}
	abs, err := filepath.Abs("karate")
	if err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		"karate":                             "small: 5 nodes", // a dataset's directory comes before a generator
		"karate?":                            "karate: 34 nodes",
		"./karate":                           "small: 5 nodes",
		"karate/":                            "small: 5 nodes",
		abs:                                  "small: 5 nodes",
		"planted?nodes=200":                  "planted: 200 nodes",
		"planted?classes=60&nodes=700":       "60 features, 60 classes",
		"planted?nodes=200&homophily=0":      "planted: 200 nodes",
		"planted?nodes=100&degree=0&noise=0": "planted: 100 nodes, 0 edges",
		"planted?nodes=200&degree=4.5&seed=18446744073709551615": "planted: 200 nodes",
		"ratings?users=50&items=64&degree=4&noise=0":             "with numbers of 200 edges (1 target, train 160, val 20, test 20)",
		"molecules?graphs=50&noise=0":                            "in 50 graphs (2 classes, 1 target, train 40, val 5, test 5)",
	} {
		d, err := Load(spec)
		if err != nil || !strings.Contains(d.String(), want) {
			t.Errorf("%s: got %v, %v; want %q", spec, d, err, want)
		}
	}
	for spec, want := range map[string]string{
		"":                                   `no dataset ""`,
		"facebook":                           `no dataset "facebook": give the path of a dataset directory, a generator (karate, planted`,
		"corra":                              `no dataset "corra"; did you mean cora?`,
		"plantd?nodes=9":                     `did you mean planted?`,
		"no/such/dir":                        `no directory "no/such/dir"`,
		"planted?node=3":                     `no parameter "node"; it takes nodes, classes`,
		"karate?seed=1":                      `karate has no parameter "seed"; it takes none`,
		"planted?nodes=many":                 `nodes is "many"; it must be a whole number`,
		"planted?nodes=":                     `nodes is ""; it must be a whole number`,
		"planted?nodes=3e4":                  `nodes is "3e4"`,
		"planted?seed=-1":                    `seed is "-1"; it must be a whole number from 0`,
		"planted?degree=x":                   `degree is "x"; it must be a number`,
		"planted?noise=NaN":                  "noise is NaN",
		"planted?homophily=2":                "homophily is 2",
		"planted?nodes=0":                    "nodes is 0",
		"planted?nodes=9&nodes=99":           "nodes is given 2 times",
		"houses?nodes=5":                     "nodes is 5; it must lie in [6,",
		"houses?houses=301":                  "houses is 301; it must lie in [1, nodes]",
		"molecules?graphs=9":                 "graphs is 9; it must lie in [10,",
		"ratings?users=9":                    "users is 9; it must be at least 10",
		"ratings?items=31":                   "items is 31",
		"ratings?degree=32":                  "degree is 32; it must lie in [1, items/16]",
		"ratings?noise=-1":                   "noise is -1",
		"molecules?noise=-1":                 "noise is -1",
		"planted?nodes=%zz":                  "must have the form name=value",
		"planted?nodes=99999999999999999999": `nodes is "99999999999999999999"`,
	} {
		d, err := Load(spec)
		if err == nil || d != nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "dataset: ") {
			t.Errorf("%s: got %v, %v; want an error with %q", spec, d, err, want)
		}
	}
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load("file"); err == nil || !strings.Contains(err.Error(), "is a file") {
		t.Errorf("a file: %v", err)
	}
	t.Chdir(t.TempDir())
	for _, g := range Generators() {
		if d, err := Load(g.Example); err != nil || d.Name() != g.Name || g.Summary == "" {
			t.Errorf("%+v: %v", g, err)
		}
	}
}

// A directory that a generator wrote under its own name is what the name means there, with its own sizes.
func TestDirectoryOfAGeneratorsName(t *testing.T) {
	t.Chdir(t.TempDir())
	made, err := Load("molecules?graphs=50")
	if err != nil {
		t.Fatal(err)
	}
	if err := dataset.Write("molecules", made); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]int{"molecules": 50, "molecules?graphs=20": 20} {
		ds, err := Load(spec)
		if err != nil || ds.NumGraphs() != want {
			t.Errorf("%s: %v (%v), want %d graphs", spec, ds, err, want)
		}
		if err == nil {
			_ = ds.Close()
		}
	}
}
