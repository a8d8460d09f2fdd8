package convert

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = wordnetReader{}

// wordnetReader reads the lexical database WordNet from its files data.noun, data.verb, data.adj and
// data.adv, as wndb(5WN) describes them.
//
//   - The node type synset has the synsets, in the order of these files and of their lines; its features
//     mark the words of the gloss (definition and examples): the words of at least [GlossCount] glosses,
//     in alphabetical order. Its classes are the 45 lexicographer files.
//   - The node type lemma has the words of the synsets in lower case, without the marker of an
//     adjective's position such as "(p)", in the order in which they first occur. It has no features.
//   - Each of the 26 kinds of pointers is a relation synset:NAME:synset. A pointer between two words of
//     synsets joins the synsets. The relation lemma:means:synset joins a word to its meanings.
//
// A random 60 % of the synsets are the split "train", 20 % each "val" and "test".
//
// Source: G. A. Miller, WordNet: a lexical database for English, Communications of the ACM 38(11),
// 1995, doi:10.1145/219717.219748.
type wordnetReader struct{}

// Files of names in the directory of a converted WordNet: a synset by its first word, part of speech
// and offset, such as "dog.n.02084071"; lemmas; and the words of the columns of the features.
const (
	SynsetNames = "names.synset.txt"
	LemmaNames  = "names.lemma.txt"
	GlossWords  = "features.synset.txt"
)

// GlossCount is the number of glosses in which a word occurs at least, to be a feature.
const GlossCount = 10

// wordnetFiles are the files of the parts of speech, in the order of ids.
var wordnetFiles = []struct {
	name string
	pos  byte // in pointers
}{{"data.noun", 'n'}, {"data.verb", 'v'}, {"data.adj", 'a'}, {"data.adv", 'r'}}

// pointers are the symbols of wninput(5WN) and the relations' names, in the order of relations.
var pointers = []struct{ symbol, name string }{
	{"@", "hypernym"},
	{"@i", "instance_hypernym"},
	{"~", "hyponym"},
	{"~i", "instance_hyponym"},
	{"#m", "member_holonym"},
	{"#s", "substance_holonym"},
	{"#p", "part_holonym"},
	{"%m", "member_meronym"},
	{"%s", "substance_meronym"},
	{"%p", "part_meronym"},
	{"!", "antonym"},
	{"=", "attribute"},
	{"+", "derivationally_related"},
	{"*", "entailment"},
	{">", "cause"},
	{"^", "also_see"},
	{"$", "verb_group"},
	{"&", "similar_to"},
	{"<", "participle"},
	{`\`, "pertainym"},
	{";c", "topic_domain"},
	{"-c", "topic_member"},
	{";r", "region_domain"},
	{"-r", "region_member"},
	{";u", "usage_domain"},
	{"-u", "usage_member"},
}

const meansName = "means"

// lexicographerFiles are those of lexnames(5WN).
var lexicographerFiles = []string{
	"adj.all", "adj.pert", "adv.all", "noun.Tops", "noun.act", "noun.animal", "noun.artifact", "noun.attribute", "noun.body",
	"noun.cognition", "noun.communication", "noun.event", "noun.feeling", "noun.food", "noun.group", "noun.location",
	"noun.motive", "noun.object", "noun.person", "noun.phenomenon", "noun.plant", "noun.possession", "noun.process",
	"noun.quantity", "noun.relation", "noun.shape", "noun.state", "noun.substance", "noun.time", "verb.body", "verb.change",
	"verb.cognition", "verb.communication", "verb.competition", "verb.consumption", "verb.contact", "verb.creation",
	"verb.emotion", "verb.motion", "verb.perception", "verb.possession", "verb.social", "verb.stative", "verb.weather", "adj.ppl",
}

func (wordnetReader) Name() string { return "wordnet" }

func (wordnetReader) About() string {
	return "WordNet: data.noun, data.verb, data.adj and data.adv; synsets and lemmas, 27 relations, 45 classes"
}

// Folder implements [folderReader].
func (wordnetReader) Folder() bool { return true }

func (wordnetReader) detect(s *source) bool {
	for _, f := range wordnetFiles {
		if !s.Has(f.name) {
			return false
		}
	}
	return true
}

// synsetKey is how a pointer names a synset.
type synsetKey struct {
	pos    byte
	offset int32
}

// pointer is an edge whose destination's id is not known yet.
type pointer struct {
	src  int32
	kind uint16
	dst  synsetKey
	line int32
	file uint8
}

// wordnet is what the files have.
type wordnet struct {
	ids      map[synsetKey]int32
	names    []string
	labels   []int32
	pointers []pointer
	lemmas   numbering
	// The meanings of words: lemma meanOf[i] means synset means[i].
	meanOf, means []int32
	// The different words of the gloss of synset v are gloss[glossAt[v]:glossAt[v+1]], numbered by words.
	words   numbering
	gloss   []int32
	glossAt []int64
	counts  []int32 // glosses that have the word
}

func (wordnetReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	switch {
	case o.Undirected:
		return nil, tabular.Errorf("%s: the reverse of an edge is of another relation; convert with --reverses instead of --undirected", s.Path)
	case o.LargestComponent || o.Relabel || o.EdgeFeatures != "" || o.EdgeTimes != "" || o.Features != "":
		return nil, tabular.Errorf("%s: the format wordnet has none of --largest-component, --relabel, --features, --edge-features and --edge-times", s.Path)
	}
	w := &wordnet{ids: map[synsetKey]int32{}, lemmas: newNumbering(), words: newNumbering(), glossAt: []int64{0}}
	for file := range wordnetFiles {
		if err := w.read(ctx, s, file); err != nil {
			return nil, err
		}
	}
	return w.dataset(s, o)
}

// maxWordnetLine is the length of a line, in bytes; the longest of WordNet 3.0 has 13,000.
const maxWordnetLine = 1 << 20

func (w *wordnet) read(ctx context.Context, s *source, file int) error {
	name := wordnetFiles[file].name
	f, err := s.Open(name, "the synsets of a part of speech; WordNet has data.noun, data.verb, data.adj and data.adv")
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxWordnetLine)
	number, before := 0, len(w.names)
	for lines.Scan() {
		number++
		if number%(1<<12) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line := lines.Bytes()
		if len(line) == 0 || line[0] == ' ' { // the licence
			continue
		}
		if err := w.synset(line, file, number); err != nil {
			return wrong(s, name, "line %d: %w", number, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return wrong(s, name, "line %d has more than %d bytes", number+1, maxWordnetLine)
	case err != nil:
		return err
	case len(w.names) == before:
		return wrong(s, name, "it has no synsets")
	}
	return nil
}

// fields takes the words of a line one after another.
type fields struct {
	rest []byte
	err  error
}

func (f *fields) next(what string) []byte {
	if f.err != nil {
		return nil
	}
	f.rest = bytes.TrimLeft(f.rest, " ")
	word, rest, _ := bytes.Cut(f.rest, []byte{' '})
	if f.rest = rest; len(word) == 0 {
		f.err = fmt.Errorf("it ends where %s should be", what)
	}
	return word
}

// number takes a number of the given base between 0 and most.
func (f *fields) number(what string, base, most int) int {
	word := f.next(what)
	if f.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(string(word), base, 31)
	if err != nil || int(n) > most {
		f.err = fmt.Errorf("%s is %q; it must be a whole number of base %d, at most %d", what, shown(word), base, most)
	}
	return int(n)
}

// shown shortens what an error quotes.
func shown(word []byte) string { return string(word[:min(len(word), 40)]) }

// synset reads a line: offset, lexicographer file, part of speech, words, pointers, frames of verbs, and
// the gloss.
func (w *wordnet) synset(line []byte, file, number int) error {
	data, gloss, found := bytes.Cut(line, []byte("|"))
	if !found {
		return errors.New("it has no gloss, which follows the character |")
	}
	f := &fields{rest: data}
	pos := wordnetFiles[file].pos
	offset := f.number("the synset's offset", 10, 1<<31-1)
	lex := f.number("the lexicographer file", 10, len(lexicographerFiles)-1)
	kind := f.next("the part of speech")
	if f.err == nil && (len(kind) != 1 || kind[0] != pos && (kind[0] != 's' || pos != 'a')) {
		return fmt.Errorf("the part of speech is %q; in this file it is %c", shown(kind), pos)
	}
	id := int32(len(w.names))
	first := ""
	words := f.number("the number of words", 16, 255)
	if f.err == nil && words == 0 {
		return errors.New("the synset has no words; it has at least one")
	}
	for range words {
		word := f.next("a word")
		f.number("a word's number in its lexicographer file", 16, 255)
		if f.err != nil {
			return f.err
		}
		word = bytes.ToLower(word)
		if at := bytes.IndexByte(word, '('); at > 0 && pos == 'a' && word[len(word)-1] == ')' {
			word = word[:at]
		}
		if first == "" {
			first = string(word)
		}
		w.meanOf, w.means = append(w.meanOf, int32(w.lemmas.number(word))), append(w.means, id)
	}
	for range f.number("the number of pointers", 10, 999) {
		symbol := f.next("a pointer's symbol")
		to := f.number("the offset of a pointer's synset", 10, 1<<31-1)
		part := f.next("the part of speech of a pointer's synset")
		f.next("the words of a pointer")
		if f.err != nil {
			return f.err
		}
		at := slices.IndexFunc(pointers, func(p struct{ symbol, name string }) bool { return p.symbol == string(symbol) })
		if at < 0 {
			return fmt.Errorf("the pointer symbol %q is none of the 26 of wninput(5WN)", shown(symbol))
		}
		key := synsetKey{part[0], int32(to)}
		if key.pos == 's' {
			key.pos = 'a'
		}
		w.pointers = append(w.pointers, pointer{src: id, kind: uint16(at), dst: key, line: int32(number), file: uint8(file)})
	}
	if f.err != nil {
		return f.err
	}
	key := synsetKey{pos, int32(offset)}
	if _, twice := w.ids[key]; twice {
		return fmt.Errorf("the offset %08d is that of an earlier synset", offset)
	}
	if len(w.names) >= MaxNodes-len(w.lemmas.names) || len(w.pointers)+len(w.means) > 1<<31-2 {
		return fmt.Errorf("it is one too many: a graph has at most %d nodes and edges", MaxNodes)
	}
	w.ids[key] = id
	w.names = append(w.names, fmt.Sprintf("%s.%c.%08d", first, pos, offset))
	w.labels = append(w.labels, int32(lex))
	w.addGloss(gloss)
	return nil
}

// addGloss adds the different words of a gloss, in lower case: runs of at least two letters.
func (w *wordnet) addGloss(text []byte) {
	from := len(w.gloss)
	letter := func(c byte) bool { return 'a' <= c && c <= 'z' }
	text = bytes.ToLower(text)
	for i := 0; i < len(text); {
		j := i
		for j < len(text) && letter(text[j]) {
			j++
		}
		if j-i > 1 {
			w.gloss = append(w.gloss, int32(w.words.number(text[i:j])))
		}
		i = max(j, i+1)
	}
	own := w.gloss[from:]
	slices.Sort(own)
	own = slices.Compact(own)
	w.gloss = w.gloss[:from+len(own)]
	w.glossAt = append(w.glossAt, int64(len(w.gloss)))
	w.counts = append(w.counts, make([]int32, len(w.words.names)-len(w.counts))...)
	for _, c := range own {
		w.counts[c]++
	}
}

// features returns the glosses as rows of columns, and the words of the columns.
func (w *wordnet) features() (*dataset.Sparse, []string) {
	var names []string
	for i, n := range w.counts {
		if n >= GlossCount {
			names = append(names, w.words.names[i])
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names)
	column := make([]int32, len(w.counts)) // of a word; -1: rare
	for i, n := range w.counts {
		column[i] = -1
		if n >= GlossCount {
			at, _ := slices.BinarySearch(names, w.words.names[i])
			column[i] = int32(at)
		}
	}
	x := &dataset.Sparse{Rows: len(w.names), Cols: len(names), Indptr: make([]int64, 1, len(w.names)+1)}
	for v := range w.names {
		from := len(x.Indices)
		for _, word := range w.gloss[w.glossAt[v]:w.glossAt[v+1]] {
			if c := column[word]; c >= 0 {
				x.Indices = append(x.Indices, c)
			}
		}
		slices.Sort(x.Indices[from:])
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
	return x, names
}

// splitKey makes the draws of splits independent of those of a run with the same seed.
const splitKey = 0x776f72646e657421

func (w *wordnet) dataset(s *source, o Options) (*dataset.Dataset, error) {
	synsets := len(w.names)
	schema := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "synset", Count: synsets}, {Name: "lemma", Count: len(w.lemmas.names)}}}
	for _, p := range pointers {
		schema.Relations = append(schema.Relations, graphops.Relation{Src: "synset", Name: p.name, Dst: "synset"})
	}
	schema.Relations = append(schema.Relations, graphops.Relation{Src: "lemma", Name: meansName, Dst: "synset"})
	edges := len(w.pointers) + len(w.means)
	src, dst, kinds := make([]int32, 0, edges), make([]int32, 0, edges), make([]uint16, 0, edges)
	for _, p := range w.pointers {
		to, ok := w.ids[p.dst]
		if !ok {
			return nil, wrong(s, wordnetFiles[p.file].name, "line %d: a pointer leads to the synset %08d of the part of speech %q, which no line has", p.line, p.dst.offset, string(p.dst.pos))
		}
		src, dst, kinds = append(src, p.src), append(dst, to), append(kinds, p.kind)
	}
	for i, v := range w.means {
		src, dst, kinds = append(src, int32(synsets)+w.meanOf[i]), append(dst, v), append(kinds, uint16(len(pointers)))
	}
	w.pointers, w.ids = nil, nil
	g, err := graphops.FromEdgesWith(schema.NumNodes(), src, dst, graphops.EdgeData{Types: kinds}, graphops.BuildOptions{Threads: o.Threads})
	if err == nil {
		g, err = g.WithTypes(schema, g.EdgeTypes)
	}
	if err != nil {
		return nil, tabular.Errorf("reading %s: %w", s.Path, err)
	}
	if more := int64(edges) - g.NumEdges(); more > 0 {
		o.said.Tell("%s: %d pointers join the same two synsets as another one of their kind, by other words, and are dropped", s.Path, more)
	}
	d := &dataset.Dataset{
		Graph: g, Labels: append(w.labels, slices.Repeat([]int32{-1}, len(w.lemmas.names))...), Splits: splitNodes(synsets, o.Seed),
		Meta: dataset.Metadata{
			Name: "wordnet", NumClasses: len(lexicographerFiles), ClassNames: lexicographerFiles, Seed: o.Seed,
			NodeTypes: []dataset.NodeType{{Name: "synset", NumClasses: len(lexicographerFiles), ClassNames: lexicographerFiles}, {Name: "lemma"}},
			Source:    fmt.Sprintf("WordNet; words of at least %d glosses as features, random splits of 60, 20 and 20 %% with seed %d", GlossCount, o.Seed),
			Licence:   "WordNet-3.0",
			Citation:  "G. A. Miller, WordNet: a lexical database for English, Communications of the ACM 38(11), 1995, doi:10.1145/219717.219748",
		},
	}
	if x, words := w.features(); x != nil {
		d.NodeFeatures = []dataset.NodeFeatures{{Sparse: x}, {}}
		s.Keep(GlossWords, words)
	}
	s.Keep(SynsetNames, w.names)
	s.Keep(LemmaNames, w.lemmas.names)
	return d, nil
}

// splitNodes divides the nodes 0 to n-1 at random: 60 % train, 20 % val, the others test.
func splitNodes(n int, seed uint64) map[string][]int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	philox.Permute(seed^splitKey, 0, philox.C3(philox.User, 0, 0), order)
	a, b := n*6/10, n*8/10
	splits := map[string][]int32{"train": order[:a:a], "val": order[a:b:b], "test": order[b:]}
	for _, ids := range splits {
		slices.Sort(ids)
	}
	return splits
}
