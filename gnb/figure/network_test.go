package figure_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/figure"
)

// Small graphs are drawn for any weights, with groups and without, and a graph that cannot be drawn is said.
func TestNetworkIsDrawn(t *testing.T) {
	around := figure.Network{
		Title: "around a", Note: "3 nodes", Nodes: []figure.NetworkNode{{Name: "a", Weight: 1}, {Name: "b", Hop: 1, Weight: -2}, {Name: "c", Hop: 2, Weight: math.NaN()}},
		Edges: []figure.NetworkEdge{{Src: 1, Dst: 0, Weight: 3}, {Src: 0, Dst: 1, Weight: -1}, {Src: 2, Dst: 1, Weight: math.Inf(1)}, {Src: 0, Dst: 0}},
	}
	typed := around
	typed.Title, typed.Groups = "typed", []string{"buys", "rev_buys"}
	typed.Edges = []figure.NetworkEdge{{Src: 1, Dst: 0, Weight: 3, Group: 1}, {Src: 2, Dst: 1, Weight: -1}}
	whole := figure.Network{Title: "whole", Nodes: make([]figure.NetworkNode, 5), Edges: []figure.NetworkEdge{{Src: 0, Dst: 1}, {Src: 3, Dst: 4}}}
	f := figure.New("graphs").Network(around).Network(typed).Network(whole).Network(figure.Network{Title: "none"}).
		Bars(figure.Bars{Title: "across", Across: true, Names: []string{"a long name of a column of a table", "b", "c"}, Values: []float64{-1, math.NaN(), 2}, Notes: []string{"basic", "", "3"}}).
		Bars(figure.Bars{Title: "zeros", Across: true, Names: []string{"a"}, Values: []float64{0}})
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"above 0", "buys", "no nodes", "basic", "+2"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("the drawing has no %q", want)
		}
	}
	if text := f.String(); !strings.Contains(text, "around a: 3 nodes, 4 edges; 3 nodes") {
		t.Error(text)
	}
	many := figure.Network{Nodes: make([]figure.NetworkNode, 200)}
	stray, low, group := around, around, typed
	stray.Edges = []figure.NetworkEdge{{Src: 0, Dst: 9}}
	low.Nodes = []figure.NetworkNode{{Hop: -1}}
	low.Edges = nil
	group.Edges = []figure.NetworkEdge{{Src: 0, Dst: 1, Group: 7}}
	for want, n := range map[string]figure.Network{"at most 120": many, "joins the nodes 0 and 9": stray, "negative hop": low, "of group 7": group} {
		if _, err := figure.New("x").Network(n).SVG(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
