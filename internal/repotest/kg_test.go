package repotest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// The table of FB15k-237 in docs/accuracy.md equals the results of bench/kg.py.
func TestKGTable(t *testing.T) {
	type row struct {
		Aim     float64
		Command string
		Test    float64 `json:"test_mrr"`
		Hits1   float64 `json:"test_hits_1"`
		Hits10  float64 `json:"test_hits_10"`
	}
	var r map[string]row
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "kg.json")), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| model | command | MRR | Hits@1 | Hits@10 | published MRR | source |\n|---|---|---:|---:|---:|---:|---|\n")
	published := map[string]string{
		"distmult": "0.343 | [LibKGE](https://github.com/uma-pi1/kge), Ruffinelli et al. 2020",
		"complex":  "0.348 | [LibKGE](https://github.com/uma-pi1/kge), Ruffinelli et al. 2020",
		"rgcn":     "0.248 | Schlichtkrull et al. 2018, [arXiv:1703.06103](https://arxiv.org/abs/1703.06103)",
	}
	for _, name := range []string{"distmult", "complex", "rgcn"} {
		x := r[name]
		if !(x.Test >= x.Aim) || x.Aim == 0 {
			t.Errorf("%s has MRR %v, below the aim %v", name, x.Test, x.Aim)
		}
		title := map[string]string{"distmult": "DistMult", "complex": "ComplEx", "rgcn": "R-GCN, DistMult"}[name]
		fmt.Fprintf(&b, "| %s | `%s` | %.3f | %.3f | %.3f | %s |\n", title, x.Command, x.Test, x.Hits1, x.Hits10, published[name])
	}
	compare(t, "accuracy.md", "kg", b.String())
}

// The table of graph networks before decoders in docs/accuracy.md equals the results of bench/kg_gcn.py.
func TestKGNetworksTable(t *testing.T) {
	var r struct {
		Rows []struct {
			Data, Encoder, Decoder string
			GraphNB, Torch         []float64
			GraphNBMean            float64 `json:"graphnb_mean"`
			GraphNBDeviation       float64 `json:"graphnb_deviation"`
			TorchMean              float64 `json:"torch_mean"`
			TorchDeviation         float64 `json:"torch_deviation"`
			GraphNBEpoch           float64 `json:"graphnb_epoch"`
			TorchEpoch             float64 `json:"torch_epoch"`
		}
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "kg_gcn.json")), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	large := "| data | network | decoder | GraphNB | PyTorch | epoch of GraphNB | of PyTorch |\n|---|---|---|---:|---:|---:|---:|\n"
	b.WriteString("| data | network | decoder | seeds | GraphNB | PyTorch |\n|---|---|---|---:|---:|---:|\n")
	for _, x := range r.Rows {
		if x.GraphNBEpoch > 0 { // one seed on a large graph
			if len(x.GraphNB) != 1 || len(x.Torch) != 1 || math.Abs(x.GraphNB[0]-x.Torch[0]) > .01 {
				t.Errorf("%s, %s, %s: MRR %v and %v, want one of each side, within .01", x.Data, x.Encoder, x.Decoder, x.GraphNB, x.Torch)
				continue
			}
			large += fmt.Sprintf("| %s | %s | %s | %.3f | %.3f | %.1f s | %.1f s |\n", x.Data, x.Encoder, x.Decoder, x.GraphNB[0], x.Torch[0], x.GraphNBEpoch, x.TorchEpoch)
			continue
		}
		if len(x.GraphNB) < 3 || len(x.Torch) != len(x.GraphNB) || math.Abs(mean(x.GraphNB)-x.GraphNBMean) > 1e-4 || math.Abs(mean(x.Torch)-x.TorchMean) > 1e-4 {
			t.Errorf("%s, %s, %s: means %v and %v of %v and %v", x.Data, x.Encoder, x.Decoder, x.GraphNBMean, x.TorchMean, x.GraphNB, x.Torch)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %.3f ± %.3f | %.3f ± %.3f |\n", x.Data, x.Encoder, x.Decoder, len(x.Torch), x.GraphNBMean, x.GraphNBDeviation, x.TorchMean, x.TorchDeviation)
	}
	if len(r.Rows) == 0 {
		t.Error("bench/results/kg_gcn.json has no rows")
	}
	compare(t, "accuracy.md", "kg-networks", b.String())
	compare(t, "accuracy.md", "kg-networks-large", large)
}
