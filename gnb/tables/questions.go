package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

// questionTable is the name of the table of questions in front of a column's name.
const questionTable = "questions"

// questionLabels are the names of columns of answers that are classes, compared as [columns.Key] does.
var questionLabels = []string{"label", "labels", "class", "classlabel", "nodelabel"}

// openQuestions opens the table of questions; nil if there is none.
func (f *Files) openQuestions(o *Options) (s *source, err error) {
	if f.Questions == "" {
		return nil, nil
	}
	if !f.Events {
		return nil, fault("Questions (--questions) are about nodes over time, and the tables are not of events; read them as events (Events, --events)")
	}
	s = &source{name: questionTable, kind: Table{Type: questionTable}}
	s.table, err = openTable(f.Questions, &tabular.Meter{Report: o.Progress})
	return s, err
}

// readQuestions reads rows of a node, a time and answers; all are the nodes of the types.
func (r *Recipe) readQuestions(ctx context.Context, s *source, all []*nodes, o *Options, missing *columns.Missing) (*dataset.Questions, error) {
	s.profs = make([]profile, len(s.table.names))
	for i, name := range s.table.names {
		s.profs[i].layout = o.layout(s.name, name)
	}
	want := slices.Repeat([]bool{true}, len(s.table.names))
	if err := s.table.each(ctx, want, func(b *batch) error {
		for c := range b.cols {
			s.profs[c].add(b, &b.cols[c], missing)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if s.profs[0].Rows == 0 {
		return nil, fault("%s has no rows below the names of its columns", s.table.path)
	}
	of, first, err := r.questionColumns(s, all, o)
	if err != nil {
		return nil, err
	}
	return s.questions(ctx, r, of, first, o, missing)
}

// questionColumns finds what the columns are, the nodes that are asked about, and the number of the first of them.
func (r *Recipe) questionColumns(s *source, all []*nodes, o *Options) (of *nodes, first int32, err error) {
	where := filepath.Base(s.table.path)
	cols := make([]Column, len(s.table.names))
	byName, _, err := (&columns.Table{Of: columns.Edges, Path: where, Names: s.table.names}).Decide()
	if err != nil {
		return nil, 0, fault("%s: %w", s.table.path, err)
	}
	is := func(kind Kind) int { return slices.IndexFunc(cols, func(c Column) bool { return c.Kind == kind }) }
	for i, name := range s.table.names {
		cols[i] = Column{Name: name, Kind: o.correction(s.name, name), Why: "as given"}
		if !slices.Contains([]Kind{ID, Time, Label, Target, Skip}, cols[i].Kind) {
			cols[i].Kind = ""
		}
	}
	for i := range cols {
		if cols[i].Kind == "" && byName[i].Kind == columns.Time && is(Time) < 0 {
			cols[i].Kind, cols[i].Why = Time, "by its name"
		}
	}
	of = all[0]
	if is(ID) < 0 { // a column named as the nodes, else the first one
		at := -1
		for i := range cols {
			if cols[i].Kind != "" || at >= 0 {
				continue
			}
			key := columns.Key(cols[i].Name)
			if key == "id" || key == "node" || slices.ContainsFunc(all, func(n *nodes) bool { return n.t.Type != "" && columns.Key(n.t.Type) == key }) {
				at = i
			}
		}
		if at < 0 {
			at = slices.IndexFunc(cols, func(c Column) bool { return c.Kind == "" })
		}
		if at >= 0 {
			cols[at].Kind, cols[at].Why = ID, "by its name or place"
			o.say(notice.Notice{Kind: notice.Guessed, Where: where, What: fmt.Sprintf("the column %s has the ids of the nodes that are asked about", shown(cols[at].Name)), Option: "--kinds questions." + cols[at].Name + "=skip reads it otherwise"})
		}
	}
	if is(ID) < 0 || is(Time) < 0 {
		return nil, 0, fault("%s: a question has the id of a node, a time and answers, and no column is the %s; say which is, as in Kinds: {%q: tables.Time} (--kinds %s=time); the columns are %s", s.table.path, map[bool]string{true: "id", false: "time"}[is(ID) < 0], "questions.when", "questions.when", strings.Join(s.table.names, ", "))
	}
	if len(all) > 1 {
		name, found := columns.Key(cols[is(ID)].Name), -1
		var types []string
		for i, n := range all {
			types = append(types, n.t.Type)
			if columns.Key(n.t.Type) == name {
				found = i
			}
		}
		if found < 0 {
			return nil, 0, fault("%s: the nodes have the types %s, and the column %s of ids is named as none of them; name the column as the type that is asked about", s.table.path, strings.Join(types, ", "), shown(cols[is(ID)].Name))
		}
		of = all[found]
		for _, n := range all[:found] {
			first += int32(n.from + n.rows)
		}
	}
	answers := 0
	for i := range cols {
		p := &s.profs[i]
		where := fmt.Sprintf("%s: column %q", s.table.path, cols[i].Name)
		if cols[i].Kind == "" {
			cols[i].Kind, cols[i].Why = Target, "its values"
			if p.numbers() < p.Present() || slices.Contains(questionLabels, columns.Key(cols[i].Name)) && p.fractions() == 0 {
				cols[i].Kind = Label
			}
			if p.Present() == 0 {
				cols[i].Kind, cols[i].Why = Skip, "no values"
			}
		}
		switch cols[i].Kind {
		case Label, Target:
			answers++
			if cols[i].Kind == Target && (p.numbers() < p.Present() || p.instants > 0) {
				return nil, 0, fault("%s: it is a number to predict, and %s (%s) is no number; correct it, or take the kind label (--kinds questions.%s=label)", where, shown(p.firstWord.value), p.firstWord.at, cols[i].Name)
			}
		case Time:
			unit := *o
			if r.TimeUnit != "" {
				unit.TimeUnit = r.TimeUnit
			}
			s.events = true // times without a zone are said to be in UTC
			if err := s.settle(&cols[i], p, &unit); err != nil {
				return nil, 0, err
			}
			if l := cols[i].Layout; l != "" && !strings.Contains(l, "Z07") && !strings.Contains(l, "-07") {
				sayUTC(filepath.Base(s.table.path), cols[i].Name, p.Present(), o.say)
			}
			switch {
			case cols[i].Epoch && r.TimeUnit == "":
				return nil, 0, fault("%s: it has dates, and the times of the events are plain numbers; write both alike, or say the unit of the events' times (TimeUnit, --time-unit)", where)
			case cols[i].Unit != "" && !cols[i].Epoch:
				return nil, 0, fault("%s: it has durations or times of day; a question is about a moment", where)
			}
		}
	}
	if answers == 0 {
		return nil, 0, fault("%s: besides the node and the time, no column has answers; the columns are %s", s.table.path, strings.Join(s.table.names, ", "))
	}
	s.kind.Columns = cols
	return of, first, nil
}

// questions reads the rows, and sorts them by time.
func (s *source) questions(ctx context.Context, r *Recipe, of *nodes, first int32, o *Options, missing *columns.Missing) (*dataset.Questions, error) {
	type row struct {
		node    int32
		time    int64
		answers []float32
		at      string
	}
	t := &s.kind
	at, want := places(t, s.table)
	see, clock := view{at, t}, t.column(Time)
	var answers []int // columns
	var q dataset.Questions
	classes := map[int]map[string]float32{}
	for c := range t.Columns {
		if k := t.Columns[c].Kind; k == Label || k == Target {
			answers = append(answers, c)
			if k == Label {
				classes[c] = map[string]float32{}
			}
		}
	}
	if err := s.findClasses(ctx, at, want, classes, o, missing); err != nil {
		return nil, err
	}
	for _, c := range answers {
		col := dataset.QuestionColumn{Name: t.Columns[c].Name}
		if known := classes[c]; known != nil {
			col.Classes = make([]string, len(known))
			for name, k := range known {
				col.Classes[int(k)] = name
			}
		}
		q.Columns = append(q.Columns, col)
	}
	var rows []row
	var strangers, unknown, foreign, cut int64
	var example, odd string
	if err := s.table.each(ctx, want, func(b *batch) error {
		if err := t.conform(b, at, missing); err != nil {
			return err
		}
		ids, when := see.of(b, ID), see.of(b, Time)
		for i := range b.n {
			moment, err := clock.edgeTime(b, when, i, missing)
			if err != nil {
				return err
			}
			if u, _ := unitOf(r.TimeUnit); u != noUnit && !clock.Epoch {
				if looks := likelyUnit(moment); looks != noUnit && looks != u {
					foreign, odd = foreign+1, fmt.Sprintf("%d (%s)", moment, b.at(i))
				}
			}
			x := row{time: moment, at: b.at(i)}
			some := false
			for _, c := range answers {
				y, v := float32(math.NaN()), &b.cols[at[c]]
				switch known := classes[c]; {
				case isMissing(v, i, missing):
				case known != nil:
					y = known[v.value(i)]
				default:
					z, err := numberAt(&t.Columns[c], b, v, i)
					if err != nil {
						return err
					}
					if y = float32(z); math.IsInf(float64(y), 0) {
						return fault("%s: the answer %s is %s, which is no number in float32", b.at(i), shown(t.Columns[c].Name), shown(v.value(i)))
					}
				}
				some = some || y == y
				x.answers = append(x.answers, y)
			}
			k, err := keyOf(ids, i)
			switch {
			case errors.Is(err, errNoID):
				return fault("%s: the node is missing; a question has the id of one", b.at(i))
			case err != nil:
				return fault("%s: the node is %s: %w", b.at(i), ids.value(i), err)
			}
			switch v := of.idx.find(k); {
			case v < 0:
				if strangers++; strangers == 1 {
					example = fmt.Sprintf("%s (%s)", shown(k.String()), b.at(i))
				}
				continue
			case !some:
				unknown++
				continue
			default:
				x.node = first + v
			}
			rows = append(rows, x)
		}
		cut, b.cut = cut+int64(b.cut), 0
		return nil
	}); err != nil {
		return nil, err
	}
	total := int64(len(rows)) + strangers + unknown
	if foreign > 0 {
		return nil, fault("%s: %d of %d times look like another unit than %s, the unit of the events' times, such as %s; write both in one unit", s.table.path, foreign, total, r.TimeUnit, odd)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.node, b.node)) })
	var twice int64
	for i, x := range rows {
		if i > 0 && x.time == rows[i-1].time && x.node == rows[i-1].node {
			if !slices.EqualFunc(x.answers, rows[i-1].answers, func(a, b float32) bool { return a == b || a != a && b != b }) {
				return nil, fault("%s and %s ask about one node at one time, and have different answers; keep one of them", rows[i-1].at, x.at)
			}
			twice++
			continue
		}
		q.Nodes, q.Times, q.Answers = append(q.Nodes, x.node), append(q.Times, x.time), append(q.Answers, x.answers...)
	}
	say := func(kind notice.Kind, n int64, what string) {
		if n > 0 {
			o.say(notice.Notice{Kind: kind, Where: filepath.Base(s.table.path), What: what, Count: n, Of: total})
		}
	}
	say(notice.Dropped, strangers, "questions are about nodes that no event has, such as "+example)
	say(notice.Dropped, unknown, "questions have no known answer")
	say(notice.Merged, twice, "questions are there twice, with the same answers")
	say(notice.Unrepresentable, cut, "times are rounded down to "+r.TimeUnit)
	if len(q.Nodes) == 0 {
		return nil, fault("%s: none of its %d rows is a question about a node of the events with a known answer", s.table.path, total)
	}
	for i, c := range answers {
		what := "is predicted as a number"
		if col := &q.Columns[i]; len(col.Classes) > 0 {
			what = fmt.Sprintf("is predicted as one of %d classes", len(col.Classes))
		}
		o.say(notice.Notice{Kind: notice.Guessed, Where: filepath.Base(s.table.path), What: fmt.Sprintf("the column %s of questions %s", shown(t.Columns[c].Name), what), Option: "--kinds questions." + t.Columns[c].Name + "=label, target or skip reads it otherwise"})
	}
	return &q, nil
}

// findClasses numbers the values of columns of classes, in the order of numbers or words.
func (s *source) findClasses(ctx context.Context, at []int, want []bool, classes map[int]map[string]float32, o *Options, missing *columns.Missing) error {
	const most = 10_000
	if len(classes) == 0 {
		return nil
	}
	if err := s.table.each(ctx, want, func(b *batch) error {
		for c, known := range classes {
			v := &b.cols[at[c]]
			for i := range b.n {
				if !isMissing(v, i, missing) {
					known[strings.Clone(v.value(i))] = 0
				}
			}
			if len(known) > most || len(known) > 50 && !o.ManyClasses && s.profs[c].Present() < 10*int64(len(known)) {
				return fault("%s: the column %s is a label with more than %d classes and few answers of each; if these are numbers, give it the kind target (--kinds questions.%s=target), and if not, set ManyClasses (--many-classes)", s.table.path, shown(s.kind.Columns[c].Name), min(len(known)-1, most), s.kind.Columns[c].Name)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for _, known := range classes {
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int {
			x, e1 := strconv.ParseFloat(a, 64)
			y, e2 := strconv.ParseFloat(b, 64)
			if e1 == nil && e2 == nil {
				return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
			}
			return cmp.Compare(a, b)
		})
		for i, name := range names {
			known[name] = float32(i)
		}
	}
	return nil
}
