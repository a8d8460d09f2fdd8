package dataset_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// A dataset of a file system has the arrays of its directory, and opens further files of it; what is missing or cut is an error with its
// name.
func TestOpenFS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "karate")
	d := dataset.Karate()
	if err := dataset.Write(dir, d); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "names.node.txt"), []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, fsys := range map[string]fs.FS{"a directory": os.DirFS(dir), "memory": copied(t, dir)} {
		got, err := dataset.OpenFS(fsys, "here")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Graph.Indices, d.Graph.Indices) || !slices.Equal(got.Labels, d.Labels) || !reflect.DeepEqual(got.Splits, d.Splits) || got.Dir() != "" {
			t.Errorf("%s: it is another dataset, %v", name, got)
		}
		f, err := got.OpenFile("names.node.txt")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(f); err != nil || string(text) != "a\n" {
			t.Errorf("%s: names are %q, %v", name, text, err)
		}
		_ = f.Close()
		if _, err := got.OpenFile("nothing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a file that is not there: %v", name, err)
		}
	}
	if _, err := d.OpenFile("names.node.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of a dataset in memory: %v", err)
	}
	bad := copied(t, dir)
	delete(bad, "labels.npy")
	if _, err := dataset.OpenFS(bad, "here"); err == nil || !strings.Contains(err.Error(), "labels.npy") {
		t.Errorf("without labels: %v", err)
	}
	bad = copied(t, dir)
	bad["indices.npy"].Data = bad["indices.npy"].Data[:200]
	if _, err := dataset.OpenFS(bad, "here"); err == nil || !strings.Contains(err.Error(), "here/indices.npy") {
		t.Errorf("with cut edges: %v", err)
	}
}

func copied(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = &fstest.MapFile{Data: data}
	}
	return all
}

// A dataset without answers keeps the classes' number and names when it is written and opened, and has no labels, splits or targets.
func TestWithoutAnswers(t *testing.T) {
	d := dataset.Karate()
	d.Meta.ClassNames = []string{"hi", "officer"}
	slim, err := d.WithoutAnswers()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "slim")
	if err := dataset.Write(dir, slim); err != nil {
		t.Fatal(err)
	}
	got, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if err := got.CheckWith(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if got.Classes() != 2 || !slices.Equal(got.Meta.ClassNames, d.Meta.ClassNames) || got.Labels != nil || len(got.Splits) != 0 || !got.Meta.Unlabelled || !got.Meta.Undirected {
		t.Errorf("it is %+v", got.Meta)
	}
	if n := got.Populate(t.Context(), 1<<30); n == 0 {
		t.Log("this kernel maps no pages ahead")
	}
	if got.Populate(t.Context(), 1) != 0 {
		t.Error("it populates more than it is allowed")
	}
	if d.Labels == nil || len(d.Splits) == 0 || d.Meta.Unlabelled {
		t.Error("the original has changed")
	}
	divided := *d
	divided.Meta.Parts = &dataset.Parts{}
	if _, err := divided.WithoutAnswers(); err == nil || !strings.Contains(err.Error(), "divided into parts") {
		t.Errorf("of a divided dataset: %v", err)
	}
	// With labels again, it is a dataset with labels.
	again := *got
	again.Labels = d.Labels
	other := filepath.Join(t.TempDir(), "again")
	if err := dataset.Write(other, &again); err != nil {
		t.Fatal(err)
	}
	back, err := dataset.Open(other)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if back.Meta.Unlabelled || !slices.Equal(back.Labels, d.Labels) {
		t.Errorf("with labels it is %+v", back.Meta)
	}
}
