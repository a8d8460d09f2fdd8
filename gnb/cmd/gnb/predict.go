package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/tables"
)

var predictCommand = cli.Command{Name: "predict", Summary: "answer for single nodes, known or new", Run: subject{}.predict}

const predictHelp = "Answers for nodes from a trained run, at the cost of their neighbourhoods: for the nodes of the run's dataset with these ids (those of its tables, else numbers from 0; TYPE:ID where types share ids), or for the new nodes of --rows. It prints the class and its probability, the labels, the numbers or the embedding of each node. With all neighbours, the default, the answers have the bits of gnb infer on the dataset with the rows appended.\n\nFILE of --rows is a table with the columns of the dataset's tables of nodes, or the column id and then the features; that of --edges has the columns of its table of edges, or source, target and, if edges have some, weight, time and then features. The edges join new nodes to known ones and to each other. In a dataset with types give a file for each type and relation: --rows user=users.csv,item=items.csv --edges user:buys:item=buys.csv. A FILE of --rows that ends in .json has nodes and edges together, as {\"nodes\": [{\"id\": …, \"columns\": {…}}], \"edges\": [{\"source\": …, \"target\": …}]}.\n\n--pairs FILE, for runs that predict links, has the columns source and target, and each pair gets its score."

func (m subject) predict(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags(m.arguments("RUN", "[ID ...]"), predictHelp)
	var (
		o    predict.Options
		hops ranks.Fanouts
	)
	data := m.datasetFlag(fs, "answer on")
	rows := fs.String("rows", "", "`file` of new nodes, for types TYPE=FILE,…")
	edges := fs.String("edges", "", "`file` of their edges, for types RELATION=FILE,…")
	pairs := fs.String("pairs", "", "links: `file` of pairs to score")
	if err := m.fanoutFlag(fs, &hops); err != nil {
		return err
	}
	fs.Uint64Var(&o.Seed, "seed", 0, "random `seed` of the neighbours drawn by --fanout")
	fs.BoolVar(&o.Final, "final", false, "use the final weights instead of the best ones")
	fs.IntVar(&o.Layer, "layer", 0, "hidden `layer` to answer with, from 1")
	fs.IntVar(&o.MaxEdges, "max-edges", 0, "most edges of a node's neighbourhood (default 4194304)")
	fs.IntVar(&o.Threads, "threads", 0, "`threads` (default all processors)")
	m.verifyFlag(out, fs)
	rest, err := out.Parse(fs, args, m.names(), -1)
	if err != nil {
		return err
	}
	name, ids := m.split(rest)
	switch {
	case *edges != "" && *rows == "":
		return cli.Usagef("--edges %s has edges of new nodes, and --rows is missing; give the file of the nodes", *edges)
	case len(ids) > 0 && *rows != "" && *pairs == "":
		return cli.Usagef("ids and --rows are given; ask for known nodes and for new ones apart")
	case len(ids) > 0 && *pairs != "":
		return cli.Usagef("ids and --pairs are given; give one of them")
	case len(ids) == 0 && *rows == "" && *pairs == "":
		return cli.Usagef("there is nothing to answer; give the ids of nodes, or new nodes by --rows FILE")
	}
	setPredict(&o, hops, out)
	p, ds, err := m.openPredictor(ctx, out, name, *data, o)
	if err != nil {
		return err
	}
	defer ds.Close()
	defer p.Close()
	a, err := readAdditions(ctx, ds, *rows, *edges)
	if err != nil {
		return err
	}
	if *pairs != "" {
		return scorePairs(ctx, out, p, *pairs, a)
	}
	var r *predict.Answers
	if *rows != "" {
		r, err = p.New(ctx, a)
	} else {
		r, err = p.Nodes(ctx, ids...)
	}
	if err != nil {
		return err
	}
	out.Result(r)
	for i, id := range r.IDs {
		out.Printf("%s  %s\n", id, r.Line(i))
	}
	for _, n := range r.Notices {
		out.Logf("gnb predict: %s", n)
	}
	return nil
}

// setPredict sets the options that flags and the output say.
func setPredict(o *predict.Options, hops ranks.Fanouts, out *cli.Output) {
	if o.Quiet = out.JSON; !hops.Full {
		o.Fanouts = hops.List
	}
}

// answeredDataset loads the dataset to answer on: a given one, else that of the run.
func answeredDataset(ctx context.Context, out *cli.Output, run *runs.Run, given string) (*gnb.Dataset, error) {
	spec := cmp.Or(given, run.DatasetSpec())
	if spec == "" {
		return nil, cli.Usagef("run %s did not record where its dataset %s came from; name it by --dataset", run.Config.ID, run.Config.Dataset)
	}
	ds, err := options.Load(ctx, out, spec)
	if err != nil && given == "" {
		return nil, fmt.Errorf("the dataset of run %s: %w; name it by --dataset", run.Config.ID, err)
	}
	return ds, err
}

// scorePairs prints the score of each pair in a file.
func scorePairs(ctx context.Context, out *cli.Output, p *predict.Predictor, file string, a predict.Additions) error {
	columns, lines, err := tables.ReadRows(ctx, file)
	if err != nil {
		return err
	}
	src, dst := slices.Index(columns, "source"), slices.Index(columns, "target")
	if src < 0 || dst < 0 {
		return fmt.Errorf("%s has the columns %s; pairs are in the columns source and target", file, strings.Join(columns, ", "))
	}
	all := make([]predict.Pair, len(lines))
	for i, line := range lines {
		all[i] = predict.Pair{Source: line[src], Target: line[dst]}
	}
	scores, err := p.Score(ctx, all, a)
	if err != nil {
		return err
	}
	type scored struct {
		predict.Pair
		Score float32 `json:"score"`
	}
	list := make([]scored, len(all))
	for i, pair := range all {
		list[i] = scored{pair, scores[i]}
		out.Printf("%s  %s  %.6g\n", pair.Source, pair.Target, scores[i])
	}
	out.Result(map[string]any{"scores": list})
	return nil
}

// readAdditions reads new nodes and edges.
func readAdditions(ctx context.Context, ds *gnb.Dataset, rows, edges string) (a predict.Additions, err error) {
	if rows == "" {
		return a, nil
	}
	if strings.HasSuffix(strings.ToLower(rows), ".json") {
		if edges != "" {
			return a, cli.Usagef("--rows %s has the edges too; leave --edges out, or give tables", rows)
		}
		raw, err := os.ReadFile(rows)
		if err != nil {
			return a, err
		}
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			return a, fmt.Errorf("%s is not the JSON object expected, {\"nodes\": […], \"edges\": […]}: %w", rows, err)
		}
		return a, nil
	}
	var recipe *tables.Recipe
	if e, err := tables.NewEncoder(ds); err == nil {
		recipe = e.Recipe()
	}
	r := additions{ds: ds, recipe: recipe}
	for _, f := range filesOf(ds, rows) {
		if err := r.nodes(ctx, f.of, f.path); err != nil {
			return a, err
		}
	}
	if edges != "" {
		for _, f := range filesOf(ds, edges) {
			if err := r.edges(ctx, f.of, f.path); err != nil {
				return a, err
			}
		}
	}
	return r.a, nil
}

// typedFile is a file of the nodes of a type, or of the edges of a relation.
type typedFile struct{ of, path string }

// filesOf returns the files of a flag: one file, or in a dataset with types NAME=FILE with commas between.
func filesOf(ds *gnb.Dataset, flag string) (all []typedFile) {
	if ds.Schema() == nil {
		return []typedFile{{"", flag}}
	}
	for _, part := range strings.Split(flag, ",") {
		of, path, ok := strings.Cut(part, "=")
		if !ok {
			of, path = "", part
		}
		all = append(all, typedFile{of, path})
	}
	return all
}

// additions collects new nodes and edges of tables.
type additions struct {
	ds     *gnb.Dataset
	recipe *tables.Recipe // nil for a dataset that was not made of tables
	a      predict.Additions
}

// kinds are the names of the columns of a table of the recipe by their kinds; nil without a recipe.
func (r *additions) kinds(list []tables.Table, is func(t *tables.Table) bool) map[tables.Kind]string {
	for i := range list {
		if !is(&list[i]) {
			continue
		}
		names := map[tables.Kind]string{}
		for _, c := range list[i].Columns {
			names[c.Kind] = c.Name
		}
		return names
	}
	return nil
}

// nodes reads a table of new nodes of a type.
func (r *additions) nodes(ctx context.Context, typ, file string) error {
	columns, lines, err := tables.ReadRows(ctx, file)
	if err != nil {
		return err
	}
	id, kinds := "id", map[tables.Kind]string(nil)
	if r.recipe != nil {
		if kinds = r.kinds(r.recipe.Nodes, func(t *tables.Table) bool { return t.Type == typ }); kinds != nil {
			id = kinds[tables.ID]
		}
	}
	at := slices.Index(columns, id)
	if at < 0 {
		return fmt.Errorf("%s has no column %q, which names the new nodes; its columns are %s", file, id, strings.Join(columns, ", "))
	}
	for k, line := range lines {
		n := predict.Node{ID: line[at], Type: typ}
		if kinds != nil {
			n.Columns = valuesOf(columns, line, at)
		} else if n.Features, err = featuresOf(file, k, columns, line, at); err != nil {
			return err
		}
		r.a.Nodes = append(r.a.Nodes, n)
	}
	return nil
}

// valuesOf are the values of a row but for those at some places.
func valuesOf(columns, line []string, without ...int) map[string]string {
	all := map[string]string{}
	for c, name := range columns {
		if !slices.Contains(without, c) {
			all[name] = line[c]
		}
	}
	return all
}

// featuresOf are the numbers of a row in order, but for those at some places.
func featuresOf(file string, row int, columns, line []string, without ...int) (x []float32, err error) {
	for c, text := range line {
		if slices.Contains(without, c) {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 32)
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: the column %q is %q; it is a feature, a number", file, row+1, columns[c], text)
		}
		x = append(x, float32(v))
	}
	return x, nil
}

// edges reads a table of new edges of a relation.
func (r *additions) edges(ctx context.Context, relation, file string) error {
	columns, lines, err := tables.ReadRows(ctx, file)
	if err != nil {
		return err
	}
	source, target, kinds := "source", "target", map[tables.Kind]string(nil)
	if r.recipe != nil {
		kinds = r.kinds(r.recipe.Edges, func(t *tables.Table) bool {
			return t.Relation == nil && relation == "" || t.Relation != nil && (t.Relation.String() == relation || t.Relation.Name == relation)
		})
		if kinds != nil {
			source, target = kinds[tables.Source], kinds[tables.Target]
		}
	}
	src, dst := slices.Index(columns, source), slices.Index(columns, target)
	if src < 0 || dst < 0 {
		return fmt.Errorf("%s has no columns %q and %q, which are the ends of edges; its columns are %s", file, source, target, strings.Join(columns, ", "))
	}
	for k, line := range lines {
		e := predict.Edge{Source: line[src], Target: line[dst], Relation: relation}
		if kinds != nil {
			if e.Columns = valuesOf(columns, line, src, dst); len(e.Columns) == 0 {
				e.Columns = nil
			}
		} else if err := plainEdge(&e, file, k, columns, line, src, dst); err != nil {
			return err
		}
		r.a.Edges = append(r.a.Edges, e)
	}
	return nil
}

// plainEdge reads the weight, the time and the features of an edge of a dataset that was not made of tables.
func plainEdge(e *predict.Edge, file string, row int, columns, line []string, ends ...int) error {
	if c := slices.Index(columns, "weight"); c >= 0 {
		w, err := strconv.ParseFloat(line[c], 32)
		if err != nil {
			return fmt.Errorf("%s: row %d: the weight is %q; it is a number", file, row+1, line[c])
		}
		x := float32(w)
		e.Weight, ends = &x, append(ends, c)
	}
	if c := slices.Index(columns, "time"); c >= 0 {
		t, err := strconv.ParseInt(line[c], 10, 64)
		if err != nil {
			return fmt.Errorf("%s: row %d: the time is %q; it is a whole number", file, row+1, line[c])
		}
		e.Time, ends = &t, append(ends, c)
	}
	var err error
	e.Features, err = featuresOf(file, row, columns, line, ends...)
	return err
}
