package remote_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
)

// If a server is started again with the same data in other parts, a program gets the new parts,
// even if their number is the same. If the parts are unchanged, the program uses the copy that it
// has kept.
func TestOutlineOfOtherParts(t *testing.T) {
	t.Setenv("GNB_HOME", t.TempDir())
	ds := graph(t)
	by := func(n, shift int32) *dataset.Dataset {
		return inPartsBy(t, ds, int(n), func(v int32) int { return sample.Owner((v+shift)%int32(ds.Nodes()), int(n)) }, divided.Options{})
	}
	four := by(4, 0)
	s := start(t, four, serve.Options{})
	dirs := map[string]string{}
	for _, c := range []struct {
		name string
		ds   *dataset.Dataset
		same string // the earlier case with the same parts
	}{{"four", four, ""}, {"eight", by(8, 0), ""}, {"four others", by(4, 1), ""}, {"whole", ds, ""}, {"four again", four, "four"}} {
		s.end()
		s.ds = c.ds
		s.begin()
		got, err := dataset.Load("grpc://" + s.addr)
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
	a, b := start(t, four, serve.Options{}), start(t, by(4, 1), serve.Options{})
	if _, err := remote.Open(t.Context(), "grpc://"+a.addr+","+b.addr, remote.Options{}); err == nil || !strings.Contains(err.Error(), "divided alike") {
		t.Errorf("two servers with different divisions gave %v", err)
	}
}
