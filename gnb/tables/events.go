package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/tabular"
)

// eventRelation is the name of the relation of a table of events between two types of nodes that Files does not name.
const eventRelation = "events"

// EventLabels are the names of columns of events that are numbers to predict, compared as [columns.Key] does.
var eventLabels = []string{"label", "labels", "statelabel", "class", "y"}

// Times of the years 1980 to 2100 in seconds: a whole number in this range, or in a thousand times, a million times, a billion
// times this range, looks like a time since 1970 in that unit. The ranges are apart.
const firstLikely, lastLikely = 315_532_800, 4_102_444_800

// likelyUnit returns the unit in which a whole number looks like a time since 1970; noUnit if it does in none.
func likelyUnit(t int64) unit {
	for u := seconds; u <= nanos; u++ {
		if x := t / perSecond[u]; x >= firstLikely && x < lastLikely {
			return u
		}
	}
	return noUnit
}

// eventKind returns the kind that a column of events has by its name, "" if that says nothing.
func (s *source) eventKind(i int, o *Options) Kind {
	name, p := s.table.names[i], &s.profs[i]
	key := columns.Key(name)
	say := func(kind notice.Kind, what string, other columns.Kind) {
		o.say(notice.Notice{Kind: kind, Where: filepath.Base(s.table.path), What: fmt.Sprintf("the column %s %s", shown(name), what), Option: columns.Option(name, other) + " reads it otherwise"})
	}
	distinct, many := p.Distinct()
	switch {
	case slices.Contains(eventLabels, key) && p.numbers() < p.Present():
		say(notice.Dropped, "is a label by its name, and has words; numbers of events are predicted, and a label is no feature", columns.Category)
		return Skip
	case slices.Contains(eventLabels, key) && !many && distinct <= 1:
		say(notice.Dropped, "is a label by its name, and is the same for each event", columns.Predict)
		return Skip
	case slices.Contains(eventLabels, key):
		say(notice.Guessed, "is a number to predict of each event, by its name", columns.Skip)
		return Predict
	case (strings.HasSuffix(key, "id") || strings.HasSuffix(key, "idx") || key == "index") && p.Unique() && p.Missing == 0 && p.fractions() == 0 && p.Rows > 1:
		say(notice.Dropped, "has another value for each event, and numbers the events by its name", columns.Number)
		return Skip
	}
	return ""
}

// eventTime returns an error for a table of events without a column of times.
func (s *source) eventTime(cols []Column) error {
	if slices.ContainsFunc(cols, func(c Column) bool { return c.Kind == Time }) {
		return nil
	}
	return fault("%s: no column is the time of the events; name it time, or say which it is, as in Kinds: {%q: tables.Time} (--kinds %s=time); the columns are %s", s.table.path, s.table.names[len(s.table.names)-1], s.table.names[len(s.table.names)-1], strings.Join(s.table.names, ", "))
}

// addEnds makes tables of nodes of the ends of events, which have none of their own.
func (r *Recipe) addEnds(edges []*source, bipartite bool) error {
	if len(edges) == 1 && edges[0].kind.Relation == nil && bipartite {
		t := &edges[0].kind
		src, dst := typeOf(t.column(Source).Name, "source"), typeOf(t.column(Target).Name, "target")
		if src == dst {
			src, dst = "source", "target"
		}
		t.Relation = &graphops.Relation{Src: src, Name: eventRelation, Dst: dst}
		edges[0].name = t.name(true)
		r.Edges[0].Relation = t.Relation
	}
	r.Ends = true
	add := func(name string) {
		if r.nodeTable(name) < 0 {
			r.Nodes = append(r.Nodes, Table{Type: name, Columns: []Column{{Name: "id", Kind: ID, Why: "the ends of events"}}})
		}
	}
	for _, s := range edges {
		rel := s.kind.Relation
		if rel == nil && (len(edges) > 1 || bipartite) {
			return fault("there are %d tables of events without names of node types; one table has no types, and several are named events.SOURCE.RELATION.TARGET", len(edges))
		}
		if rel == nil {
			add("")
			continue
		}
		add(rel.Src)
		add(rel.Dst)
	}
	return nil
}

// typeOf returns the type of nodes that a column has the ids of.
func typeOf(column, otherwise string) string {
	if column == "" || len(column) > 64 || column == "." || column == ".." || strings.ContainsAny(column, "/\\\x00\n\r\t: ") {
		return otherwise
	}
	return column
}

// readEnds numbers the ends of events in the order in which the tables have them.
func (r *Recipe) readEnds(ctx context.Context, sources []*source, missing *columns.Missing) ([]*nodes, error) {
	all := make([]*nodes, len(r.Nodes))
	for i := range all {
		all[i] = &nodes{t: &r.Nodes[i], missing: missing, seed: r.Seed, idx: &index{}}
	}
	for i, s := range sources {
		src, dst := all[0], all[0]
		if rel := r.Edges[i].Relation; rel != nil {
			a, b := r.nodeTable(rel.Src), r.nodeTable(rel.Dst)
			if a < 0 || b < 0 {
				return nil, fault("%s: the recipe has no nodes of the types %s and %s", s.table.path, shown(rel.Src), shown(rel.Dst))
			}
			src, dst = all[a], all[b]
		}
		at, _ := places(&r.Edges[i], s.table)
		see, want := view{at, &r.Edges[i]}, make([]bool, len(s.table.names))
		for k := range r.Edges[i].Columns {
			if kind := r.Edges[i].Columns[k].Kind; at[k] >= 0 && (kind == Source || kind == Target) {
				want[at[k]] = true
			}
		}
		if err := s.table.each(ctx, want, func(b *batch) error {
			from, to := see.of(b, Source), see.of(b, Target)
			for row := range b.n {
				for _, end := range []struct {
					*nodes
					ids  *vec
					kind Kind
				}{{src, from, Source}, {dst, to, Target}} {
					k, err := keyOf(end.ids, row)
					switch {
					case errors.Is(err, errNoID):
						return fault("%s: the %s is missing; an event has the ids of two nodes: remove the row, or complete it", b.at(row), end.kind)
					case err != nil:
						return fault("%s: the %s is %s: %w", b.at(row), end.kind, end.ids.value(row), err)
					case strings.ContainsAny(k.word, "\n\r"):
						return fault("%s: the %s %s has a line break", b.at(row), end.kind, shown(k.word))
					}
					end.idx.add(k)
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	for _, n := range all {
		n.rows = n.idx.n
	}
	return all, nil
}

// trainRows returns which rows of each table of events are of training by their times, to which features are fitted, and notes the last
// of these times.
func (r *Recipe) trainRows(ctx context.Context, sources []*source, o *Options, missing *columns.Missing) ([]func(row int) bool, error) {
	times := make([][]int64, len(sources))
	var all []int64
	for i, s := range sources {
		t := &r.Edges[i]
		at, _ := places(t, s.table)
		clock := t.column(Time)
		see, want := view{at, t}, make([]bool, len(s.table.names))
		want[slices.Index(s.table.names, clock.Name)] = true
		if err := s.table.each(ctx, want, func(b *batch) error {
			v := see.of(b, Time)
			if err := clock.conform(b, v, missing); err != nil {
				return err
			}
			for row := range b.n {
				x, err := clock.edgeTime(b, v, row, missing)
				if err != nil {
					return err
				}
				times[i] = append(times[i], x)
			}
			return nil
		}); err != nil {
			return nil, err
		}
		all = append(all, times[i]...)
	}
	slices.Sort(all)
	cut, given := o.fitUntil()
	switch {
	case len(all) == 0:
		return nil, nil
	case o.fitAll():
		cut = all[len(all)-1]
	case given && cut < all[0]:
		return nil, fault("features of events are to be fitted to the events until %d (Fit, --fit), and the first one is at %d; give a later time", cut, all[0])
	case given:
		cut = min(cut, all[len(all)-1])
	default:
		split, err := temporal.SplitTimes(all, temporal.SplitOptions{})
		if err != nil {
			return nil, fault("features of events are fitted to the events of training: %w; or fit them to all (--fit all)", phrase.Bare(err))
		}
		cut = all[split.Train-1]
	}
	r.FitUntil = &cut
	keep := make([]func(row int) bool, len(sources))
	for i := range keep {
		keep[i] = func(row int) bool { return times[i][row] <= cut }
	}
	return keep, nil
}

// settleTimes finds the unit of the times of events, and says what is odd about them.
func (r *Recipe) settleTimes(list []*edges, o *Options) error {
	own := "" // of dates, or of plain numbers
	for i, e := range list {
		c := e.t.column(Time)
		is := ""
		if c.Epoch {
			is = c.Unit
		}
		if i > 0 && is != own {
			return fault("the times of %s are in %s and those of %s in %s; say one unit for all, as in TimeUnit: %q (--time-unit s), and give all tables dates or none", list[0].t.name(true), cmp.Or(own, "plain numbers"), e.t.name(true), cmp.Or(is, "plain numbers"), "s")
		}
		own = is
	}
	if own == "" {
		if err := r.plainUnit(list, o); err != nil {
			return err
		}
		own = r.TimeUnit
	} else {
		r.TimeUnit = own
	}
	where := "events"
	var n, early, late, disorder int64
	last, some := int64(0), false
	now := int64(0)
	u, _ := unitOf(own)
	if u != noUnit {
		now, _, _ = countOf(time.Now(), u)
	}
	for _, e := range list {
		if c := e.t.column(Time); c.Layout != "" && !zoned(c.Layout) {
			sayUTC(e.t.name(true), c.Name, int64(len(e.times)), o.say)
		}
		for _, t := range e.times {
			n++
			if t < 0 {
				early++
			}
			if u != noUnit && t > now {
				late++
			}
			if some && t < last {
				disorder++
			} else {
				last, some = t, true
			}
		}
	}
	say := func(kind notice.Kind, count int64, what string) {
		if count > 0 {
			o.say(notice.Notice{Kind: kind, Where: where, What: what, Count: count, Of: n})
		}
	}
	say(notice.Renumbered, disorder, "events are earlier than one before them in the tables; they are sorted by time, and events of one time keep their order")
	if u != noUnit {
		say(notice.Told, early, "events are before 1970")
		say(notice.Told, late, "events are in the future of this machine's clock")
	} else {
		say(notice.Told, early, "events have negative times")
	}
	return nil
}

// zoned reports whether dates of a layout have a zone.
func zoned(layout string) bool {
	return strings.Contains(layout, "Z07") || strings.Contains(layout, "-07")
}

// sayUTC says that times without a zone are read as UTC.
func sayUTC(where, column string, n int64, say func(notice.Notice)) {
	say(notice.Notice{Kind: notice.Guessed, Where: where, What: fmt.Sprintf("the times of the column %s have no zone, and are read as UTC", shown(column)), Count: n, Option: "write them with a zone, as in 2006-01-02T15:04:05+02:00, to read them otherwise"})
}

// plainUnit finds the unit of times that are plain whole numbers: that of the options or the recipe, or the one that all look like.
func (r *Recipe) plainUnit(list []*edges, o *Options) error {
	var count [nanos + 1]int64
	var first [nanos + 1]int64
	total := int64(0)
	lo, hi := int64(0), int64(0)
	for _, e := range list {
		for _, t := range e.times {
			if total == 0 {
				lo, hi = t, t
			}
			lo, hi = min(lo, t), max(hi, t)
			total++
			u := likelyUnit(t)
			if count[u]++; count[u] == 1 {
				first[u] = t
			}
		}
	}
	looks := noUnit
	for u := seconds; u <= nanos; u++ {
		switch {
		case count[u] == 0:
		case looks == noUnit:
			looks = u
		case o.Recipe == nil && o.TimeUnit == "":
			return fault("the times are in mixed units: %d look like %s since 1970, such as %d, and %d like %s, such as %d; write them in one unit, or say in TimeUnit (--time-unit) that all are in one", count[looks], looks, first[looks], count[u], u, first[u])
		}
	}
	if o.Recipe != nil {
		if want, _ := unitOf(r.TimeUnit); want != noUnit && looks != noUnit && looks != want && count[want] == 0 {
			return fault("%d times look like %s since 1970, such as %d, and the recipe has times in %s: write them in that unit", count[looks], looks, first[looks], want)
		}
		return nil
	}
	if o.TimeUnit != "" {
		r.TimeUnit = o.TimeUnit
		return nil
	}
	switch others := count[noUnit]; {
	case looks == noUnit:
		o.say(notice.Notice{Kind: notice.Told, Where: "events", What: fmt.Sprintf("the times are numbers from %d to %d, which are no times since 1970 in s, ms, us or ns; they keep their unit", lo, hi)})
	case others > 0:
		o.say(notice.Notice{Kind: notice.Told, Where: "events", What: fmt.Sprintf("times look like %s since 1970, such as %d, and others do not, such as %d; times of 0 may be missing ones; no unit is noted", looks, first[looks], first[noUnit]), Count: others, Of: total, Option: "--time-unit " + looks.String() + " notes it"})
	default:
		r.TimeUnit = looks.String()
		o.say(notice.Notice{Kind: notice.Guessed, Where: "events", What: fmt.Sprintf("the times look like %s since 1970, from %s to %s", looks, dayOf(lo, looks), dayOf(hi, looks)), Option: "--time-unit says another unit"})
	}
	return nil
}

func dayOf(t int64, u unit) string { return u.time(t).Format(time.DateOnly) }

// putEvents gives a dataset, whose edges are at the positions at, by row, its events.
func (r *Recipe) putEvents(d *dataset.Dataset, at, numbers []int64, o *Options) {
	if !r.Events {
		return
	}
	d.Events = make([]int64, len(at))
	for i, k := range numbers {
		d.Events[k] = at[i]
	}
	d.Meta.TimeUnit, d.Meta.FeaturesUntil = r.TimeUnit, r.FitUntil
	if twice := repeated(d); twice > 0 {
		o.say(notice.Notice{Kind: notice.Told, Where: "events", What: "events have the ends and the time of another one before them; each stays an event of its own", Count: twice, Of: int64(len(at))})
	}
}

// repeated counts the events that equal an earlier one in source, target, relation and time.
func repeated(d *dataset.Dataset) (n int64) {
	type event struct {
		src, dst int32
		kind     uint16
	}
	src, dst, types := d.Graph.EdgesAt(d.Events)
	seen := map[event]struct{}{}
	for i, e := range d.Events {
		if i > 0 && d.Graph.EdgeTimes[e] != d.Graph.EdgeTimes[d.Events[i-1]] {
			clear(seen)
		}
		x := event{src: src[i], dst: dst[i]}
		if types != nil {
			x.kind = types[i]
		}
		if _, ok := seen[x]; ok {
			n++
		}
		seen[x] = struct{}{}
	}
	return n
}

// sayTelling names the columns of features that tell what a model of the events is asked.
func (r *Recipe) sayTelling(d *dataset.Dataset, o *Options) error {
	if !r.Events || o.Recipe != nil {
		return nil
	}
	e, err := temporal.Of(d)
	if err != nil {
		return fault("%w", err)
	}
	split, err := temporal.SplitTimes(e.Time, temporal.SplitOptions{})
	if err != nil { // it is said where the events are divided
		split.Train = e.Len()
	}
	if slices.ContainsFunc(r.Nodes, func(t Table) bool { return t.Width > 0 }) {
		known := make([]bool, e.Nodes)
		for i := range split.Train {
			known[e.Src[i]], known[e.Dst[i]] = true, true
		}
		late := int64(0)
		for _, k := range known {
			if !k {
				late++
			}
		}
		if late > 0 {
			o.say(notice.Notice{Kind: notice.Told, Where: "nodes", What: "nodes have no event of training, and features of nodes are fitted to them, too: to their means, deviations and categories", Count: late, Of: int64(e.Nodes), Option: "a column of splits of the nodes, with train for the known ones, fits features to those alone"})
		}
	}
	for _, t := range temporal.Tells(d, e, split.Train) {
		o.say(notice.Notice{Kind: notice.Told, Where: "events", What: t.String(), Option: columns.Option(t.Column, columns.Skip) + " leaves it out"})
	}
	return nil
}

// splitEvents divides the events with numbers to predict by time.
func splitEvents(d *dataset.Dataset, o *Options) error {
	times := make([]int64, len(d.Events))
	for i, e := range d.Events {
		times[i] = d.Graph.EdgeTimes[e]
	}
	s, err := temporal.SplitTimes(times, temporal.SplitOptions{})
	switch {
	case err != nil && o.Recipe != nil: // a few new events, which are there to be predicted
		o.say(notice.Notice{Kind: notice.Told, Where: "events", What: "the events are in no split: " + phrase.Bare(err).Error()})
		return nil
	case err != nil:
		return fault("%w", phrase.Bare(err))
	}
	parts := map[string][]int32{"train": {}, "val": {}, "test": {}}
	for _, row := range d.EdgeAnswers.LabelledRows() {
		t := float64(d.Graph.EdgeTimes[d.EdgeRows[row]])
		part := "test"
		switch {
		case t <= s.ValFrom:
			part = "train"
		case t <= s.TestFrom:
			part = "val"
		}
		parts[part] = append(parts[part], row)
	}
	d.EdgeAnswers.Splits = parts
	o.say(notice.Notice{Kind: notice.Guessed, Where: "events", What: "no column says the split of the events, so those until the 70 % quantile of all times are train, those until the 85 % quantile val, and the later ones test", Count: int64(len(d.EdgeRows)), Option: "--split time:0.8,0.1,0.1 or a column of the kind split divides them otherwise"})
	return nil
}

// sayOneKind says that the ends of events are read as ids of one kind of nodes, where their names say otherwise or no id is at both
// ends.
func (r *Recipe) sayOneKind(list []*edges, nodes int, o *Options) {
	if !r.Ends || len(r.Nodes) != 1 || r.Nodes[0].Type != "" {
		return
	}
	e := list[0]
	named := func(kind Kind) bool { return strings.HasPrefix(e.t.column(kind).Why, "by its name") }
	source := make([]bool, nodes)
	for _, v := range e.from {
		source[v] = true
	}
	common := slices.ContainsFunc(e.to, func(v int32) bool { return source[v] })
	switch {
	case !common:
		o.say(notice.Notice{Kind: notice.Told, Where: "events", What: "no id is both a source and a target of events", Option: "--bipartite makes two types of nodes of them"})
	case !named(Source) && !named(Target):
		o.say(notice.Notice{Kind: notice.Guessed, Where: "events", What: fmt.Sprintf("the columns %s and %s are read as ids of one kind of nodes", shown(e.t.column(Source).Name), shown(e.t.column(Target).Name)), Option: "--bipartite reads them as ids of two kinds"})
	}
}

// IsEvents reports whether a path is a table of events by itself, a file whose first line or schema has a column of times by its
// name, besides two others.
func IsEvents(path string) bool {
	plain := filepath.Base(path)
	for _, ending := range endings[:3] {
		plain = strings.TrimSuffix(plain, ending)
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || !slices.Contains(endings[3:], filepath.Ext(plain)) {
		return false
	}
	t, err := openTable(path, &tabular.Meter{})
	if err != nil || len(t.names) < 3 {
		return false
	}
	cols, _, err := (&columns.Table{Of: columns.Edges, Path: path, Names: t.names}).Decide()
	return err == nil && slices.ContainsFunc(cols, func(c columns.Column) bool { return c.Kind == columns.Time })
}
