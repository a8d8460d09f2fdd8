package gnb

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
)

// A defect of a dataset is found before a run begins, for directories above and below the size from
// which a directory is read only once.
func TestHostileDataStartsNoRun(t *testing.T) {
	for name, edit := range map[string]struct {
		do   func(d *dataset.Dataset)
		want string
	}{
		"NaN in features":         {func(d *dataset.Dataset) { d.Features.F32[7] = float32(math.NaN()) }, "features must be finite"},
		"validation out of range": {func(d *dataset.Dataset) { d.Splits["val"][0] = int32(d.Nodes()) }, "split_val.npy"},
		"overlapping splits":      {func(d *dataset.Dataset) { d.Splits["test"][0] = d.Splits["train"][0] }, "which is also in split train"},
		"unsorted edges": {func(d *dataset.Dataset) {
			for v := range int32(d.Nodes()) {
				if row := d.Graph.InNeighbors(v); len(row) > 1 && row[0] < row[1] {
					row[0], row[1] = row[1], row[0]
					return
				}
			}
		}, "do not ascend"},
	} {
		t.Run(name, func(t *testing.T) {
			good, err := datasets.Load("planted?nodes=500")
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "d")
			if err := dataset.Write(dir, good); err != nil {
				t.Fatal(err)
			}
			dividedtest.Undigested(t, dir, nil) // else opening it says that the files are others
			// The same arrays are written without any check.
			edit.do(good)
			other := filepath.Join(t.TempDir(), "e")
			if err := dataset.WriteWith(t.Context(), other, good, dataset.WriteOptions{Checked: true}); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"features.npy", "indices.npy", "split_val.npy", "split_test.npy"} {
				text, err := os.ReadFile(filepath.Join(other, name))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			bad, err := dataset.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer bad.Close()
			for _, d := range []*dataset.Dataset{good, bad} {
				for _, always := range []int64{0, -1} {
					if _, err := shared(t.Context(), d, always); err == nil || !strings.Contains(err.Error(), edit.want) {
						t.Errorf("%s, always %d: %v", d, always, err)
					}
				}
			}
		})
	}
}

// Workers get the directory of an opened dataset, and a copy if the program has replaced arrays
// since.
func TestWorkersGetWhatTheProgramHas(t *testing.T) {
	made, err := datasets.Load("planted?nodes=500")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := dataset.Write(dir, made); err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	l, err := shared(t.Context(), d, 0)
	if err != nil || l.job.DataDir != dir || len(l.files) > 0 {
		t.Fatalf("for the opened dataset: %+v, %v", l, err)
	}
	d.Splits["train"] = made.Splits["train"][:3]
	if l, err = shared(t.Context(), d, 0); err != nil || len(l.files) != 1 || !l.job.DataInMemory {
		t.Fatalf("after a split was replaced: %+v, %v", l, err)
	}
	defer l.close()
	got, err := dataset.OpenFD(l.files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if ids := got.Splits["train"]; len(ids) != 3 {
		t.Errorf("the workers' training split has %d nodes, the program's has 3", len(ids))
	}
}

// shared returns a launch whose dataset has been shared with its workers.
func shared(ctx context.Context, d *dataset.Dataset, always int64) (*launched, error) {
	l := &launched{o: LaunchOptions{Data: d, Quiet: true}, check: dataset.CheckOnceOptions{Always: always}}
	return l, l.data(ctx)
}
