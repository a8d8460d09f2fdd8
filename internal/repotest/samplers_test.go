package repotest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// samplerNames are the samplers of bench/samplers.py, and their flags.
var samplerNames = [][2]string{
	{"uniform", "uniform"},
	{"labor", "`--sampler labor`"},
	{"labor-poisson", "`--sampler labor-poisson`"},
	{"labor-layers", "`labor`, `--layer-dependency`"},
	{"labor-4", "`labor`, `--batch-dependency 4`"},
	{"labor-16", "`labor`, `--batch-dependency 16`"},
	{"labor-64", "`labor`, `--batch-dependency 64`"},
}

// fetched counts rows of features by source, over all workers and batches.
type fetched struct{ Own, Cached, Window, Remote, Bytes int64 }

// samplerRow is a row of bench/results/samplers.json.
type samplerRow struct {
	Nodes, Edges int
	Sampling     float64 `json:"sample_ms"`
	Step         float64 `json:"step_ms"`
	Val, Test    [2]float64
	Epochs       *float64
	Seconds      *float64
	Batches      int64
	WithoutCache fetched `json:"window"`
	WithCache    fetched `json:"window_and_cache"`
}

// curves are the columns of a row that come from its curves.
func (r samplerRow) curves() string {
	reached := [2]string{"–", "–"}
	if r.Epochs != nil && r.Seconds != nil {
		reached = [2]string{fmt.Sprintf("%.2f", *r.Epochs), fmt.Sprintf("%.1f", *r.Seconds)}
	}
	return fmt.Sprintf("%.2f ± %.2f | %.2f ± %.2f | %s | %s", r.Val[0], r.Val[1], r.Test[0], r.Test[1], reached[0], reached[1])
}

// The tables of samplers in docs/accuracy.md and docs/performance.md equal the results of bench/samplers.py.
func TestSamplersTables(t *testing.T) {
	rows := map[string]samplerRow{}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "samplers.json")), &rows); err != nil {
		t.Fatal(err)
	}
	var accuracy, planted, steps, from strings.Builder
	accuracy.WriteString("| sampler | best validation accuracy | test accuracy | epochs | seconds |\n|---|---:|---:|---:|---:|\n")
	planted.WriteString("| sampler | nodes of a batch | edges | training step | best validation accuracy | test accuracy | epochs | seconds |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	steps.WriteString("| graph | sampler | nodes of a batch | edges | sampling alone | training step |\n|---|---|---:|---:|---:|---:|\n")
	from.WriteString("| sampler | rows read | of other parts | asked for | asked for with a cache |\n|---|---:|---:|---:|---:|\n")
	million := func(n int64) string { return fmt.Sprintf("%.2f million", float64(n)/1e6) }
	counted := 0
	for _, n := range samplerNames {
		if r, ok := rows["accuracy/"+n[0]]; ok {
			fmt.Fprintf(&accuracy, "| %s | %s |\n", n[1], r.curves())
			counted++
		}
		if r, ok := rows["planted/"+n[0]]; ok {
			step, ok := rows["planted-step/"+n[0]]
			if !ok {
				t.Errorf("bench/results/samplers.json has planted/%s, but not planted-step/%s", n[0], n[0])
			}
			fmt.Fprintf(&planted, "| %s | %d | %d | %.1f ms | %s |\n", n[1], step.Nodes, step.Edges, step.Step, r.curves())
			counted++
		}
		if r, ok := rows["rows/arxiv/"+n[0]]; ok {
			a, b := r.WithoutCache, r.WithCache
			if a.Own != b.Own || a.Window+a.Remote != b.Cached+b.Window+b.Remote {
				t.Errorf("%s: a cache changes the number of rows that batches read: %+v, %+v", n[0], a, b)
			}
			others := a.Window + a.Remote
			fmt.Fprintf(&from, "| %s | %s | %s | %s, %d MB | %s, %d MB |\n", n[1], million(a.Own+others), million(others), million(a.Remote), a.Bytes/1e6, million(b.Remote), b.Bytes/1e6)
			counted++
		}
	}
	for _, graph := range []string{"arxiv", "products"} {
		for _, n := range samplerNames {
			if r, ok := rows["step/"+graph+"/"+n[0]]; ok {
				name := map[string]string{"products": "products-like"}[graph]
				if name == "" {
					name = graph
				}
				fmt.Fprintf(&steps, "| %s | %s | %d | %d | %.1f ms | %.1f ms |\n", name, n[1], r.Nodes, r.Edges, r.Sampling, r.Step)
				counted++
			}
		}
	}
	if counted < 20 {
		t.Errorf("bench/results/samplers.json has only %d rows that belong into tables", counted)
	}
	compare(t, "accuracy.md", "samplers", accuracy.String())
	compare(t, "accuracy.md", "samplers-planted", planted.String())
	compare(t, "performance.md", "samplers", steps.String())
	compare(t, "performance.md", "sampler-rows", from.String())
}
