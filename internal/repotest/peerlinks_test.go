package repotest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// The table of Cora's graph auto-encoder in docs/accuracy.md equals the results of bench/links_cora.py:
// ten splits on both sides.
func TestLinksCoraTable(t *testing.T) {
	var r struct {
		Rows []struct {
			Side, Messages string
			Epochs         int
			AUC, AP        []float64
			AUCMean        float64 `json:"auc_mean"`
			AUCDeviation   float64 `json:"auc_deviation"`
			APMean         float64 `json:"ap_mean"`
			APDeviation    float64 `json:"ap_deviation"`
		}
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "links_cora.json")), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| side | epochs | messages for the test | AUC | AP |\n|---|---:|---|---:|---:|\n")
	for _, x := range r.Rows {
		if len(x.AUC) != 10 || len(x.AP) != 10 || math.Abs(mean(x.AUC)-x.AUCMean) > 0.01 || math.Abs(mean(x.AP)-x.APMean) > 0.01 {
			t.Errorf("%s, %d epochs: means %v and %v of %d and %d splits", x.Side, x.Epochs, x.AUCMean, x.APMean, len(x.AUC), len(x.AP))
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %.2f ± %.2f | %.2f ± %.2f |\n", peerName(x.Side), x.Epochs, x.Messages, x.AUCMean, x.AUCDeviation, x.APMean, x.APDeviation)
	}
	if len(r.Rows) == 0 {
		t.Error("bench/results/links_cora.json has no rows")
	}
	compare(t, "accuracy.md", "links-cora", b.String())
}

// The table of citations by year in docs/accuracy.md equals the results of bench/links_arxiv.py.
func TestLinksArxivTable(t *testing.T) {
	var r struct {
		Rows []struct {
			Side       string
			Runs       []json.RawMessage
			Val        [2]float64 `json:"val_mrr"`
			Test       [2]float64 `json:"test_mrr"`
			Seconds    float64
			CPUSeconds float64 `json:"cpu_seconds"`
		}
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "links_arxiv.json")), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| side | MRR of validation | MRR of the test | epoch | processor time |\n|---|---:|---:|---:|---:|\n")
	for _, x := range r.Rows {
		if len(x.Runs) < 3 {
			t.Errorf("%s has %d runs, want 3 seeds", x.Side, len(x.Runs))
		}
		fmt.Fprintf(&b, "| %s | %.2f ± %.2f | %.2f ± %.2f | %.2f s | %.2f s |\n", peerName(x.Side), x.Val[0], x.Val[1], x.Test[0], x.Test[1], x.Seconds, x.CPUSeconds)
	}
	if len(r.Rows) < 2 {
		t.Errorf("bench/results/links_arxiv.json has %d rows, want both sides", len(r.Rows))
	}
	compare(t, "accuracy.md", "links-arxiv", b.String())
}

// The table of WordNet in docs/accuracy.md equals the results of bench/wordnet.py.
func TestWordNetTable(t *testing.T) {
	var r struct {
		Rows []struct {
			Side, Model, Relations string
			Runs                   []json.RawMessage
			Test                   [2]float64
			CPUSeconds             float64 `json:"cpu_seconds"`
		}
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "wordnet.json")), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| relations | model | side | test accuracy | processor time of an epoch |\n|---|---|---|---:|---:|\n")
	for _, x := range r.Rows {
		if len(x.Runs) < 3 {
			t.Errorf("%s of %s has %d runs, want 3 seeds", x.Model, x.Side, len(x.Runs))
		}
		if x.Model == "mlp" {
			x.Relations = "none"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f ± %.2f | %.2f s |\n", x.Relations, map[string]string{"mlp": "MLP", "rgcn": "R-GCN", "hgt": "HGT"}[x.Model], peerName(x.Side), x.Test[0], x.Test[1], x.CPUSeconds)
	}
	if len(r.Rows) < 2 || len(r.Rows)%2 != 0 {
		t.Errorf("bench/results/wordnet.json has %d rows, want both sides of each model", len(r.Rows))
	}
	compare(t, "accuracy.md", "wordnet", b.String())
}

// peerName is how tables show a side of a measurement: with its flag.
func peerName(side string) string {
	name, flag, _ := strings.Cut(side, " ")
	name = map[string]string{"pyg": "PyG", "graphnb": "GraphNB"}[name]
	if flag != "" {
		name += ", `" + flag + "`"
	}
	return name
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}
