package convert

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

// edges holds the edge list that most formats store.
type edges struct {
	nodes int
	src   []int32
	dst   []int32
	w     []float32 // nil: none
	x     *graphops.EdgeFeatures
	times []int64
	// targets [edges, any] are numbers to predict of the edges, or nil, and parts the edges of the splits train, val and test.
	targets *dataset.Matrix
	parts   [3][]int32
	// undirected reports that every edge also stands for its opposite.
	undirected bool
}

// MaxNodes is the largest number of nodes whose ids fit an int32.
const MaxNodes = math.MaxInt32

// spareNodes is how many nodes a header may declare beyond four per edge.
const spareNodes = 1 << 20

// plausible reports whether a header's number of nodes fits the number of edges read: the node
// table takes 8 bytes per node, and an invented number must not allocate memory.
func plausible(nodes, numEdges int64) bool { return nodes <= 4*numEdges+spareNodes }

// dataset builds the graph and releases the edges.
func (e *edges) dataset(o Options) (*dataset.Dataset, error) {
	build := graphops.BuildOptions{Undirected: e.undirected || o.Undirected, Threads: o.Threads}
	var (
		report = o.stage("build")
		mu     sync.Mutex
		done   int64
	)
	build.Progress = func(edges int) {
		mu.Lock()
		defer mu.Unlock()
		done += int64(edges)
		report(done, graphops.BuildPasses*int64(len(e.src)))
	}
	if err := e.readData(o); err != nil {
		return nil, err
	}
	d := &dataset.Dataset{Splits: map[string][]int32{}}
	var err error
	var merged Merged
	times := e.times
	if e.targets != nil { // each edge of the input is one of its own
		times = dataset.RowNumbers(len(e.src), e.times)
	}
	d.Graph, merged, err = Graph(e.nodes, e.src, e.dst, graphops.EdgeData{Weights: e.w, Features: e.x, Times: times}, build)
	if err != nil {
		return nil, err
	}
	if e.targets != nil {
		if err := e.answers(d, times); err != nil {
			return nil, err
		}
	}
	e.src, e.dst, e.w, e.x, e.times, e.targets = nil, nil, nil, nil, nil, nil
	if merged.Repeats > 0 {
		o.said.Add(merged.Notice())
	}
	d.Meta.Undirected = build.Undirected
	return d, nil
}

// answers gives a dataset, whose graph has the numbers of edges as times, the targets of the edges.
func (e *edges) answers(d *dataset.Dataset, numbers []int64) error {
	var at []int64
	d.Graph, at = dataset.FromRowNumbers(d.Graph, e.src, e.dst, numbers, e.times)
	rows, err := d.SetEdgeTargets(at, e.targets, nil)
	if err != nil {
		return tabular.Errorf("%w", err)
	}
	for k, ids := range e.parts {
		if ids == nil {
			continue
		}
		split := make([]int32, len(ids))
		for i, row := range ids {
			split[i] = rows[row]
		}
		slices.Sort(split)
		d.EdgeAnswers.Splits[columns.Parts[k]] = split
	}
	return nil
}

// makeUndirected adds the opposite of every edge of d.
func makeUndirected(d *dataset.Dataset, threads int) error {
	if d.Meta.Undirected {
		return nil
	}
	g, err := d.Graph.Rebuild(graphops.BuildOptions{Undirected: true, Threads: threads})
	if err != nil {
		return err
	}
	d.Graph = g
	d.Meta.Undirected = true
	return nil
}

// pairs is a part of an edge list, with ids as in the file.
type pairs struct {
	ids     []int64   // source, destination, source, …
	w       []float32 // weight of each pair, if there is such a column
	t       []int64   // its time; of a third column that may be either, as long as all values look like times
	weights bool      // a value of such a column does not look like a time
	columns int       // 2 or 3; 0: no data
	first   int64     // line of the first pair
	most    int64     // largest id
	lost    int64     // weights that float32 cannot hold
	more    int64     // edges with other attributes than a weight
}

// weight takes a weight.
func (p *pairs) weight(text []byte, x float32) {
	if (x == 0 || x >= 1<<24) && tabular.LostText(string(text), columns.Point, x) {
		p.lost++
	}
	p.w = append(p.w, x)
}

// edgeFormat describes the lines of an edge list.
type edgeFormat struct {
	// start is the number of the first line that is no comment; named means that it names the columns.
	start int64
	named bool
	// mark precedes each edge: "a " in DIMACS; "": nothing.
	mark byte
	// base is the id of the first node: 0, or 1 in formats that count from 1.
	base int64
	// noWeights rejects a third column.
	noWeights bool
	// skip is the number of lines at the beginning that are not edges.
	skip int64
	// needWeight requires a third column.
	needWeight bool
	// kinds are what the columns are, by place; nil means source, target and maybe a weight. either means that the third
	// column has times if all its values look so.
	kinds  []columns.Kind
	either bool
}

// idBuffers recycles the id slices of collected pairs.
var idBuffers = sync.Pool{New: func() any { return make([]int64, 0, tabular.BlockBytes/2) }}

// parse reads the edges in a block of lines.
func (e edgeFormat) parse(b tabular.Block) (pairs, error) {
	p := pairs{ids: idBuffers.Get().([]int64)[:0]}
	err := b.Lines(func(line []byte, number int64) error {
		if number <= e.skip || tabular.Comment(line) {
			return nil
		}
		line = tabular.Trim(line)
		if e.mark != 0 {
			if line[0] == 'c' && (len(line) == 1 || tabular.Separator(line[1])) {
				return nil
			}
			if line[0] != e.mark || len(line) < 2 || !tabular.Separator(line[1]) {
				return tabular.AtLine(number, "%s is not an edge: it should begin with %q", tabular.Shown(line), string(e.mark))
			}
			line = line[1:]
		}
		if number == e.start && e.named {
			return nil
		}
		if e.kinds != nil {
			return e.byKinds(&p, line, number)
		}
		a, rest := tabular.Field(line)
		c, rest := tabular.Field(rest)
		for _, text := range [2][]byte{a, c} {
			id, ok := tabular.Whole(text)
			switch {
			case len(text) == 0:
				return tabular.AtLine(number, "%s has one column; an edge is two node ids", tabular.Shown(line))
			case !ok:
				return tabular.AtLine(number, "%s is not a node id; ids are whole numbers from %d", tabular.Shown(text), e.base)
			case id < e.base:
				return tabular.AtLine(number, "the node id %d is negative; ids are counted from %d", id, e.base)
			}
			p.ids = append(p.ids, id-e.base)
			p.most = max(p.most, id-e.base)
		}
		columns := 2
		if len(rest) > 0 && rest[0] == '{' && !e.noWeights {
			x, more, ok := attributes(rest)
			if more {
				p.more++
			}
			switch {
			case !ok:
				return tabular.AtLine(number, "the attributes of the edge are %s; of those that networkx writes, a weight is read, which is a finite number and not negative", tabular.Shown(rest))
			case x >= 0:
				p.w, p.weights = append(p.w, x), true
				columns = 3
			}
			rest = nil
		}
		if len(rest) > 0 {
			var text []byte
			text, rest = tabular.Field(rest)
			switch {
			case e.noWeights || len(rest) > 0:
				return tabular.AtLine(number, "there are more columns than the format has; an edge is two node ids%s (cut -f chooses columns, --kinds 3=skip leaves one out, and --format adjlist reads a node and its neighbours)", map[bool]string{false: " and maybe a weight"}[e.noWeights])
			}
			if err := e.third(&p, text, number); err != nil {
				return err
			}
			columns = 3
		}
		if e.needWeight && columns < 3 {
			return tabular.AtLine(number, "%s has no value of the matrix; each line has a row, a column and a value", tabular.Shown(line))
		}
		if p.columns == 0 {
			p.columns, p.first = columns, number
		}
		if columns != p.columns {
			return tabular.AtLine(number, "there are %d columns, but line %d has %d: either every edge has a weight or none", columns, p.first, p.columns)
		}
		return nil
	})
	return p, err
}

// third reads a column that has weights or, if either, times.
func (e edgeFormat) third(p *pairs, text []byte, number int64) error {
	if e.either && !p.weights {
		if n, ok := timeOf(text); ok {
			p.t = append(p.t, n)
		} else {
			p.t, p.weights = nil, true
		}
	}
	x, ok := tabular.Float(text)
	if !ok || x != x || x < 0 {
		return tabular.AtLine(number, "the third column is %s; it is the edge's weight, which is a finite number and not negative; --kinds 3=skip leaves the column out", tabular.Shown(text))
	}
	p.weight(text, x)
	return nil
}

// byKinds reads a line whose columns are known.
func (e edgeFormat) byKinds(p *pairs, line []byte, number int64) error {
	rest := line
	var ends [2]int64
	n := 0
	for ; len(rest) > 0; n++ {
		var text []byte
		if text, rest = tabular.Field(rest); n >= len(e.kinds) {
			break
		}
		switch k := e.kinds[n]; k {
		case columns.Source, columns.Target:
			id, ok := tabular.Whole(text)
			if !ok || id < e.base {
				return tabular.AtLine(number, "%s is not a node id; ids are whole numbers from %d", tabular.Shown(text), e.base)
			}
			ends[map[columns.Kind]int{columns.Target: 1}[k]] = id - e.base
		case columns.Weight:
			x, ok := tabular.Float(text)
			if !ok || x != x || x < 0 {
				return tabular.AtLine(number, "column %d is %s; it is the edge's weight, which is a finite number and not negative; --kinds %d=skip leaves the column out", n+1, tabular.Shown(text), n+1)
			}
			p.weight(text, x)
			p.weights = true
		case columns.Time:
			t, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil {
				w, ok := tabular.WholeTime(text)
				if t = w; !ok {
					return tabular.AtLine(number, "column %d is %s; it is the edge's time, which is a whole number; --kinds %d=skip leaves the column out, and --format tables reads fractions and dates", n+1, tabular.Shown(text), n+1)
				}
			}
			p.t = append(p.t, t)
		}
	}
	if n != len(e.kinds) || len(rest) > 0 {
		return tabular.AtLine(number, "it has another number of columns than the %d of the first line", len(e.kinds))
	}
	p.ids = append(p.ids, ends[0], ends[1])
	p.most = max(p.most, ends[0], ends[1])
	if p.columns == 0 {
		p.columns, p.first = n, number
	}
	return nil
}

// timeOf returns a whole number that is a UNIX time in seconds, milliseconds, microseconds or nanoseconds, from 1976 on.
func timeOf(text []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, false
	}
	for _, unit := range []int64{1, 1e3, 1e6, 1e9} {
		if s := n / unit; s >= 2e8 && s < 5e9 {
			return n, true
		}
	}
	return 0, false
}

// weightAttribute is the weight in the attributes that networkx writes after an edge, as in {'weight': 3}.
var weightAttribute = regexp.MustCompile(`['"]weight['"]\s*:\s*([-+0-9.eE]+)`)

// attributes returns the weight in networkx's attributes of an edge, -1 if there is none, and whether there are others.
func attributes(text []byte) (weight float32, more, ok bool) {
	if text = bytes.TrimSpace(text); text[len(text)-1] != '}' {
		return 0, false, false
	}
	at := weightAttribute.FindSubmatchIndex(text)
	if at == nil {
		return -1, len(bytes.Trim(text, "{} \t")) > 0, true
	}
	rest := slices.Concat(text[:at[0]], text[at[1]:])
	x, ok := tabular.Float(text[at[2]:at[3]])
	return x, len(bytes.Trim(rest, "{}, \t")) > 0, ok && x == x && x >= 0
}

// header reports whether a first field is the name of a column.
func header(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	c := text[0]
	return c == '"' || c == '\'' || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// edgeList is an edge list in memory.
type edgeList struct {
	src, dst []int32
	wide     []int64 // source, destination, …; used with relabel, instead of src and dst
	alone    []int64 // with relabel: nodes that may have no edge
	w        []float32
	times    []int64
	ids      []int64 // with relabel: the id of each node
	columns  int
	first    int64
	most     int64 // largest id; -1: no edge
}

// readEdges reads all edges of f. Ids above 2^31-2 are an error unless relabel.
func readEdges(ctx context.Context, f *tabular.File, e edgeFormat, o Options) (*edgeList, error) {
	l := &edgeList{most: -1}
	var (
		src, dst tabular.Pile[int32]
		wide     tabular.Pile[int64]
		w        tabular.Pile[float32]
		times    tabular.Pile[int64]
		weights  bool // the third column does not have times
		lost     int64
		more     int64
	)
	err := tabular.EachBlock(ctx, f, o.Threads, e.parse, func(p pairs) error {
		if p.columns == 0 {
			return nil
		}
		if weights = weights || p.weights; weights && e.either {
			times = tabular.Pile[int64]{}
		} else {
			for _, t := range p.t {
				times.Add(t)
			}
		}
		if l.columns == 0 {
			l.columns, l.first = p.columns, p.first
		}
		if p.columns != l.columns {
			return f.Wrong("line %d: there are %d columns, but line %d has %d: either every edge has a weight or none", p.first, p.columns, l.first, l.columns)
		}
		defer idBuffers.Put(p.ids) //nolint:staticcheck // a slice header for 100,000 ids
		l.most = max(l.most, p.most)
		for _, x := range p.w {
			w.Add(x)
		}
		lost, more = lost+p.lost, more+p.more
		if o.Relabel {
			for _, id := range p.ids {
				wide.Add(id)
			}
			return nil
		}
		if l.most >= MaxNodes {
			return f.Wrong("one of the node ids from line %d on is %d, but ids are int32 and end at %d: --relabel numbers the nodes anew, by ascending id", p.first, p.most+e.base, int64(MaxNodes-1)+e.base)
		}
		for i := 0; i < len(p.ids); i += 2 {
			src.Add(int32(p.ids[i]))
			dst.Add(int32(p.ids[i+1]))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if l.most < 0 {
		return nil, f.Wrong("it has no edges")
	}
	l.src, l.dst, l.wide, l.w, l.times = src.Flat(), dst.Flat(), wide.Flat(), w.Flat(), times.Flat()
	if e.either && l.times != nil {
		l.w = nil
	}
	if l.w != nil {
		f.Meter().Lose(f.Path, "the weights", "", lost)
	}
	if more > 0 {
		o.said.Add(notice.Notice{Kind: notice.Dropped, Where: filepath.Base(f.Path), What: "attributes of edges other than the weight are not read", Count: more, Of: int64(max(len(l.src), len(l.wide)/2)), Option: "columns of edges.csv (--format csv) are features or times of edges"})
	}
	return l, nil
}

// number makes edges from the list. Without relabel, the nodes are all ids up to the largest, of
// which at least half must occur. With relabel, they are the ids that occur, in ascending order.
//
// declared is the number of nodes in a comment of the file, 0 if there is none. More than the ids are nodes without edges.
func (l *edgeList) number(f *tabular.File, declared int64, o Options) (*edges, error) {
	if o.Relabel {
		return l.relabel(f)
	}
	nodes := l.most + 1
	// An edge names at most two nodes, so this check needs no count of the ids. A list that passes
	// needs a bit per id, at most 8 ids per edge.
	sparse := nodes > 4*int64(len(l.src))+8
	distinct := int64(-1)
	if !sparse {
		distinct = countIDs(nodes, l.src, l.dst)
		sparse = nodes > 2*distinct+8
	}
	if sparse {
		return nil, f.Wrong("the node ids run up to %d, but %s of them occur: --relabel numbers the nodes anew, by ascending id (without it every id up to the largest would become a node)",
			l.most, map[bool]string{true: fmt.Sprintf("at most %d", 2*len(l.src)), false: fmt.Sprint(distinct)}[distinct < 0])
	}
	counted := ""
	if declared > 0 {
		counted = fmt.Sprintf("; its comment counts %d nodes", declared)
	}
	if missing := nodes - distinct; missing > 0 && (missing > 1 || occurs(0, l.src, l.dst)) {
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: filepath.Base(f.Path), What: fmt.Sprintf("ids that no edge has are nodes without neighbours, and all ids are kept%s", counted), Count: missing, Of: nodes, Option: "--relabel leaves them out and numbers the others anew"})
	}
	if declared > nodes && plausible(declared, int64(len(l.src))) && declared < MaxNodes {
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: filepath.Base(f.Path), What: fmt.Sprintf("the last nodes have no edges%s", counted), Count: declared - nodes, Of: declared})
		nodes = declared
	}
	return &edges{nodes: int(nodes), src: l.src, dst: l.dst, w: l.w, times: l.times}, nil
}

// countIDs returns the number of distinct ids in the lists.
func countIDs(nodes int64, lists ...[]int32) int64 {
	seen := make([]uint64, (nodes+63)/64)
	n := int64(0)
	for _, list := range lists {
		for _, v := range list {
			if bit := uint64(1) << (v % 64); seen[v/64]&bit == 0 {
				seen[v/64] |= bit
				n++
			}
		}
	}
	return n
}

func (l *edgeList) relabel(f *tabular.File) (*edges, error) {
	ids := slices.Concat(l.wide, l.alone)
	slices.Sort(ids)
	ids = slices.Clone(slices.Compact(ids))
	if len(ids) > MaxNodes {
		return nil, f.Wrong("it names %d nodes, but node ids are int32: there can be %d", len(ids), MaxNodes)
	}
	l.ids = ids
	e := &edges{nodes: len(ids), w: l.w, times: l.times, src: make([]int32, len(l.wide)/2), dst: make([]int32, len(l.wide)/2)}
	for i := range e.src {
		a, _ := slices.BinarySearch(ids, l.wide[2*i])
		b, _ := slices.BinarySearch(ids, l.wide[2*i+1])
		e.src[i], e.dst[i] = int32(a), int32(b)
	}
	l.wide = nil
	return e, nil
}
