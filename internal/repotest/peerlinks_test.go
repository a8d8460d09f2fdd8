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
			Model, Relations string
			PyG, GraphNB     []float64
			PyGTest          [2]float64 `json:"pyg_test"`
			GraphNBTest      [2]float64 `json:"graphnb_test"`
			PyGEpoch         float64    `json:"pyg_epoch"`
			GraphNBEpoch     float64    `json:"graphnb_epoch"`
			DGLEpoch         float64    `json:"dgl_epoch"`
		}
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "wordnet.json")), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| relations | model | PyG | GraphNB | epoch of PyG | of DGL | of GraphNB |\n|---|---|---:|---:|---:|---:|---:|\n")
	for _, x := range r.Rows {
		tests := "– | –" // measured in time alone
		if x.PyG != nil {
			if len(x.PyG) < 3 || len(x.GraphNB) < 3 || math.Abs(mean(x.PyG)-x.PyGTest[0]) > .01 || math.Abs(mean(x.GraphNB)-x.GraphNBTest[0]) > .01 {
				t.Errorf("%s, %s: means %v and %v of %v and %v, want those of 3 seeds", x.Model, x.Relations, x.PyGTest, x.GraphNBTest, x.PyG, x.GraphNB)
			}
			tests = fmt.Sprintf("%.2f ± %.2f | %.2f ± %.2f", x.PyGTest[0], x.PyGTest[1], x.GraphNBTest[0], x.GraphNBTest[1])
		}
		ofDGL := fmt.Sprintf("%.2f s", x.DGLEpoch)
		if x.Model == "mlp" {
			x.Relations, ofDGL = "none", "–"
		}
		name := map[string]string{"mlp": "MLP", "rgcn": "R-GCN", "hgt": "HGT"}[x.Model]
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f s | %s | %.2f s |\n", x.Relations, name, tests, x.PyGEpoch, ofDGL, x.GraphNBEpoch)
	}
	if len(r.Rows) != 5 {
		t.Errorf("bench/results/wordnet.json has %d rows, want those of the MLP, and of R-GCN and HGT with and without hypernyms", len(r.Rows))
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
