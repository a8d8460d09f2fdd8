package tables

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// edges is the edges of one table. Their ends are numbers of nodes within their types.
type edges struct {
	t        *Table
	missing  *columns.Missing
	src, dst finder
	within   *within // of many graphs

	from, to []int32
	weights  []float32
	times    []int64
	x        []float32 // [edges, width of all tables' features]
	cut      int       // times that were rounded down, as Options.TimeUnit allowed
	lost     *losses
	// targets [rows, columns of kind Predict] are the numbers to predict, NaN where missing, and parts the splits of the rows, -1 for
	// none.
	targets []float32
	parts   []int8
}

// finder finds nodes by their ids: an [index], or one with new nodes behind it.
type finder interface {
	find(k key) int32
	near(k key) string
	warm(v *vec, i, rows int)
}

// fitEdges fits the features of edges, to all rows or, if keep is not nil, to those that it keeps. first is the number of features of the tables before.
func fitEdges(ctx context.Context, t *Table, tab *table, first int, o *Options, missing *columns.Missing, keep func(row int) bool) error {
	at, want := places(t, tab)
	fits := make([]*fitter, len(t.Columns))
	some := false
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Kind.feature() {
			fits[i], some = newFitter(c, o, missing), true
		} else if at[i] >= 0 {
			want[at[i]] = false
		}
	}
	if !some {
		return nil
	}
	rows := 0
	err := tab.each(ctx, want, func(b *batch) error {
		if err := t.conform(b, at, missing); err != nil {
			return err
		}
		defer func() { rows += b.n }()
		for c, f := range fits {
			if f == nil {
				continue
			}
			for i := range b.n {
				if keep != nil && !keep(rows+i) {
					continue
				}
				if err := f.add(b, &b.cols[at[c]], i); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range fits {
		if f != nil {
			f.end(o)
			f.c.First = first + t.Width
			t.Width += f.c.Width
		}
	}
	return nil
}

// say tells what reading has changed.
func (e *edges) say(tab *table, o *Options) {
	if e.cut > 0 {
		o.say(notice.Notice{Kind: notice.Unrepresentable, Where: filepath.Base(tab.path), What: fmt.Sprintf("times are rounded down to %s, as TimeUnit says", e.t.column(Time).Unit), Count: int64(e.cut), Of: int64(len(e.times))})
	}
	e.lost.say(tab, o)
}

// read reads the edges; width is the number of features of an edge over all tables.
func (e *edges) read(ctx context.Context, tab *table, width int) error {
	at, want := places(e.t, tab)
	see := view{at, e.t}
	e.lost = newLosses(e.t)
	to := &features{width: width, lost: e.lost}
	to.begin()
	var words []wordCount
	weight, clock := e.t.column(Weight), e.t.column(Time)
	err := tab.each(ctx, want, func(b *batch) error {
		if err := e.t.conform(b, at, e.missing); err != nil {
			return err
		}
		wanted, targets := see.columns(b, Predict)
		split := see.of(b, Split)
		src, dst, w, when := see.of(b, Source), see.of(b, Target), see.of(b, Weight), see.of(b, Time)
		var graph *vec
		if e.within != nil {
			graph = see.of(b, Graph)
		}
		for i := range b.n {
			e.src.warm(src, i, b.n)
			e.dst.warm(dst, i, b.n)
			g, err := e.within.graphAt(b, i, graph)
			if err != nil {
				return err
			}
			u, err := e.end(b, src, i, e.src, Source, g)
			if err != nil {
				return err
			}
			v, err := e.end(b, dst, i, e.dst, Target, g)
			if err != nil {
				return err
			}
			if err := e.within.checkSame(b, i, g, u, v); err != nil {
				return err
			}
			e.from, e.to = append(e.from, u), append(e.to, v)
			if w != nil {
				if isMissing(w, i, e.missing) {
					return fault("%s: the weight is missing; skip the column, or give each edge one", b.at(i))
				}
				x, err := numberAt(weight, b, w, i)
				if err != nil {
					return err
				}
				if x < 0 || x > math.MaxFloat32 {
					return fault("%s: the weight is %s; it is finite and not negative", b.at(i), shown(w.value(i)))
				}
				if x > 0 && float32(x) == 0 {
					return fault("%s: the weight is %s, which is 0 in float32; scale the weights", b.at(i), shown(w.value(i)))
				}
				e.lost.weight(b, w, i, x)
				e.weights = append(e.weights, float32(x))
			}
			if when != nil {
				t, err := clock.edgeTime(b, when, i, e.missing)
				if err != nil {
					return err
				}
				e.times = append(e.times, t)
			}
			if err := e.readAnswers(b, i, wanted, targets, split); err != nil {
				return err
			}
			if width == 0 {
				continue
			}
			to.next()
			for c := range e.t.Columns {
				if col := &e.t.Columns[c]; col.Kind.feature() {
					if err := col.encode(c, b, &b.cols[at[c]], i, e.missing, &words, to); err != nil {
						return err
					}
					if to.bad {
						return fault("%s: the column %s is %s, too large for a feature in float32", b.at(i), shown(col.Name), shown(b.cols[at[c]].value(i)))
					}
				}
			}
		}
		e.cut, b.cut = e.cut+b.cut, 0
		return nil
	})
	e.x = to.x
	return err
}

// end returns the node at one end of an edge.
func (e *edges) end(b *batch, v *vec, i int, ids finder, kind Kind, graph int32) (int32, error) {
	k, err := keyOf(v, i)
	if errors.Is(err, errNoID) {
		return 0, fault("%s: the %s is missing; an edge has the ids of two nodes", b.at(i), kind)
	}
	if err != nil {
		return 0, fault("%s: the %s is %s: %w", b.at(i), kind, v.value(i), err)
	}
	id := k
	k = e.within.keyIn(graph, k)
	node := ids.find(k)
	if node < 0 {
		of := ""
		if r := e.t.Relation; r != nil {
			of = " of type " + shown(r.Src)
			if kind == Target {
				of = " of type " + shown(r.Dst)
			}
		}
		if e.within != nil && e.within.local {
			return 0, fault("%s: the %s %s is the id of no node of the graph %s; remove the edge, or add the node to its table", b.at(i), kind, shown(id.String()), shown(e.within.graphs.idx.key(graph).String()))
		}
		if id := ids.near(k); id != "" {
			return 0, fault("%s: the %s %+q is the id of no node%s, but %+q is, which differs only in case, in invisible characters, or in how characters are composed (Unicode NFC and NFD); write it as the node's id", b.at(i), kind, k.word, of, id)
		}
		return 0, fault("%s: the %s %s is the id of no node%s; remove the edge, or add the node to its table", b.at(i), kind, shown(k.String()), of)
	}
	return node, nil
}

// schema returns the types and relations of a recipe's tables, for the given numbers of nodes; nil without types.
func (r *Recipe) schema(counts []int) *graphops.Schema {
	if r.Nodes[0].Type == "" {
		return nil
	}
	s := &graphops.Schema{}
	for i, t := range r.Nodes {
		s.Nodes = append(s.Nodes, graphops.NodeType{Name: t.Type, Count: counts[i]})
	}
	for _, t := range r.Edges {
		s.Relations = append(s.Relations, *t.Relation)
	}
	return s
}

// graphOf builds the graph of all tables' edges, in which equal edges with weights or features are still apart:
// [mergeEdges] makes them one. Where
// one table has weights, edges of the others have the weight 1; where one has features, edges of the others have zeros
// there.
func (r *Recipe) graphOf(counts []int, all []*edges, threads int) (*graphops.Graph, error) {
	total, n, width := 0, 0, r.edgeWidth()
	starts := make([]int, len(counts))
	for i, c := range counts {
		starts[i] = n
		n += c
	}
	if n > math.MaxInt32 {
		return nil, fault("the tables have %d nodes together, and node ids are int32", n)
	}
	weighted, timed, untimed := r.weighted(), "", ""
	for k, e := range all {
		total += len(e.from)
		if e.t.column(Time) != nil {
			timed = r.Edges[k].name(true)
		} else {
			untimed = r.Edges[k].name(true)
		}
	}
	if timed != "" && untimed != "" {
		return nil, fault("the edges of %s have times and those of %s have none; each edge needs a time, or none has one: skip the column (Kinds, --kinds), or add one", timed, untimed)
	}
	s := r.schema(counts)
	src, dst := make([]int32, 0, total), make([]int32, 0, total)
	var data graphops.EdgeData
	if s != nil {
		data.Types = make([]uint16, 0, total)
	}
	if width > 0 {
		data.Features = &graphops.EdgeFeatures{Cols: width}
	}
	for k, e := range all {
		a, b := 0, 0
		if s != nil {
			x, y := s.Ends(k)
			a, b = starts[x], starts[y]
		}
		if len(all) == 1 && a == 0 && b == 0 {
			src, dst = e.from, e.to
		} else {
			for i := range e.from {
				src, dst = append(src, e.from[i]+int32(a)), append(dst, e.to[i]+int32(b))
			}
		}
		if s != nil {
			for range e.from {
				data.Types = append(data.Types, uint16(k))
			}
		}
		if weighted {
			if e.weights == nil {
				e.weights = slices.Repeat([]float32{1}, len(e.from))
			}
			data.Weights = append(data.Weights, e.weights...)
		}
		data.Times = append(data.Times, e.times...)
		if width > 0 {
			data.Features.F32 = append(data.Features.F32, e.x...)
		}
		e.to, e.weights, e.times, e.x = nil, nil, nil, nil
	}
	if r.rows = nil; r.predicts() || r.Events {
		r.rows = r.number(all, src, dst, data.Times)
		data.Times = r.rows.numbers
	}
	for _, e := range all {
		e.from, e.targets, e.parts = nil, nil, nil
	}
	g, err := graphops.FromEdgesWith(n, src, dst, data, graphops.BuildOptions{Undirected: r.Undirected, KeepDuplicates: r.keepsCopies(), Threads: threads})
	if err != nil {
		return nil, fault("%w", err)
	}
	if s != nil {
		if g, err = g.WithTypes(s, g.EdgeTypes); err != nil {
			return nil, fault("%w", err)
		}
		if r.Reverses {
			if g, err = g.WithReverses(threads); err != nil {
				return nil, fault("%w", err)
			}
		}
	}
	return g, nil
}

// weighted reports whether a table has a column of weights.
func (r *Recipe) weighted() bool {
	return slices.ContainsFunc(r.Edges, func(t Table) bool { return t.column(Weight) != nil })
}

// keepsCopies reports whether the copies of a merged edge matter: whether edges have weights or features.
func (r *Recipe) keepsCopies() bool { return r.weighted() || r.edgeWidth() > 0 }
