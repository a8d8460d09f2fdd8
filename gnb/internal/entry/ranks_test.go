package entry

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
)

func TestMachinesThatDiffer(t *testing.T) {
	data := dataset.Digests{Structure: "a", Features: "b", Labels: "c", Splits: "d", Whole: "e"}
	root := meeting{Host: "n1", CPU: "amd64-avx512", Dir: "/data/x", Data: &data}
	for name, c := range map[string]struct {
		change func(m *meeting)
		want   string
	}{
		"nothing": {func(*meeting) {}, ""},
		"CPU":     {func(m *meeting) { m.CPU = "amd64-avx2" }, "rank 2 (n2) has a CPU of class amd64-avx2 and rank 0 (n1) one of class amd64-avx512"},
		"data": {func(m *meeting) {
			d := data
			d.Features, d.Splits, d.Whole = "x", "y", "z"
			m.Data, m.Dir = &d, "/scratch/x"
		}, "rank 2 (n2) has another dataset in /scratch/x than rank 0 (n1) in /data/x: its features and splits differ"},
		"unreadable": {func(m *meeting) { m.Err = "input/output error" }, "rank 2 (n2) cannot compare its dataset /data/x with rank 0's: input/output error"},
		"room":       {func(m *meeting) { m.Room = "it takes 2 GiB" }, "gnb: on the machine of rank 2 (n2), it takes 2 GiB"},
		"in memory":  {func(m *meeting) { m.Data = nil }, ""},
	} {
		m := root
		m.Host = "n2"
		c.change(&m)
		a, _ := json.Marshal(root)
		b, _ := json.Marshal(m)
		err := differences([][]byte{a, nil, b, nil})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := differences([][]byte{[]byte("{}"), []byte("x")}); err == nil {
		t.Error("a value that cannot be parsed gave no error")
	}
}
