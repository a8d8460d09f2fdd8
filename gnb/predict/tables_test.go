package predict_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/tables"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// sheet is a table in memory.
type sheet struct {
	head []string
	rows [][]string
}

func (s *sheet) add(values ...any) {
	row := make([]string, len(values))
	for i, v := range values {
		row[i] = fmt.Sprint(v)
	}
	s.rows = append(s.rows, row)
}

func (s *sheet) write(t testing.TB, path string, rows [][]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := csv.NewWriter(f).WriteAll(append([][]string{s.head}, rows...)); err != nil {
		t.Fatal(err)
	}
}

// columns are the values of a row by their columns, without those of some kinds.
func (s *sheet) columns(row []string, without ...string) map[string]string {
	all := map[string]string{}
	for i, name := range s.head {
		if !slices.Contains(without, name) {
			all[name] = row[i]
		}
	}
	return all
}

// churn is a dataset of two tables, the dataset with the last customers appended, and these as additions.
func churn(t testing.TB, o tables.Options) (old, all *gnb.Dataset, a predict.Additions) {
	t.Helper()
	const n, fresh = 80, 6
	r := rand.New(rand.NewPCG(2, 3))
	nodes := &sheet{head: []string{"id", "plan", "spent", "since", "note", "churned"}}
	edges := &sheet{head: []string{"caller", "callee", "weight", "minutes"}}
	plans, words := []string{"free", "pro", "team"}, strings.Fields("late bill call again price good bad slow fast line")
	for v := range n {
		plan, spent := plans[r.IntN(3)], fmt.Sprint(r.IntN(90))
		if v == n-1 {
			plan = "gold" // no training node has it
		}
		if v%11 == 3 || v == n-2 {
			spent = ""
		}
		note := fmt.Sprint(words[r.IntN(10)], " ", words[r.IntN(10)], " ", words[r.IntN(10)])
		nodes.add(fmt.Sprintf("c%d", v), plan, spent, fmt.Sprintf("20%02d-%02d-%02d", 10+r.IntN(10), 1+r.IntN(12), 1+r.IntN(28)), note, []string{"no", "yes"}[r.IntN(2)])
	}
	for range 4 * n {
		edges.add(fmt.Sprintf("c%d", r.IntN(n)), fmt.Sprintf("c%d", r.IntN(n)), 1+r.IntN(4), r.IntN(50))
	}
	for range 8 { // parallel edges and both directions among the new ones
		edges.add("c79", "c3", 1+r.IntN(4), r.IntN(50))
		edges.add("c3", "c79", 2, 7)
		edges.add("c78", "c79", 1+r.IntN(4), r.IntN(50))
	}
	isNew := func(id string) bool { return slices.Contains([]string{"c74", "c75", "c76", "c77", "c78", "c79"}, id) }
	var oldEdges, newEdges [][]string
	for _, e := range edges.rows {
		if isNew(e[0]) || isNew(e[1]) {
			newEdges = append(newEdges, e)
			a.Edges = append(a.Edges, predict.Edge{Source: e[0], Target: e[1], Columns: edges.columns(e, "caller", "callee")})
		} else {
			oldEdges = append(oldEdges, e)
		}
	}
	for _, row := range nodes.rows[n-fresh:] {
		a.Nodes = append(a.Nodes, predict.Node{ID: row[0], Columns: nodes.columns(row, "id", "churned")})
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	nodes.write(t, in("n1.csv"), nodes.rows[:n-fresh])
	nodes.write(t, in("n2.csv"), nodes.rows[n-fresh:])
	edges.write(t, in("e1.csv"), oldEdges)
	edges.write(t, in("e2.csv"), newEdges)
	o.Quiet = true
	o.Kinds["churned"], o.Kinds["note"] = tables.Label, tables.Text
	old, err := tables.Read(t.Context(), in("old"), tables.Of(in("n1.csv"), in("e1.csv")), o)
	if err != nil {
		t.Fatal(err)
	}
	all, err = tables.Append(t.Context(), in("all"), old, tables.Of(in("n2.csv"), in("e2.csv")), tables.AppendOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = old.Close(), all.Close() })
	return old, all, a
}

// last are the last n nodes.
func last(ds *gnb.Dataset, n int) (nodes []int32) {
	for v := ds.Nodes() - n; v < ds.Nodes(); v++ {
		nodes = append(nodes, int32(v))
	}
	return nodes
}

// Rows of the tables of a dataset become what tables.Append makes of them: unknown categories, missing values, dates, texts,
// weights and features of edges, merged edges.
func TestRowsOfTables(t *testing.T) {
	for name, c := range map[string]struct {
		tables tables.Options
		model  gnb.AnyModel
		o      gnb.ModelOptions
	}{
		"gcn weighted":       {tables.Options{Kinds: map[string]tables.Kind{}}, gnb.GCN, gnb.ModelOptions{Hidden: 16}},
		"gatv2 undirected":   {tables.Options{Undirected: true, Kinds: map[string]tables.Kind{"minutes": tables.Number}}, gnb.GATv2, gnb.ModelOptions{Hidden: 16, Heads: 2}},
		"sage dense":         {tables.Options{Undirected: true, Words: 8, Kinds: map[string]tables.Kind{"weight": tables.Skip}}, gnb.SAGE, gnb.ModelOptions{Hidden: 16, Norm: "batch"}},
		"gine unscaled text": {tables.Options{Unscaled: true, Words: 300, Kinds: map[string]tables.Kind{"minutes": tables.Category}}, gnb.GINE, gnb.ModelOptions{Hidden: 16}},
	} {
		t.Run(name, func(t *testing.T) {
			old, all, a := churn(t, c.tables)
			if c.tables.Kinds["weight"] == tables.Skip {
				for i := range a.Edges {
					delete(a.Edges[i].Columns, "weight")
				}
			}
			run := train(t, old, c.model, c.o)
			p := open(t, run, old, predict.Options{})
			got, err := p.New(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "new customers", got, infer(t, run, all, 0), last(all, 6))
			said := fmt.Sprint(got)
			for _, want := range []string{`"gold" is no category of the column "plan"`, `the column "spent" is missing, so it is taken as the mean (1 of 6)`, "c79  "} {
				if !strings.Contains(said, want) {
					t.Errorf("the answers do not say %q:\n%s", want, said)
				}
			}
			known, err := p.Nodes(t.Context(), "c3", "c0", "c73")
			if err != nil {
				t.Fatal(err)
			}
			same(t, "known customers", known, infer(t, run, old, 0), []int32{3, 0, 73})
			if class, probability := known.Class(0); class != "no" && class != "yes" || probability < .5 || probability > 1 {
				t.Errorf("customer c3 is %q with %v", class, probability)
			}
		})
	}
}

// Wrong rows of tables are refused with the row and the column.
func TestHostileRows(t *testing.T) {
	old, _, a := churn(t, tables.Options{Kinds: map[string]tables.Kind{}})
	run := train(t, old, gnb.SAGE, gnb.ModelOptions{Hidden: 16})
	p := open(t, run, old, predict.Options{})
	for name, c := range map[string]struct {
		change func(a *predict.Additions)
		kind   error
		want   string
	}{
		"unknown column":  {func(a *predict.Additions) { a.Nodes[0].Columns["age"] = "3" }, predict.ErrRequest, `row 1: the recipe has no column "age"; its columns are id, plan`},
		"missing column":  {func(a *predict.Additions) { delete(a.Nodes[1].Columns, "plan") }, predict.ErrRequest, `row 2: there is no column "plan"`},
		"no number":       {func(a *predict.Additions) { a.Nodes[0].Columns["spent"] = "much" }, predict.ErrRequest, "much"},
		"no date":         {func(a *predict.Additions) { a.Nodes[0].Columns["since"] = "yesterday" }, predict.ErrRequest, "yesterday"},
		"huge number":     {func(a *predict.Additions) { a.Nodes[0].Columns["spent"] = "1e300" }, predict.ErrRequest, "too large"},
		"not UTF-8":       {func(a *predict.Additions) { a.Nodes[0].Columns["plan"] = "\xff" }, predict.ErrRequest, "UTF-8"},
		"unknown end":     {func(a *predict.Additions) { a.Edges[0].Source = "C3" }, predict.ErrUnknownNode, "differs only in case"},
		"negative weight": {func(a *predict.Additions) { a.Edges[0].Columns["weight"] = "-1" }, predict.ErrRequest, "the weight is"},
		"zero weight":     {func(a *predict.Additions) { a.Edges[0].Columns["weight"] = "0" }, predict.ErrRequest, "which is no edge"},
		"no weight":       {func(a *predict.Additions) { delete(a.Edges[0].Columns, "weight") }, predict.ErrRequest, `there is no column "weight"`},
		"known id":        {func(a *predict.Additions) { a.Nodes[0].ID = "c3" }, predict.ErrRequest, "already"},
		"nothing":         {func(a *predict.Additions) { a.Nodes[0].Columns = nil }, predict.ErrRequest, "give the columns of the tables of old: plan, spent, since, note"},
	} {
		b := predict.Additions{Edges: slices.Clone(a.Edges[:1])}
		for _, n := range a.Nodes {
			columns := map[string]string{}
			for k, v := range n.Columns {
				columns[k] = v
			}
			b.Nodes = append(b.Nodes, predict.Node{ID: n.ID, Columns: columns})
		}
		columns := map[string]string{}
		for k, v := range a.Edges[0].Columns {
			columns[k] = v
		}
		b.Edges[0].Columns = columns
		c.change(&b)
		if _, err := p.New(t.Context(), b); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// shop is a dataset of typed tables: users and items with columns of different widths, and what users bought and follow.
func shop(t testing.TB, o tables.Options) (old, all *gnb.Dataset, a predict.Additions, news []int32) {
	t.Helper()
	const users, items, fresh = 50, 30, 4
	r := rand.New(rand.NewPCG(9, 1))
	user := &sheet{head: []string{"id", "age", "country", "label", "value"}}
	item := &sheet{head: []string{"id", "price"}}
	buys, follows := &sheet{head: []string{"source", "target", "weight"}}, &sheet{head: []string{"source", "target"}}
	for v := range users {
		user.add(fmt.Sprintf("u%d", v), 18+r.IntN(60), []string{"de", "fr", "it"}[r.IntN(3)], []string{"calm", "keen", "shy"}[r.IntN(3)], fmt.Sprintf("%.3f", 100*r.Float64()))
	}
	for v := range items {
		item.add(v, fmt.Sprintf("%.2f", 9*r.Float64()))
	}
	for range 5 * users {
		buys.add(fmt.Sprintf("u%d", r.IntN(users)), r.IntN(items), 1+r.IntN(3))
		follows.add(fmt.Sprintf("u%d", r.IntN(users)), fmt.Sprintf("u%d", r.IntN(users)))
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	var names []string
	for v := range fresh {
		names = append(names, fmt.Sprintf("u%d", users-1-v), fmt.Sprint(items-1-v))
	}
	split := func(s *sheet, name, relation string) {
		var before, after [][]string
		for _, e := range s.rows {
			if slices.Contains(names, e[0]) || slices.Contains(names, e[1]) {
				after = append(after, e)
				columns := s.columns(e, "source", "target")
				if len(columns) == 0 {
					columns = nil
				}
				a.Edges = append(a.Edges, predict.Edge{Source: e[0], Target: e[1], Relation: relation, Columns: columns})
			} else {
				before = append(before, e)
			}
		}
		s.write(t, in(name+"1.csv"), before)
		s.write(t, in(name+"2.csv"), after)
	}
	split(buys, "buys", "user:buys:item")
	split(follows, "follows", "follows")
	for typ, s := range map[string]*sheet{"user": user, "item": item} {
		n := len(s.rows) - fresh
		s.write(t, in(typ+"1.csv"), s.rows[:n])
		s.write(t, in(typ+"2.csv"), s.rows[n:])
	}
	// Both types in turn: the order of a call does not matter.
	for v := range fresh {
		row := item.rows[items-fresh+v]
		a.Nodes = append(a.Nodes, predict.Node{ID: row[0], Type: "item", Columns: item.columns(row, "id")})
		row = user.rows[users-fresh+v]
		a.Nodes = append(a.Nodes, predict.Node{ID: row[0], Type: "user", Columns: user.columns(row, "id", "label", "value")})
	}
	files := func(k string) tables.Files {
		return tables.Files{
			Nodes: []tables.Nodes{{Type: "item", Path: in("item" + k + ".csv")}, {Type: "user", Path: in("user" + k + ".csv")}},
			Edges: []tables.Edges{{Source: "user", Relation: "buys", Target: "item", Path: in("buys" + k + ".csv")}, {Source: "user", Relation: "follows", Target: "user", Path: in("follows" + k + ".csv")}},
		}
	}
	o.Quiet = true
	old, err := tables.Read(t.Context(), in("old"), files("1"), o)
	if err != nil {
		t.Fatal(err)
	}
	all, err = tables.Append(t.Context(), in("all"), old, files("2"), tables.AppendOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = old.Close(), all.Close() })
	for v := range int32(fresh) {
		news = append(news, items-fresh+v, items+users-fresh+v)
	}
	return old, all, a, news
}

// In a dataset with types, new nodes of several types follow those of their types, and answers have the bits of Infer on the
// appended tables.
func TestTypedTables(t *testing.T) {
	for name, c := range map[string]struct {
		reverses bool
		model    gnb.AnyModel
		o        gnb.ModelOptions
	}{
		"rgcn":            {true, gnb.RGCN, gnb.ModelOptions{Hidden: 16, Layers: 3, Norm: "batch"}},
		"rgcn of bases":   {false, gnb.RGCN, gnb.ModelOptions{Hidden: 16, Bases: 2}},
		"hgt":             {true, gnb.HGT, gnb.ModelOptions{Hidden: 16, Heads: 2}},
		"sage over types": {true, gnb.SAGE, gnb.ModelOptions{Hidden: 16}},
		"gcn over types":  {true, gnb.GCN, gnb.ModelOptions{Hidden: 16}},
	} {
		t.Run(name, func(t *testing.T) {
			old, all, a, news := shop(t, tables.Options{Reverses: c.reverses, Kinds: map[string]tables.Kind{"value": tables.Skip}})
			run := train(t, old, c.model, c.o)
			want, appended := infer(t, run, old, 0), infer(t, run, all, 0)
			for _, threads := range []int{1, 2} {
				p := open(t, run, old, predict.Options{Threads: threads})
				got, err := p.New(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				same(t, "new users and items", got, appended, news)
				known, err := p.Nodes(t.Context(), "u7", "item:7", "user:u0", "25")
				if err != nil {
					t.Fatal(err)
				}
				same(t, "known users and items", known, want, []int32{26 + 7, 7, 26, 25})
				if class, _ := known.Class(0); !slices.Contains([]string{"calm", "keen", "shy"}, class) {
					t.Errorf("a user's class is %q", class)
				}
				if _, err := p.Nodes(t.Context(), "item:u7"); !errors.Is(err, predict.ErrUnknownNode) {
					t.Errorf("an item named like a user: %v", err)
				}
				for wrong, change := range map[string]func(e *predict.Edge){
					"user:rev_buys:item":  func(e *predict.Edge) { e.Relation = "user:rev_buys:item" },
					"has no relation":     func(e *predict.Edge) { e.Relation = "" },
					"the source of":       func(e *predict.Edge) { e.Source, e.Target = e.Target, e.Source },
					"the source of new e": func(e *predict.Edge) { e.Source = "u99" },
				} {
					b := predict.Additions{Nodes: a.Nodes, Edges: slices.Clone(a.Edges)}
					change(&b.Edges[0])
					if _, err := p.New(t.Context(), b); err == nil || !strings.Contains(err.Error(), wrong) {
						t.Errorf("%v, want %q", err, wrong)
					}
				}
			}
		})
	}
}

// A run that predicts numbers answers with numbers in the unit of the targets, those of numbers.Predict.
func TestNumbers(t *testing.T) {
	old, all, a, news := shop(t, tables.Options{Reverses: true, Kinds: map[string]tables.Kind{"value": tables.Target, "label": tables.Skip}})
	var o numbers.Options
	o.Quiet, o.Threads, o.Workers, o.Hidden, o.Batch, o.Epochs, o.Seed, o.RunDir = true, 1, 1, 16, 16, 2, 3, t.TempDir()
	run, err := numbers.Train(t.Context(), old, o)
	if err != nil {
		t.Fatal(err)
	}
	rows := func(ds *gnb.Dataset) *dataset.Matrix {
		r, err := numbers.Predict(t.Context(), run, ds, gnb.InferOptions{Quiet: true, Threads: 1, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		return r.Rows
	}
	p := open(t, run, old, predict.Options{})
	got, err := p.New(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "new users", got, rows(all), news)
	if got.Kind != predict.Numbers || !slices.Equal(got.Columns, []string{"value"}) || got.Of(1).Numbers["value"] != got.Rows.Row(1)[0] {
		t.Errorf("the answers are %v of %v: %+v", got.Kind, got.Columns, got.Of(1))
	}
	known, err := p.Nodes(t.Context(), "u7")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a known user", known, rows(old), []int32{26 + 7})
}

// A run that predicts numbers of edges has no answers of nodes.
func TestNumbersOfEdgesAreRefused(t *testing.T) {
	ds := gnb.Must(gnb.Load(t.Context(), "ratings?users=50&items=64&degree=4"))
	var o numbers.Options
	o.Quiet, o.Threads, o.Workers, o.Hidden, o.Epochs, o.RunDir = true, 1, 1, 8, 1, t.TempDir()
	run, err := numbers.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := predict.Open(t.Context(), run, ds, predict.Options{}); err == nil || !strings.Contains(err.Error(), "take numbers.PredictEdges") {
		t.Errorf("the error is %v", err)
	}
}

// A run that predicts links answers with embeddings and with scores of pairs, those of package links, also of new nodes and
// by a decoder that reads the graph.
func TestLinks(t *testing.T) {
	for _, decoder := range []string{"dot", "mlp", "structural"} {
		t.Run(decoder, func(t *testing.T) {
			w := newWorld(t, worldOptions{})
			var o links.Options
			o.Quiet, o.Threads, o.Workers, o.Hidden, o.Dim, o.Batch, o.Epochs, o.Seed, o.RunDir, o.Decoder = true, 1, 1, 16, 8, 64, 1, 3, t.TempDir(), decoder
			run, err := links.Train(t.Context(), w.old, o)
			if err != nil {
				t.Fatal(err)
			}
			checkLinks(t, run, w)
		})
	}
	t.Run("typed", func(t *testing.T) {
		old, all, a, _ := shop(t, tables.Options{Reverses: true, Kinds: map[string]tables.Kind{"value": tables.Skip}})
		var o links.Options
		o.Quiet, o.Threads, o.Workers, o.Hidden, o.Dim, o.Batch, o.Epochs, o.Seed, o.RunDir = true, 1, 1, 16, 8, 64, 1, 3, t.TempDir()
		o.Relation, o.Model = "user:buys:item", gnb.RGCN
		run, err := links.Train(t.Context(), old, o)
		if err != nil {
			t.Fatal(err)
		}
		p := open(t, run, old, predict.Options{})
		got, err := p.Score(t.Context(), []predict.Pair{{Source: "u49", Target: "29"}, {Source: "u3", Target: "27"}, {Source: "u49", Target: "2"}}, a)
		if err != nil {
			t.Fatal(err)
		}
		want, err := links.Score(t.Context(), run, all, links.Edges{Src: []int32{79, 33, 79}, Dst: []int32{29, 27, 2}}, links.InferOptions{InferOptions: gnb.InferOptions{Quiet: true, Threads: 1, Workers: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want.Values) {
			t.Errorf("scores are %v, and links.Score says %v", got, want.Values)
		}
		if _, err := p.Score(t.Context(), []predict.Pair{{Source: "3", Target: "u3"}}, a); !errors.Is(err, predict.ErrUnknownNode) {
			t.Errorf("an item that buys: %v", err)
		}
	})
}

func checkLinks(t *testing.T, run *runs.Run, w *world) {
	t.Helper()
	o := links.InferOptions{InferOptions: gnb.InferOptions{Quiet: true, Threads: 1, Workers: 1}}
	r, err := links.Infer(t.Context(), run, w.all, filepath.Join(t.TempDir(), "e.npy"), o)
	if err != nil {
		t.Fatal(err)
	}
	embeddings, err := r.Logits()
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, run, w.old, predict.Options{})
	got, err := p.New(t.Context(), w.added)
	if err != nil || got.Kind != predict.Embeddings {
		t.Fatal(got, err)
	}
	same(t, "embeddings of new nodes", got, embeddings, w.news)
	all, e := []predict.Pair{}, links.Edges{}
	for i, pair := range [][2]int32{{120, 30}, {30, 121}, {3, 9}, {128, 122}, {120, 7}, {3, 9}} {
		name := func(v int32) string {
			if v >= oldNodes {
				return fmt.Sprintf("new%d", v)
			}
			return fmt.Sprint(v)
		}
		all = append(all, predict.Pair{Source: name(pair[0]), Target: name(pair[1])})
		e.Src, e.Dst = append(e.Src, pair[0]), append(e.Dst, pair[1])
		one, err := p.Score(t.Context(), all[i:], w.added)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Score(t.Context(), all, w.added)
		if err != nil || s[i] != one[0] {
			t.Fatalf("pair %d alone has %v, and with others %v (%v)", i, one, s, err)
		}
	}
	scores, err := p.Score(t.Context(), all, w.added)
	if err != nil {
		t.Fatal(err)
	}
	want, err := links.Score(t.Context(), run, w.all, e, o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(scores, want.Values) {
		t.Errorf("scores are %v, and links.Score says %v", scores, want.Values)
	}
}

// A run that has learned rows of nodes answers for the nodes that have some, and refuses new ones that would need one.
func TestLearnedRows(t *testing.T) {
	w := newWorld(t, worldOptions{})
	run := train(t, w.old, gnb.SAGE, gnb.ModelOptions{Hidden: 16, Embedding: 12})
	p := open(t, run, w.old, predict.Options{})
	a, err := p.Nodes(t.Context(), "3", "30")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "known nodes", a, infer(t, run, w.old, 0), []int32{3, 30})
	if _, err := p.New(t.Context(), w.added); !errors.Is(err, predict.ErrRequest) || !strings.Contains(err.Error(), "reads a learned row for each node") {
		t.Errorf("new nodes: %v", err)
	}
	if _, err := predict.Open(t.Context(), run, w.all, predict.Options{}); err == nil || !strings.Contains(err.Error(), "has learned a row for each of the 120 nodes") {
		t.Errorf("on another dataset: %v", err)
	}
	// Of two types one has features.
	old, _, more, _ := shop(t, tables.Options{Reverses: true, Kinds: map[string]tables.Kind{"value": tables.Skip, "price": tables.Skip}})
	run = train(t, old, gnb.RGCN, gnb.ModelOptions{Hidden: 16, LearnMissing: true})
	p = open(t, run, old, predict.Options{})
	if a, err = p.Nodes(t.Context(), "u7", "item:7"); err != nil {
		t.Fatal(err)
	}
	want := infer(t, run, old, 0)
	same(t, "known users and items", a, want, []int32{26 + 7, 7})
	if _, err := p.New(t.Context(), more); err == nil || !strings.Contains(err.Error(), "reads a learned row for each item") {
		t.Errorf("a new item: %v", err)
	}
	user := predict.Additions{Nodes: []predict.Node{more.Nodes[1]}, Edges: []predict.Edge{{Source: more.Nodes[1].ID, Target: "7", Relation: "buys", Columns: map[string]string{"weight": "2"}}}}
	if got, err := p.New(t.Context(), user); err != nil || got.Rows.Rows != 1 {
		t.Errorf("a new user who buys a known item: %v, %v", got, err)
	}
}
