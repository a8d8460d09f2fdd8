package saving

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// The checkpoint that a launcher's other ranks get has everything but learned rows.
func TestCheckpointWithoutRows(t *testing.T) {
	tensor := func(name string, n int) safetensors.Tensor {
		return safetensors.Tensor{Name: name, Shape: []int{n}, F32: make([]float32, n)}
	}
	for name, c := range map[string]struct {
		rows []Embedding
		ts   []safetensors.Tensor
		want []string
	}{
		"features": {nil, []safetensors.Tensor{tensor("model0.a", 2), tensor("optimizer0.m", 2)}, []string{"model0.a", "optimizer0.m"}},
		"learned rows": {
			[]Embedding{{Network: 1, Steps: 7}},
			[]safetensors.Tensor{tensor("model0.a", 2), tensor("model1.a", 3), tensor("embedding1.weight", 5000), tensor("embedding1.exp_avg", 5000), tensor("embedding1.exp_avg_sq", 5000)},
			[]string{"model0.a", "model1.a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := State{Version: "v", Seed: 3, Position: Position{Epoch: 2, Total: 9}, Embeddings: c.rows}
			path, err := checkpoint.Save(t.TempDir(), st.Position.Total, c.ts, st, 0)
			if err != nil {
				t.Fatal(err)
			}
			f, err := atomicfile.Open(path)
			if err == nil {
				f, err = withoutRows(f, path)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var got State
			ts, err := checkpoint.Load(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), &got)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(names(ts), c.want) {
				t.Errorf("it has %v, want %v", names(ts), c.want)
			}
			a, _ := json.Marshal(st)
			b, _ := json.Marshal(got)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("its state is %s, want %s", b, a)
			}
			info, err := f.Stat()
			if whole, e := os.Stat(path); err != nil || e != nil || c.rows != nil && info.Size() > whole.Size()/10 {
				t.Errorf("it has %d bytes, the checkpoint %d", info.Size(), whole.Size())
			}
		})
	}
}
