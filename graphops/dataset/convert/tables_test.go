package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// shopTables are users and items, with ids of both kinds, a type without nodes, and a relation without edges.
func shopTables() map[string]string {
	return map[string]string{
		"nodes.user.csv":                 "id,age,split\nann,30,\nbob,40,\n",
		"nodes.item.csv":                 "id,label,split,price,weight_g\n7,toy,train,1.5,10\n9,book,val,2,20\n8,toy,test,3,30\n",
		"nodes.brand.csv":                "id\n",
		"edges.user.likes.item.csv":      "source,target,stars,day\nann,7,5,1\nann,8,1,2\nbob,9,4,3\n",
		"edges.user.knows.user.csv":      "source,target,day\nann,bob,4\n",
		"edges.brand.makes.item.csv":     "source,target,day\n",
		"edges.item.v2.similar.item.csv": "source,target,weight,day\n7,8,0.5,5\n",
	}
}

// edgesOf lists the edges of a dataset as "type id relation type id", with ids within types, in order.
func edgesOf(t testing.TB, d *dataset.Dataset) []string {
	t.Helper()
	var all []string
	s, starts := d.Schema(), d.Schema().Starts()
	name := func(v int32) string {
		k := s.TypeOf(v)
		return fmt.Sprintf("%s %d", s.Nodes[k].Name, int(v)-starts[k])
	}
	for v := range d.Nodes() {
		for e := d.Graph.Indptr[v]; e < d.Graph.Indptr[v+1]; e++ {
			all = append(all, name(d.Graph.Indices[e])+" "+s.Relations[d.Graph.EdgeTypes[e]].Name+" "+name(int32(v)))
		}
	}
	slices.Sort(all)
	return all
}

func relationNames(d *dataset.Dataset) (names []string) {
	for _, r := range d.Schema().Relations {
		names = append(names, r.String())
	}
	return names
}

// Tables by type become a graph with types in alphabetical order; features, classes and splits are those of each type.
func TestTables(t *testing.T) {
	t.Parallel()
	d, stats := typedConverted(t, putFile(t, shopTables()), Options{Name: "shop"})
	want := []graphops.NodeType{{Name: "brand", Count: 0}, {Name: "item", Count: 3}, {Name: "user", Count: 2}}
	if stats.Format != "typed-csv" || !slices.Equal(d.Schema().Nodes, want) {
		t.Fatalf("the format is %s, the types %v", stats.Format, d.Schema().Nodes)
	}
	if got := relationNames(d); !slices.Equal(got, []string{"brand:makes:item", "item:v2.similar:item", "user:knows:user", "user:likes:item"}) {
		t.Errorf("the relations are %v", got)
	}
	edges := []string{"item 0 v2.similar item 2", "user 0 knows user 1", "user 0 likes item 0", "user 0 likes item 2", "user 1 likes item 1"}
	if got := edgesOf(t, d); !slices.Equal(got, edges) {
		t.Errorf("the edges are %v, want %v", got, edges)
	}
	if x := d.NodeFeatures[1].Dense; x.Cols != 2 || !slices.Equal(x.F32, []float32{1.5, 10, 2, 20, 3, 30}) {
		t.Errorf("the items' features are %v", x)
	}
	if x := d.NodeFeatures[2].Dense; !slices.Equal(x.F32, []float32{30, 40}) || d.NodeFeatures[0].Cols() != 0 {
		t.Errorf("the users' features are %v", x)
	}
	if !slices.Equal(d.Labels, []int32{1, 0, 1, -1, -1}) || d.ClassesOf(1) != 2 || d.ClassesOf(2) != 0 || !slices.Equal(d.Meta.NodeTypes[1].ClassNames, []string{"book", "toy"}) {
		t.Errorf("the labels are %v, the types %+v", d.Labels, d.Meta.NodeTypes)
	}
	for name, v := range map[string]int32{"train": 0, "val": 1, "test": 2} {
		if !slices.Equal(d.Splits[name], []int32{v}) {
			t.Errorf("the split %s is %v", name, d.Splits[name])
		}
	}
	weights := maps.Collect(func(yield func(string, float32) bool) {
		for e, r := range d.Graph.EdgeTypes {
			yield(d.Schema().Relations[r].Name, d.Graph.EdgeWeights[e])
		}
	})
	if weights["v2.similar"] != 0.5 || weights["likes"] != 1 {
		t.Errorf("the weights are %v", weights)
	}
	for file, want := range map[string][]string{"names.user.txt": {"ann", "bob"}, "names.item.txt": {"7", "9", "8"}} {
		if got, err := dataset.ReadNames(d.Dir(), file); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %v, %v", file, got, err)
		}
	}
}

// starsOf is the first feature of an edge, 0 if it has none.
func starsOf(d *dataset.Dataset, e int64) float32 {
	var x [1]float32
	d.Graph.EdgeFeatures.CopyRow(x[:], e)
	return x[0]
}

// Columns of edges become features of the relations that have the column, and times.
func TestTablesOfEdgeFeatures(t *testing.T) {
	t.Parallel()
	d, _ := typedConverted(t, putFile(t, shopTables()), Options{EdgeFeatures: "stars", EdgeTimes: "day"})
	got := map[string][]float64{}
	for e, r := range d.Graph.EdgeTypes {
		name := d.Schema().Relations[r].Name
		got[name] = append(got[name], float64(starsOf(d, int64(e))), float64(d.Graph.EdgeTimes[e]))
	}
	want := map[string][]float64{"likes": {5, 1, 4, 3, 1, 2}, "knows": {0, 4}, "v2.similar": {0, 5}}
	if d.EdgeFeatureDim() != 1 || d.EdgeFeatureDimOf(d.Schema().Index(graphops.Relation{Src: "user", Name: "knows", Dst: "user"})) != 0 || !maps.EqualFunc(got, want, slices.Equal[[]float64]) {
		t.Errorf("features and times are %v, want %v", got, want)
	}
	typedRefused(t, putFile(t, shopTables()), Options{EdgeFeatures: "stars,speed"}, `speed`, "no column for a feature in any table")
	typedRefused(t, putFile(t, shopTables()), Options{EdgeTimes: "stars"}, "edges.brand.makes.item.csv", "--edge-times names", "each edge needs a time")
}

// Changes and further features apply to tables as to other graphs with types.
func TestTablesChanged(t *testing.T) {
	t.Parallel()
	d, _ := typedConverted(t, putFile(t, shopTables()), Options{Features: "random:4", Transform: Transform(Changes{Without: []string{"knows"}, Reverses: true})})
	if d.FeatureDim() != 4 || d.NodeFeatures != nil || len(d.Schema().Relations) != 6 {
		t.Errorf("there are %d features and the relations %v", d.FeatureDim(), relationNames(d))
	}
}

// Tables that contradict one another are refused with a sentence.
func TestTablesHostile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change map[string]string // "" removes the file
		o      Options
		words  []string
	}{
		"an id of no node":          {map[string]string{"edges.user.knows.user.csv": "source,target\nann,eve\n"}, Options{}, []string{"edges.user.knows.user.csv", "line 2", `"eve" is the id of no node of type user`}},
		"an id of another type":     {map[string]string{"edges.user.knows.user.csv": "source,target\nann,7\n"}, Options{}, []string{`"7" is the id of no node of type user`}},
		"a type without a table":    {map[string]string{"nodes.brand.csv": ""}, Options{}, []string{"edges.brand.makes.item.csv", `the end "brand"`, "no table of nodes of that type"}},
		"no ends in the name":       {map[string]string{"edges.likes.csv": "source,target\n"}, Options{}, []string{"edges.likes.csv", "its name is not edges.SOURCE.RELATION.DESTINATION.csv"}},
		"no source":                 {map[string]string{"edges.user.knows.user.csv": "a,target\n"}, Options{}, []string{"edges.user.knows.user.csv", `an edge has a "source" and a "target"`}},
		"no id":                     {map[string]string{"nodes.user.csv": "name\nann\n"}, Options{}, []string{"nodes.user.csv", `no column is named "id"`}},
		"an id twice":               {map[string]string{"nodes.user.csv": "id\nann\nann\n"}, Options{}, []string{"nodes.user.csv", "line 3", "ids are unique"}},
		"types that differ by case": {map[string]string{"nodes.User.csv": "id\nx\n"}, Options{}, []string{`"User" and "user"`, "must differ in more than case"}},
		"a type twice":              {map[string]string{"nodes.user.tsv": "id\nx\n"}, Options{}, []string{"nodes.user.tsv", `a second table of the node type "user"`}},
		"a relation twice":          {map[string]string{"edges.user.knows.user.tsv": "source\ttarget\n"}, Options{}, []string{"the relation user:knows:user twice"}},
		"a feature that is a word":  {map[string]string{"nodes.user.csv": "id,age\nann,old\n"}, Options{}, []string{"line 2", "the feature \"age\" is \"old\""}},
		"no edges at all": {map[string]string{
			"edges.user.likes.item.csv": "source,target\n", "edges.user.knows.user.csv": "", "edges.item.v2.similar.item.csv": "", "edges.brand.makes.item.csv": "",
		}, Options{}, []string{"none of its 1 relations has edges"}},
		"no nodes at all": {map[string]string{
			"nodes.user.csv": "id\n", "nodes.item.csv": "id\n", "edges.user.likes.item.csv": "source,target\n", "edges.user.knows.user.csv": "", "edges.item.v2.similar.item.csv": "",
		}, Options{}, []string{"none of its 3 node types has nodes"}},
		"a line break in an id": {map[string]string{"nodes.user.csv": "id\n\"a\nb\"\nann\nbob\n"}, Options{}, []string{"a node of type user has a line break"}},
		"undirected":            {nil, Options{Undirected: true}, []string{"--reverses"}},
		"largest component":     {nil, Options{LargestComponent: true}, []string{"typed-csv has none of --largest-component"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := shopTables()
			for file, text := range c.change {
				if files[file] = text; text == "" {
					delete(files, file)
				}
			}
			typedRefused(t, putFile(t, files), c.o, c.words...)
		})
	}
}

// A type without features, a relation without edges and a type without nodes are noted or go by themselves.
func TestTablesNotes(t *testing.T) {
	t.Parallel()
	var notes []string
	typedConverted(t, putFile(t, shopTables()), Options{Note: func(text string) { notes = append(notes, text) }})
	all := strings.Join(notes, "\n")
	for _, want := range []string{"the relation brand:makes:item has no edges", "the nodes of type brand have no features", "the classes of the nodes of type item are book, toy", `the column "stars" is not read`} {
		if !strings.Contains(all, want) {
			t.Errorf("no note says %q:\n%s", want, all)
		}
	}
}

// Equal edges of a relation are merged before weights that are all 1 are dropped.
func TestTablesMergeFirst(t *testing.T) {
	t.Parallel()
	src := putFile(t, map[string]string{"nodes.user.csv": "id,f\na,1\nb,2\n", "edges.user.knows.user.csv": "source,target,weight\na,b,1\na,b,1\nb,a,1\n"})
	var notes []string
	d, _ := typedConverted(t, src, Options{Name: "d", Note: func(s string) { notes = append(notes, s) }})
	if !slices.Equal(d.Graph.EdgeWeights, []float32{1, 2}) || !strings.Contains(strings.Join(notes, "\n"), "merged 1 of 3 edges") {
		t.Errorf("the weights are %v, and the notes %q", d.Graph.EdgeWeights, notes)
	}
}
