package repotest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// bestKnown holds the cuts of Walshaw's archive for two parts with an imbalance of 5 %.
var bestKnown = map[string]int{
	"3elt": 87, "add20": 536, "bcsstk33": 9914, "crack": 182, "cti": 318, "data": 181, "fe_4elt2": 130,
	"finan512": 162, "uk": 18, "vibrobox": 10310, "wing_nodal": 1668,
}

// divided is a line of bench/results/partition.jsonl, as bench/partition prints it.
type divided struct {
	Graph      string  `json:"graph"`
	Parts      int     `json:"parts"`
	Method     string  `json:"method"`
	Seed       int     `json:"seed"`
	Edges      int     `json:"edges"`
	Cut        int     `json:"cut"`
	Imbalance  float64 `json:"imbalance"`
	CPUSeconds float64 `json:"cpu_seconds"`
	PeakMB     int     `json:"peak_mb"`
}

// The tables of bench/notes/partitioners.md equal the recorded results.
func TestPartitionPage(t *testing.T) {
	var all []divided
	for line := range strings.Lines(read(t, "bench", "results", "partition.jsonl")) {
		var d divided
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatalf("bench/results/partition.jsonl: %v in %s", err, line)
		}
		all = append(all, d)
	}
	large := "| graph | parts | method | edges cut | largest part above the mean | CPU seconds | peak memory, MB |\n|---|---|---|---|---|---|---|\n"
	ratios := map[string]map[string][]float64{} // indexed by method and graph
	for _, d := range all {
		best, walshaw := bestKnown[d.Graph]
		if !walshaw {
			seconds := "not recorded"
			if d.CPUSeconds > 0 {
				seconds = fmt.Sprintf("%.1f", d.CPUSeconds)
			}
			large += fmt.Sprintf("| %s | %d | %s | %.1f %% | %.1f %% | %s | %d |\n",
				d.Graph, d.Parts, d.Method, 100*float64(d.Cut)/float64(d.Edges), 100*(d.Imbalance-1), seconds, d.PeakMB)
			continue
		}
		if ratios[d.Method] == nil {
			ratios[d.Method] = map[string][]float64{}
		}
		ratios[d.Method][d.Graph] = append(ratios[d.Method][d.Graph], float64(d.Cut)/float64(best))
	}
	compare(t, "bench/notes/partitioners.md", "large graphs", large)

	mean := func(x []float64) float64 {
		sum := 0.0
		for _, r := range x {
			sum += math.Log(r)
		}
		return math.Exp(sum / float64(len(x)))
	}
	small := "| graph | best known cut | fast | strong |\n|---|---|---|---|\n"
	graphs := make([]string, 0, len(bestKnown))
	for g := range bestKnown {
		graphs = append(graphs, g)
	}
	slices.SortFunc(graphs, func(a, b string) int { return cmp.Compare(a, b) })
	whole := map[string][]float64{}
	for _, g := range graphs {
		row := fmt.Sprintf("| %s | %d |", g, bestKnown[g])
		for _, m := range []string{"fast", "strong"} {
			r := ratios[m][g]
			if len(r) == 0 {
				t.Fatalf("bench/results/partition.jsonl has no result of %s by %s", g, m)
			}
			whole[m] = append(whole[m], r...)
			row += fmt.Sprintf(" %.3f |", mean(r))
		}
		small += row + "\n"
	}
	small += fmt.Sprintf("| geometric mean | | %.3f | %.3f |\n", mean(whole["fast"]), mean(whole["strong"]))
	small += fmt.Sprintf("| worst of all seeds | | %.3f | %.3f |\n", slices.Max(whole["fast"]), slices.Max(whole["strong"]))
	compare(t, "bench/notes/partitioners.md", "small graphs", small)
}

// families are the graphs of bench/results/partition-metis.jsonl, by kind.
var families = []struct {
	kind   string
	graphs []string
}{
	{"meshes of Walshaw's archive", []string{"3elt", "bcsstk33", "crack", "cti", "data", "fe_4elt2", "uk", "vibrobox", "wing_nodal"}},
	{"others of Walshaw's archive", []string{"add20", "finan512"}},
	{"generated meshes", []string{"grid2:300", "grid3:40", "tri:250", "rgg:50000"}},
	{"roads", []string{"road-ny", "road-ne"}},
	{"citations and co-authors", []string{"cora", "arxiv", "coauthor_phy"}},
	{"purchases and workers", []string{"amazon_cs", "tolokers"}},
	{"social networks", []string{"twitter", "epinions"}},
	{"words", []string{"wordnet"}},
}

// The table of docs/partitioners.md that compares the default with METIS equals the recorded results: the geometric
// means of the ratios over the graphs of a kind and the seeds.
func TestMetisPage(t *testing.T) {
	type key struct {
		graph, method, balance string
		parts                  int
	}
	cuts, seconds := map[key][]float64{}, map[key][]float64{}
	for line := range strings.Lines(read(t, "bench", "results", "partition-metis.jsonl")) {
		var d struct {
			divided
			Balance string `json:"balance"`
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatalf("bench/results/partition-metis.jsonl: %v in %s", err, line)
		}
		k := key{d.Graph, d.Method, d.Balance, d.Parts}
		cuts[k] = append(cuts[k], math.Log(max(1, float64(d.Cut))))
		seconds[k] = append(seconds[k], math.Log(max(0.001, d.CPUSeconds))) // gpmetis counts in milliseconds
	}
	mean := func(x []float64) (sum float64) {
		for _, r := range x {
			sum += r
		}
		return sum / float64(len(x))
	}
	ratio := func(graphs []string, parts int, balance, method string, of map[key][]float64) string {
		var all []float64
		for _, g := range graphs {
			ours, theirs := of[key{g, "fast", balance, parts}], of[key{g, method, balance, parts}]
			if len(ours) == 0 || len(ours) != len(theirs) {
				t.Fatalf("bench/results/partition-metis.jsonl has %d results of %s in %d parts balanced by %q by fast, and %d by %s", len(ours), g, parts, balance, len(theirs), method)
			}
			all = append(all, mean(ours)-mean(theirs))
		}
		return fmt.Sprintf(" %.3f |", math.Exp(mean(all)))
	}
	text := "| graphs | parts | cut / kway's | cut / rb's | CPU time / kway's | CPU time / rb's | cut / kway's, two quantities | cut / rb's, two quantities |\n|---|---|---|---|---|---|---|---|\n"
	var whole []string
	row := func(kind string, graphs []string) {
		for _, parts := range []int{4, 16} {
			text += fmt.Sprintf("| %s | %d |", kind, parts)
			for _, of := range []map[key][]float64{cuts, seconds} {
				text += ratio(graphs, parts, "", "metis-kway", of) + ratio(graphs, parts, "", "metis-rb", of)
			}
			text += ratio(graphs, parts, "nodes,edges", "metis-kway", cuts) + ratio(graphs, parts, "nodes,edges", "metis-rb", cuts) + "\n"
		}
	}
	for _, f := range families {
		row(f.kind+" ("+strings.Join(f.graphs, ", ")+")", f.graphs)
		whole = append(whole, f.graphs...)
	}
	row("all", whole)
	labelled := []string{"cora", "arxiv", "coauthor_phy", "amazon_cs", "tolokers"}
	text += "\nNodes and training nodes balanced, graphs with a split: cut / kway's and cut / rb's" +
		strings.TrimSuffix(ratio(labelled, 4, "nodes,train", "metis-kway", cuts), " |") + " and" + strings.TrimSuffix(ratio(labelled, 4, "nodes,train", "metis-rb", cuts), " |") + " in 4 parts," +
		strings.TrimSuffix(ratio(labelled, 16, "nodes,train", "metis-kway", cuts), " |") + " and" + strings.TrimSuffix(ratio(labelled, 16, "nodes,train", "metis-rb", cuts), " |") + " in 16.\n"
	compare(t, "partitioners.md", "against METIS", text)
}
