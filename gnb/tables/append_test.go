package tables

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// cut divides the customers' tables into the first n customers with the edges between them, and the rest.
func cut(nodes, edges string, n int) (n1, e1, n2, e2 string) {
	head := func(s string) (string, []string) {
		lines := strings.SplitAfter(strings.TrimSuffix(s, "\n"), "\n")
		lines[len(lines)-1] = strings.TrimSuffix(lines[len(lines)-1], "\n") + "\n"
		return lines[0], lines[1:]
	}
	h, rows := head(nodes)
	n1, n2 = h+strings.Join(rows[:n], ""), h+strings.Join(rows[n:], "")
	h, rows = head(edges)
	e1, e2 = h, h
	for _, row := range rows {
		var u, v, w int
		if _, err := fmt.Sscanf(row, "c%d,c%d,%d", &u, &v, &w); err != nil {
			panic(err)
		}
		if u < n && v < n {
			e1 += row
		} else {
			e2 += row
		}
	}
	return n1, e1, n2, e2
}

// unlabelled removes the labels of the customers from number n on.
func unlabelled(nodes string, n int) string {
	lines := strings.SplitAfter(nodes, "\n")
	for i := n + 1; i < len(lines); i++ {
		if at := strings.LastIndexByte(lines[i], ','); at >= 0 {
			lines[i] = lines[i][:at] + ",\n"
		}
	}
	return strings.Join(lines, "")
}

// withoutSplit returns a copy of the dataset without a split.
func withoutSplit(ds *dataset.Dataset, name string) *dataset.Dataset {
	d := *ds
	d.Splits = map[string][]int32{}
	for k, ids := range ds.Splits {
		if k != name {
			d.Splits[k] = ids
		}
	}
	return &d
}

// A dataset that new nodes were appended to has the bits of one that was read with them from the start: features, edges,
// labels and splits. The recipe is fitted to the training nodes, which are the same.
func TestAppendIsAsFromTheStart(t *testing.T) {
	nodes, edges := customers(90)
	nodes = unlabelled(nodes, 70)
	n1, e1, n2, e2 := cut(nodes, edges, 70)
	for name, o := range map[string]Options{
		"sparse":     {},
		"dense":      {Kinds: map[string]Kind{"note": Skip}},
		"undirected": {Undirected: true, Unscaled: true, Kinds: map[string]Kind{"weight": Number}},
		"unscaled":   {Unscaled: true, Words: 16, Seed: 7},
	} {
		t.Run(name, func(t *testing.T) {
			o.Name = "same"
			dir, f := pair(t, nodes, edges)
			want := read(t, dir+"/ds", f, o)
			dir, f = pair(t, n1, e1)
			first := read(t, dir+"/ds", f, o)
			_, f = pair(t, n2, e2)
			got, err := Append(t.Context(), dir+"/more", first, f, AppendOptions{Name: "same", Quiet: true})
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			if added, err := got.Split(NewSplit); err != nil || len(added) != 20 || added[0] != 70 {
				t.Errorf("the new nodes are %v, %v", added, err)
			}
			if arrays(t, withoutSplit(got, NewSplit)) != arrays(t, want) {
				t.Errorf("appended nodes give\n%s\n, and from the start they are\n%s", got, want)
			}
			a, err1 := os.ReadFile(filepath.Join(got.Dir(), RecipeFile))
			b, err2 := os.ReadFile(filepath.Join(first.Dir(), RecipeFile))
			if err1 != nil || err2 != nil || string(a) != string(b) {
				t.Error("the recipe was changed by appending")
			}
		})
	}
}

// With a recipe that was fitted to all nodes, the same holds for Read with that recipe; and two steps give what one gives.
func TestAppendTwice(t *testing.T) {
	nodes, edges := customers(60)
	n1, e1, rest, restEdges := cut(nodes, edges, 40)
	dir, f := pair(t, n1, e1)
	first := read(t, dir+"/ds", f, Options{Fit: "all"})
	r, err := ReadRecipe(first.Dir())
	if err != nil {
		t.Fatal(err)
	}
	_, whole := pair(t, nodes, edges)
	want := read(t, dir+"/want", whole, Options{Recipe: r, Name: "same"})
	_, f = pair(t, rest, restEdges)
	once, err := Append(t.Context(), dir+"/once", first, f, AppendOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer once.Close()
	// Nodes first, without edges; then edges, without nodes.
	two, err := Append(t.Context(), dir+"/two", first, Files{Nodes: f.Nodes}, AppendOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	three, err := Append(t.Context(), dir+"/three", two, Files{Edges: f.Edges}, AppendOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer three.Close()
	for k, got := range []*dataset.Dataset{once, three} {
		if !slices.Equal(got.SparseFeatures.Indices, want.SparseFeatures.Indices) || !slices.Equal(got.SparseFeatures.Values, want.SparseFeatures.Values) {
			t.Errorf("way %d: the features differ", k)
		}
		if !slices.Equal(got.Graph.Indices, want.Graph.Indices) || !slices.Equal(got.Graph.EdgeWeights, want.Graph.EdgeWeights) || !slices.Equal(got.Labels, want.Labels) {
			t.Errorf("way %d: the edges or labels differ", k)
		}
	}
}

// shop is a graph with two types of nodes and two relations.
func shop(t *testing.T, users, items, likes, knows string) Files {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"nodes.user.csv": users, "nodes.item.csv": items, "edges.user.likes.item.csv": likes, "edges.user.knows.user.csv": knows})
	f, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTyped(t *testing.T) {
	o := Options{Fit: "all", Reverses: true, Kinds: map[string]Kind{"likes.stars": Number}, Name: "same"}
	users, items := "id,age\nann,30\nbob,40\n", "id,label,price\n1,toy,3\n2,book,5\nx,toy,\n"
	likes, knows := "source,target,stars\nann,1,5\nbob,x,1\n", "source,target\nann,bob\n"
	f := shop(t, users, items, likes, knows)
	dir := t.TempDir()
	ds := read(t, dir+"/ds", f, o)
	s := ds.Schema()
	if s == nil || len(s.Nodes) != 2 || len(s.Relations) != 4 || s.Nodes[0].Name != "item" || ds.EdgeFeatureDim() != 1 {
		t.Fatalf("the schema is %+v of %s", s, ds)
	}
	if ids, err := ds.IDs(); err != nil || !slices.Equal(ids, []string{"1", "2", "x", "ann", "bob"}) {
		t.Errorf("ids are %q, %v", ids, err)
	}
	if !slices.Equal(ds.Labels, []int32{1, 0, 1, -1, -1}) || !slices.Equal(ds.Meta.NodeTypes[0].ClassNames, []string{"book", "toy"}) {
		t.Errorf("labels are %v, classes %v", ds.Labels, ds.Meta.NodeTypes[0].ClassNames)
	}
	r, err := ReadRecipe(ds.Dir())
	if err != nil {
		t.Fatal(err)
	}
	more := Files{
		Nodes: shop(t, "id,age\ncid,35\n", "id,price\n9,4\n", "source,target,stars\ncid,9,2\nann,9,3\n", "source,target\ncid,ann\n").Nodes,
	}
	all := shop(t, "id,age\ncid,35\n", "id,price\n9,4\n", "source,target,stars\ncid,9,2\nann,9,3\n", "source,target\ncid,ann\n")
	more.Edges = all.Edges
	got, err := Append(t.Context(), dir+"/more", ds, more, AppendOptions{Quiet: true, Name: "same"})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	want := read(t, dir+"/want", shop(t, users+"cid,35\n", strings.ReplaceAll(items, "x,toy,\n", "x,toy,\n9,,4\n"), likes+"cid,9,2\nann,9,3\n", knows+"cid,ann\n"), Options{Recipe: r, Name: "same"})
	for name := range got.Splits { // drawn by Read alone, since appended nodes join no drawn split
		if name != NewSplit && !slices.Equal(got.Splits[name], want.Splits[name]) {
			t.Errorf("split %s is %v, want %v", name, got.Splits[name], want.Splits[name])
		}
	}
	if arrays(t, withoutSplit(got, NewSplit)) != arrays(t, want) {
		t.Errorf("appended nodes give\n%s\n, and from the start they are\n%s", got, want)
	}
	if added := got.Splits[NewSplit]; !slices.Equal(added, []int32{3, 6}) {
		t.Errorf("the new nodes are %v", added)
	}
}

func TestAppendRefuses(t *testing.T) {
	nodes, edges := customers(40)
	dir, f := pair(t, nodes, edges)
	ds := read(t, dir+"/first", f, Options{})
	for name, c := range map[string]struct {
		nodes, edges string
		want         []string
	}{
		"an id that is there":  {"id,plan,spent,joined,note\nc7,gold,1,2024-01-01,hi there you\n", "source,target,weight\nc1,c2,1\n", []string{"line 2", `"c7"`, "of the dataset already"}},
		"a column less":        {"id,plan,spent,joined\nn,gold,1,2024-01-01\n", "source,target,weight\nc1,c2,1\n", []string{`no column "note"`, "id, plan, spent, joined"}},
		"a word for a number":  {"id,plan,spent,joined,note\nn,gold,much,2024-01-01,hi\n", "source,target,weight\nc1,c2,1\n", []string{"line 2", `"much"`, "not a finite number"}},
		"no date":              {"id,plan,spent,joined,note\nn,gold,1,soon,hi\n", "source,target,weight\nc1,c2,1\n", []string{"line 2", `"soon"`, "not a date, written like 2006-01-02"}},
		"a new class":          {"id,plan,spent,joined,note,label\nn,gold,1,2024-01-01,hi,perhaps\n", "source,target,weight\nc1,c2,1\n", []string{"line 2", `"perhaps"`, "none of the 2 classes"}},
		"an edge to no node":   {"id,plan,spent,joined,note\nn,gold,1,2024-01-01,hi\n", "source,target,weight\nn,m,1\n", []string{"line 2", `"m"`, "the id of no node"}},
		"an edge without more": {"id,plan,spent,joined,note\nn,gold,1,2024-01-01,hi\n", "source,target\nn,c1\n", []string{`no column "weight"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, f := pair(t, c.nodes, c.edges)
			_, err := Append(t.Context(), dir+"/ds", ds, f, AppendOptions{Quiet: true})
			sentence(t, err, c.want...)
			nothingLeft(t, dir)
		})
	}
	_, err := Append(t.Context(), ds.Dir(), ds, f, AppendOptions{Quiet: true, Replace: true})
	sentence(t, err, "own directory")
	_, err = Append(t.Context(), dir+"/ds", ds, Files{}, AppendOptions{})
	sentence(t, err, "no table")
}

// Replace keeps a directory that was not made of tables, and replaces one that was.
func TestReplace(t *testing.T) {
	nodes, edges := customers(40)
	dir, f := pair(t, nodes, edges)
	read(t, dir+"/ds", f, Options{})
	_, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true})
	sentence(t, err, "ds", "--replace")
	if ds := read(t, dir+"/ds", f, Options{Replace: true, Words: 8}); ds.FeatureDim() > 40 {
		t.Errorf("the directory was not replaced: %s", ds)
	}
	write(t, dir, map[string]string{"other/file": "x"})
	_, err = Read(t.Context(), dir+"/other", f, Options{Quiet: true, Replace: true})
	sentence(t, err, "was not made of tables")
	_, err = Read(t.Context(), dir+"/ds", Of(dir+"/nowhere.csv", dir+"/edges.csv"), Options{Quiet: true, Replace: true})
	sentence(t, err, "nowhere.csv")
	if _, err := ReadRecipe(dir + "/ds"); err != nil {
		t.Errorf("a failed Read removed the old dataset: %v", err)
	}
	for _, pattern := range []string{"/ds.*", "/.ds.*"} {
		if left, _ := filepath.Glob(dir + pattern); len(left) > 0 {
			t.Errorf("%q were left", left)
		}
	}
}

// A process that is killed at any step of replacing a dataset leaves the old one or the new one, and the next process
// replaces it.
func TestReplaceKilled(t *testing.T) {
	const at = "GNB_TEST_KILL_AT"
	if n := os.Getenv(at); n != "" {
		dir := os.Getenv(at + "_DIR")
		left, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		defer atomicfile.Observe(func(o atomicfile.Op) {
			if o.Kind == atomicfile.OpWrite {
				return
			}
			if left--; left == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		})()
		ds, err := Read(t.Context(), dir+"/ds", Of(dir+"/nodes.csv", dir+"/edges.csv"), Options{Replace: true, Words: 8, Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		_ = ds.Close()
		return
	}
	nodes, edges := customers(40)
	dir, f := pair(t, nodes, edges)
	old := read(t, dir+"/ds", f, Options{}).FeatureDim()
	seen := map[int]int{}
	done := false
	for n := 1; !done; n++ {
		c := exec.Command(os.Args[0], "-test.run=^TestReplaceKilled$")
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", at, n), at+"_DIR="+dir)
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		if done = err == nil; !done && (!errors.As(err, &exit) || exit.ExitCode() >= 0) {
			t.Fatalf("the child at step %d: %v\n%s", n, err, out)
		}
		ds, err := dataset.Open(dir + "/ds")
		if err != nil {
			t.Fatalf("killed at step %d: %v", n, err)
		}
		if err := ds.Check(t.Context()); err != nil {
			t.Errorf("killed at step %d: %v", n, err)
		}
		seen[ds.FeatureDim()]++
		_ = ds.Close()
		if ds.FeatureDim() != old { // the next child replaces the old one again
			read(t, dir+"/ds", f, Options{Replace: true})
		}
	}
	if len(seen) != 2 || seen[old] < 3 {
		t.Errorf("the datasets had these numbers of features: %v, before %d", seen, old)
	}
	if left, _ := filepath.Glob(dir + "/.ds.*"); len(left) > 0 {
		t.Errorf("%q were left", left)
	}
}
