package convert

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/internal/testneed"
)

// triplesOf lists the triples of a split by name.
func triplesOf(t *testing.T, d *dataset.Dataset, split string) []string {
	t.Helper()
	names, err := dataset.ReadNames(d.Dir(), dataset.EntityNames)
	if err != nil || len(names) != d.Nodes() {
		t.Fatalf("%d names of %d entities (%v)", len(names), d.Nodes(), err)
	}
	src, dst, kinds, err := d.EdgesOf(split)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range src {
		all = append(all, names[src[i]]+"\t"+d.Schema().Relations[kinds[i]].Name+"\t"+names[dst[i]])
	}
	slices.Sort(all)
	return all
}

func TestTriples(t *testing.T) {
	src := putFile(t, map[string]string{
		"train.txt": "b\tknows\ta\nb\t/x.y/knows:well\ta\r\na\tknows\ta\nb\tknows\ta\n\n",
		"valid.txt": "c\tlikes it\tb\n",
		"test.txt":  "b\tknows\ta\na\tknows\tc",
		"notes.md":  "nothing",
	})
	var notes []string
	d, stats := typedConverted(t, src, Options{Note: func(s string) { notes = append(notes, s) }})
	if stats.Format != "triples" || stats.Relations != 3 || d.Nodes() != 3 || d.Edges() != 6 || d.Meta.Undirected {
		t.Errorf("got %s, %+v", d, stats)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
	// PyG's numbers: in the order of the files and lines.
	if names, err := dataset.ReadNames(d.Dir(), dataset.EntityNames); err != nil || !slices.Equal(names, []string{"b", "a", "c"}) {
		t.Errorf("the entities are %v (%v)", names, err)
	}
	if got := fmt.Sprint(d.Schema().Relations); got != "[entity:knows:entity entity:/x.y/knows:well:entity entity:likes it:entity]" {
		t.Errorf("the relations are %s", got)
	}
	for split, want := range map[string][]string{
		"train": {"a\tknows\ta", "b\t/x.y/knows:well\ta", "b\tknows\ta"},
		"val":   {"c\tlikes it\tb"},
		"test":  {"a\tknows\tc", "b\tknows\ta"}, // the triple that train.txt has too is an edge of each
	} {
		if got := triplesOf(t, d, split); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", split, got, want)
		}
	}
	if all := strings.Join(notes, "\n"); !strings.Contains(all, "1 of the triples repeat") || !strings.Contains(all, "notes.md") {
		t.Errorf("the notes are %q", all)
	}
}

func TestTriplesWithoutTest(t *testing.T) {
	d, _ := typedConverted(t, putFile(t, map[string]string{"train.tsv": "a\tr\tb\n", "dev.tsv": "b\tr\ta\n"}), Options{})
	if len(d.EdgeSplits) != 2 || len(d.EdgeSplits["val"]) != 1 {
		t.Errorf("the splits are %v", d.EdgeSplits)
	}
}

func TestTriplesRefuses(t *testing.T) {
	good := "a\tr\tb\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		o     Options
		want  []string
	}{
		{"two fields", map[string]string{"train.txt": good + "a\tb\n", "test.txt": good}, Options{}, []string{"train.txt", "line 2 has 2 fields"}},
		{"four fields", map[string]string{"train.txt": good, "test.txt": "a\tr\tb\t1\n"}, Options{}, []string{"test.txt", "line 1 has 4 fields"}},
		{"an empty name", map[string]string{"train.txt": good + "\tr\tb\n", "test.txt": good}, Options{}, []string{"line 2", "not empty"}},
		{"an empty file", map[string]string{"train.txt": good, "test.txt": ""}, Options{}, []string{"test.txt", "no triples"}},
		{"no training", map[string]string{"test.txt": good}, Options{Format: "triples"}, []string{"train.txt is missing"}},
		{"a long line", map[string]string{"train.txt": good + strings.Repeat("x", bufio.MaxScanTokenSize+1), "test.txt": good}, Options{}, []string{"line 2 has more than 65536 bytes"}},
		{"a control character", map[string]string{"train.txt": good + "a\tr\x01\tb\n", "test.txt": good}, Options{}, []string{"control character"}},
		{"undirected", map[string]string{"train.txt": good, "test.txt": good}, Options{Undirected: true}, []string{"Graph.WithReverses"}},
		{"largest component", map[string]string{"train.txt": good, "test.txt": good}, Options{LargestComponent: true}, []string{"--largest-component"}},
	} {
		t.Run(c.name, func(t *testing.T) { typedRefused(t, putFile(t, c.files), c.o, c.want...) })
	}
	var many strings.Builder
	for i := range 65_536 {
		fmt.Fprintf(&many, "a\tr%d\tb\n", i)
	}
	typedRefused(t, putFile(t, map[string]string{"train.txt": many.String(), "test.txt": good}), Options{}, "line 65536 is one too many", "65535 relations")
}

// The published knowledge graphs have the sizes that the literature gives, and each split has exactly the
// triples of its file.
func TestRealTriples(t *testing.T) {
	for _, c := range []struct {
		name                string
		entities, relations int
		train, val, test    int
	}{
		{"umls", 135, 46, 5216, 652, 661},
		{"kinship", 104, 25, 8544, 1068, 1074},
		{"wn18rr", 40_943, 11, 86_835, 3034, 3134},
		{"fb15k-237", 14_541, 237, 272_115, 17_535, 20_466},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.train > 10_000 {
				testneed.NotShort(t, "it converts a knowledge graph of 90,000 triples or more")
			}
			src := testneed.RealData(t, "kg/"+c.name)
			d, _ := typedConverted(t, src, Options{})
			got := []int{d.Nodes(), len(d.Schema().Relations), len(d.EdgeSplits["train"]), len(d.EdgeSplits["val"]), len(d.EdgeSplits["test"])}
			if want := []int{c.entities, c.relations, c.train, c.val, c.test}; !slices.Equal(got, want) {
				t.Errorf("entities, relations and triples are %v, want %v", got, want)
			}
			for split, file := range map[string]string{"train": "train.txt", "val": "valid.txt", "test": "test.txt"} {
				text, err := os.ReadFile(filepath.Join(src, file))
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r", ""), "\n"), "\n")
				slices.Sort(want)
				if got := triplesOf(t, d, split); !slices.Equal(got, slices.Compact(want)) {
					t.Errorf("%s has %d triples, not those of %s", split, len(got), file)
				}
			}
		})
	}
}

// Files of triples as other programs write them: names in the first line, quotes, commas, blanks around words.
func TestTriplesLayouts(t *testing.T) {
	body, valid, test := "a\tr\tb\nb\tr\tc\nc\tr\td\nd\tr\ta\na\tq\tc\n", "b\tq\td\n", "a\tr\td\n"
	for _, c := range []struct {
		name, train, valid, test string
		o                        Options
		said                     string
	}{
		{"plain", body, valid, test, Options{}, ""},
		{"names", "head\trelation\ttail\n" + body, "head\trelation\ttail\n" + valid, test, Options{}, "the first line names the columns"},
		{"other names", "Subject\tPredicate\tObject\n" + body, valid, test, Options{}, "--header no"},
		{"names in another order", "h\tt\tr\n" + turned(body), valid, test, Options{}, "columns 1, 3 and 2"},
		{"byte order mark", "\xef\xbb\xbf" + body, valid, test, Options{}, ""},
		{"blanks", strings.ReplaceAll(body, "q", " q "), valid, test, Options{}, "blanks around words"},
		{"quotes", `"` + strings.NewReplacer("\t", "\"\t\"", "\n", "\"\n\"").Replace(strings.TrimSpace(body)) + "\"\n", valid, test, Options{}, "quotes around words"},
		{"commas", strings.ReplaceAll(body, "\t", ","), valid, test, Options{}, "commas separate"},
		{"blanks between", strings.ReplaceAll(body, "\t", " "), valid, test, Options{}, "blanks separate"},
		{"another order, as given", turned(body), turned(valid), turned(test), Options{Kinds: map[string]columns.Kind{"2": columns.Target, "3": columns.Relation}}, "columns 1, 3 and 2"},
		{"a score, as given", strings.ReplaceAll(body, "\n", "\t0.5\n"), "b\tq\td\t1\n", "a\tr\td\t1\n", Options{Kinds: map[string]columns.Kind{"4": columns.Skip}}, "column 4 is not read"},
		{"a line of words that are names", "head\trelation\ttail\n" + body, valid, test, Options{Header: "no"}, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := ""
			c.o.Note = func(s string) { said += s + "\n" }
			d, _ := typedConverted(t, putFile(t, map[string]string{"train.txt": c.train, "valid.txt": c.valid, "test.txt": c.test}), c.o)
			nodes, relations, edges := 4, 2, int64(7)
			if c.said == "-" {
				nodes, relations, edges, c.said = 6, 3, 8, ""
			}
			if d.Nodes() != nodes || len(d.Schema().Relations) != relations || d.Edges() != edges {
				t.Errorf("%d entities, %d relations and %d triples", d.Nodes(), len(d.Schema().Relations), d.Edges())
			}
			if !strings.Contains(said, c.said) || c.said == "" && said != "" && !strings.Contains(said, "no features") {
				t.Errorf("said %q, want %q", said, c.said)
			}
		})
	}
	typedRefused(t, putFile(t, map[string]string{"train.txt": turned(body), "valid.txt": turned(valid), "test.txt": turned(test)}), Options{}, "head, tail and relation", "--kinds 2=target,3=relation")
	typedRefused(t, putFile(t, map[string]string{"train.txt": strings.ReplaceAll(body, "\n", "\t0.5\n"), "test.txt": test}), Options{}, "4 fields", "--kinds 4=skip")
}

// turned exchanges relation and tail of each triple.
func turned(text string) string {
	var out string
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		out += f[0] + "\t" + f[2] + "\t" + f[1] + "\n"
	}
	return out
}
