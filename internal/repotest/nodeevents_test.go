package repotest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The table of what will happen to nodes in docs/accuracy.md equals the results of bench/nodeevents.py.
func TestNodeEventsResults(t *testing.T) {
	var r map[string]struct {
		Test  [2]float64
		Plain map[string]float64
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "nodeevents.json")), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, "| data | question | metric | persistent | mean of 7 windows | `counts` | `tgn` |")
	fmt.Fprintln(&b, "|---|---|---|---:|---:|---:|---:|")
	for _, q := range []struct{ key, data, text, metric, mean string }{
		{"collegemsg/any", "collegemsg", "a message in 7 days?", "ROC AUC, higher is better", "frequent"},
		{"etcd/any", "etcd", "a change in 4 weeks?", "ROC AUC, higher is better", "frequent"},
		{"collegemsg/count", "collegemsg", "messages in a day", "mean absolute error", "average"},
		{"etcd/count", "etcd", "changes in 4 weeks", "mean absolute error", "average"},
	} {
		counts, tgn := r[q.key+"/counts"], r[q.key+"/tgn"]
		fmt.Fprintf(&b, "| %s | %s | %s | %.3f | %.3f | %.3f ± %.3f | %.3f ± %.3f |\n", q.data, q.text, q.metric, counts.Plain["persistent"], counts.Plain[q.mean], counts.Test[0], counts.Test[1], tgn.Test[0], tgn.Test[1])
	}
	compare(t, "accuracy.md", "node events", b.String())
}
