package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset/registry"
)

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
		return Write(dir, small(t))
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
	if err := Write("cora", Karate()); err != nil {
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

func TestList(t *testing.T) {
	home := t.TempDir()
	t.Setenv("GNB_HOME", home)
	t.Chdir(t.TempDir())
	for _, name := range []string{"cora", "mine", "bad name"} {
		if err := Write(filepath.Join(home, "datasets", name), small(t)); err != nil {
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

func TestEditMetadata(t *testing.T) {
	dir := stored(t, rich(t))
	put(t, dir, "."+metadataFile+".gnb-tmp-7", []byte("of a process that was killed"))
	err := EditMetadata(dir, func(m *Metadata) {
		m.Name, m.Citation, m.Metric = "renamed", "a book", MetricMicroF1
		m.NumNodes, m.Splits, m.FeatureFormat, m.MultiLabel = 9, nil, "", false // has no effect
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	want := rich(t)
	want.Meta.Name, want.Meta.Citation, want.Meta.Metric = "renamed", "a book", MetricMicroF1
	same(t, d, want)
	if slices.Contains(ls(t, dir), "."+metadataFile+".gnb-tmp-7") {
		t.Error("a temporary file is left")
	}
	for what, edit := range map[string]func(m *Metadata){
		`metric is "luck"`: func(m *Metadata) { m.Metric = "luck" },
		"no name":          func(m *Metadata) { m.Name = "" },
	} {
		if err := EditMetadata(dir, edit); err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := EditMetadata(t.TempDir(), func(*Metadata) {}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no dataset: %v", err)
	}
}
