package nn_test

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
)

// Sizes of a typed graph fit the graph with more nodes, and no graph with other types or relations.
func TestModelConfigOn(t *testing.T) {
	schema := func(users int, names ...string) *graphops.Schema {
		s := &graphops.Schema{Relations: []graphops.Relation{{Src: "user", Name: names[0], Dst: "item"}}}
		for _, name := range names[1:] {
			s.Nodes = append(s.Nodes, graphops.NodeType{Name: name, Count: users})
		}
		return s
	}
	sizes := nn.ModelConfig{Schema: schema(3, "buys", "item", "user")}
	grown := schema(5, "buys", "item", "user")
	if on, err := sizes.On(grown); err != nil || on.Schema != grown || sizes.Schema.Nodes[0].Count != 3 {
		t.Errorf("on the graph with more nodes: %v, %v", on.Schema, err)
	}
	for want, other := range map[string]*graphops.Schema{
		"the node types user, item":    schema(3, "buys", "user", "item"),
		"the relations user:sees:item": schema(3, "sees", "item", "user"),
		"the graph has no types":       nil,
	} {
		if _, err := sizes.On(other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("on another graph: %v, want %q", err, want)
		}
	}
	if on, err := (nn.ModelConfig{In: 2}).On(grown); err != nil || on.Schema != nil {
		t.Errorf("sizes without types: %v, %v", on.Schema, err)
	}
}
