package dataset

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Features that are drawn while they are written have the bits of features in memory, in either type, and only a piece of
// them is in memory at a time.
func TestDrawnFeatures(t *testing.T) {
	ownHome(t)
	const rows, cols = 3000, 3701 // pieces end within rows
	whole := planted(t, rows, cols)
	var most atomic.Int64
	drawn := *whole
	drawn.Features = Drawn(rows, cols, func(first int, to []float32) {
		most.Store(max(most.Load(), int64(len(to))))
		copy(to, whole.Features.F32[first*cols:])
	})
	for _, kind := range []string{"", "f16"} {
		dirs := [2]string{filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "drawn")}
		for i, d := range []*Dataset{whole, &drawn} {
			if err := WriteWith(t.Context(), dirs[i], d, WriteOptions{FeatureType: kind}); err != nil {
				t.Fatal(err)
			}
		}
		a, err := os.ReadFile(filepath.Join(dirs[0], featuresFile))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dirs[1], featuresFile))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("type %q: the files differ (%v)", kind, err)
		}
		got := open(t, dirs[1])
		if err := got.Check(t.Context()); err != nil || got.RecordedDigest() != open(t, dirs[0]).RecordedDigest() {
			t.Errorf("type %q: the digests differ (%v)", kind, err)
		}
	}
	if limit := int64(gatherStep/2 + 2*cols); most.Load() > limit || most.Load() == 0 {
		t.Errorf("%d numbers were drawn at a time, of %d; the limit is %d", most.Load(), rows*cols, limit)
	}
	if err := drawn.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "when it is written") {
		t.Errorf("a check of features that are not there: %v", err)
	}
	if _, err := drawn.Digest(t.Context()); err == nil {
		t.Error("features that are not there have a digest")
	}
	drawn.Features = Drawn(rows, cols, func(_ int, to []float32) { to[5] = float32(math.NaN()) })
	dir := filepath.Join(t.TempDir(), "bad")
	if err := Write(dir, &drawn); err == nil || !strings.Contains(err.Error(), "row 0, column 5 is NaN") {
		t.Errorf("NaN was written: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory exists after an error")
	}
}

// What float16 changes is counted and said, of nodes and of edges; the metadata keeps it.
func TestRoundingIsSaid(t *testing.T) {
	ownHome(t)
	for _, c := range []struct {
		name string
		x    []float32
		want string // "" is no notice
	}{
		{"exact", []float32{0, 1, -2.5, 65504, 0x1p-24, 1023.5}, ""},
		{"rounded", []float32{1, 1.0001, 3, 4, 5, 1000.25}, "features: numbers are rounded to float16, by at most 0.025 % (2 of 6)"},
		{"small", []float32{1e-9, 0, 3, 4, 5, -1e-30}, "features: numbers are rounded to float16; 2 of them are too small for it and become 0 (2 of 6)"},
		{"both", []float32{1e-9, 3.1, 3, 4, 5, 6}, "by at most 0.013 %; 1 of them are too small for it and become 0 (2 of 6)"},
	} {
		d := planted(t, 100, 6)
		d.Features.F32 = make([]float32, 600)
		copy(d.Features.F32, c.x)
		said := ""
		dir := filepath.Join(t.TempDir(), "d")
		if err := WriteWith(t.Context(), dir, d, WriteOptions{FeatureType: "f16", Said: func(n notice.Notice) { said += n.String() }}); err != nil {
			t.Fatal(err)
		}
		kept := ""
		for _, n := range open(t, dir).Meta.Notices {
			kept += n.String()
		}
		want := strings.ReplaceAll(c.want, "of 6)", "of 600)")
		if (said == "") != (want == "") || !strings.Contains(said, want) || kept != said {
			t.Errorf("%s: said %q, kept %q, want %q", c.name, said, kept, want)
		}
	}
	d := planted(t, 100, 6)
	x := &graphops.EdgeFeatures{Cols: 1, F32: make([]float32, d.Edges())}
	x.F32[3] = 1.0001
	d.Graph = d.Graph.WithEdgeData(x, nil)
	said := ""
	err := WriteWith(t.Context(), filepath.Join(t.TempDir(), "e"), d, WriteOptions{EdgeFeatureType: "f16", Said: func(n notice.Notice) { said += n.String() }})
	if err != nil || !strings.Contains(said, "edge_features: numbers are rounded") {
		t.Errorf("features of edges: said %q (%v)", said, err)
	}
}
