package tables

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/encode"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/tabular"
)

// source is a table that is being read.
type source struct {
	name  string // in front of a column's name
	edges bool
	many  bool // the dataset has many graphs
	// events says that the rows are events.
	events bool
	// graphs says that it is the table of graphs, and byName is the column whose name says that it has their ids.
	graphs bool
	byName string
	table  *table
	kind   Table
	profs  []profile
}

// openGraphs opens the table of graphs; nil if there is none.
func (f *Files) openGraphs(o *Options) (s *source, err error) {
	if f.Graphs == "" {
		return nil, nil
	}
	s = &source{graphs: true, many: true, name: "graphs", kind: Table{graphs: true}}
	s.table, err = openTable(f.Graphs, &tabular.Meter{Report: o.Progress})
	return s, err
}

// open opens all tables.
func (f *Files) open(o *Options) (nodes, edges []*source, err error) {
	meter := &tabular.Meter{Report: o.Progress}
	if err := cmp.Or(f.check(), f.checkGraphs()); err != nil {
		return nil, nil, err
	}
	many := f.Graphs != ""
	for _, n := range f.Nodes {
		s := &source{many: many, kind: Table{Type: n.Type}}
		if s.table, err = openTable(n.Path, meter); err != nil {
			return nil, nil, err
		}
		s.name = s.kind.name(false)
		nodes = append(nodes, s)
	}
	for _, e := range f.Edges {
		s := &source{edges: true, many: many, events: f.Events}
		if e.Relation != "" || e.Source != "" || e.Target != "" {
			s.kind.Relation = &graphops.Relation{Src: e.Source, Name: e.Relation, Dst: e.Target}
		}
		if s.table, err = openTable(e.Path, meter); err != nil {
			return nil, nil, err
		}
		s.name = s.kind.name(true)
		edges = append(edges, s)
	}
	return nodes, edges, nil
}

// check returns an error if the types and relations of the files do not fit together.
func (f *Files) check() error {
	typed := len(f.Nodes) > 0 && f.Nodes[0].Type != ""
	for i, n := range f.Nodes {
		switch {
		case (n.Type != "") != typed || !typed && i > 0:
			return fault("there are %d tables of nodes, and not each has a type; give each table of nodes a type, or give one table (which may be a folder of files)", len(f.Nodes))
		case slices.ContainsFunc(f.Nodes[:i], func(o Nodes) bool { return o.Type == n.Type }):
			return fault("two tables have nodes of type %s; a type has one table, which may be a folder of files", shown(n.Type))
		case strings.ContainsAny(n.Type, "/\\\x00\n") || n.Type == "." || n.Type == "..":
			return fault("the node type %s cannot be part of a file's name", shown(n.Type))
		}
	}
	for i, e := range f.Edges {
		named := e.Relation != "" && e.Source != "" && e.Target != ""
		switch {
		case len(f.Nodes) == 0:
		case typed && !named:
			return fault("the table of edges %s needs a Relation, and the types of its Source and Target, because nodes have types", e.Path)
		case !typed && (e.Relation != "" || e.Source != "" || e.Target != ""):
			return fault("the table of edges %s names types, but the nodes have none; give the table of nodes a Type", e.Path)
		case !typed && i > 0:
			return fault("there are %d tables of edges between nodes without types; give one table (which may be a folder of files), or types and relations", len(f.Edges))
		}
	}
	return nil
}

// profile reads all rows of a table and decides the kind of each column.
func (s *source) profile(ctx context.Context, o *Options, missing *columns.Missing) error {
	s.profs = make([]profile, len(s.table.names))
	for i, name := range s.table.names {
		s.profs[i].layout = o.layout(s.name, name)
	}
	want := slices.Repeat([]bool{true}, len(s.table.names))
	rows := 0
	err := s.table.each(ctx, want, func(b *batch) error {
		for c := range b.cols {
			s.profs[c].add(b, &b.cols[c], missing)
		}
		rows += b.n
		return nil
	})
	switch {
	case err != nil:
		return err
	case rows == 0:
		return fault("%s has no rows below the names of its columns", s.table.path)
	}
	return s.decide(o)
}

// decide sets the kind of each column: by the options, by its name, or by its values.
func (s *source) decide(o *Options) error {
	names := s.table.names
	d := columns.Table{Of: columns.Nodes, Path: filepath.Base(s.table.path), Names: names, Decimal: o.Decimal, Separator: s.table.separator}
	allowed := nodeKinds
	if s.edges {
		d.Of, allowed = columns.Edges, edgeKinds
	}
	given := map[Kind]int{}
	for _, name := range names {
		given[o.correction(s.name, name)]++
	}
	if s.edges && given[Target] > 1 {
		return fault("%s: %d columns are to be of kind target; in a table of edges that is the id of the edge's target, and a number to predict of an edge is of kind predict", s.table.path, given[Target])
	}
	predicts := s.edges && given[Predict] > 0
	for i, name := range names {
		kind := o.correction(s.name, name)
		if s.events && kind == "" {
			kind = s.eventKind(i, o)
			predicts = predicts || kind == Predict
		}
		if predicts && kind == "" && strings.EqualFold(name, string(Split)) {
			kind = Split
		}
		if !slices.Contains(allowed, kind) || s.edges && kind == Split && !predicts {
			kind = ""
		}
		if what, ok := s.table.odd[name]; ok {
			if kind != "" && kind != Skip {
				return fault("%s: the column %s has values of type %s, which are not read", s.table.path, shown(name), what)
			}
			kind = Skip
		}
		d.Kinds, d.Profiles = append(d.Kinds, columns.Kind(kind)), append(d.Profiles, &s.profs[i].Profile)
	}
	s.presets(&d)
	found, said, err := d.Decide()
	if err != nil {
		return fault("%s: %w", s.table.path, err)
	}
	for _, n := range said {
		o.say(n)
	}
	cols := make([]Column, len(names))
	for i, c := range found {
		cols[i] = Column{Name: names[i], Kind: Kind(c.Kind), Why: c.Why, Notation: string(c.Notation), Numbered: c.Numbered, Set: c.Set, Every: c.Every}
		s.profs[i].notation = c.Notation
		if names[i] == s.byName {
			cols[i].Why = "by its name"
		}
		switch what, odd := s.table.odd[names[i]]; {
		case odd:
			cols[i].Why = "values of type " + what + " are not read"
			o.say(notice.Notice{Kind: notice.Dropped, Where: d.Path, What: fmt.Sprintf("the column %s has values of type %s, which are not read", shown(names[i]), what)})
		case c.Kind == "" && s.table.unnamed[names[i]]:
			return fault("%s: line 1: column %d has no name", s.table.path, i+1)
		case slices.Contains(masks[:], cols[i].Kind) && slices.ContainsFunc(cols[:i], func(o Column) bool { return o.Kind == cols[i].Kind && o.Set == cols[i].Set }):
			return fault("%s: two columns are masks of one split, and one of them is %s; say what it is in Kinds (--kinds)", s.table.path, shown(names[i]))
		}
	}
	if err := s.ends(cols); err != nil {
		return err
	}
	if err := s.checkTime(cols); err != nil {
		return err
	}
	if s.events {
		if err := s.eventTime(cols); err != nil {
			return err
		}
	}
	for i := range cols {
		if err := s.settle(&cols[i], &s.profs[i], o); err != nil {
			return err
		}
	}
	s.guessTarget(cols, o)
	s.kind.Columns = cols
	return nil
}

// ends returns an error if no column has the ids.
func (s *source) ends(cols []Column) error {
	need := []Kind{ID}
	if s.edges {
		need = []Kind{Source, Target}
	}
	for k, kind := range need {
		switch {
		case slices.ContainsFunc(cols, func(c Column) bool { return c.Kind == kind }):
		case kind == ID && s.graphs:
			return fault("%s: no column is the id of the graphs; name it graph, or say which it is, as in Kinds: {%q: tables.ID} (--kinds graphs.%s=id); the columns are %s", s.table.path, "graphs."+cols[0].Name, cols[0].Name, strings.Join(s.table.names, ", "))
		case kind == ID:
			return fault("%s: no column is the id of the nodes; name it id, or say which it is, as in Kinds: {%q: tables.ID} (--kinds %s=id); the columns are %s", s.table.path, cols[0].Name, cols[0].Name, strings.Join(s.table.names, ", "))
		default:
			return fault("%s: no column is the %s of the edges; name it %s, or say which it is in Kinds (--kinds); the columns are %s", s.table.path, kind, []string{"source", "target"}[k], strings.Join(s.table.names, ", "))
		}
	}
	return nil
}

// settle guesses the kind of a column that has none, and checks those that need a certain form.
func (s *source) settle(c *Column, p *profile, o *Options) (err error) {
	where := fmt.Sprintf("%s: column %q", s.table.path, c.Name)
	layout := o.layout(s.name, c.Name)
	switch {
	case c.Kind == "" && layout != "":
		c.Kind, c.Why = Date, "as given"
	case c.Kind == "" && s.edges && !s.many && !s.events:
		kind, why, err := p.guess(where, o.oneHot())
		if err != nil {
			why = "values of several kinds"
		} else if kind != Skip {
			why = string(kind) + ", but a feature of edges only if Kinds says so"
		}
		c.Kind, c.Why = Skip, why
	case c.Kind == "":
		if c.Kind, c.Why, err = p.guess(where, o.oneHot()); err != nil {
			return err
		}
		if c.Kind == Number && strings.HasSuffix(c.Name, "_id") && p.fractions() == 0 {
			c.Kind, c.Why = Skip, "ids of something else, by its name"
		}
		if k, many := p.Distinct(); s.graphs && c.Kind == Category && (many || 2*k > p.Rows) {
			c.Kind, c.Why = Skip, "names: most graphs have another value"
			o.say(notice.Notice{Kind: notice.Dropped, Where: filepath.Base(s.table.path), What: fmt.Sprintf("the column %s has another value for most graphs, so it is a name and no feature", shown(c.Name)), Option: columns.Option(c.Name, columns.Category) + " reads it otherwise"})
		}
	}
	if c.Kind == Label && p.fractions() > 0 {
		if c.Why == "as given" || p.numbers() < p.Present() {
			return fault("%s: %w", where, columns.ErrFractions)
		}
		c.Kind, c.Why = Target, "by its name, and numbers with fractions"
		o.say(notice.Notice{Kind: notice.Guessed, Where: filepath.Base(s.table.path), What: fmt.Sprintf("the column %s has numbers with fractions, so it is a number to predict and no class", shown(c.Name)), Count: p.Present(), Option: columns.Option(c.Name, columns.Number) + " reads it otherwise"})
	}
	switch c.Kind {
	case Label:
		s.sayAmounts(c, p, o)
	case Target:
		if !s.edges {
			if err := s.checkNumbers(c, p, where, o); err != nil {
				return err
			}
		}
	case Predict:
		if err := s.checkNumbers(c, p, where, o); err != nil {
			return err
		}
	case Date, Time:
		if p.words == 0 {
			break
		}
		if c.Layout = layout; layout != "" {
			break
		}
		if p.dates < p.words {
			if c.Kind == Time && p.dates == 0 && p.words < p.Present() {
				break
			}
			return fault("%s: it is a %s, and %s (%s) is in no known layout; say how dates are written, as in Layouts: {%q: %q} (--date-layout), correct it, or name the word in Missing (--missing) if it means missing", where, c.Kind, shown(p.firstNoDate.value), p.firstNoDate.at, c.Name, "2006-01-02")
		}
		if c.Layout, err = p.dateLayout(where); err != nil {
			return err
		}
	}
	if s.events && c.Kind == Time && p.clocks.zoneless > 0 {
		sayUTC(filepath.Base(s.table.path), c.Name, p.clocks.zoneless, o.say)
	}
	return c.setUnit(where, p, o)
}

// fewValues is the largest number of different whole numbers of a target that may be classes.
const fewValues = 20

// checkNumbers returns an error for a target that is no number, and says if it may be a class.
func (s *source) checkNumbers(c *Column, p *profile, where string, o *Options) error {
	switch n := p.Present(); {
	case n == 0:
		return fault("%s: it is a target, and every value is missing; a network learns from known ones, so skip the column", where)
	case p.instants > 0:
		return fault("%s: it is a target, and has dates; make numbers of them, such as days, or give the column another kind (--kinds)", where)
	case p.numbers() < n:
		way := fmt.Sprintf(", or take the kind label, which is for classes (%s)", columns.Option(c.Name, columns.Label))
		if s.edges {
			way = ""
		}
		return fault("%s: it is a target, and %s (%s) is no number; correct it, name the word in Missing (--missing) if it means missing%s", where, shown(p.firstWord.value), p.firstWord.at, way)
	}
	if s.edges {
		return nil // classes of edges are not predicted
	}
	if k, many := p.Distinct(); !many && k <= fewValues && p.fractions() == 0 && 4*k <= p.Present() {
		o.say(notice.Notice{Kind: notice.Told, Where: filepath.Base(s.table.path), What: fmt.Sprintf("the target %s has only %d different whole numbers; if they are classes and no amounts, %s makes classes of them", shown(c.Name), k, columns.Option(c.Name, columns.Label))})
	}
	return nil
}

// sayAmounts says that the numbers of a label may be amounts, if they are many.
func (s *source) sayAmounts(c *Column, p *profile, o *Options) {
	if k, _ := p.Distinct(); p.numbers() == p.Present() && k > fewValues {
		o.say(notice.Notice{Kind: notice.Told, Where: filepath.Base(s.table.path), What: fmt.Sprintf("the label %s has %d different whole numbers; if they are amounts and no classes, %s predicts numbers", shown(c.Name), k, columns.Option(c.Name, columns.Target))})
	}
}

// Look finds the kinds of the columns without writing anything. The recipe has no fitted values; print it, and correct
// it by [Options].Kinds.
func Look(ctx context.Context, f Files, o Options) (*Recipe, error) {
	nodes, edges, err := f.open(&o)
	if err != nil {
		return nil, err
	}
	graphs, err := f.openGraphs(&o)
	if err != nil {
		return nil, err
	}
	return look(ctx, &f, graphs, nodes, edges, &o)
}

func look(ctx context.Context, f *Files, graphs *source, nodes, edges []*source, o *Options) (*Recipe, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	all := slices.Concat(nodes, edges)
	if graphs != nil {
		all = append(all, graphs)
	}
	if f.Questions != "" {
		s, err := f.openQuestions(o)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if err := o.checkKinds(all); err != nil {
		return nil, err
	}
	r := &Recipe{Version: RecipeVersion, Missing: o.Missing, Present: o.Present, Fit: o.fit(), Undirected: o.Undirected, Reverses: o.Reverses, Seed: o.Seed, Encode: o.Encode, Events: f.Events}
	missing := r.missing()
	if graphs != nil {
		if err := graphs.profile(ctx, o, missing); err != nil {
			return nil, err
		}
		r.Graphs = &graphs.kind
	}
	for _, s := range nodes {
		if err := s.profile(ctx, o, missing); err != nil {
			return nil, err
		}
		r.Nodes = append(r.Nodes, s.kind)
	}
	for _, s := range edges {
		if err := s.profile(ctx, o, missing); err != nil {
			return nil, err
		}
		r.Edges = append(r.Edges, s.kind)
	}
	if f.Events && len(nodes) == 0 {
		if err := r.addEnds(edges, f.Bipartite); err != nil {
			return nil, err
		}
	}
	return r, r.graphColumn(nodes, edges)
}

// Read makes a dataset of tables and writes it as the directory dir, which must not exist unless Options.Replace is
// set. It prints the kinds of the columns and what becomes of them, unless Options.Quiet is set.
//
// Nothing is left of dir after an error or a kill. The bits of the result depend only on the tables and the options, not on
// threads or on how the rows are divided into files. The caller closes the dataset, which is that of
// [dataset.Open].
//
// Cost: three passes over the tables of nodes and two or three over those of edges, in batches; in memory are the arrays
// of the result, about 24 bytes and the text of the id for each node, and 28 bytes for each edge while the graph is
// built.
func Read(ctx context.Context, dir string, f Files, o Options) (*dataset.Dataset, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := free(dir, o.Replace); err != nil {
		return nil, err
	}
	if o.Encode != "" {
		if _, err := encode.Parse(o.Encode); err != nil || f.Graphs == "" {
			return nil, fault("Encode (--encode) is %s: %w", shown(o.Encode), cmp.Or(err, errOneGraph))
		}
	}
	sources, edgeSources, err := f.open(&o)
	if err != nil {
		return nil, err
	}
	graphSource, err := f.openGraphs(&o)
	if err != nil {
		return nil, err
	}
	_, given := o.fitUntil()
	questions, err := f.openQuestions(&o)
	if err != nil {
		return nil, err
	}
	switch {
	case given && !f.Events && o.Recipe == nil:
		return nil, fault("Fit (--fit) is %s, which is a time, and the rows are no events; give train or all", shown(o.Fit))
	case questions != nil && o.Recipe != nil:
		return nil, fault("Questions (--questions) and a Recipe are given; the classes of answers are not part of a recipe, so read the questions with the first tables")
	case f.Events && f.Graphs != "":
		return nil, fault("the tables are of events and of many graphs; a graph of events is one graph")
	case f.Bipartite && (!f.Events || len(f.Nodes) > 0 || len(f.Edges) != 1):
		return nil, fault("Bipartite (--bipartite) is for one table of events without tables of nodes; name types in the names of the files, events.SOURCE.RELATION.TARGET")
	case len(sources) == 0 && !f.Events || len(edgeSources) == 0:
		return nil, fault("there are %d tables of nodes and %d of edges; a graph needs one of each", len(sources), len(edgeSources))
	}
	r := o.Recipe
	if r == nil {
		if r, err = look(ctx, &f, graphSource, sources, edgeSources, &o); err != nil {
			return nil, err
		}
	} else {
		if r.Events != f.Events || r.Ends != (f.Events && len(sources) == 0) {
			return nil, fault("the recipe is of events, or of events without tables of nodes, and the tables are not, or the other way round; read both in the same way")
		}
		if err := r.match(sources, edgeSources, &o); err != nil {
			return nil, err
		}
		if (r.Graphs == nil) != (graphSource == nil) {
			return nil, fault("the recipe is of a dataset of many graphs, or the tables are, but not both: one of them has a table of graphs")
		}
		if graphSource != nil {
			if err := graphSource.match(r.Graphs, &o); err != nil {
				return nil, err
			}
		}
		own := *r // Read writes what the recipe of another dataset does not have
		r = &own
	}
	switch {
	case o.Split != "" && f.Graphs == "" && !r.predicts():
		return nil, fault("Split (--split) is %s: %w", shown(o.Split), errOneSplit)
	case f.Graphs != "" && r.predicts():
		return nil, fault("a column of edges is a number to predict, and the tables are of many graphs, whose edges are not predicted; skip the column (--kinds), or leave graphs.csv out")
	}
	missing := r.missing()
	all := make([]*nodes, len(sources))
	if r.Ends {
		if all, err = r.readEnds(ctx, edgeSources, missing); err != nil {
			return nil, err
		}
	}
	var of *within
	if graphSource != nil {
		of = &within{local: r.Nodes[0].Local}
		if of.graphs, err = r.readGraphs(ctx, graphSource, &o, missing); err != nil {
			return nil, err
		}
	}
	for i, s := range sources {
		n := &nodes{t: &r.Nodes[i], missing: missing, seed: r.Seed, idx: &index{}, within: of}
		n.draw = (n.t.column(Label) != nil || n.t.column(Target) != nil) && !n.t.split()
		all[i] = n
		if o.Recipe == nil {
			err := n.fit(ctx, s.table, &o)
			if errors.Is(err, errLocal) { // read again, with the graphs before the ids
				of.local, n.t.Local = true, true
				n.idx, n.rows = &index{}, 0
				if err = r.graphColumn(sources, edgeSources); err == nil {
					err = n.fit(ctx, s.table, &o)
				}
			}
			if err != nil {
				return nil, err
			}
		}
		if err := n.encode(ctx, s.table, o.Recipe != nil); err != nil {
			return nil, err
		}
		n.say(s.table, &o)
		if of != nil {
			n.group(s.table, &o)
		}
	}
	list, err := r.readEdges(ctx, edgeSources, all, &o, missing)
	if err != nil {
		return nil, err
	}
	if r.Events {
		if err := r.settleTimes(list, &o); err != nil {
			return nil, err
		}
		r.sayOneKind(list, all[0].idx.n, &o)
	}
	if err := r.settleNodeTimes(all, list, &o); err != nil {
		return nil, err
	}
	if !o.Quiet {
		fmt.Print(r)
	}
	d, err := r.dataset(all, list, &o)
	if err != nil {
		return nil, err
	}
	r.putNodeTimes(d, all, &o)
	if err := r.sayTelling(d, &o); err != nil {
		return nil, err
	}
	if of != nil {
		r.putGraphs(d, of, &o)
	}
	if questions != nil {
		q, err := r.readQuestions(ctx, questions, all, &o, missing)
		if err != nil {
			return nil, err
		}
		if err := d.SetQuestions(q); err != nil {
			return nil, err
		}
	}
	if r.Encode != "" {
		if d, err = r.addEncodings(ctx, d, &o); err != nil {
			return nil, err
		}
	}
	d.Meta.Source = "tables " + f.describe()
	return finish(ctx, dir, d, r, all, &o)
}

// readEdges fits, unless a recipe is given, and reads all tables of edges.
func (r *Recipe) readEdges(ctx context.Context, sources []*source, all []*nodes, o *Options, missing *columns.Missing) ([]*edges, error) {
	if o.Recipe == nil {
		width := 0
		var trains []func(row int) bool
		if r.Events && slices.ContainsFunc(r.Edges, func(t Table) bool {
			return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Kind.feature() })
		}) {
			var err error
			if trains, err = r.trainRows(ctx, sources, o, missing); err != nil {
				return nil, err
			}
		}
		for i, s := range sources {
			var keep func(row int) bool
			if trains != nil {
				keep = trains[i]
			}
			if err := fitEdges(ctx, &r.Edges[i], s.table, width, o, missing, keep); err != nil {
				return nil, err
			}
			width += r.Edges[i].Width
		}
	}
	width := r.edgeWidth()
	list := make([]*edges, len(r.Edges))
	for i := range r.Edges {
		list[i] = &edges{t: &r.Edges[i], missing: missing, src: all[0].idx, dst: all[0].idx, within: all[0].within}
	}
	for i, s := range sources {
		e := list[i]
		if rel := e.t.Relation; rel != nil {
			a, b := r.nodeTable(rel.Src), r.nodeTable(rel.Dst)
			if a < 0 || b < 0 {
				return nil, fault("%s: the relation %s has ends of a type that no table of nodes has", s.table.path, rel)
			}
			e.src, e.dst = all[a].idx, all[b].idx
		}
		if err := e.read(ctx, s.table, width); err != nil {
			return nil, err
		}
		e.say(s.table, o)
	}
	return list, nil
}

func (r *Recipe) nodeTable(name string) int {
	return slices.IndexFunc(r.Nodes, func(t Table) bool { return t.Type == name })
}

// match returns an error unless the tables have the columns that a recipe needs.
func (r *Recipe) match(nodes, edges []*source, o *Options) error {
	if len(nodes) != len(r.Nodes) && !r.Ends || len(edges) != len(r.Edges) {
		return fault("there are %d tables of nodes and %d of edges, and the recipe has %d and %d", len(nodes), len(edges), len(r.Nodes), len(r.Edges))
	}
	for i, s := range nodes {
		if s.kind.Type != r.Nodes[i].Type {
			return fault("%s has nodes of type %s, and the recipe has %s there", s.table.path, shown(s.kind.Type), shown(r.Nodes[i].Type))
		}
		if err := s.match(&r.Nodes[i], o); err != nil {
			return err
		}
	}
	for i, s := range edges {
		if r.Ends && len(edges) == 1 && s.kind.Relation == nil {
			s.kind.Relation = r.Edges[i].Relation
		}
		a, b := s.kind.Relation, r.Edges[i].Relation
		if (a == nil) != (b == nil) || a != nil && *a != *b {
			return fault("%s has edges of another relation than the recipe has there", s.table.path)
		}
		if err := s.match(&r.Edges[i], o); err != nil {
			return err
		}
	}
	return nil
}

// match returns an error unless a table has the columns that a recipe's table needs.
func (s *source) match(t *Table, o *Options) error {
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Kind == Skip || c.Kind == Label || c.Kind == Target && !s.edges || c.Kind == Predict || c.Kind == Split || slices.Contains(masks[:], c.Kind) || slices.Contains(s.table.names, c.Name) {
			continue
		}
		return fault("%s has no column %s, which the recipe reads as %s; its columns are %s", s.table.path, shown(c.Name), c.Kind, strings.Join(s.table.names, ", "))
	}
	for _, name := range s.table.names {
		if !slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Name == name }) {
			o.say(notice.Notice{Kind: notice.Dropped, Where: filepath.Base(s.table.path), What: fmt.Sprintf("the column %s is not read, because the recipe does not have it", shown(name))})
		}
	}
	return nil
}

// rowsOf returns the number of rows of tables of edges.
func rowsOf(list []*edges) int {
	total := 0
	for _, e := range list {
		total += len(e.from)
	}
	return total
}

// symmetric reports whether each edge of a graph without types has its reverse: the data are asked, and not the options,
// since tables often list both directions.
func symmetric(g *graphops.Graph) bool { return g.Schema == nil && g.Symmetric() }

// dataset makes the dataset of nodes and edges.
func (r *Recipe) dataset(all []*nodes, list []*edges, o *Options) (*dataset.Dataset, error) {
	counts := make([]int, len(all))
	for i, n := range all {
		counts[i] = n.from + n.rows
	}
	total := rowsOf(list)
	if total == 0 {
		return nil, fault("the tables have no edges, and a graph needs some")
	}
	if s := r.schema(counts); s != nil && r.Reverses {
		convert.SayReversed(s, "the tables", o.say)
	}
	g, err := r.graphOf(counts, list, o.Threads)
	if err != nil {
		return nil, err
	}
	if g, r.merged, err = mergeEdges(g, o.Threads); err != nil {
		return nil, err
	}
	if m := r.mergedOf(total, nil, g); m.Repeats > 0 {
		o.say(m.Notice())
	}
	d := &dataset.Dataset{Graph: g, Splits: map[string][]int32{}}
	if err := r.putEdgeTargets(d, o); err != nil {
		return nil, err
	}
	g = d.Graph
	d.Meta.Undirected = symmetric(g)
	d.Meta.EdgeFeatureNames = dataset.KeepNames(r.edgeFeatures(), "edges", o.say)
	r.putTargets(d, all, nil, nil)
	if g.Schema == nil {
		n, x := all[0], all[0].matrix()
		d.Features, d.SparseFeatures, d.Labels = x.Dense, x.Sparse, n.labels
		d.Meta.NumClasses = len(n.t.Classes)
		d.Meta.FeatureNames = dataset.KeepNames(n.t.Features(), "nodes", o.say)
		if !n.t.Numbered {
			d.Meta.ClassNames = n.t.Classes
		}
		n.eachSplit(func(name string, ids []int32) { d.Splits[name] = ids })
		return d, nil
	}
	starts := g.Schema.Starts()
	types := make([]dataset.NodeType, len(all))
	for t, n := range all {
		types[t] = dataset.NodeType{Name: n.t.Type, Count: counts[t], NumClasses: len(n.t.Classes)}
		if !n.t.Numbered {
			types[t].ClassNames = n.t.Classes
		}
		if x := n.matrix(); x.Cols() > 0 {
			types[t].FeatureNames = dataset.KeepNames(n.t.Features(), n.t.Type, o.say)
			if d.NodeFeatures == nil {
				d.NodeFeatures = make([]dataset.NodeFeatures, len(all))
			}
			d.NodeFeatures[t] = x
		}
		if n.t.Classes != nil {
			if d.Labels == nil {
				d.Labels = slices.Repeat([]int32{-1}, g.NumNodes())
			}
			copy(d.Labels[starts[t]:], n.labels)
			d.Meta.NumClasses = max(d.Meta.NumClasses, types[t].NumClasses)
		}
		n.eachSplit(func(name string, ids []int32) {
			for _, v := range ids {
				d.Splits[name] = append(d.Splits[name], int32(starts[t])+v)
			}
		})
	}
	d.Meta.NodeTypes = types
	return d, nil
}

// free returns an error if dir exists and must not be replaced.
func free(dir string, replace bool) error {
	if dir == "" {
		return fault("the directory of the dataset has no name")
	}
	_, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault("%w", err)
	case !replace:
		return fault("%s: %w; remove it, choose another directory, or set Replace (--replace)", dir, fs.ErrExist)
	}
	if _, err := os.Stat(filepath.Join(dir, RecipeFile)); err != nil {
		return fault("%s exists and has no %s, so it was not made of tables and is not replaced; remove it or choose another directory", dir, RecipeFile)
	}
	return nil
}

// finish names and checks the dataset, writes the directory and opens it.
func finish(ctx context.Context, dir string, d *dataset.Dataset, r *Recipe, all []*nodes, o *Options) (*dataset.Dataset, error) {
	if d.Meta.Name = o.Name; d.Meta.Name == "" {
		d.Meta.Name = filepath.Base(filepath.Clean(dir))
	}
	if err := convert.CheckName(d.Meta.Name); err != nil {
		return nil, fault("%w; say another in Name (--name)", phrase.Bare(err))
	}
	if err := d.Check(ctx); err != nil {
		return nil, fault("%w", err)
	}
	d.Meta.Notices = dataset.KeepNotices(append(d.Meta.Notices, o.said...))
	fill := func(tmp string) error {
		for _, n := range all {
			if n.within != nil {
				if err := n.within.graphs.writeIDs(filepath.Join(tmp, dataset.GraphNamesFile)); err != nil {
					return err
				}
			}
			if err := n.writeIDs(filepath.Join(tmp, dataset.NamesFile(n.t.Type))); err != nil {
				return err
			}
		}
		var err error
		if r.Copies, err = r.merged.write(tmp); err != nil {
			return err
		}
		if err := r.write(tmp); err != nil {
			return err
		}
		return dataset.WriteWith(ctx, tmp, d, dataset.WriteOptions{Checked: true, Inside: true})
	}
	build := atomicfile.BuildDir
	if o.Replace {
		build = atomicfile.ReplaceDir
	}
	if err := build(dir, fill); err != nil {
		return nil, fault("writing %s: %w", dir, err)
	}
	opened, err := dataset.Open(dir)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// writeIDs writes the original ids, one a line in the order of nodes.
func (n *nodes) writeIDs(path string) error {
	return atomicfile.WriteWith(path, 0o644, func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 1<<20)
		for v := range n.idx.n {
			_, _ = out.WriteString(n.idx.key(int32(v)).String()) // Flush returns the error
			_ = out.WriteByte('\n')
		}
		return out.Flush()
	})
}
