package inspect_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/inspect"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
)

// The picture of a dataset shows what its text says: degrees, homophily, classes by split, and of many graphs their sizes and targets.
func TestPictureOfData(t *testing.T) {
	for name, want := range map[string][]string{
		"karate":              {"34 nodes, 156 edges, 1 component", "nodes by in-degree: 0 0, 1 1, 2 17", "homophily: edge 0.8", "classes, % of a split: 2 rows, 3 columns"},
		"molecules?graphs=40": {"40 graphs", "graphs by size", "graphs by N-O bonds", "nodes by in-degree"},
	} {
		ds := gnb.Must(datasets.Load(name))
		d, err := inspect.DataOf(t.Context(), ds)
		if err != nil {
			t.Fatal(err)
		}
		f := d.Figure()
		for _, w := range want {
			if text := f.String(); !strings.Contains(text, w) {
				t.Errorf("%s: the picture shows\n%s\nwithout %q", name, text, w)
			}
		}
		png, err := f.PNG()
		if err != nil {
			t.Fatal(err)
		}
		if dir := os.Getenv("GNB_PICTURES"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, strings.NewReplacer("?", "-", "=", "-").Replace(name)+".png"), png, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A dataset without edges between labelled nodes has a JSON form, whose unknown numbers are null, and a picture without them.
func TestDataWithUnknownNumbers(t *testing.T) {
	ds := &gnb.Dataset{Graph: gnb.Must(graphops.FromEdges(3, nil, nil, graphops.BuildOptions{})), Labels: []int32{0, -1, 1}, Splits: map[string][]int32{"train": {0, 2}, "val": {1}}}
	ds.Meta.Name, ds.Meta.NumClasses = "apart", 2
	ds.Targets = &dataset.Matrix{Rows: 3, Cols: 1, F32: []float32{1, float32(math.NaN()), 3}}
	d, err := inspect.DataOf(t.Context(), ds)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(d)
	if err != nil || !strings.Contains(string(encoded), `"edge":null`) {
		t.Errorf("the JSON form is %s: %v", encoded, err)
	}
	if text := d.Figure().String(); strings.Contains(text, "homophily") || !strings.Contains(text, "3 components") {
		t.Errorf("the picture shows\n%s", text)
	}
	if _, err := d.Figure().PNG(); err != nil {
		t.Error(err)
	}
}

// Of a dataset in parts, nothing is said of features and labels, which are not here.
func TestDataInParts(t *testing.T) {
	ds := dividedtest.Parts(t, dataset.Karate(), divided.Options{})
	d, err := inspect.DataOf(t.Context(), ds)
	if err != nil {
		t.Fatal(err)
	}
	if text := d.String(); d.Duplicates != nil || strings.Contains(text, "all 0") || !strings.Contains(text, "are not read") || !strings.Contains(text, "in-degree") {
		t.Errorf("duplicates %v, and\n%s", d.Duplicates, text)
	}
}
