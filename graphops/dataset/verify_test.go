package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/graphnb/graphnb/internal/testneed"
)

// withNames writes a dataset with a file of names beside its arrays.
func withNames(t testing.TB, d *Dataset) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	names := ""
	for range d.Nodes() {
		names += "a name\n"
	}
	if err := os.WriteFile(filepath.Join(dir, NamesFile("")), []byte(names), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteWith(t.Context(), dir, d, WriteOptions{Inside: true}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// opened opens and checks a directory.
func opened(dir string) error {
	d, err := Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Check(context.Background())
}

// Each flipped bit of each file of a written dataset is noticed: in values, headers, names and the metadata.
// Without digests it is noticed or passes, and nothing panics.
func TestFlippedBits(t *testing.T) {
	testneed.NotUnderRace(t, "it opens many small datasets")
	tries := 12
	if envknob.Soak.On() {
		tries = 400
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, d := range map[string]*Dataset{
		"small": small(t), "rich": rich(t), "ones": ones(t), "edged": edged(t), "f16": edgedHalf(t), "types": shop(t),
	} {
		t.Run(name, func(t *testing.T) {
			dir := withNames(t, d)
			noticed, without, passed := 0, 0, 0
			for _, file := range ls(t, dir) {
				path := filepath.Join(dir, file)
				good, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				for range tries {
					bad := append([]byte(nil), good...)
					bit := rng.IntN(8 * len(bad))
					bad[bit/8] ^= 1 << (bit % 8)
					if err := os.WriteFile(path, bad, 0o600); err != nil {
						t.Fatal(err)
					}
					if err := opened(dir); err == nil {
						t.Errorf("bit %d of %s was flipped, and nothing noticed", bit, file)
					} else {
						noticed++
					}
				}
				if err := os.WriteFile(path, good, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := opened(dir); err != nil {
				t.Fatalf("after all flips were taken back: %v", err)
			}
			meta(t, dir, func(m map[string]any) { delete(m, "digests") })
			for _, file := range ls(t, dir) {
				path := filepath.Join(dir, file)
				good, _ := os.ReadFile(path)
				for range tries {
					bad := append([]byte(nil), good...)
					bit := rng.IntN(8 * len(bad))
					bad[bit/8] ^= 1 << (bit % 8)
					_ = os.WriteFile(path, bad, 0o600)
					if opened(dir) == nil {
						passed++
					} else {
						without++
					}
				}
				_ = os.WriteFile(path, good, 0o600)
			}
			t.Logf("%d of %d flips noticed; without digests %d of %d", noticed, noticed, without, without+passed)
		})
	}
}

// Whoever changes a file on purpose, or wrote the directory with another program, records the digests; keys of others in
// the metadata stay.
func TestWriteDigests(t *testing.T) {
	dir := withNames(t, small(t))
	path := filepath.Join(dir, NamesFile(""))
	if err := os.WriteFile(path, []byte("a\nb\r\nc\nd\ne\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var damage *DigestError
	if err := opened(dir); !errors.As(err, &damage) || damage.Path != path {
		t.Fatalf("other names gave %v", err)
	}
	meta(t, dir, func(m map[string]any) { m["lab"] = map[string]any{"mood": "good"} })
	if err := WriteDigests(t.Context(), dir, WriteDigestsOptions{}); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	if !d.HasDigests() || d.Check(t.Context()) != nil {
		t.Errorf("the digests were not recorded: %v", d.Check(t.Context()))
	}
	text, err := os.ReadFile(filepath.Join(dir, MetadataFile))
	var m struct{ Lab struct{ Mood string } }
	if err := errors.Join(err, json.Unmarshal(text, &m)); err != nil || m.Lab.Mood != "good" {
		t.Errorf("a key of another program is lost: %s, %v", text, err)
	}
	if want := digests(t, small(t)); digests(t, d) != want {
		t.Error("the digest of the content is another one")
	}
	if ids, err := d.IDs(); err != nil || !slices.Equal(ids, []string{"a", "b\r", "c", "d", "e"}) {
		t.Errorf("the names are %q, %v", ids, err)
	}
	// Defects are not recorded.
	put(t, dir, NamesFile(""), []byte("a\nb\n"))
	if err := WriteDigests(t.Context(), dir, WriteDigestsOptions{}); err == nil || !strings.Contains(err.Error(), "names.node.txt: it has 2 lines") {
		t.Errorf("two names of five nodes gave %v", err)
	}
	putNPY(t, dir, labelsFile, npyInt32, []int32{0, 1, 2, -1, 9}, 5)
	if err := WriteDigests(t.Context(), dir, WriteDigestsOptions{}); err == nil {
		t.Error("digests of a dataset with a wrong label were written")
	}
}

// A file that keeps its times is not read again before a run, and is by Verify and by CheckOnce with Verify.
func TestVerifyReadsWhatTheTimesHide(t *testing.T) {
	ownHome(t)
	d := small(t)
	const cols = 1 << 18 // larger than the files that Open reads
	d.Features = &Matrix{Rows: 5, Cols: cols, F32: make([]float32, 5*cols)}
	dir := stored(t, d)
	path := filepath.Join(dir, featuresFile)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte{1}, 4096)
	if err := errors.Join(err, f.Close(), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	got := open(t, dir)
	if err := got.CheckOnce(t.Context(), CheckOnceOptions{Always: -1}); err != nil {
		t.Errorf("a check that believes the times gave %v", err)
	}
	var damage *DigestError
	if err := got.Verify(t.Context(), VerifyOptions{Threads: 1}); !errors.As(err, &damage) || damage.Path != path {
		t.Errorf("Verify gave %v", err)
	}
	if err := got.CheckOnce(t.Context(), CheckOnceOptions{Always: -1, Verify: true}); !errors.As(err, &damage) {
		t.Errorf("CheckOnce with Verify gave %v", err)
	}
	// Editing descriptions keeps the digests, so that it hides no damage.
	if err := EditMetadata(dir, func(m *Metadata) { m.Source = "here" }); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir).Check(t.Context()); !errors.As(err, &damage) {
		t.Errorf("after an edit of the metadata, Check gave %v", err)
	}
}
