package serve_test

import (
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// A server that could answer nobody, or that could not hold what it allows, does not start.
func TestBounds(t *testing.T) {
	for name, o := range map[string]serve.Options{
		"Limits.Nodes": {Limits: serve.Limits{Nodes: -1}}, "Limits.Edges": {Limits: serve.Limits{Edges: serve.MostEdges + 1}}, "Limits.Bytes": {Limits: serve.Limits{Bytes: -1}},
		"Calls": {Calls: -1}, "Connections": {Connections: serve.MostConnections + 1}, "Streams": {Streams: -1}, "Memory": {Memory: -1}, "Threads": {Threads: -1}, "times": {Drain: -time.Second},
	} {
		if _, err := serve.New(t.Context(), dataset.Karate(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
