package tables

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Columns of numbers to predict are targets: several, with missing values, found by a label's name or given; appended nodes
// need none of them.
func TestTargets(t *testing.T) {
	nodes := rowsOfNodes("id,size,price,y", 50, func(i int) string {
		price, y := fmt.Sprintf("%d.5", 100+i), fmt.Sprintf("%d.25", i)
		if i%10 == 3 {
			price = ""
		}
		if i%10 > 6 {
			price, y = "", ""
		}
		return fmt.Sprintf("n%d,%d,%s,%s", i, i%7, price, y)
	})
	dir, f := pair(t, nodes, "source,target\nn1,n2\nn2,n3\n")
	var said notice.List
	o := Options{Kinds: map[string]Kind{"price": Target}, Notice: func(n notice.Notice) { said.Add(n) }}
	ds := read(t, dir+"/ds", f, o)
	if ds.Targets == nil || ds.TargetDim() != 2 || !slices.Equal(ds.Meta.TargetNames, []string{"price", "y"}) || ds.FeatureDim() != 1 || ds.Classes() != 0 {
		t.Fatalf("the dataset is %v with the targets %v", ds, ds.Meta.TargetNames)
	}
	if row := ds.Target(4); row[0] != 104.5 || row[1] != 4.25 {
		t.Errorf("node 4 has the targets %v", row)
	}
	if row := ds.Target(3); row[0] == row[0] || row[1] != 3.25 || ds.HasTarget(8) { //nolint:gocritic // NaN
		t.Errorf("node 3 has the targets %v, and node 8 %v", row, ds.Target(8))
	}
	all := lines(said)
	for _, want := range []string{`"y" has numbers with fractions, so it is a number to predict`, `the target "price" is missing`, "(20 of 50)", "nodes with a target are divided by seed 0"} {
		if !strings.Contains(all, want) {
			t.Errorf("the notices\n%s\nlack %q", all, want)
		}
	}
	in := 0
	for _, s := range []string{"train", "val", "test"} {
		ids, err := ds.Split(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range ids {
			if in++; !ds.HasTarget(v) {
				t.Errorf("node %d without a target is in the split %s", v, s)
			}
		}
	}
	if in != 35 {
		t.Errorf("%d nodes are in splits, want the 35 with a target", in)
	}
	write(t, dir, map[string]string{"more.csv": "id,size,y\nm1,3,7.5\nm2,4,\n"})
	more, err := Append(t.Context(), dir+"/more", ds, Files{Nodes: []Nodes{{Path: dir + "/more.csv"}}}, AppendOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if more.Targets.Rows != 52 || more.Target(4)[0] != 104.5 || more.Target(50)[1] != 7.5 || more.Target(50)[0] == more.Target(50)[0] || more.HasTarget(51) { //nolint:gocritic // NaN
		t.Errorf("the appended nodes have the targets %v and %v", more.Target(50), more.Target(51))
	}
	if !slices.Equal(more.Meta.TargetNames, ds.Meta.TargetNames) || math.Float32bits(more.Features.F32[50]) != math.Float32bits(ds.Features.F32[3]) {
		t.Error("the appended nodes are encoded otherwise")
	}
}

// Targets of typed nodes are those of their type, and unknown for others.
func TestTypedTargets(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"nodes.user.csv": "id,age\na,1\nb,2\n", "nodes.item.csv": "id,weight,price\nx,1,9.5\ny,2,8.5\nz,3,7.5\n",
		"edges.user.likes.item.csv": "source,target\na,x\nb,y\n",
	})
	f, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	ds := read(t, dir+"/ds", f, Options{Kinds: map[string]Kind{"price": Target}, Fit: "all"})
	var got []float32
	for v := range int32(5) {
		if ds.HasTarget(v) {
			got = append(got, ds.Target(v)...)
		}
	}
	if lo, hi := ds.Schema().Range(0); !slices.Equal(got, []float32{9.5, 8.5, 7.5}) || ds.Schema().Nodes[0].Name != "item" || lo != 0 || hi != 3 || !ds.HasTarget(0) || ds.HasTarget(3) {
		t.Errorf("the targets are %v", ds.Targets.F32)
	}
}

// Text, dates and amounts out of range are no targets, and few whole numbers may be classes: one sentence says each.
func TestTargetsAreNumbers(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"text":    {"cheap", `"cheap" (`},
		"dates":   {"2024-01-05", "is no number"},
		"missing": {"", "every value is missing"},
		"large":   {"1e39", "too large for float32"},
	} {
		dir, f := pair(t, rowsOfNodes("id,x,price", 30, func(i int) string { return fmt.Sprintf("%d,%d,%s", i, i, c.value) }), "source,target\n1,2\n")
		_, err := Read(t.Context(), dir+"/ds", f, Options{Kinds: map[string]Kind{"price": Target}, Quiet: true})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ambiguous := func(n int, column string, kinds map[string]Kind) string {
		dir, f := pair(t, rowsOfNodes("id,x,"+column, 600, func(i int) string { return fmt.Sprintf("%d,%d,%d", i, i, i%n) }), "source,target\n1,2\n")
		var said notice.List
		read(t, dir+"/ds", f, Options{Kinds: kinds, Notice: func(n notice.Notice) { said.Add(n) }})
		return lines(said)
	}
	if got := ambiguous(5, "stars", map[string]Kind{"stars": Target}); !strings.Contains(got, `the target "stars" has only 5 different whole numbers; if they are classes`) || !strings.Contains(got, "--kinds stars=label") {
		t.Errorf("five values: %s", got)
	}
	if got := ambiguous(30, "label", nil); !strings.Contains(got, `the label "label" has 30 different whole numbers; if they are amounts`) || !strings.Contains(got, "--kinds label=target") {
		t.Errorf("thirty classes: %s", got)
	}
}

func lines(all notice.List) (text string) {
	for _, n := range all {
		text += n.String() + "\n"
	}
	return text
}
