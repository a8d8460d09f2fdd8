package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

// maxClasses bounds the classes of a label.
const maxClasses = 10000

var splitNames = [3]string{"train", "val", "test"}

// drawSplit returns the split of a labelled node if the table has no column of splits: 60 % train, 20 % val, 20 % test,
// by the seed and the node's id alone, so further rows change nothing.
func drawSplit(seed uint64, k key) int {
	switch x := mix(k.hash()^mix(seed+0x5851f42d4c957f2d)) >> 11; {
	case float64(x) < .6*(1<<53):
		return 0
	case float64(x) < .8*(1<<53):
		return 1
	}
	return 2
}

// nodes is the nodes of one type.
type nodes struct {
	t       *Table
	missing *columns.Missing
	seed    uint64
	draw    bool // splits are drawn
	idx     *index
	from    int // nodes that idx had before
	// within is set in a dataset of many graphs; one is what a row is, if no node.
	within *within
	one    string
	// given is the split of each row in the first set, -1 for none; nil means that the table says it or that it is drawn.
	given []int8

	rows   int
	labels []int32
	times  []int64 // from which the nodes exist; nil if no column says so
	// targets [rows, columns of kind Target] are the numbers to predict, NaN where missing, which lacking counts by column.
	targets []float32
	lacking []int64
	splits  [][3][]int32 // node numbers within the type, by set of splits
	in      []int        // by set, the split of the row that was read last; -1: none
	// outside counts labelled nodes that are in no split, although columns say splits.
	outside int64
	x       []float32
	sparse  *graphops.Sparse
	lost    *losses
	// unknown are the labels that mean none, and minus says that -1 is one of them.
	unknown tabular.Unknown
	minus   bool
	// rounded counts ids that look as if a spreadsheet had rounded them.
	rounded counted
}

// places returns the position of each column of the recipe in a table, -1 if it has none, and which columns are read.
func places(t *Table, tab *table) (at []int, want []bool) {
	want = make([]bool, len(tab.names))
	for i := range t.Columns {
		c := slices.Index(tab.names, t.Columns[i].Name)
		at = append(at, c)
		if c >= 0 && t.Columns[i].Kind != Skip {
			want[c] = true
		}
	}
	return at, want
}

// view is the columns of a table by kind, in a batch.
type view struct {
	at []int
	t  *Table
}

func (v *view) of(b *batch, kind Kind) *vec {
	for i := range v.t.Columns {
		if v.t.Columns[i].Kind == kind && v.at[i] >= 0 {
			return &b.cols[v.at[i]]
		}
	}
	return nil
}

// columns returns the columns of the recipe of a kind, and their values in a batch, nil for those that the table has not.
func (v *view) columns(b *batch, kind Kind) (cols []*Column, values []*vec) {
	for i := range v.t.Columns {
		if c := &v.t.Columns[i]; c.Kind == kind {
			var x *vec
			if v.at[i] >= 0 {
				x = &b.cols[v.at[i]]
			}
			cols, values = append(cols, c), append(values, x)
		}
	}
	return cols, values
}

// rowOf returns a row's id, the text of its label ("" if unknown), whether its label or a target is known, and the number of its
// split (-1: none) in the first set.
func (n *nodes) rowOf(b *batch, i int, ids, label *vec, targets []*vec, split parts) (k key, y string, known bool, part int, err error) {
	k, err = keyOf(ids, i)
	if errors.Is(err, errNoID) {
		return k, "", false, 0, fault("%s: the id is missing; each %s has an id of its own", b.at(i), n.row())
	}
	if err != nil {
		return k, "", false, 0, fault("%s: the id is %s: %w", b.at(i), ids.value(i), err)
	}
	if strings.ContainsAny(k.word, "\n\r") {
		return k, "", false, 0, fault("%s: the id %s has a line break", b.at(i), shown(k.word))
	}
	if label != nil && !label.missing(i) {
		if y = columns.LabelWord(label.value(i)); n.missing.Label(y) {
			n.unknown.Add(y)
			n.minus = n.minus || y == "-1"
			y = ""
		}
	}
	known = y != ""
	for _, v := range targets {
		known = known || v != nil && !isMissing(v, i, n.missing)
	}
	if err := n.partsOf(b, i, split); err != nil {
		return k, "", false, 0, err
	}
	if n.draw && known {
		n.in[0] = drawSplit(n.seed, k)
	}
	return k, y, known, n.in[0], nil
}

// parts are the columns that say which split a node is in.
type parts struct {
	split    *vec // nil: none
	numbered bool
	masks    [][3]*vec // by set of splits
}

func (v *view) parts(b *batch) parts {
	p := parts{split: v.of(b, Split)}
	if c := v.t.column(Split); c != nil {
		p.numbered = c.Numbered
	}
	for i := range v.t.Columns {
		c := &v.t.Columns[i]
		if k := slices.Index(masks[:], c.Kind); k >= 0 && v.at[i] >= 0 {
			for len(p.masks) <= c.Set {
				p.masks = append(p.masks, [3]*vec{})
			}
			p.masks[c.Set][k] = &b.cols[v.at[i]]
		}
	}
	for i := range v.t.Columns { // when the sets are counted
		c := &v.t.Columns[i]
		for set := range p.masks {
			if c.Every && v.at[i] >= 0 {
				p.masks[set][slices.Index(masks[:], c.Kind)] = &b.cols[v.at[i]]
			}
		}
	}
	return p
}

// none reports whether no column says the split.
func (p parts) none() bool { return p.split == nil && p.masks == nil }

// partsOf sets n.in, with one set at least.
func (n *nodes) partsOf(b *batch, i int, p parts) error {
	n.in = append(n.in[:0], -1)
	if p.split != nil && !isMissing(p.split, i, n.missing) {
		c := columns.Column{Kind: columns.Split, Numbered: p.numbered}
		text := p.split.value(i)
		part, ok := c.Part(text)
		if !ok {
			return fault("%s: the split is %s; it is train, val, test or empty", b.at(i), shown(text))
		}
		n.in[0] = part
		return nil
	}
	for set, of := range p.masks {
		part, err := n.masked(b, i, of)
		if err != nil {
			return err
		}
		n.in = append(n.in[:set], part)
	}
	return nil
}

// masked returns the number of the split of the node in a row by the masks of one set, -1 for none.
func (n *nodes) masked(b *batch, i int, of [3]*vec) (int, error) {
	part := -1
	for k, mask := range of {
		if mask == nil || isMissing(mask, i, n.missing) {
			continue
		}
		set, ok := columns.Flag(mask.value(i))
		switch {
		case !ok:
			return 0, fault("%s: the mask of %s is %s; a mask is 0 or 1, or False or True", b.at(i), splitNames[k], shown(mask.value(i)))
		case set && part >= 0:
			return 0, fault("%s: the node is in the splits %s and %s by its masks", b.at(i), splitNames[part], splitNames[k])
		case set:
			part = k
		}
	}
	return part, nil
}

// addID gives the next node its id.
func (n *nodes) addID(b *batch, i int, k key) error {
	if n.idx.n == math.MaxInt32 {
		return fault("%s: there are more than %d nodes, and node ids are int32", b.at(i), math.MaxInt32)
	}
	if v, ok := n.idx.add(k); !ok {
		if int(v) < n.from {
			return fault("%s: the id %s is that of a node of the dataset already", b.at(i), shown(k.String()))
		}
		if w := n.within; w != nil && !w.local && len(w.of) > n.idx.n && w.of[v] != w.of[n.idx.n] {
			return errLocal
		}
		return fault("%s: the id %s is that of row %d too; each %s has an id of its own", b.at(i), shown(strings.ReplaceAll(k.String(), "\t", ", ")), int(v)-n.from+1, n.row())
	}
	return nil
}

// row is what a row is.
func (n *nodes) row() string { return cmp.Or(n.one, "node") }

// inGraph notes the graph of the next node, and returns its key.
func (n *nodes) inGraph(b *batch, i int, graph *vec, k key) (key, error) {
	if n.within == nil {
		return k, nil
	}
	if graph == nil {
		return k, fault("%s has no column of the graphs of nodes", b.at(i))
	}
	g, err := n.within.graphAt(b, i, graph)
	if err != nil {
		return k, err
	}
	if strings.Contains(k.word, "\t") {
		return k, fault("%s: the id %s has a tab", b.at(i), shown(k.word))
	}
	n.within.of = append(n.within.of, g)
	return n.within.keyIn(g, k), nil
}

// fit reads the ids of all nodes and fits the columns.
func (n *nodes) fit(ctx context.Context, tab *table, o *Options) error {
	var trains []bool
	if n.within != nil {
		trains, n.within.of = n.within.graphs.trains(), nil
	}
	at, want := places(n.t, tab)
	see := view{at, n.t}
	var fits []*fitter
	var leaks []*leak
	for i := range n.t.Columns {
		if c := &n.t.Columns[i]; c.Kind.feature() {
			fits, leaks = append(fits, newFitter(c, o, n.missing)), append(leaks, newLeak(c))
		} else {
			fits, leaks = append(fits, nil), append(leaks, nil)
		}
	}
	classes := map[string]int32{}
	fitted, labelled := 0, int64(0)
	err := tab.each(ctx, want, func(b *batch) error {
		if err := n.t.conform(b, at, n.missing); err != nil {
			return err
		}
		ids, label, split, graph := see.of(b, ID), see.of(b, Label), see.parts(b), see.of(b, Graph)
		_, targets := see.columns(b, Target)
		for i := range b.n {
			n.idx.warm(ids, i, b.n)
			k, y, _, part, err := n.rowOf(b, i, ids, label, targets, split)
			if err != nil {
				return err
			}
			if k, err = n.inGraph(b, i, graph, k); err != nil {
				return err
			}
			if err := n.addID(b, i, k); err != nil {
				return err
			}
			class := int32(-1)
			if y != "" {
				labelled++
				c, ok := classes[y]
				if !ok {
					if len(classes) == maxClasses {
						return fault("%s: the column %s has more than %d different values, and a label is one of few classes; name another column as label (Kinds, --kinds), or make classes of it", b.at(i), shown(n.t.column(Label).Name), maxClasses)
					}
					c = int32(len(classes))
					classes[string([]byte(y))] = c
				}
				class = c
			}
			fits0 := o.fitAll() || (label == nil && targets == nil && split.none()) || part == 0
			if n.given != nil && n.idx.n <= len(n.given) {
				fits0 = o.fitAll() || n.given[n.idx.n-1] == 0
			}
			if trains != nil && !o.fitAll() {
				fits0 = trains[n.within.of[len(n.within.of)-1]]
			}
			if fits0 {
				fitted++
			}
			for c := range fits {
				if fits[c] == nil {
					continue
				}
				v := &b.cols[at[c]]
				if fits0 {
					if err := fits[c].add(b, v, i); err != nil {
						return err
					}
				}
				if class >= 0 {
					leaks[c].add(v, i, class, n.missing)
				}
			}
		}
		n.rows += b.n
		return nil
	})
	switch {
	case err != nil:
		return err
	case n.rows == 0:
		return fault("%s has no rows below the names of its columns", tab.path)
	}
	label := n.t.column(Label)
	if label != nil {
		if _, one := classes["1"]; one && len(classes) == 1 && n.minus {
			return fault("%s: column %q: %w", tab.path, label.Name, columns.ErrMinusOne)
		}
		if err := n.t.setClasses(tab, label, classes); err != nil {
			return err
		}
		if first, number := canonical(n.t.Classes[0]); number && !n.t.Numbered {
			if _, number = canonical(n.t.Classes[len(n.t.Classes)-1]); number {
				o.say(notice.Notice{Kind: notice.Renumbered, Where: filepath.Base(tab.path), What: fmt.Sprintf("column %q: the labels are numbers with gaps, or do not begin at 0, so class 0 is %d; the classes have their names", label.Name, first), Count: int64(len(n.t.Classes))})
			}
		}
		if err := columns.CheckClasses(int64(len(classes)), labelled); err != nil && !o.ManyClasses {
			return fault("%s: column %q: %w", tab.path, label.Name, err)
		}
	}
	if fitted == 0 {
		return fault("%s: no node is in the split train, to which the features are fitted; give some nodes a label or the split train, or choose Fit: \"all\" (--fit all)", tab.path)
	}
	filled := 0.0
	for _, f := range fits {
		if f == nil {
			continue
		}
		filled += f.end(o)
		f.c.First = n.t.Width
		n.t.Width += f.c.Width
	}
	if n.t.Width > maxWidth {
		return fault("%s: its columns become %d features, more than %d; skip some, or hash them into fewer columns", tab.path, n.t.Width, maxWidth)
	}
	n.t.Sparse = n.t.Width >= 64 && filled < .25*float64(n.t.Width)
	if label != nil {
		for c, l := range leaks {
			if l == nil {
				continue
			}
			if how := l.found(); how != "" {
				o.say(notice.Notice{Kind: notice.Told, Where: filepath.Base(tab.path), What: fmt.Sprintf("warning: the column %s predicts the label %s exactly (%s): it may be a copy of the label or known only after it; skip it if it is not known when you predict", shown(n.t.Columns[c].Name), shown(label.Name), how)})
			}
		}
	}
	return nil
}

// setClasses orders the labels. Whole numbers from 0 on without gaps are the classes' numbers; other labels become
// classes in ascending order.
func (t *Table) setClasses(tab *table, label *Column, classes map[string]int32) error {
	all := make([]string, 0, len(classes))
	numbers := true
	for y := range classes {
		all = append(all, y)
		_, ok := canonical(y)
		numbers = numbers && ok
	}
	switch {
	case len(all) == 0:
		return fault("%s: every label of the column %s is missing; training needs some, or skip the column", tab.path, shown(label.Name))
	case len(all) == 1:
		return fault("%s: every label of the column %s is %s, and one class leaves nothing to predict; name another column as label (Kinds, --kinds), or skip it", tab.path, shown(label.Name), shown(all[0]))
	}
	slices.SortFunc(all, func(a, b string) int {
		if numbers {
			x, _ := canonical(a)
			y, _ := canonical(b)
			return cmp.Compare(x, y)
		}
		return strings.Compare(a, b)
	})
	t.Classes = all
	t.Numbered = numbers && all[0] == "0" && all[len(all)-1] == fmt.Sprint(len(all)-1)
	return nil
}

// encode reads the nodes' features, labels and splits; with ids also their ids, otherwise fit has done so.
func (n *nodes) encode(ctx context.Context, tab *table, ids bool) error {
	at, want := places(n.t, tab)
	see := view{at, n.t}
	classes := map[string]int32{}
	for k, y := range n.t.Classes {
		classes[y] = int32(k)
	}
	if n.t.Classes != nil {
		n.labels = make([]int32, 0, n.rows)
	}
	clock := n.t.column(Time)
	var words []wordCount
	n.lost = newLosses(n.t)
	to := &features{width: n.t.Width, sparse: n.t.Sparse, known: n.rows, lost: n.lost}
	to.begin()
	row := 0
	n.unknown = tabular.Unknown{}
	if n.within != nil {
		n.within.of = n.within.of[:0]
	}
	err := tab.each(ctx, want, func(b *batch) error {
		if err := n.t.conform(b, at, n.missing); err != nil {
			return err
		}
		idv, label, split, graph, when := see.of(b, ID), see.of(b, Label), see.parts(b), see.of(b, Graph), see.of(b, Time)
		wanted, targets := see.columns(b, Target)
		for len(n.lacking) < len(wanted) {
			n.lacking = append(n.lacking, 0)
		}
		for i := range b.n {
			k, y, known, _, err := n.rowOf(b, i, idv, label, targets, split)
			if err != nil {
				return err
			}
			if k, err = n.inGraph(b, i, graph, k); err != nil {
				return err
			}
			if ids {
				if err := n.addID(b, i, k); err != nil {
					return err
				}
			} else if row >= n.idx.n || !n.idx.is(int32(row), k) {
				return fault("%s: the id %s was another before: the file was changed while it was read", b.at(i), shown(k.String()))
			}
			if n.labels != nil || n.t.Classes != nil {
				class := int32(-1)
				if y != "" {
					var ok bool
					if class, ok = classes[y]; !ok {
						return fault("%s: the label is %s, which is none of the %d classes of the dataset", b.at(i), shown(y), len(classes))
					}
				}
				n.labels = append(n.labels, class)
			}
			if clock != nil {
				t, err := clock.edgeTime(b, when, i, n.missing)
				if err != nil {
					return err
				}
				n.times = append(n.times, t)
			}
			for t, v := range targets {
				x, err := targetAt(n.t, n.lost, n.missing, wanted[t], b, v, i)
				if err != nil {
					return err
				}
				if x != x {
					n.lacking[t]++
				}
				n.targets = append(n.targets, x)
			}
			if known && !split.none() && slices.Max(n.in) < 0 {
				n.outside++
			}
			for set, part := range n.in {
				if set == len(n.splits) {
					n.splits = append(n.splits, [3][]int32{})
				}
				if part >= 0 {
					n.splits[set][part] = append(n.splits[set][part], int32(n.from+row))
				}
			}
			if k.text && spreadsheet(k.word) {
				n.rounded.add(b, i, k.word)
			}
			to.next()
			for c := range n.t.Columns {
				if col := &n.t.Columns[c]; col.Kind.feature() {
					if err := col.encode(c, b, &b.cols[at[c]], i, n.missing, &words, to); err != nil {
						return err
					}
					if to.bad {
						return fault("%s: the column %s is %s, too large for a feature in float32", b.at(i), shown(col.Name), shown(b.cols[at[c]].value(i)))
					}
				}
			}
			row++
		}
		return nil
	})
	if err != nil {
		return err
	}
	n.rows = row
	n.x, n.sparse = to.x, to.end()
	return nil
}

// targetAt returns a number to predict of a row of a table, NaN if it is missing.
func targetAt(t *Table, lost *losses, missing *columns.Missing, c *Column, b *batch, v *vec, i int) (float32, error) {
	if v == nil || isMissing(v, i, missing) {
		return float32(math.NaN()), nil
	}
	if v.class == instant {
		return 0, fault("%s: the target %s is a date, and the recipe has numbers there", b.at(i), shown(c.Name))
	}
	x, err := numberAt(c, b, v, i)
	if err != nil {
		return 0, err
	}
	y := float32(x)
	if math.IsInf(float64(y), 0) {
		return 0, fault("%s: the target %s is %s, too large for float32; scale the numbers", b.at(i), shown(c.Name), shown(v.value(i)))
	}
	for k := range t.Columns {
		if &t.Columns[k] == c {
			lost.number(k, b, v, i, x, float64(y))
		}
	}
	return y, nil
}

// targets returns the names of the targets of all types, each once.
func (r *Recipe) targets() (names []string) {
	for t := range r.Nodes {
		for _, c := range r.Nodes[t].Columns {
			if c.Kind == Target && !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// putTargets gives a dataset the targets of its nodes: those of the old dataset, whose nodes of each type begin at was, and the new
// ones.
func (r *Recipe) putTargets(d *dataset.Dataset, all []*nodes, old *dataset.Matrix, was []int) {
	names := r.targets()
	if len(names) == 0 {
		return
	}
	total := 0
	for _, n := range all {
		total += n.from + n.rows
	}
	m := &dataset.Matrix{Cols: len(names), F32: make([]float32, 0, total*len(names))}
	for t, n := range all {
		if n.from > 0 {
			m.F32 = append(m.F32, old.F32[was[t]*m.Cols:(was[t]+n.from)*m.Cols]...)
		}
		var place []int // of the type's own targets among all
		for _, c := range n.t.Columns {
			if c.Kind == Target {
				place = append(place, slices.Index(names, c.Name))
			}
		}
		for i := range n.rows {
			row := slices.Repeat([]float32{float32(math.NaN())}, m.Cols)
			for k, c := range place {
				row[c] = n.targets[i*len(place)+k]
			}
			m.F32 = append(m.F32, row...)
		}
	}
	m.Rows = total
	d.Targets, d.Meta.TargetNames = m, names
}

// eachSplit calls visit for each split that has nodes.
func (n *nodes) eachSplit(visit func(name string, ids []int32)) {
	for set, parts := range n.splits {
		for k, ids := range parts {
			if len(ids) > 0 {
				visit(dataset.SplitSetName(splitNames[k], set), ids)
			}
		}
	}
}

// features collects rows of features, dense or in compressed rows.
type features struct {
	width  int
	sparse bool
	known  int // rows that are expected
	x      []float32
	rows   graphops.Sparse
	bad    bool // a value was not finite
	lost   *losses
}

func (f *features) begin() {
	if f.sparse {
		f.rows.Indptr = make([]int64, 1, f.known+1)
		return
	}
	f.x = make([]float32, 0, f.known*f.width)
}

// next begins a row.
func (f *features) next() {
	if f.sparse {
		f.rows.Indptr = append(f.rows.Indptr, f.rows.Indptr[len(f.rows.Indptr)-1])
		f.rows.Rows++
		return
	}
	f.x = slices.Grow(f.x, f.width)[:len(f.x)+f.width]
	clear(f.x[len(f.x)-f.width:])
	f.rows.Rows++
}

func (f *features) put(col int, x float64) {
	y := float32(x)
	if math.IsInf(float64(y), 0) || y != y {
		f.bad = true
		return
	}
	if !f.sparse {
		f.x[len(f.x)-f.width+col] = y
		return
	}
	if y != 0 {
		f.rows.Indices, f.rows.Values = append(f.rows.Indices, int32(col)), append(f.rows.Values, y)
		f.rows.Indptr[len(f.rows.Indptr)-1]++
	}
}

// end returns the compressed rows, nil if the features are dense.
func (f *features) end() *graphops.Sparse {
	if !f.sparse {
		return nil
	}
	f.rows.Cols = f.width
	if f.rows.Indices == nil {
		f.rows.Indices, f.rows.Values = []int32{}, []float32{}
	}
	return &f.rows
}

// matrix returns the features for a dataset.
func (n *nodes) matrix() dataset.NodeFeatures {
	switch {
	case n.t.Width == 0 || n.rows == 0:
		return dataset.NodeFeatures{}
	case n.t.Sparse:
		return dataset.NodeFeatures{Sparse: n.sparse}
	}
	return dataset.NodeFeatures{Dense: &dataset.Matrix{Rows: n.rows, Cols: n.t.Width, F32: n.x}}
}
