package convert

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

// cSVFiles returns the hand graph as tables with the nodes a, b, c, d and e.
func cSVFiles() map[string]string {
	return map[string]string{
		"nodes.csv": "id,height,label,split,width\na,0,red,train,1\nb,2,blue,train,3\nc,4,red,val,5\nd,6,green,test,7\ne,8,,,-9.5e0\n",
		"edges.csv": "source,target\na,b\na,c\nb,c\nc,d\n",
	}
}

func TestCSV(t *testing.T) {
	replaced := func(old, other string) map[string]string {
		files := cSVFiles()
		for name, text := range files {
			files[name] = strings.ReplaceAll(text, old, other)
		}
		return files
	}
	under := func(ending string, files map[string]string) map[string]string {
		return map[string]string{"nodes" + ending: files["nodes.csv"], "edges" + ending: files["edges.csv"]}
	}
	packed := cSVFiles()
	for name, text := range packed {
		packed[name] = gz(text)
	}
	quoted := cSVFiles()
	quoted["nodes.csv"] = strings.NewReplacer("\nb,", "\n\"b\",", ",blue,", ",\"blue\",").Replace(quoted["nodes.csv"])
	for name, files := range map[string]map[string]string{
		"as it is":       cSVFiles(),
		"semicolons":     replaced(",", ";"),
		"tabs":           under(".tsv", replaced(",", "\t")),
		"sep= line":      {"nodes.csv": "sep=;\r\n" + replaced(",", ";")["nodes.csv"], "edges.csv": "sep=|\n" + replaced(",", "|")["edges.csv"]},
		"gzip":           under(".csv.gz", packed),
		"CRLF":           replaced("\n", "\r\n"),
		"blanks":         replaced(",", " , "),
		"BOM":            {"nodes.csv": "\xef\xbb\xbf" + cSVFiles()["nodes.csv"], "edges.csv": "\xef\xbb\xbf" + cSVFiles()["edges.csv"]},
		"other names":    {"nodes.csv": strings.Replace(cSVFiles()["nodes.csv"], "id,height,label", "Node,Height,Class", 1), "edges.csv": strings.Replace(cSVFiles()["edges.csv"], "source,target", "From,To", 1)},
		"quotes":         quoted,
		"no last break":  {"nodes.csv": strings.TrimSpace(cSVFiles()["nodes.csv"]), "edges.csv": strings.TrimSpace(cSVFiles()["edges.csv"])},
		"columns turned": {"nodes.csv": cSVFiles()["nodes.csv"], "edges.csv": "target,since,source\nb,1999,a\nc,,a\nc,x,b\nd,y,c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			d, stats := converted(t, putFile(t, files), Options{Note: func(s string) { notes = append(notes, s) }})
			sameGraph(t, d.Graph, handGraph(t, 5, false))
			if stats.Format != "csv" || d.Graph.EdgeWeights != nil || d.SplitSets() != 1 {
				t.Errorf("format %s, weights %v, %d sets of splits", stats.Format, d.Graph.EdgeWeights, d.SplitSets())
			}
			if want := []int32{2, 0, 2, 1, -1}; !slices.Equal(d.Labels, want) || !slices.Equal(d.Meta.ClassNames, []string{"blue", "green", "red"}) {
				t.Errorf("labels %v, want %v; names %q", d.Labels, want, d.Meta.ClassNames)
			}
			if want := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, -9.5}; d.FeatureDim() != 2 || !slices.Equal(d.Features.F32, want) {
				t.Errorf("features %v, want %v", d.Features.F32, want)
			}
			if want := map[string][]int32{"train": {0, 1}, "val": {2}, "test": {3}}; !maps.EqualFunc(d.Splits, want, slices.Equal) {
				t.Errorf("splits %v, want %v", d.Splits, want)
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, "height, width") || !strings.Contains(all, "blue, green, red") || strings.Contains(all, "since") != (name == "columns turned") {
				t.Errorf("notes %q", notes)
			}
			d, _ = converted(t, putFile(t, files), Options{Undirected: true, Format: "csv"})
			sameGraph(t, d.Graph, handGraph(t, 5, true))
		})
	}
}

// Optional columns may be missing, and labels may be numbers.
func TestCSVColumns(t *testing.T) {
	d, _ := converted(t, putFile(t, map[string]string{"nodes.csv": "id\n10\n20\n7\n", "edges.csv": "src,dst,w\n10,20,0.5\n20,7,2\n10,20,1\n"}), Options{})
	if d.Nodes() != 3 || d.Labels != nil || d.Features != nil || !slices.Equal(d.Graph.EdgeWeights, []float32{1.5, 2}) || len(d.Splits) != 0 {
		t.Errorf("%s: labels %v, features %v, weights %v, splits %v", d, d.Labels, d.Features, d.Graph.EdgeWeights, d.Splits)
	}
	// Class ids, unknown ones included, stay as they are; without a split column, random splits are
	// drawn.
	nodes, edges := "id,y,x\n", "source,target\n"
	for i := range 60 {
		nodes += fmt.Sprintf("n%d,%d.0,%d\n", i, i%3-1, i)
		edges += fmt.Sprintf("n%d,n%d\n", i, (i+1)%60)
	}
	d, _ = converted(t, putFile(t, map[string]string{"nodes.csv": nodes, "edges.csv": edges}), Options{})
	if d.Classes() != 2 || d.Labels[0] != -1 || d.Labels[1] != 0 || d.Labels[2] != 1 || d.Meta.ClassNames != nil || d.SplitSets() != 10 || len(d.Splits["train"]) != 40 {
		t.Errorf("%s: labels %v…, names %v, %d sets, %d to train on", d, d.Labels[:3], d.Meta.ClassNames, d.SplitSets(), len(d.Splits["train"]))
	}
	// --features replaces the feature columns, which may then hold words.
	files := cSVFiles()
	files["nodes.csv"] = strings.ReplaceAll(files["nodes.csv"], "height", "name")
	files["nodes.csv"] = strings.ReplaceAll(files["nodes.csv"], "a,0,", "a,Anna,")
	if d, _ = converted(t, putFile(t, files), Options{Features: "random:3"}); d.FeatureDim() != 3 {
		t.Errorf("%d features, want 3", d.FeatureDim())
	}
}

// What a guess has done is in the notices, in the metadata, and can be overruled.
func TestCSVGuesses(t *testing.T) {
	nodes := "Unnamed: 0;id;class;train_mask;test_mask;height\n"
	for i := range 8 {
		nodes += fmt.Sprintf("%d;n%d;%s;%d;%d;%d,5\n", i, i, []string{"unknown", "1", "2", "1"}[i%4], i%2, (i+1)%2, i)
	}
	files := map[string]string{"nodes.csv": nodes, "edges.csv": "a;b;weight\nn0;n1;0,5\nn1;n2;1,5\n"}
	d, stats := converted(t, putFile(t, files), Options{})
	if !slices.Equal(d.Meta.FeatureNames, []string{"height"}) || !slices.Equal(d.Features.F32, []float32{.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5}) {
		t.Errorf("the features %v are %v", d.Meta.FeatureNames, d.Features.F32)
	}
	if !slices.Equal(d.Labels, []int32{-1, 0, 1, 0, -1, 0, 1, 0}) || !slices.Equal(d.Meta.ClassNames, []string{"1", "2"}) || len(d.Splits["train"]) != 4 || len(d.Splits["test"]) != 4 {
		t.Errorf("the labels are %v of %v, the splits %v", d.Labels, d.Meta.ClassNames, d.Splits)
	}
	if !slices.Equal(d.Graph.EdgeWeights, []float32{.5, 1.5}) {
		t.Errorf("the weights are %v", d.Graph.EdgeWeights)
	}
	kinds := map[notice.Kind]int{}
	for _, n := range d.Meta.Notices {
		kinds[n.Kind]++
	}
	if kinds[notice.Guessed] < 6 || kinds[notice.Dropped] != 1 || kinds[notice.Renumbered] != 1 || len(stats.Notices) != len(d.Meta.Notices) {
		t.Errorf("the notices are %v", d.Meta.Notices)
	}
	d, _ = converted(t, putFile(t, files), Options{Present: []string{"unknown"}, Kinds: map[string]columns.Kind{"nodes.train_mask": columns.Number, "test_mask": columns.Skip}})
	if !slices.Equal(d.Meta.FeatureNames, []string{"train_mask", "height"}) || !slices.Equal(d.Meta.ClassNames, []string{"1", "2", "unknown"}) {
		t.Errorf("as given: the features %v, the classes %v", d.Meta.FeatureNames, d.Meta.ClassNames)
	}
	refused(t, putFile(t, files), Options{Kinds: map[string]columns.Kind{"tall": columns.Number}}, `"tall"`, "no table has")
	refused(t, putFile(t, files), Options{Kinds: map[string]columns.Kind{"height": columns.Text}}, "--format tables")
	amounts := "id,label\n"
	for i := range 400 {
		amounts += fmt.Sprintf("n%d,%d\n", i, i*37%200)
	}
	files["nodes.csv"] = amounts
	_, err := Convert(t.Context(), putFile(t, files), t.TempDir()+"/out", Options{})
	var many *columns.ManyClassesError
	if !errors.As(err, &many) || many.Classes != 200 {
		t.Errorf("200 classes of 400 labels: %v", err)
	}
	if d, _ := converted(t, putFile(t, map[string]string{"nodes.csv": amounts, "edges.csv": "source,target\nn0,n1\n"}), Options{ManyClasses: true}); d.Classes() != 200 {
		t.Errorf("as given: %d classes", d.Classes())
	}
}

func TestHostileCSV(t *testing.T) {
	for name, tc := range map[string]struct {
		file, text string
		words      []string
	}{
		"empty":                {"nodes.csv", "", []string{"nodes.csv", "empty"}},
		"first line alone":     {"nodes.csv", "id,x\n", []string{"nodes.csv", "no nodes"}},
		"no names":             {"nodes.csv", "1,2,3\n", []string{"line 1", `no column is named "id"`, `"1", "2", "3"`}},
		"a name is missing":    {"nodes.csv", "id,,x\na,b,1\n", []string{"line 1", "column 2"}},
		"a name twice":         {"nodes.csv", "id,x,X\n", []string{"line 1", `"x"`}},
		"id twice":             {"nodes.csv", "id\na\nb\na\n", []string{"line 4", `"a"`, "is that of node 0 already"}},
		"no id":                {"nodes.csv", "id,x\na,1\n,2\n", []string{"line 3", "no id"}},
		"column missing":       {"nodes.csv", "id,x\na,1\nb\n", []string{"line 3", "1 columns", "names 2"}},
		"feature is a word":    {"nodes.csv", "id,x\na,1\nb,tall\n", []string{"line 3", `"x"`, `"tall"`, "leave the column out"}},
		"feature is missing":   {"nodes.csv", "id,x\na,1\nb,\n", []string{"line 3", `"x"`, `""`, "fill it in"}},
		"feature is NaN":       {"nodes.csv", "id,x\na,1\nb,nan\n", []string{"line 3", "finite"}},
		"feature is too large": {"nodes.csv", "id,x\na,1e39\n", []string{"line 2", "finite"}},
		"no label at all":      {"nodes.csv", "id,label\na,\nb,\n", []string{`"label"`, "unknown"}},
		"label is not a class": {"nodes.csv", "id,label\na,0.5\nb,1\n", []string{`"label"`, "fractions", "such as ranges"}},
		"-1 and one other":     {"nodes.csv", "id,label\na,-1\nb,1\n", []string{`"label"`, "--present -1"}},
		"split":                {"nodes.csv", "id,split\na,train\nb,maybe\n", []string{"line 3", `"maybe"`}},
		"open quote":           {"nodes.csv", "id\n\"a\nb\n", []string{"line 3", "quote"}},
		"quote inside":         {"nodes.csv", "id\na\"b\n", []string{"line 2", "column 2", "quote"}},
		"record without end":   {"nodes.csv", "id\na\n\"" + strings.Repeat("b\n", 1<<20), []string{"after line 2", "1.0 MiB", "quote"}},
		"binary":               {"nodes.csv", "\x00\x01\x02", []string{"nodes.csv"}},
		"bad UTF-8 labels":     {"nodes.csv", "id,label\na,\xff\nb,x\n", []string{"UTF-8"}},

		"no edges":        {"edges.csv", "source,target\n", []string{"edges.csv", "no edges"}},
		"ends not named":  {"edges.csv", "a,b\nb,c\n", []string{"edges.csv", "line 1", "a first line source,target", `the id "a"`}},
		"end unknown":     {"edges.csv", "source,target\na,b\na,z\n", []string{"edges.csv", "line 3", `target "z"`, "no node"}},
		"source unknown":  {"edges.csv", "source,target\n,b\n", []string{"line 2", `source ""`}},
		"weight":          {"edges.csv", "source,target,weight\na,b,heavy\n", []string{"line 2", `"heavy"`, "weight"}},
		"negative weight": {"edges.csv", "source,target,weight\na,b,-1\n", []string{"line 2", `"-1"`}},
		"xz":              {"edges.csv", "\xfd7zXZ\x00aaaa", []string{"edges.csv", "begins like an xz file"}},
		"cut off":         {"edges.csv", gz("source,target\n" + strings.Repeat("a,b\n", 50000))[:150], []string{"edges.csv", "cut off"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := cSVFiles()
			if tc.file == "nodes.csv" { // a valid edges.csv cannot hide the error in nodes.csv
				files["edges.csv"] = "source,target\na,b\n"
			}
			files[tc.file] = tc.text
			refused(t, putFile(t, files), Options{}, tc.words...)
		})
	}
	many := "id,label\n"
	for i := range tabular.MaxClassNames + 1 {
		many += fmt.Sprintf("%d,word%d\n", i, i)
	}
	refused(t, putFile(t, map[string]string{"nodes.csv": many, "edges.csv": "source,target\n0,1\n"}), Options{}, "10001 classes", "--many-classes")
	refused(t, putFile(t, map[string]string{"nodes.csv": "id\na\n", "other.csv": "x"}), Options{Format: "csv"}, "edges.csv is missing", "the edges")
}
