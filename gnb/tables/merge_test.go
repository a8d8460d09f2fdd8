package tables

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// Equal edges are merged before weights that are all 1 are dropped, and a note has the number of merged rows.
func TestMergeWeights(t *testing.T) {
	const nodes = "id,f\na,1\nb,2\nc,3\n"
	for _, c := range []struct {
		name, rows string
		o          Options
		want       []float32 // by CSC position; nil: none
		note       string
	}{
		{"all 1", "a,b,1\na,b,1\na,b,1\nb,c,1\n", Options{}, []float32{3, 1}, "merged 2 of 4 edges into an earlier equal one"},
		{"one of 2", "a,b,1\na,b,1\nb,c,2\n", Options{}, []float32{2, 2}, "merged 1 of 3 edges"},
		{"none twice", "a,b,1\nb,c,1\n", Options{}, nil, ""},
		{"both directions", "a,b,1\nb,a,1\nb,c,1\nc,c,1\n", Options{Undirected: true}, []float32{2, 2, 1, 1, 1}, "merged 1 of 4 edges into an earlier equal one or its reverse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, f := pair(t, nodes, "source,target,weight\n"+c.rows)
			var notes []string
			c.o.Note = func(s string) { notes = append(notes, s) }
			ds := read(t, dir+"/ds", f, c.o)
			if got := fmt.Sprint(ds.Graph.EdgeWeights); got != fmt.Sprint(c.want) {
				t.Errorf("the weights are %v, want %v", got, c.want)
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, c.note) || c.note == "" && strings.Contains(all, "merged") {
				t.Errorf("the notes are %q, want one with %q", all, c.note)
			}
		})
	}
}

// rowsWithRepeats returns rows of edges of which many repeat others, with weights and features whose sums are rounded.
func rowsWithRepeats(weight func(i int) string) []string {
	var rows []string
	for i := range 240 {
		u, v := i*i%12, (i*7+i/5)%12
		if v == u && i%3 > 0 {
			v = (v + 1) % 12
		}
		rows = append(rows, fmt.Sprintf("n%d,n%d,%s,%.9f\n", u, v, weight(i), 1/float64(i+3)))
	}
	return rows
}

// Append gives the bits of reading all tables with the same recipe, however often edges repeat and wherever the tables
// are cut: sums and means are not continued from rounded ones.
func TestAppendMergesAsRead(t *testing.T) {
	third := func(i int) string { return fmt.Sprintf("%.9f", 1/float64(i+1)) }
	one := func(int) string { return "1" }
	nodes := "id,f,label\n"
	for i := range 12 {
		nodes += fmt.Sprintf("n%d,%d,%d\n", i, i*i, i%2)
	}
	for _, c := range []struct {
		name   string
		weight func(int) string
		typed  bool
		o      Options
	}{
		{"weights", third, false, Options{}},
		{"all 1", one, false, Options{}},
		{"undirected", third, false, Options{Undirected: true}},
		{"features", third, false, Options{Kinds: map[string]Kind{"x": Number}, Unscaled: true}},
		{"features without weights", third, false, Options{Kinds: map[string]Kind{"x": Number, "weight": Skip}, Undirected: true, Unscaled: true}},
		{"neither", third, false, Options{Kinds: map[string]Kind{"weight": Skip}}},
		{"typed, reverses", third, true, Options{Reverses: true, Kinds: map[string]Kind{"x": Number}, Unscaled: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Fit, c.o.Name = "all", "same"
			rows := rowsWithRepeats(c.weight)
			tables := func(nodes string, rows []string) Files {
				dir := t.TempDir()
				write(t, dir, map[string]string{"nodes.csv": nodes, "edges.csv": "source,target,weight,x\n" + strings.Join(rows, "")})
				f := Of(filepath.Join(dir, "nodes.csv"), filepath.Join(dir, "edges.csv"))
				if c.typed {
					f.Nodes[0].Type = "user"
					f.Edges[0].Source, f.Edges[0].Relation, f.Edges[0].Target = "user", "knows", "user"
				}
				if nodes == "" {
					f.Nodes = nil
				}
				return f
			}
			dir := t.TempDir()
			ds := read(t, dir+"/0", tables(nodes, rows[:50]), c.o)
			r, err := ReadRecipe(ds.Dir())
			if err != nil {
				t.Fatal(err)
			}
			want := read(t, dir+"/want", tables(nodes, rows), Options{Recipe: r, Name: "same"})
			for k, cuts := range [][2]int{{50, 51}, {51, 120}, {120, 240}} {
				ds, err = Append(t.Context(), fmt.Sprintf("%s/%d", dir, k+1), ds, tables("", rows[cuts[0]:cuts[1]]), AppendOptions{Name: "same", Quiet: true})
				if err != nil {
					t.Fatal(err)
				}
				defer ds.Close()
			}
			if got := arrays(t, withoutSplit(ds, NewSplit)); got != arrays(t, withoutSplit(want, NewSplit)) {
				t.Errorf("appended edges give %s, and read together they are %s", ds, want)
			}
		})
	}
}

// The copies of merged edges are verified before new ones are added to them.
func TestAppendNeedsCopies(t *testing.T) {
	nodes, edges := "id,f\na,1\nb,2\n", "source,target,weight\na,b,1\na,b,1\n"
	for name, damage := range map[string]func(path string) error{
		"missing": os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 9) },
		"changed": func(path string) error {
			raw, err := os.ReadFile(path)
			if err == nil {
				raw[len(raw)-1] ^= 1
				err = os.WriteFile(path, raw, 0o666)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, f := pair(t, nodes, edges)
			ds := read(t, dir+"/ds", f, Options{})
			if err := damage(filepath.Join(ds.Dir(), CopiesFile)); err != nil {
				t.Fatal(err)
			}
			if _, err := Append(t.Context(), dir+"/more", ds, Files{Edges: f.Edges}, AppendOptions{Quiet: true}); err == nil || !strings.Contains(err.Error(), CopiesFile) {
				t.Errorf("the error is %v", err)
			}
			if _, err := os.Stat(dir + "/more"); err == nil {
				t.Error("a directory was written")
			}
		})
	}
}

// Whether a dataset is undirected is asked of its edges and not of the options, in Read and in Append.
func TestUndirectedByEdges(t *testing.T) {
	const nodes, one, both = "id,f\na,1\nb,2\nc,3\n", "source,target\na,b\nb,c\n", "source,target\na,b\nb,a\nb,c\nc,b\nc,c\n"
	dir, f := pair(t, nodes, both)
	ds := read(t, dir+"/ds", f, Options{})
	_, g := pair(t, nodes, one)
	if apart := read(t, dir+"/one", g, Options{}); !ds.Meta.Undirected || apart.Meta.Undirected {
		t.Errorf("undirected is %v where both directions are listed, and %v where one is", ds.Meta.Undirected, apart.Meta.Undirected)
	}
	_, more := pair(t, "", "source,target\nc,a\n")
	got, err := Append(t.Context(), dir+"/more", ds, Files{Edges: more.Edges}, AppendOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func(d *dataset.Dataset) { _ = d.Close() }(got)
	if got.Meta.Undirected {
		t.Error("the dataset is undirected after an edge without its reverse was appended")
	}
}
