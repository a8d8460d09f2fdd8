package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Explanation says what the answer for a node rests on. Scores have the unit of the explained output: the logit of a class or label, or
// a number; those of the method [Mask] are masks between 0 and 1.
type Explanation struct {
	Run     string `json:"run"`
	Dataset string `json:"dataset"`
	Node    string `json:"node"`
	Method  Method `json:"method"`
	// Output is the class, label or target that is explained, and Value what the network gives for it: the probability of a class or
	// label, or the number in its unit.
	Output string  `json:"output"`
	Value  float64 `json:"value"`
	// Columns are the columns of features, those with the largest scores first. Without features of its own names, a column is its
	// number.
	Columns []Column `json:"columns"`
	// Nodes are the nodes of the neighbourhood, by the size of the sum of the scores of their features.
	Nodes []Neighbour `json:"nodes"`
	// Edges are those of the neighbourhood, by the size of their scores.
	Edges    []Edge   `json:"edges"`
	Fidelity Fidelity `json:"fidelity"`
}

// Column is a column of features.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"` // of the nodes that have it, in a graph with types
	// Value is the node's own, as the network reads it, Own the score of it (0 for columns of other types), and All the sum of the scores of the column over all nodes of the neighbourhood.
	// Of the method Mask, All is the largest.
	Value float64 `json:"value"`
	Own   float64 `json:"own"`
	All   float64 `json:"all"`
}

// name is the column's, with the type of its nodes.
func (c Column) name() string {
	if c.Type == "" {
		return c.Name
	}
	return c.Type + ":" + c.Name
}

// Neighbour is a node of the neighbourhood.
type Neighbour struct {
	Node  string  `json:"node"`
	Type  string  `json:"type,omitempty"`
	Hop   int     `json:"hop"` // 0 is the explained node
	Score float64 `json:"score"`
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
	n := v.n
	e := &Explanation{Run: n.Run, Dataset: n.Dataset, Node: n.ID, Method: v.o.Method, Value: v.value(v.first), Output: fmt.Sprint(v.output)}
	if v.output < len(n.Columns) {
		e.Output = n.Columns[v.output]
	}
	e.Columns = v.columns(s.features)
	slices.SortStableFunc(e.Columns, func(a, b Column) int { return bySize(a.All, b.All) })
	ids := make([]string, len(n.Nodes))
	for i, node := range n.Nodes {
		ids[i] = node.ID
		score := 0.0
		for _, x := range s.features[i*n.Cols : (i+1)*n.Cols] {
			score += x
		}
		e.Nodes = append(e.Nodes, Neighbour{node.ID, node.Type, node.Hop, score})
	}
	slices.SortStableFunc(e.Nodes, func(a, b Neighbour) int { return bySize(a.Score, b.Score) })
	order := make([]int, len(v.edges))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bySize(s.edges[a], s.edges[b]) })
	for _, i := range order {
		x := v.edges[i]
		e.Edges = append(e.Edges, Edge{ids[x.src], ids[x.dst], n.Relation(x.pos), s.edges[i]})
	}
	e.Fidelity, err = v.fidelity(s.edges)
	return e, err
}

// columns sums the scores of features over the nodes of each type.
func (v *view) columns(scores []float64) (all []Column) {
	n := v.n
	type columnsOf struct{ first, count int }
	types := map[string]columnsOf{}
	for i, node := range n.Nodes {
		of, ok := types[node.Type]
		if !ok {
			names := n.FeatureNames(node.Type)
			of = columnsOf{len(all), len(names)}
			types[node.Type] = of
			for _, name := range names {
				all = append(all, Column{Name: name, Type: node.Type})
			}
		}
		for c := range of.count {
			col, x := &all[of.first+c], scores[i*n.Cols+c]
			if i == 0 {
				col.Value, col.Own = float64(n.X[c]), x
			}
			if v.o.Method == Mask {
				col.All = max(col.All, x)
			} else {
				col.All += x
			}
		}
	}
	return all
}

func bySize(a, b float64) int { return cmp.Compare(math.Abs(b), math.Abs(a)) }

// value is the probability or the number that outputs give the explained one.
func (v *view) value(y []float32) float64 {
	x := float64(y[v.output])
	switch v.n.Kind {
	case predict.Labels:
		return 1 / (1 + math.Exp(-x))
	case predict.Classes:
		sum := 0.0
		for _, z := range y {
			sum += math.Exp(float64(z) - x)
		}
		return 1 / sum
	}
	return v.n.Number(v.output, float32(x))
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

// shown is the number of rows of a table or bars of a chart.
const shown = 12

// String shows the answer, the columns, neighbours and edges with the largest scores, and the fidelity.
func (e *Explanation) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "node %s of %s: %s %.4g, by %s\n", e.Node, e.Dataset, e.Output, e.Value, e.Method)
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...string) { fmt.Fprintf(w, "%s\t\n", strings.Join(cells, "\t")) }
	rest := func(n int) {
		_ = w.Flush() // to memory
		if n > shown {
			fmt.Fprintf(&s, "and %d more\n", n-shown)
		}
	}
	row("column", "value", "score of its own", "with neighbours")
	for _, c := range e.Columns[:min(shown, len(e.Columns))] {
		row(c.name(), fmt.Sprintf("%.4g", c.Value), signed(c.Own), signed(c.All))
	}
	rest(len(e.Columns))
	if len(e.Nodes) > 1 {
		row("node", "hops away", "score of its features")
		for _, n := range e.Nodes[:min(shown, len(e.Nodes))] {
			row(n.Node, fmt.Sprint(n.Hop), signed(n.Score))
		}
		rest(len(e.Nodes))
	}
	if len(e.Edges) > 0 {
		row("edge", "relation", "score")
		for _, x := range e.Edges[:min(shown, len(e.Edges))] {
			row(x.Src+" → "+x.Dst, x.Relation, signed(x.Score))
		}
		rest(len(e.Edges))
	}
	s.WriteString(e.Fidelity.describe(e.Output))
	return phrase.Clean(s.String())
}

func signed(x float64) string { return fmt.Sprintf("%+.4f", x) }

func (f Fidelity) describe(output string) string {
	if f.Edges == 0 {
		return "it has no in-edges\n"
	}
	text := fmt.Sprintf("%s without the %s with the highest scores: %.4g (at random %.4g); with them alone: %.4g (at random %.4g)\n",
		output, phrase.Count(f.Top, "edge"), f.Without, f.RandomWithout, f.Only, f.RandomOnly)
	if f.Top == f.Edges {
		text += "these are all edges, so no other ones can be compared with them\n"
	} else if !f.Says() {
		text += "as many edges at random do as much: do not believe the scores of edges\n"
	}
	return text
}

// Figure draws the explanation: columns, neighbours and edges with the largest scores, and the fidelity.
func (e *Explanation) Figure() *figure.Figure {
	f := figure.New(fmt.Sprintf("node %s of %s: %s %.4g", e.Node, e.Dataset, e.Output, e.Value)).Note("by " + string(e.Method) + "; " + strings.TrimSpace(e.Fidelity.describe(e.Output)))
	columns := figure.Bars{Title: "columns, over the neighbourhood"}
	for _, c := range e.Columns[:min(shown, len(e.Columns))] {
		columns.Names, columns.Values = append(columns.Names, c.name()), append(columns.Values, c.All)
		columns.Notes = append(columns.Notes, fmt.Sprintf("%.4g", c.Value))
	}
	f.Bars(columns)
	nodes := figure.Bars{Title: "nodes, by their features", XLabel: "node, hops away"}
	for _, n := range e.Nodes[:min(shown, len(e.Nodes))] {
		nodes.Names, nodes.Values = append(nodes.Names, n.Node), append(nodes.Values, n.Score)
		nodes.Notes = append(nodes.Notes, fmt.Sprint(n.Hop))
	}
	f.Bars(nodes)
	if len(e.Edges) > 0 {
		edges := figure.Bars{Title: "edges"}
		for _, x := range e.Edges[:min(shown, len(e.Edges))] {
			edges.Names, edges.Values, edges.Notes = append(edges.Names, x.Src), append(edges.Values, x.Score), append(edges.Notes, "→ "+x.Dst)
		}
		f.Bars(edges)
		d := e.Fidelity
		f.Bars(figure.Bars{
			Title: "fidelity of the edges", Names: []string{"all edges", "without the top", "at random", "the top alone", "at random"},
			Values: []float64{e.Value, d.Without, d.RandomWithout, d.Only, d.RandomOnly},
		})
	}
	return f
}

// Show draws the explanation in the current cell; outside a notebook it does nothing.
func (e *Explanation) Show() error { return e.Figure().Show() }

// MarshalJSON implements [json.Marshaler]; numbers that are not finite are null.
func (e *Explanation) MarshalJSON() ([]byte, error) {
	type plain Explanation
	return json.Marshal(struct {
		*plain
		Value runfile.Number `json:"value"`
	}{(*plain)(e), runfile.Number(e.Value)})
}

// listed names outputs in an error, at most ten.
func listed(names []string) string {
	if len(names) > 10 {
		return strings.Join(names[:10], ", ") + fmt.Sprintf(" and %d more", len(names)-10)
	}
	return strings.Join(names, ", ")
}
