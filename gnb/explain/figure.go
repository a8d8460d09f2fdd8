package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/internal/phrase"
)

const (
	// drawnNodes and drawnEdges are what is drawn of a neighbourhood, the nodes of the edges with the largest scores first.
	drawnNodes, drawnEdges = 40, 90
)

// Figure draws the explanation: the neighbourhood with the edges of the largest scores, columns and nodes with the largest scores, and
// the fidelity.
func (e *Explanation) Figure() *figure.Figure {
	f := figure.New(e.title()).Note("by " + string(e.Method) + "; " + strings.TrimSpace(e.Fidelity.describe(e.Output)))
	if len(e.Edges) > 0 {
		f.Network(e.network())
	}
	columns := figure.Bars{Title: "columns, over the neighbourhood", Across: true}
	if e.Graph != "" {
		columns.Title = "columns, over the graph"
	}
	lines := e.lines()
	for _, l := range lines[:min(shown, len(lines))] {
		columns.Names, columns.Values = append(columns.Names, l.name), append(columns.Values, l.all)
		note := l.value
		if e.Pair != nil {
			note += " | " + l.target
		}
		if e.Graph == "" {
			columns.Notes = append(columns.Notes, note)
		}
	}
	f.Bars(columns)
	nodes := figure.Bars{Title: "nodes, by their features", Across: true}
	for _, n := range e.Nodes[:min(shown, len(e.Nodes))] {
		nodes.Names, nodes.Values = append(nodes.Names, n.Node), append(nodes.Values, n.Score)
		nodes.Notes = append(nodes.Notes, n.Most)
	}
	f.Bars(nodes)
	if len(e.Edges) > 0 {
		d := e.Fidelity
		top := phrase.Count(d.Top, "edge")
		f.Bars(figure.Bars{
			Title: "fidelity of the edges: " + e.Output, Across: true,
			Names:  []string{"as it is", "without the top " + top, "without as many at random", "with the top " + top + " alone", "with as many at random"},
			Values: []float64{e.Value, d.Without, d.RandomWithout, d.Only, d.RandomOnly},
		})
	}
	return f
}

// network chooses what is drawn of the neighbourhood: edges by their scores, with the nodes that lead from them to the explained one.
func (e *Explanation) network() figure.Network {
	at := make(map[string]int, len(e.Nodes))
	for i, n := range e.Nodes {
		at[n.Node] = i
	}
	next := make([]int, len(e.Nodes)) // towards the middle, by the edge with the largest score
	for i := range next {
		next[i] = -1
	}
	for _, x := range e.Edges {
		if s, d := at[x.Src], at[x.Dst]; next[s] < 0 && e.Nodes[d].Hop == e.Nodes[s].Hop-1 {
			next[s] = d
		}
	}
	n := figure.Network{Title: "neighbourhood, edges by their scores"}
	if e.Graph != "" {
		n.Title = "graph, edges by their scores"
	}
	drawn := map[int]int{} // nodes to those of the drawing
	add := func(i int) {
		if _, ok := drawn[i]; !ok {
			drawn[i] = len(n.Nodes)
			n.Nodes = append(n.Nodes, figure.NetworkNode{Name: e.Nodes[i].Node, Hop: e.Nodes[i].Hop, Weight: e.Nodes[i].Score})
		}
	}
	for i, node := range e.Nodes {
		if node.Hop == 0 && (e.Graph == "" || len(e.Nodes) <= drawnNodes) {
			add(i)
		}
	}
	if e.Pair != nil && len(n.Nodes) == 2 && n.Nodes[0].Name != e.Pair.Source { // the source is at the left
		n.Nodes[0], n.Nodes[1] = n.Nodes[1], n.Nodes[0]
		for i, k := range drawn {
			drawn[i] = 1 - k
		}
	}
	path := func(i int) (way []int) {
		for ; i >= 0; i = next[i] {
			if _, ok := drawn[i]; !ok && !slices.Contains(way, i) {
				way = append(way, i)
			}
		}
		return way
	}
	for _, x := range e.Edges {
		way := path(at[x.Src])
		for _, i := range path(at[x.Dst]) {
			if !slices.Contains(way, i) {
				way = append(way, i)
			}
		}
		if len(n.Nodes)+len(way) > drawnNodes {
			if len(n.Nodes) == drawnNodes {
				break
			}
			continue
		}
		for _, i := range way {
			add(i)
		}
	}
	groups := map[string]int{}
	for _, x := range e.Edges {
		s, ok := drawn[at[x.Src]]
		d, too := drawn[at[x.Dst]]
		if !ok || !too || len(n.Edges) == drawnEdges {
			continue
		}
		g, known := groups[x.Relation]
		if !known && x.Relation != "" {
			g = len(n.Groups)
			groups[x.Relation] = g
			n.Groups = append(n.Groups, x.Relation)
		}
		n.Edges = append(n.Edges, figure.NetworkEdge{Src: s, Dst: d, Weight: x.Score, Group: g})
	}
	n.Note = fmt.Sprintf("%s, %s", phrase.Count(len(n.Nodes), "node"), phrase.Count(len(n.Edges), "edge"))
	if a, b := len(e.Nodes)-len(n.Nodes), len(e.Edges)-len(n.Edges); a > 0 || b > 0 {
		n.Note += fmt.Sprintf("; left out: %s, %s with smaller scores", phrase.Count(a, "node"), phrase.Count(b, "edge"))
	}
	return n
}

// Show draws the explanation in the current cell; outside a notebook it does nothing.
func (e *Explanation) Show() error { return e.Figure().Show() }
