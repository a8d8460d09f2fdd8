package convert

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// small has two nouns, a verb, a satellite adjective and an adverb.
func smallWordnet() map[string]string {
	return map[string]string{
		"data.noun": "  1 the licence | of it\n" +
			"00000010 03 n 02 Entity 0 thing 1 002 ~ 00000020 n 0000 + 00000010 v 0102 | that which exists  \n" +
			"00000020 05 n 01 dog 0 001 @ 00000010 n 0000 | a domestic animal; \"the dog barked\"  \n",
		"data.verb": "00000010 29 v 01 exist 0 001 + 00000010 n 0201 01 + 02 00 | have being  \n",
		"data.adj":  "00000010 00 s 0b able(p) 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 thing 0 002 & 00000010 s 0000 ! 00000010 r 0101 | having means  \n",
		"data.adv":  "00000010 02 r 01 ably 0 001 \\ 00000010 a 0101 | with means  \r\n",
	}
}

func TestWordnet(t *testing.T) {
	d, stats := typedConverted(t, putFile(t, smallWordnet()), Options{Name: "little"})
	if stats.Format != "wordnet" || d.Name() != "little" || d.Meta.NumClasses != 45 || d.ClassesOf(0) != 45 || d.ClassesOf(1) != 0 || stats.Relations != 27 {
		t.Errorf("got %s, %+v", d, stats)
	}
	if len(d.Meta.Notices) != 0 { // its classes have names, and most do not occur in it
		t.Errorf("the notices are %v", d.Meta.Notices)
	}
	synsets, err := dataset.ReadNames(d.Dir(), SynsetNames)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"entity.n.00000010", "dog.n.00000020", "exist.v.00000010", "able.a.00000010", "ably.r.00000010"}; !slices.Equal(synsets, want) {
		t.Errorf("the synsets are %q", synsets)
	}
	lemmas, err := dataset.ReadNames(d.Dir(), LemmaNames)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Fields("entity thing dog exist able b c d e f g h i j ably"); !slices.Equal(lemmas, want) {
		t.Errorf("the lemmas are %q", lemmas)
	}
	if want := []int32{3, 5, 29, 0, 2}; !slices.Equal(d.Labels[:5], want) || slices.Max(d.Labels[5:]) != -1 {
		t.Errorf("the labels are %v", d.Labels)
	}
	names := append(synsets, lemmas...)
	var edges []string
	for v := range d.Nodes() {
		for e := d.Graph.Indptr[v]; e < d.Graph.Indptr[v+1]; e++ {
			if r := d.Schema().Relations[d.Graph.EdgeTypes[e]]; r.Name != "means" || names[d.Graph.Indices[e]] == "thing" {
				edges = append(edges, names[d.Graph.Indices[e]]+" "+r.Name+" "+names[v])
			}
		}
	}
	slices.Sort(edges)
	if want := []string{
		"able.a.00000010 antonym ably.r.00000010", "able.a.00000010 similar_to able.a.00000010", "ably.r.00000010 pertainym able.a.00000010",
		"dog.n.00000020 hypernym entity.n.00000010", "entity.n.00000010 derivationally_related exist.v.00000010",
		"entity.n.00000010 hyponym dog.n.00000020", "exist.v.00000010 derivationally_related entity.n.00000010",
		"thing means able.a.00000010", "thing means entity.n.00000010",
	}; !slices.Equal(edges, want) {
		t.Errorf("the edges are\n%s", strings.Join(edges, "\n"))
	}
	if len(d.Splits["train"]) != 3 || len(d.Splits["val"]) != 1 || len(d.Splits["test"]) != 1 {
		t.Errorf("the splits are %v", d.Splits)
	}
}

// A feature is a word of at least GlossCount glosses, once a gloss.
func TestWordnetGlosses(t *testing.T) {
	files := smallWordnet()
	var nouns strings.Builder
	nouns.WriteString(files["data.noun"])
	for i := range GlossCount - 1 {
		fmt.Fprintf(&nouns, "%08d 05 n 01 dog%d 0 000 | A dog's dog, an ANIMAL\n", 100+i, i)
	}
	files["data.noun"] = nouns.String()
	d, _ := typedConverted(t, putFile(t, files), Options{})
	x := d.FeaturesOf(0).Sparse
	words, err := dataset.ReadNames(d.Dir(), GlossWords)
	if err != nil || !slices.Equal(words, []string{"animal", "dog"}) || x.Cols != 2 || x.Values != nil {
		t.Fatalf("the features are %v of the words %q (%v)", x, words, err)
	}
	for v, want := range [][]int32{{}, {0, 1}, {0, 1}} {
		if cols, _ := x.Row(v); !slices.Equal(cols, want) {
			t.Errorf("synset %d has the words %v, want %v", v, cols, want)
		}
	}
	if d.FeaturesOf(1).Cols() != 0 {
		t.Error("lemmas have features")
	}
}

// Relations can be left out, reversed and joined by loops.
func TestTransform(t *testing.T) {
	src := putFile(t, smallWordnet())
	d, _ := typedConverted(t, src, Options{Transform: Transform(Changes{Without: []string{"hypernyms", "lemma:means:synset"}})})
	if n := len(d.Schema().Relations); n != 22 || d.Edges() != 5 {
		t.Errorf("%d relations with %d edges are left, want 22 with 5", n, d.Edges())
	}
	whole, _ := typedConverted(t, src, Options{})
	d, _ = typedConverted(t, src, Options{Transform: Transform(Changes{Reverses: true, SelfLoops: true})})
	if n := len(d.Schema().Relations); n != 2*27+2 || d.Edges() != 2*whole.Edges()+int64(d.Nodes()) {
		t.Errorf("%d relations with %d edges; without reverses and loops there are 27 with %d", n, d.Edges(), whole.Edges())
	}
	if Transform(Changes{}) != nil {
		t.Error("no changes are a function")
	}
	typedRefused(t, src, Options{Transform: Transform(Changes{Without: []string{"likes"}})}, `no relation "likes"`, "synset:hypernym:synset")
	triples := putFile(t, map[string]string{"train.txt": "a\tr\tb\n", "test.txt": "b\tr\ta\n"})
	typedRefused(t, triples, Options{Transform: Transform(Changes{Reverses: true})}, "splits", "WithReverses")
	untyped := putFile(t, map[string]string{"edges.csv": "0,1\n1,2\n"})
	typedRefused(t, untyped, Options{Transform: Transform(Changes{Reverses: true})}, "no types", "--undirected")
}

func TestWordnetRefuses(t *testing.T) {
	for _, c := range []struct {
		name, file, line string
		want             []string
	}{
		{"no gloss", "data.noun", "00000030 05 n 01 cat 0 000", []string{"data.noun", "line 4", "no gloss"}},
		{"a short line", "data.noun", "00000030 05 n 01 | x", []string{"line 4", "it ends where a word should be"}},
		{"no offset", "data.verb", "x 29 v 01 be 0 000 | x", []string{"data.verb", "line 2", `offset is "x"`}},
		{"another part of speech", "data.verb", "00000030 29 n 01 be 0 000 | x", []string{`part of speech is "n"; in this file it is v`}},
		{"class 45", "data.adv", "00000030 45 r 01 well 0 000 | x", []string{"lexicographer file", "at most 44"}},
		{"no words", "data.adv", "00000030 02 r 00 000 | x", []string{"no words"}},
		{"an unknown pointer", "data.adj", "00000030 00 a 01 wide 0 001 ?? 00000010 a 0000 | x", []string{`symbol "??"`, "26"}},
		{"too few pointers", "data.adj", "00000030 00 a 01 wide 0 002 ! 00000010 a 0000 | x", []string{"it ends where a pointer's symbol should be"}},
		{"a pointer to nothing", "data.adj", "00000030 00 a 01 wide 0 001 ! 00000099 a 0000 | x", []string{"data.adj", "line 2", `synset 00000099 of the part of speech "a"`}},
		{"twice", "data.adv", "00000010 02 r 01 well 0 000 | x", []string{"00000010 is that of an earlier"}},
		{"a long line", "data.adv", "00000030 02 r 01 well 0 000 | " + strings.Repeat("x", maxWordnetLine), []string{"line 2 has more than"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := smallWordnet()
			files[c.file] += c.line + "\n"
			typedRefused(t, putFile(t, files), Options{}, c.want...)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(smallWordnet())) {
		files := smallWordnet()
		delete(files, name)
		typedRefused(t, putFile(t, files), Options{Format: "wordnet"}, name, "is missing")
		files[name] = "  1 a licence alone\n"
		typedRefused(t, putFile(t, files), Options{}, name, "no synsets")
	}
	typedRefused(t, putFile(t, smallWordnet()), Options{Undirected: true}, "--reverses")
	typedRefused(t, putFile(t, smallWordnet()), Options{Relabel: true}, "--relabel")
}

// The sizes are those of WordNet 3.0 (data/README.md of the public data, and wnstats(7WN)).
func TestRealWordnet(t *testing.T) {
	testneed.NotShort(t, "it converts WordNet, of 550,000 edges")
	src := testneed.RealData(t, "hetero/wordnet")
	var notes bytes.Buffer
	d, stats := typedConverted(t, src, Options{Note: func(s string) { fmt.Fprintln(&notes, s) }})
	if d.Schema().Nodes[0].Count != 117_659 || d.Schema().Nodes[1].Count != 147_306 || stats.Relations != 27 || d.ClassesOf(0) != 45 {
		t.Errorf("got %s, %+v", d, stats)
	}
	if !strings.Contains(notes.String(), "13077 pointers") {
		t.Errorf("the notes are %q", notes.String())
	}
	counts := make([]int, len(d.Schema().Relations))
	for _, k := range d.Graph.EdgeTypes {
		counts[k]++
	}
	for name, want := range map[string]int{"hypernym": 89_089, "hyponym": 89_089, "part_meronym": 9097, "similar_to": 21_386, "cause": 220} {
		if r, err := d.Schema().Relation(name); err != nil || counts[r] != want {
			t.Errorf("%d edges of %s, want %d (%v)", counts[r], name, want, err)
		}
	}
	seen := map[int32]bool{}
	for _, y := range d.Labels[:117_659] {
		seen[y] = true
	}
	if len(seen) != 45 || seen[-1] {
		t.Errorf("the synsets have %d classes", len(seen))
	}
	names, err := dataset.ReadNames(d.Dir(), LemmaNames)
	if err != nil || len(names) != d.Schema().Nodes[1].Count {
		t.Errorf("%d names of %d lemmas (%v)", len(names), d.Schema().Nodes[1].Count, err)
	}
}
