package dataset

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Features written as float16 take half the size. When they are read, gathered, checked or written
// again, they equal the given values rounded once.
func TestHalfFeatures(t *testing.T) {
	ownHome(t)
	d := planted(t, 3000, 37)
	dir := filepath.Join(t.TempDir(), "half")
	if err := WriteWith(t.Context(), dir, d, WriteOptions{FeatureType: "f16"}); err != nil {
		t.Fatal(err)
	}
	half := open(t, dir)
	want, err := d.Features.Float16()
	if err != nil {
		t.Fatal(err)
	}
	if !half.Features.Half() || !slices.Equal(half.Features.F16, want.F16) || half.Features.F32 != nil || half.FeatureDim() != 37 {
		t.Fatalf("%s: the features are not the given ones rounded to float16", half)
	}
	if !strings.Contains(half.String(), "37 features (float16)") {
		t.Errorf("%s", half)
	}
	if saved := d.Bytes() - half.Bytes(); saved != 2*3000*37 {
		t.Errorf("float16 saves %d bytes of %d", saved, 4*3000*37)
	}
	info, err := os.Stat(filepath.Join(dir, featuresFile))
	if err != nil || info.Size() > 2*3000*37+200 {
		t.Errorf("the file has %d bytes (%v)", info.Size(), err)
	}
	wide := half.Features.Float32()
	for i, x := range wide.F32 {
		if y := d.Features.F32[i]; math.Abs(float64(x-y)) > math.Abs(float64(y))/2048+0x1p-25 {
			t.Fatalf("element %d is %v, before %v", i, x, y)
		}
	}
	ids := []int32{7, 0, 2999, 7}
	for _, ids := range [][]int32{ids, nil} {
		got, of := make([]float32, 4*37), make([]float32, 4*37)
		half.Features.Gather(got, ids, 2)
		wide.Gather(of, ids, 2)
		if !slices.Equal(got, of) {
			t.Errorf("gathering the rows %v gave other values", ids)
		}
	}
	if !slices.Equal(half.Features.Row(5), wide.Row(5)) {
		t.Error("row 5 has other values")
	}
	if err := half.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if n := checkedBytes(t, openKeeping(t, dir)); n != 0 {
		t.Errorf("%d bytes were checked again", n)
	}
	if a, b := digests(t, half), digests(t, d); !slices.Equal(a.Differences(b), []string{"features"}) {
		t.Errorf("the digests differ from those of float32 in %v", a.Differences(b))
	}
	mem := *d
	mem.Features = want
	if a, b := digests(t, half), digests(t, &mem); a != b {
		t.Errorf("in memory and in a directory the digests differ in %v", a.Differences(b))
	}
	// Writing the dataset again gives the same file; writing it as float32 gives the same numbers.
	for _, kind := range []string{"", "f16", "f32"} {
		again := filepath.Join(t.TempDir(), "again")
		if err := WriteWith(t.Context(), again, half, WriteOptions{FeatureType: kind}); err != nil {
			t.Fatal(err)
		}
		got := open(t, again)
		if kind == "f32" {
			if got.Features.Half() || !slices.Equal(got.Features.F32, wide.F32) {
				t.Error("the float32 file holds other numbers")
			}
			continue
		}
		a, _ := os.ReadFile(filepath.Join(dir, featuresFile))
		b, err := os.ReadFile(filepath.Join(again, featuresFile))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("the file written again as %q differs: %v", kind, err)
		}
	}
	part, err := half.Subset([]int32{3, 17})
	if err != nil || !part.Features.Half() || !slices.Equal(part.Features.Row(1), wide.Row(17)) {
		t.Errorf("the subset has other features: %v", err)
	}
	f, err := half.packFD()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := OpenFD(f)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	if digests(t, packed) != digests(t, half) {
		t.Error("the packed dataset has another digest")
	}
}

// A value that float16 cannot hold is refused, with its position, before anything is written; NaN
// and infinities in a float16 file are found.
func TestHalfFeaturesRefused(t *testing.T) {
	d := small(t)
	d.Features.F32[5] = -70000
	dir := filepath.Join(t.TempDir(), "half")
	err := WriteWith(t.Context(), dir, d, WriteOptions{FeatureType: "f16"})
	if err == nil || !strings.Contains(err.Error(), "row 2, column 1 is -70000") || !strings.Contains(err.Error(), "65504") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("something was written")
	}
	if err := WriteWith(t.Context(), dir, d, WriteOptions{FeatureType: "f8"}); err == nil || !strings.Contains(err.Error(), `"f8"`) {
		t.Errorf("got %v", err)
	}
	for name, bits := range map[string]uint16{"NaN": 0x7e00, "-Inf": 0xfc00} {
		dir := stored(t, small(t))
		x := make([]uint16, 10)
		x[3] = bits
		putNPY(t, dir, featuresFile, npyFloat16, x, 5, 2)
		err := open(t, dir).Check(context.Background())
		if err == nil || !strings.Contains(err.Error(), "row 1, column 1 is "+name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	d = small(t)
	d.Features.F16 = make([]uint16, 10)
	if err := d.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "Features.F32 and Features.F16") {
		t.Errorf("both: %v", err)
	}
	s := rich(t) // a dataset with sparse features
	if err := WriteWith(t.Context(), dir, s, WriteOptions{FeatureType: "f16"}); err != nil {
		t.Error(err)
	} else if got := digests(t, open(t, dir)); got != digests(t, s) {
		t.Error("sparse features were changed")
	}
}
