package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/predict"
)

// Explanation says what an answer rests on: that for a node (Node), the score of a pair of nodes (Pair), or the answer for a whole graph
// (Graph). Scores have the unit of the explained output: the logit of a class or label, a number in its unit, or the score of a pair;
// those of the method [Mask] are masks between 0 and 1.
type Explanation struct {
	Run     string        `json:"run"`
	Dataset string        `json:"dataset"`
	Node    string        `json:"node,omitempty"`
	Pair    *predict.Pair `json:"pair,omitempty"`
	Graph   string        `json:"graph,omitempty"`
	Method  Method        `json:"method"`
	// Output is the class, label or target that is explained, and Value what the network gives for it: the probability of a class or
	// label, the number in its unit, or the score of a pair.
	Output string  `json:"output"`
	Value  float64 `json:"value"`
	// Than is [Options].Than.
	Than string `json:"than,omitempty"`
	// Raw are the columns of the tables that the dataset was made of, those with the largest scores first: the score of one is that of
	// all features that it became. It is nil for a dataset without tables. Features that no table has are among them.
	Raw []Raw `json:"raw,omitempty"`
	// Columns are the columns of features, those with the largest scores first. Without names, a column is its number.
	Columns []Column `json:"columns"`
	// Nodes are the nodes of the neighbourhood, by the size of the sum of the scores of their features.
	Nodes []Neighbour `json:"nodes"`
	// Edges are those of the neighbourhood, by the size of their scores.
	Edges    []Edge   `json:"edges"`
	Fidelity Fidelity `json:"fidelity"`
	// Notes say what a reader must know to understand the scores.
	Notes []string `json:"notes,omitempty"`
}

// Raw is a column of the tables.
type Raw struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"` // of the nodes that have it, in a graph with types
	// Value is what the table has for the node, or for the source of a pair: "" where it is missing, where the node is of another type,
	// and for a whole graph. Exact is false if its features do not tell the value, as of hashed texts: then Value says what is known.
	Value string  `json:"value,omitempty"`
	Exact bool    `json:"exact"`
	Own   float64 `json:"own"` // the score of the column of the node, or of the source
	// TargetValue, TargetExact and Target are these of the target of a pair.
	TargetValue string  `json:"target_value,omitempty"`
	TargetExact bool    `json:"target_exact,omitempty"`
	Target      float64 `json:"target,omitempty"`
	// All is the sum of the scores of the column over all nodes of the neighbourhood. Of the method Mask, Own, Target and All are the
	// largest instead.
	All float64 `json:"all"`
	// Features are the names of the columns of features that the column became.
	Features []string `json:"features"`
}

// Column is a column of features.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"` // of the nodes that have it, in a graph with types; "graph" for features of the whole graph
	// Value is that of the node, or of the source of a pair, as the network reads it, and Own the score of it (0 for columns of other
	// types). TargetValue and Target are those of the target of a pair. All is the sum of the scores of the column over all nodes of
	// the neighbourhood. Of the method Mask, All is the largest.
	Value       float64 `json:"value"`
	Own         float64 `json:"own"`
	TargetValue float64 `json:"target_value,omitempty"`
	Target      float64 `json:"target,omitempty"`
	All         float64 `json:"all"`
}

// named is a column's name with the type of its nodes.
func named(typ, name string) string {
	if typ == "" {
		return name
	}
	return typ + ":" + name
}

// Neighbour is a node of the neighbourhood.
type Neighbour struct {
	Node string `json:"node"`
	Type string `json:"type,omitempty"`
	// Hop is the number of edges to the explained node or to the nearer end of a pair, which are at 0, as all nodes of a whole graph are.
	Hop   int     `json:"hop"`
	Score float64 `json:"score"`
	// Most is the column of the node with the largest score, and its value: "price = 12". It is "" but for the nodes with the largest
	// scores, which text and drawings show.
	Most string `json:"most,omitempty"`

	row int
}

// Edge is an edge of the neighbourhood, from Src to Dst.
type Edge struct {
	Src      string  `json:"src"`
	Dst      string  `json:"dst"`
	Relation string  `json:"relation,omitempty"`
	Score    float64 `json:"score"`
}

// Fidelity compares the explanation with a random one: Value without the Top edges with the highest scores, with these edges alone,
// and the means of both over ten random draws of as many edges. A good explanation has Without far from Value, and Only near it, and
// both further so than at random. Source: D. Amara et al., "GraphFramEx: towards systematic evaluation of explainability methods for
// graph neural networks", LoG 2022, arXiv:2206.09677.
type Fidelity struct {
	Top           int     `json:"top"`
	Edges         int     `json:"edges"` // of the neighbourhood
	Without       float64 `json:"without"`
	Only          float64 `json:"only"`
	RandomWithout float64 `json:"random_without"`
	RandomOnly    float64 `json:"random_only"`
}

const randomDraws = 10

// explain computes scores and describes them.
func (v *view) explain() (*Explanation, error) {
	s, err := v.scores()
	if err != nil {
		return nil, err
	}
	n, e := v.n, v.n.e
	e.Method, e.Than, e.Value, e.Output = v.o.Method, v.o.Than, v.value(v.first), fmt.Sprint(v.output)
	if v.output < len(n.outputs) {
		e.Output = n.outputs[v.output]
	}
	e.Columns, e.Raw = v.columns(s.features)
	slices.SortStableFunc(e.Columns, func(a, b Column) int { return bySize(a.All, b.All) })
	slices.SortStableFunc(e.Raw, func(a, b Raw) int { return bySize(a.All, b.All) })
	ids := make([]string, len(n.nodes))
	for i, node := range n.nodes {
		ids[i] = node.ID
		score := 0.0
		for _, x := range s.features[i*n.cols : (i+1)*n.cols] {
			score += x
		}
		e.Nodes = append(e.Nodes, Neighbour{Node: node.ID, Type: node.Type, Hop: node.Hop, Score: score, row: i})
	}
	slices.SortStableFunc(e.Nodes, func(a, b Neighbour) int { return bySize(a.Score, b.Score) })
	for i := range e.Nodes[:min(shown, len(e.Nodes))] {
		e.Nodes[i].Most = v.most(e.Nodes[i].row, s.features)
	}
	order := make([]int, len(v.edges))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bySize(s.edges[a], s.edges[b]) })
	joined := false
	for _, i := range order {
		x := v.edges[i]
		e.Edges = append(e.Edges, Edge{ids[x.src], ids[x.dst], n.relation(x.pos), s.edges[i]})
		joined = joined || len(n.ends) == 2 && slices.Contains(n.ends, int(x.src)) && slices.Contains(n.ends, int(x.dst)) && x.src != x.dst
	}
	if joined {
		e.Notes = append(e.Notes, "the graph has an edge between the two nodes, whose message the network reads too")
	}
	e.Fidelity, err = v.fidelity(s.edges)
	return e, err
}

// most names the column with the largest score of the node of a row, with its value.
func (v *view) most(row int, scores []float64) string {
	n := v.n
	own, names := scores[row*n.cols:(row+1)*n.cols], n.features(n.nodes[row].Type)
	best, text := 0.0, ""
	take := func(inputs []int, name string, value func() string) {
		score := 0.0
		for _, c := range inputs {
			score += own[c]
		}
		if math.Abs(score) > best {
			best, text = math.Abs(score), name+" = "+value()
		}
	}
	taken := make([]bool, n.cols)
	for _, c := range n.tables(n.nodes[row].Type) {
		for _, k := range c.Inputs {
			taken[k] = true
		}
		take(c.Inputs, c.Name, func() string { return rawValue(n.raw(row, c)) })
	}
	for k, name := range names {
		if !taken[k] {
			take([]int{k}, name, func() string { return strconv.FormatFloat(float64(n.x[row*n.cols+k]), 'g', 4, 32) })
		}
	}
	return text
}

// columnsOf are the columns of the nodes of a type.
type columnsOf struct {
	first, count int // in the list of columns
	raw          int // in the list of raw columns
	tables       []predict.TableColumn
	rest         []int // columns of features of no table
}

// columns sums the scores of features over the nodes of each type: by columns of features, and by columns of tables if there are some.
func (v *view) columns(scores []float64) (all []Column, raw []Raw) {
	n := v.n
	types := map[string]columnsOf{}
	add := func(to *float64, x float64) {
		if v.o.Method == Mask {
			*to = max(*to, x)
		} else {
			*to += x
		}
	}
	for i, node := range n.nodes {
		of, ok := types[node.Type]
		if !ok {
			names := n.features(node.Type)
			of = columnsOf{first: len(all), count: len(names), raw: len(raw), tables: n.tables(node.Type)}
			for _, name := range names {
				all = append(all, Column{Name: name, Type: node.Type})
			}
			if of.tables != nil {
				raw, of.rest = rawColumns(raw, node.Type, names, of.tables)
			}
			types[node.Type] = of
		}
		row := scores[i*n.cols : (i+1)*n.cols]
		end := slices.Index(n.ends, i)
		for c := range of.count {
			switch col := &all[of.first+c]; end {
			case 0:
				col.Value, col.Own = float64(n.x[i*n.cols+c]), row[c]
			case 1:
				col.TargetValue, col.Target = float64(n.x[i*n.cols+c]), row[c]
			}
			add(&all[of.first+c].All, row[c])
		}
		if of.tables == nil {
			continue
		}
		take := func(k int, inputs []int, value func() (string, bool)) {
			r := &raw[of.raw+k]
			score := 0.0
			for _, c := range inputs {
				add(&score, row[c])
			}
			switch end {
			case 0:
				r.Own = score
				r.Value, r.Exact = value()
			case 1:
				r.Target = score
				r.TargetValue, r.TargetExact = value()
			}
			add(&r.All, score)
		}
		for k, c := range of.tables {
			take(k, c.Inputs, func() (string, bool) { return n.raw(i, c) })
		}
		for k, c := range of.rest {
			take(len(of.tables)+k, []int{c}, func() (string, bool) { return strconv.FormatFloat(float64(n.x[i*n.cols+c]), 'g', 4, 32), true })
		}
	}
	for c, x := range n.own {
		score := scores[len(n.x)+c]
		all = append(all, Column{Name: n.ownNames[c], Type: "graph", Value: float64(x), Own: score, All: score})
		if raw != nil {
			raw = append(raw, Raw{Name: n.ownNames[c], Type: "graph", Value: strconv.FormatFloat(float64(x), 'g', 4, 32), Exact: true, Own: score, All: score, Features: []string{n.ownNames[c]}})
		}
	}
	return all, raw
}

// rawColumns appends the columns of tables to a list, and the features of no table, which it returns.
func rawColumns(to []Raw, typ string, names []string, tables []predict.TableColumn) (list []Raw, rest []int) {
	taken := make([]bool, len(names))
	for _, c := range tables {
		r := Raw{Name: c.Name, Type: typ}
		for _, at := range c.Inputs {
			if at < len(names) {
				taken[at] = true
				r.Features = append(r.Features, names[at])
			}
		}
		to = append(to, r)
	}
	for c, name := range names {
		if !taken[c] {
			to, rest = append(to, Raw{Name: name, Type: typ, Features: []string{name}}), append(rest, c)
		}
	}
	return to, rest
}

func bySize(a, b float64) int { return cmp.Compare(math.Abs(b), math.Abs(a)) }

// value is the probability or the number that outputs give the explained one.
func (v *view) value(y []float32) float64 {
	x := float64(y[v.output])
	switch v.n.kind {
	case predict.Labels:
		return 1 / (1 + math.Exp(-x))
	case predict.Classes:
		sum := 0.0
		for _, z := range y {
			sum += math.Exp(float64(z) - x)
		}
		return 1 / sum
	}
	return v.n.number(v.output, float32(x))
}

func (v *view) fidelity(of []float64) (f Fidelity, err error) {
	f.Edges, f.Top = len(v.edges), v.o.Top
	if f.Top == 0 {
		f.Top = min(max(f.Edges/10, 1), 10)
	}
	f.Top = min(f.Top, f.Edges)
	order := make([]int, f.Edges)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(of[b], of[a]) }) // those that speak for the answer
	measure := func(without, only *float64, share float64) error {
		m := ones(f.Edges)
		for _, kept := range []bool{false, true} {
			for k, i := range order {
				if m[i] = 0; (k < f.Top) == kept {
					m[i] = 1
				}
			}
			y, err := v.pass(nil, m)
			if err != nil {
				return err
			}
			if kept {
				*only += share * v.value(y)
			} else {
				*without += share * v.value(y)
			}
		}
		return nil
	}
	if f.Edges == 0 {
		x := v.value(v.first)
		return Fidelity{Without: x, Only: x, RandomWithout: x, RandomOnly: x}, nil
	}
	if err := measure(&f.Without, &f.Only, 1); err != nil {
		return f, err
	}
	r := rand.New(rand.NewPCG(v.o.Seed, 0x72616e64))
	for range randomDraws {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if err := measure(&f.RandomWithout, &f.RandomOnly, 1.0/randomDraws); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Says reports whether the edges with the highest scores do more than as many at random: the answer loses more without them, or keeps
// more with them alone. It is false if Top is all edges.
func (f Fidelity) Says() bool {
	const same = 1e-6 // of sums in another order
	return f.Top < f.Edges && (f.Without < f.RandomWithout-same*math.Abs(f.Without) || f.Only > f.RandomOnly+same*math.Abs(f.Only))
}

// MarshalJSON implements [json.Marshaler]; numbers that are not finite are null.
func (e *Explanation) MarshalJSON() ([]byte, error) {
	type plain Explanation
	return json.Marshal(struct {
		*plain
		Value runfile.Number `json:"value"`
	}{(*plain)(e), runfile.Number(e.Value)})
}
