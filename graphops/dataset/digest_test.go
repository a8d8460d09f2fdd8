package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"
)

func digests(t *testing.T, d *Dataset) Digests {
	t.Helper()
	all, err := d.Digests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// open opens a directory until the test ends.
func open(t *testing.T, dir string) *Dataset {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// shared opens a dataset through its memory file, until the test ends. Only Linux has such files.
func shared(t *testing.T, d *Dataset) *Dataset {
	t.Helper()
	f, err := d.Share(t.Context(), CheckOnceOptions{})
	if err != nil && runtime.GOOS != "linux" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := OpenFD(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = got.Close() })
	return got
}

// ownHome makes this test keep sums of datasets of any size in its own directory, which it returns.
func ownHome(t *testing.T) string {
	home := t.TempDir()
	t.Setenv("GNB_HOME", home)
	return home
}

// openKeeping opens a directory and keeps its sums at once, regardless of the directory's size and
// of the time of the last write.
func openKeeping(t *testing.T, dir string) *Dataset {
	t.Helper()
	d := open(t, dir)
	d.known.keepFrom, d.known.quiet = 0, -time.Hour
	return d
}

// read returns the number of bytes of arrays that computing the digests reads.
func read(t *testing.T, d *Dataset) (bytes int64) {
	t.Helper()
	if _, err := d.Digests(t.Context(), func(_, total int64) { bytes = total }); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// The same content has the same digest in memory, in a directory, in packed memory, on any number
// of threads, and under another name.
func TestDigestIsOfContent(t *testing.T) {
	generated := planted(t, 20000, 70)
	seen := map[string]string{}
	for name, d := range map[string]*Dataset{"small": small(t), "karate": Karate(), "rich": rich(t), "ones": ones(t), "edged": edged(t), "edged f16": edgedHalf(t), "planted": generated} {
		want := digests(t, d)
		if other, ok := seen[want.Whole]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[want.Whole] = name
		stored := open(t, stored(t, d))
		if got := digests(t, stored); got != want {
			t.Errorf("%s: in a directory %+v, in memory %+v", name, got, want)
		}
		stored.Splits = maps.Clone(stored.Splits)
		if whole, err := stored.Digest(t.Context()); err != nil || whole != want.Whole {
			t.Errorf("%s: %s %v", name, whole, err)
		}
		before := runtime.GOMAXPROCS(1)
		d.Meta.Name += " by another name"
		if got := digests(t, d); got != want {
			t.Errorf("%s: on one thread %+v, want %+v", name, got, want)
		}
		runtime.GOMAXPROCS(before)
		if runtime.GOOS == "linux" {
			f, err := d.packFD()
			if err != nil {
				t.Fatal(err)
			}
			packed, err := OpenFD(f)
			_ = f.Close()
			if err != nil {
				t.Fatal(err)
			}
			if got := digests(t, packed); got != want {
				t.Errorf("%s: packed %+v, want %+v", name, got, want)
			}
			_ = packed.Close()
		}
	}
	again := planted(t, 20000, 70)
	if got := digests(t, again); got != digests(t, generated) {
		t.Errorf("a generator gives %+v, then %+v", digests(t, generated), got)
	}
}

// The sum covers every chunk, for any number of chunks.
func TestDigestOfManyChunks(t *testing.T) {
	d := &Dataset{Graph: Karate().Graph, Meta: Metadata{Name: "wide"}}
	cols := (sumStep/4 + 3*sumLeaf/4 + 5) / d.Nodes()
	d.Features = &Matrix{Rows: d.Nodes(), Cols: cols, F32: make([]float32, d.Nodes()*cols)}
	seen := map[string]int{digests(t, d).Features: -1}
	for _, at := range []int{0, 1, sumLeaf/4 - 1, sumLeaf / 4, sumStep/4 - 1, sumStep / 4, len(d.Features.F32) - 1} {
		d.Features.F32[at] = 1
		sum := digests(t, d).Features
		if other, ok := seen[sum]; ok {
			t.Errorf("a change of element %d gives the digest of one of %d", at, other)
		}
		seen[sum] = at
		d.Features.F32[at] = 0
	}
}

// A change of one part's content changes the digest of that part and no other part's digest.
func TestDigestNamesWhatDiffers(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(testing.TB) *Dataset
		edit func(d *Dataset)
		want []string
	}{
		{"nothing", rich, func(*Dataset) {}, nil},
		{"its name, origin and words", rich, func(d *Dataset) { d.Meta.Name, d.Meta.Source, d.Meta.Citation = "x", "y", "z" }, nil},
		{"an edge", small, func(d *Dataset) { d.Graph.Indices[1]++ }, []string{"structure"}},
		{"where a row ends", small, func(d *Dataset) { d.Graph.Indptr[2]++ }, []string{"structure"}},
		{"a weight", rich, func(d *Dataset) { d.Graph.EdgeWeights[1] += 1 }, []string{"structure"}},
		{"no weights", rich, func(d *Dataset) { d.Graph.EdgeWeights = nil }, []string{"structure"}},
		{"a feature", small, func(d *Dataset) { d.Features.F32[3] = 7 }, []string{"features"}},
		{"the sign of a zero", small, func(d *Dataset) { d.Features.F32[0] = -d.Features.F32[0] }, []string{"features"}},
		{"the columns' number", rich, func(d *Dataset) { d.SparseFeatures.Cols++ }, []string{"features"}},
		{"sparse values", rich, func(d *Dataset) { d.SparseFeatures.Values[0]++ }, []string{"features"}},
		{"sparse columns", ones, func(d *Dataset) { d.SparseFeatures.Indices[0]++ }, []string{"features"}},
		{"no features", small, func(d *Dataset) { d.Features = nil }, []string{"features"}},
		{"a label", small, func(d *Dataset) { d.Labels[0] = 2 }, []string{"labels"}},
		{"the number of classes", small, func(d *Dataset) { d.Meta.NumClasses++ }, []string{"labels"}},
		{"the metric", small, func(d *Dataset) { d.Meta.Metric = MetricMicroF1 }, []string{"labels"}},
		{"the order of a split", small, func(d *Dataset) { slices.Reverse(d.Splits["train"]) }, []string{"splits"}},
		{"two splits, exchanged", small, func(d *Dataset) { d.Splits["val"], d.Splits["test"] = d.Splits["test"], d.Splits["val"] }, []string{"splits"}},
		{"an empty split", small, func(d *Dataset) { delete(d.Splits, "extra") }, []string{"splits"}},
		{"two parts", small, func(d *Dataset) { d.Labels[0] = 2; d.Splits["train"] = d.Splits["train"][:1] }, []string{"labels", "splits"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, d := digests(t, c.make(t)), c.make(t)
			c.edit(d)
			after := digests(t, d)
			if got := before.Differences(after); !slices.Equal(got, c.want) {
				t.Errorf("differs in %v, want %v", got, c.want)
			}
			if (before.Whole == after.Whole) != (len(c.want) == 0) {
				t.Error("the digest of the whole dataset contradicts this")
			}
		})
	}
}

// Writing a dataset records its digest, so reading the digest later reads no array.
func TestDigestIsRecorded(t *testing.T) {
	ownHome(t)
	dir := stored(t, rich(t))
	var m storedMetadata
	text, err := os.ReadFile(filepath.Join(dir, MetadataFile))
	if err != nil || json.Unmarshal(text, &m) != nil {
		t.Fatal(err)
	}
	want := digests(t, rich(t))
	if m.Digests == nil || m.Digests.Digests == nil || *m.Digests.Digests != want || m.Digests.Algorithm != sumAlgorithm {
		t.Errorf("metadata.json has %+v, want %+v", m.Digests, want)
	}
	d := open(t, dir)
	if n := read(t, d); n != 0 {
		t.Errorf("%d bytes were read", n)
	}
	// A view has other splits; their digest is known without reading too.
	view, err := d.WithSplitSet(1)
	if err != nil {
		t.Fatal(err)
	}
	if got := digests(t, view); !slices.Equal(want.Differences(got), []string{"splits"}) {
		t.Errorf("a view differs in %v", want.Differences(got))
	}
	// Editing descriptive metadata keeps recorded sums.
	if err := EditMetadata(dir, func(m *Metadata) { m.Licence = "MIT" }); err != nil {
		t.Fatal(err)
	}
	if d := open(t, dir); read(t, d) != 0 || digests(t, d) != want {
		t.Error("the sums are lost when the metadata is edited")
	}
}

// A recorded sum is not used after a file has changed: in place, by a rename, or with the time set
// back to another one than the recorded.
func TestDigestOfChangedFiles(t *testing.T) {
	ownHome(t)
	want := small(t)
	want.Labels[1] = 0
	content := rawBytes(want.Labels)
	for name, change := range map[string]func(t *testing.T, path string){
		"written anew": func(t *testing.T, path string) {
			put(t, filepath.Dir(path), filepath.Base(path), slices.Concat(header(t, path), content))
		},
		"renamed over, older": func(t *testing.T, path string) {
			meta(t, filepath.Dir(path), func(map[string]any) {})
			other := filepath.Join(t.TempDir(), "y.npy")
			put(t, filepath.Dir(other), filepath.Base(other), slices.Concat(header(t, path), content))
			then := time.Now().Add(-time.Hour)
			if err := errors.Join(os.Chtimes(other, then, then), os.Rename(other, path)); err != nil {
				t.Fatal(err)
			}
		},
		"edited after the metadata was": func(t *testing.T, path string) {
			put(t, filepath.Dir(path), filepath.Base(path), slices.Concat(header(t, path), content))
			if err := EditMetadata(filepath.Dir(path), func(m *Metadata) { m.Source = "here" }); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := stored(t, small(t))
			if got := digests(t, open(t, dir)); got != digests(t, small(t)) {
				t.Fatal("the digest is wrong before the change")
			}
			change(t, filepath.Join(dir, labelsFile))
			d := open(t, dir)
			if d.Labels[1] != 0 {
				t.Fatal("the test changes nothing")
			}
			if got := digests(t, d); got != digests(t, want) {
				t.Errorf("differs from the new content in %v", digests(t, want).Differences(got))
			}
		})
	}
	// A file that changes while it is open causes an error instead of a digest.
	dir := stored(t, small(t))
	d := open(t, dir)
	path := filepath.Join(dir, labelsFile)
	then := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Digests(t.Context(), nil); err == nil {
		t.Error("the digest of a file that changed since it was opened gave no error")
	}
}

// A file as old as the metadata may have been changed within the same tick of the clock, so it is
// read.
func TestDigestOfATickOfTheClock(t *testing.T) {
	ownHome(t)
	dir := stored(t, small(t))
	info, err := os.Stat(filepath.Join(dir, labelsFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, MetadataFile), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if n := read(t, open(t, dir)); n < 4*5 {
		t.Errorf("%d bytes were read, and the labels have %d", n, 4*5)
	}
}

// The sums of a directory without a record are computed on request, kept outside of the directory,
// and computed again when a file changes.
func TestDigestOfADirectoryWithoutARecord(t *testing.T) {
	home := ownHome(t)
	dir := stored(t, rich(t))
	meta(t, dir, func(m map[string]any) { delete(m, "digests") })
	before := ls(t, dir)
	want := digests(t, rich(t))
	first := openKeeping(t, dir)
	if got := digests(t, first); got != want {
		t.Errorf("differs in %v", want.Differences(got))
	}
	if n := read(t, first); n != 0 {
		t.Errorf("the second time %d bytes were read", n)
	}
	if now := ls(t, dir); !slices.Equal(now, before) {
		t.Errorf("the directory holds %v, before %v", now, before)
	}
	kept := ls(t, filepath.Join(home, "sums"))
	if len(kept) != 1 {
		t.Fatalf("%v are kept", kept)
	}
	// Another process finds the kept sums.
	second := openKeeping(t, dir)
	if n := read(t, second); n != 0 || digests(t, second) != want {
		t.Errorf("another process reads %d bytes", n)
	}
	// A damaged record, or that of another directory, is ignored.
	path := filepath.Join(home, "sums", kept[0])
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"cut off": text[:len(text)/2], "other": bytes.ReplaceAll(text, []byte(filepath.Base(dir)), []byte("x")),
		"no sums": bytes.ReplaceAll(text, []byte(`"sum": "`), []byte(`"sum": "zz`)), "algorithm": bytes.ReplaceAll(text, []byte(sumAlgorithm), []byte("md5")),
	} {
		put(t, filepath.Dir(path), filepath.Base(path), bad)
		d := openKeeping(t, dir)
		if n := read(t, d); n == 0 {
			t.Errorf("%s: an invalid record was used", name)
		}
	}
	// The sums of small datasets are not kept.
	if d := open(t, stored(t, small(t))); d.known.keptFile() != "" {
		t.Errorf("%s is kept", d.known.keptFile())
	}
}

// The sum of a file that was changed a moment ago is not kept, because a later change may get the
// same time.
func TestDigestOfFreshFilesIsNotKept(t *testing.T) {
	home := ownHome(t)
	dir := stored(t, small(t))
	meta(t, dir, func(m map[string]any) { delete(m, "digests") })
	d := open(t, dir)
	d.known.keepFrom = 0
	for range 2 {
		if read(t, d) == 0 {
			t.Error("the sum of a file changed just now was kept")
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(home, "sums")); len(entries) != 0 {
		t.Errorf("%v are kept", entries)
	}
}

// The digest includes arrays with which the caller replaced opened ones, and changes of converted
// arrays.
func TestDigestOfReplacedArrays(t *testing.T) {
	ownHome(t)
	dir := stored(t, small(t))
	d := open(t, dir)
	want := small(t)
	want.Labels[0] = 2
	d.Labels = slices.Clone(want.Labels)
	if got := digests(t, d); got != digests(t, want) {
		t.Errorf("after the labels moved to another slice, the digests differ in %v", digests(t, want).Differences(got))
	}
	putNPY(t, dir, labelsFile, npyInt64, []int64{0, 1, 2, -1, 0}, 5)
	d = open(t, dir)
	if got := digests(t, d); got != digests(t, small(t)) {
		t.Errorf("with int64 labels, the digests differ in %v", digests(t, small(t)).Differences(got))
	}
	d.Labels[0] = 2
	if got := digests(t, d); got != digests(t, want) {
		t.Errorf("after a change of int64 labels, the digests differ in %v", digests(t, want).Differences(got))
	}
}

func TestDigestStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Karate().Digest(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := (&Dataset{Meta: Metadata{Name: "x"}}).Digest(t.Context()); err == nil {
		t.Error("the digest of a dataset without a graph gave no error")
	}
	var d Digests
	if n := reflect.TypeOf(d).NumField(); n != 5 {
		t.Errorf("Digests has %d fields; Differences compares 4 and Whole", n)
	}
}

// At most 255 directories' sums are kept.
func TestOldSumsGo(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"a", "b", "c", "d"} {
		put(t, dir, name, nil)
		then := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	dropOldest(dir, 5)
	if got := ls(t, dir); len(got) != 4 {
		t.Errorf("%v are left of the four kept sums", got)
	}
	dropOldest(dir, 3)
	if got := ls(t, dir); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("%v are left", got)
	}
}

// header returns the header of a .npy file.
func header(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := parseNPY(text)
	if err != nil {
		t.Fatal(err)
	}
	return text[:len(text)-len(a.data)]
}

func BenchmarkDigest(b *testing.B) {
	d := &Dataset{Graph: Karate().Graph, Meta: Metadata{Name: "wide"}}
	d.Features = &Matrix{Rows: 34, Cols: 1 << 20, F32: make([]float32, 34<<20)}
	b.SetBytes(d.Bytes())
	for b.Loop() {
		if _, err := d.Digest(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
