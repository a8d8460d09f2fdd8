package remote_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
)

// If a server is started again with the same data in other parts, a program gets the new parts,
// even if their number is the same. If the parts are unchanged, the program uses the copy that it
// has kept.
func TestOutlineOfOtherParts(t *testing.T) {
	t.Setenv("GNB_HOME", t.TempDir())
	ds := graph(t)
	by := func(n, shift int32) *dataset.Dataset {
		return dividedtest.PartsBy(t, ds, int(n), func(v int32) int { return sample.Owner((v+shift)%int32(ds.Nodes()), int(n)) }, divided.Options{})
	}
	four := by(4, 0)
	s := servetest.Start(t, four, serve.Options{})
	dirs := map[string]string{}
	for _, c := range []struct {
		name string
		ds   *dataset.Dataset
		same string // the earlier case with the same parts
	}{{"four", four, ""}, {"eight", by(8, 0), ""}, {"four others", by(4, 1), ""}, {"whole", ds, ""}, {"four again", four, "four"}} {
		s.Stop()
		s.Dataset = c.ds
		s.Start()
		got, err := datasets.Load("grpc://" + s.Addr)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		want := make([]int32, ds.Nodes()) // all zeros for an undivided dataset
		if c.ds != ds {
			want = c.ds.Arrays["parts"].I32
		}
		if !slices.Equal(got.Arrays["parts"].I32, want) {
			t.Errorf("%s: the parts are not those of the server", c.name)
		}
		for name, dir := range dirs {
			if (dir == got.Dir()) != (name == c.same) {
				t.Errorf("%s is kept in %s, but %s in %s", c.name, got.Dir(), name, dir)
			}
		}
		dirs[c.name] = got.Dir()
		if err := got.Close(); err != nil {
			t.Error(err)
		}
	}
	long := time.Now().Add(-100 * 24 * time.Hour)
	for _, dir := range dirs {
		if err := os.Chtimes(dir, long, long); err != nil {
			t.Fatal(err)
		}
	}
	for i, served := range []*dataset.Dataset{four, by(6, 0)} { // one that is there, which counts as loaded now, and a new one
		s.Stop()
		s.Dataset = served
		s.Start()
		got, err := datasets.Load("grpc://" + s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(filepath.Dir(got.Dir()))
		if want := []int{4, 2}[i]; err != nil || len(left) != want {
			t.Errorf("%d datasets are kept, want %d: %v", len(left), want, err)
		}
		if err := got.Close(); err != nil {
			t.Error(err)
		}
	}
	a, b := servetest.Start(t, four, serve.Options{}), servetest.Start(t, by(4, 1), serve.Options{})
	if _, err := remote.Open(t.Context(), "grpc://"+a.Addr+","+b.Addr, remote.Options{}); err == nil || !strings.Contains(err.Error(), "divided alike") {
		t.Errorf("two servers with different divisions gave %v", err)
	}
}
