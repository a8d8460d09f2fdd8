package repotest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The table of events in docs/accuracy.md equals the results of bench/events.py and bench/temporal/tgn.py.
func TestEventsResults(t *testing.T) {
	var r map[string]struct {
		Command string
		Test    [2]float64 `json:"test_mrr"`
		Bank    float64    `json:"edgebank"`
		Window  float64    `json:"edgebank_window"`
		Seconds float64    `json:"seconds_of_an_epoch"`
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "events.json")), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, "| data | model | MRR of the test | seconds of an epoch |")
	fmt.Fprintln(&b, "|---|---|---:|---:|")
	for _, data := range []string{"collegemsg", "etcd"} {
		banks := false
		for _, model := range []string{"counts", "walks", "tgn", "mixer", "tgat", "tgn of PyG"} {
			row, ok := r[data+"/"+model]
			if !ok {
				continue
			}
			if !banks && row.Bank > 0 {
				banks = true
				fmt.Fprintf(&b, "| %s | EdgeBank, all pairs | %.3f | |\n", data, row.Bank)
				fmt.Fprintf(&b, "| %s | EdgeBank, window | %.3f | |\n", data, row.Window)
			}
			name := "`" + model + "`"
			if model == "tgn of PyG" {
				name = "TGN of PyG 2.8.1"
			}
			fmt.Fprintf(&b, "| %s | %s | %.3f ± %.3f | %.2f |\n", data, name, row.Test[0], row.Test[1], row.Seconds)
		}
	}
	compare(t, "accuracy.md", "events", b.String())
}
