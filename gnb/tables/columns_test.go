package tables

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// rowsOfNodes are n rows by f, below a first line.
func rowsOfNodes(head string, n int, f func(i int) string) string {
	s := head + "\n"
	for i := range n {
		s += f(i) + "\n"
	}
	return s
}

// Tables recognise columns as all readers do: masks, an index, decimal commas, words for unknown labels. Each guess is a
// notice, which the metadata keep.
func TestColumnsAreRecognised(t *testing.T) {
	const n = 90
	part := func(i int) string { return []string{"1,0,0", "0,1,0", "0,0,1"}[i/30] }
	for _, c := range []struct {
		name, nodes string
		edges       string // "" is one edge
		o           Options
		features    string
		splits      string // sizes of train, val and test; "" is any
		classes     int
		kinds       []notice.Kind // of some of the notices
	}{
		{name: "masks", nodes: rowsOfNodes("id,label,train_mask,val_mask,test_mask,f", n, func(i int) string { return fmt.Sprintf("%d,%d,%s,%d.5", i, i%2, part(i), i) }), features: "f", splits: "30 30 30", classes: 2, kinds: []notice.Kind{notice.Guessed}},
		{name: "numbered split", nodes: rowsOfNodes("id,label,split,f", n, func(i int) string { return fmt.Sprintf("%d,%d,%d,%d.5", i, i%2, i/30, i) }), features: "f", splits: "30 30 30", classes: 2, kinds: []notice.Kind{notice.Guessed}},
		{name: "words of splits", nodes: rowsOfNodes("id,label,split,f", n, func(i int) string {
			return fmt.Sprintf("%d,%d,%s,%d.5", i, i%2, []string{"Train", "Valid", "Test "}[i/30], i)
		}), features: "f", splits: "30 30 30", classes: 2},
		{name: "masks are features if Kinds says so", nodes: rowsOfNodes("id,label,train_mask,val_mask,test_mask", n, func(i int) string { return fmt.Sprintf("%d,%d,%s", i, i%2, part(i)) }), o: Options{Kinds: map[string]Kind{"train_mask": Number, "val_mask": Skip, "test_mask": Skip}}, features: "train_mask", classes: 2},
		{name: "an unnamed index", nodes: rowsOfNodes(",id,label,f", n, func(i int) string { return fmt.Sprintf("%d,u%d,%d,%d.5", i, i, i%2, i) }), edges: "source,target\nu1,u2\n", features: "f", classes: 2, kinds: []notice.Kind{notice.Dropped}},
		{name: "an index that the file has again", nodes: rowsOfNodes("Unnamed: 0,id,label,f", n, func(i int) string { return fmt.Sprintf("%d,u%d,%d,%d.5", 1000+i, i, i%2, i) }), edges: "Unnamed: 0,a,b\n0,u1,u2\n", features: "f", classes: 2, kinds: []notice.Kind{notice.Dropped, notice.Guessed}},
		{name: "decimal commas", nodes: rowsOfNodes("id;label;f", n, func(i int) string { return fmt.Sprintf("%d;%d;%d,5", i, i%2, i) }), features: "f", classes: 2, kinds: []notice.Kind{notice.Guessed}},
		{name: "thousands", nodes: rowsOfNodes("id,label,f", n, func(i int) string { return fmt.Sprintf("%d,%d,\"1,%03d\"", i, i%2, i) }), features: "f", classes: 2, kinds: []notice.Kind{notice.Guessed}},
		{name: "unknown labels", nodes: rowsOfNodes("id,label,f", n, func(i int) string {
			return fmt.Sprintf("%d,%s,%d.5", i, []string{"unknown", "1", "2"}[i%3], i)
		}), features: "f", classes: 2, kinds: []notice.Kind{notice.Guessed, notice.Renumbered}},
		{name: "-1", nodes: rowsOfNodes("id,label,f", n, func(i int) string { return fmt.Sprintf("%d,%d,%d.5", i, i%3-1, i) }), features: "f", classes: 2, kinds: []notice.Kind{notice.Guessed}},
		{name: "None is a class", nodes: rowsOfNodes("id,label,f", n, func(i int) string {
			return fmt.Sprintf("%d,%s,%d.5", i, []string{"None", "Low", "High"}[i%3], i)
		}), o: Options{Present: []string{"None"}}, features: "f", classes: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.edges == "" {
				c.edges = strings.ReplaceAll("source,target\n1,2\n", ",", map[bool]string{true: ";", false: ","}[strings.Contains(c.nodes, ";")])
			}
			dir, f := pair(t, c.nodes, c.edges)
			var said notice.List
			c.o.Notice = func(n notice.Notice) { said.Add(n) }
			c.o.Fit = "all"
			ds := read(t, dir+"/ds", f, c.o)
			if got := strings.Join(ds.Meta.FeatureNames, " "); got != c.features || ds.FeatureDim() != len(ds.Meta.FeatureNames) {
				t.Errorf("the features are %q, want %q", got, c.features)
			}
			if got := fmt.Sprint(len(ds.Splits["train"]), len(ds.Splits["val"]), len(ds.Splits["test"])); c.splits != "" && got != c.splits {
				t.Errorf("the splits have %s nodes, want %s", got, c.splits)
			}
			if ds.Classes() != c.classes {
				t.Errorf("%d classes, want %d", ds.Classes(), c.classes)
			}
			for _, k := range c.kinds {
				found := false
				for _, n := range ds.Meta.Notices {
					found = found || n.Kind == k
				}
				if !found {
					t.Errorf("no notice in the metadata is %q: %v", k, ds.Meta.Notices)
				}
			}
			if len(said.Done()) != len(ds.Meta.Notices) {
				t.Errorf("%d notices were passed on, and the metadata have %d", len(said.Done()), len(ds.Meta.Notices))
			}
		})
	}
}

// Masks with numbers are sets of splits, also of rows that are appended; labelled nodes in none are counted.
func TestSetsOfSplits(t *testing.T) {
	dir, f := pair(t, "id,label,train_mask_0,train_mask_1,val_mask_0,val_mask_1,test_mask,f\na,0,1,0,0,1,0,1\nb,1,1,1,0,0,0,2\nc,0,0,1,1,0,0,3\nd,1,0,0,0,0,1,4\ne,1,0,0,0,0,0,5\n", "source,target\na,b\n")
	var said notice.List
	ds := read(t, dir+"/ds", f, Options{Notice: func(n notice.Notice) { said.Add(n) }})
	want := map[string]string{"train": "[0 1]", "val": "[2]", "test": "[3]", "train@1": "[1 2]", "val@1": "[0]", "test@1": "[3]"}
	check := func(ds *dataset.Dataset) {
		t.Helper()
		for name, ids := range want {
			if got := fmt.Sprint(ds.Splits[name]); got != ids {
				t.Errorf("the split %s is %s, want %s", name, got, ids)
			}
		}
	}
	check(ds)
	text := fmt.Sprint(said)
	for _, word := range []string{"several sets of splits, numbered from 0", "labelled nodes are in none of train, val and test"} {
		if !strings.Contains(text, word) {
			t.Errorf("said %q, want %q", text, word)
		}
	}
	_, f = pair(t, "id,label,train_mask_0,train_mask_1,val_mask_0,val_mask_1,test_mask,f\ng,1,0,1,1,0,0,9\n", "source,target\ng,a\n")
	more, err := Append(t.Context(), dir+"/more", ds, f, AppendOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	want["val"], want["train@1"] = "[2 5]", "[1 2 5]"
	check(more)
}

// Numbers with decimal commas are the features that they are with points, also in rows that are appended.
func TestDecimalCommas(t *testing.T) {
	dir, f := pair(t, "id;f\na;0,5\nb;1.234,25\nc;7\n", "source;target\na;b\n")
	comma := read(t, dir+"/comma", f, Options{Name: "same"})
	_, f = pair(t, "id,f\na,0.5\nb,1234.25\nc,7\n", "source,target\na,b\n")
	point := read(t, dir+"/point", f, Options{Name: "same"})
	if arrays(t, comma) != arrays(t, point) {
		t.Errorf("the features are %v, want %v", comma.Features.F32, point.Features.F32)
	}
	_, f = pair(t, "id;f\nd;0,5\n", "source;target\nd;a\n")
	more, err := Append(t.Context(), dir+"/more", comma, f, AppendOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if x := more.Features.F32; x[3] != x[0] {
		t.Errorf("0,5 becomes %v, and before it was %v", x[3], x[0])
	}
}

// A target that has numbers of its own is no label, and masks that contradict each other are none.
func TestLabelsAndMasksAreRefused(t *testing.T) {
	target := rowsOfNodes("id,label,f", 300, func(i int) string { return fmt.Sprintf("%d,%d,%d.5", i, 1000+i*i, i) })
	dir, f := pair(t, target, "source,target\n1,2\n")
	_, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true})
	var many *columns.ManyClassesError
	if !errors.As(err, &many) || many.Classes != 300 {
		t.Fatalf("the error is %v", err)
	}
	sentence(t, err, "amounts are targets", "--many-classes")
	if ds := read(t, dir+"/ds", f, Options{ManyClasses: true}); ds.Classes() != 300 {
		t.Errorf("%d classes", ds.Classes())
	}
	dir, f = pair(t, rowsOfNodes("id,label", 40, func(i int) string { return fmt.Sprintf("%d,%d", i, i%2*2-1) }), "source,target\n1,2\n")
	_, err = Read(t.Context(), dir+"/ds", f, Options{Quiet: true})
	if !errors.Is(err, columns.ErrMinusOne) {
		t.Errorf("labels -1 and 1: %v", err)
	}
	for name, row := range map[string]string{"two splits": "0,0,1,1", "no flag": "0,0,2,0"} {
		dir, f := pair(t, "id,label,train_mask,val_mask\n"+row+"\n1,1,1,0\n2,0,1,0\n", "source,target\n1,2\n")
		if _, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true}); err == nil || !strings.Contains(err.Error(), "mask") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
