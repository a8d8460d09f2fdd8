package repotest

import (
	"encoding/json"
	"fmt"
	"testing"
)

// The table of ten million rows in docs/tables.md equals the results of bench/tables.py, and its memory is below the bound.
func TestTablesOfRows(t *testing.T) {
	type engine struct {
		Seconds float64
		PeakMB  float64 `json:"peak_mb"`
	}
	var r struct {
		Rows, Features, Cores int
		Versions              map[string]string
		Gnb, Pandas           engine
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "tables.json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Rows != 10_000_000 || r.Gnb.PeakMB <= 0 || r.Gnb.PeakMB >= 2000 || r.Gnb.Seconds <= 0 || r.Pandas.Seconds <= 0 {
		t.Errorf("the results are %+v; want ten million rows in less than 2,000 MB", r)
	}
	want := fmt.Sprintf("| | seconds | peak memory |\n|---|---:|---:|\n| `gnb data convert` | %.1f | %.2f GB |\n| pandas %s | %.1f | %.2f GB |\n",
		r.Gnb.Seconds, r.Gnb.PeakMB/1000, r.Versions["pandas"], r.Pandas.Seconds, r.Pandas.PeakMB/1000)
	compare(t, "tables.md", "rows", want)
}
