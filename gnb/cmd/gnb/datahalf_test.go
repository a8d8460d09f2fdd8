package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
)

// --feature-type selects the type in which convert and generate write dense features.
func TestFeatureType(t *testing.T) {
	dir := t.TempDir()
	edges := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(edges, []byte("0 1\n1 2\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	half := func(path string) bool {
		t.Helper()
		d, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		return d.Features.Half()
	}
	if status, r, stderr := convertRun(t, edges, filepath.Join(dir, "half"), "--features", "random:8", "--feature-type", "f16"); status != 0 || !half(filepath.Join(dir, "half")) {
		t.Errorf("status %d: %v %s", status, r, stderr)
	}
	if status, r, stderr := convertRun(t, edges, filepath.Join(dir, "whole"), "--features", "random:8"); status != 0 || half(filepath.Join(dir, "whole")) {
		t.Errorf("status %d: %v %s", status, r, stderr)
	}
	if status, _, stderr := convertRun(t, edges, filepath.Join(dir, "x"), "--feature-type", "f8"); status == 0 || !strings.Contains(stderr, `"f8"`) {
		t.Errorf("status %d: %s", status, stderr)
	}
	var o, e bytes.Buffer
	made := filepath.Join(dir, "made")
	if status := dispatch(t.Context(), []string{"data", "generate", "planted?nodes=300", made, "--feature-type", "f16"}, &o, &e); status != 0 || !half(made) {
		t.Errorf("generate: %s", e.String())
	}
	o.Reset()
	if status := dispatch(t.Context(), []string{"data", "check", made}, &o, &e); status != 0 || !strings.Contains(o.String(), "float16") {
		t.Errorf("check: %s%s", o.String(), e.String())
	}
	e.Reset()
	if status := dispatch(t.Context(), []string{"data", "info", made, "--feature-type", "f16"}, &o, &e); status == 0 || !strings.Contains(e.String(), "data generate and data convert") {
		t.Errorf("info: status %d, %s", status, e.String())
	}
}

// Splits that overlap fail the check, unless the metadata permits it.
func TestOverlappingSplitsFailTheCheck(t *testing.T) {
	d, err := datasets.Load("planted?nodes=300")
	if err != nil {
		t.Fatal(err)
	}
	d.Splits["test"][0] = d.Splits["train"][0]
	dir := filepath.Join(t.TempDir(), "d")
	if err := dataset.WriteWith(t.Context(), dir, d, dataset.WriteOptions{Checked: true}); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	if status := dispatch(t.Context(), []string{"data", "check", dir}, &o, &e); status != 1 || !strings.Contains(e.String(), "also in split train") {
		t.Errorf("status %d: %s%s", status, o.String(), e.String())
	}
	if err := dataset.EditMetadata(dir, func(m *dataset.Metadata) { m.OverlappingSplits = true }); err != nil {
		t.Fatal(err)
	}
	e.Reset()
	if status := dispatch(t.Context(), []string{"data", "check", dir}, &o, &e); status != 0 {
		t.Errorf("permitted: %s", e.String())
	}
}
