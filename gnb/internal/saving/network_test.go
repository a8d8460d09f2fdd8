package saving

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// newNetwork returns a network of two parameters, with learned rows of 3 nodes in cols columns unless cols is 0.
func newNetwork(t *testing.T, index, cols int) *Network {
	t.Helper()
	params, err := nn.Collect(&struct{ A, B *nn.Param }{nn.NewParam(1, 2), nn.NewParam(2, 1)})
	if err != nil {
		t.Fatal(err)
	}
	n := &Network{Index: index, Name: "pair", Params: params}
	copy(params.Flat(), []float32{1, 2, 3, 4})
	if cols > 0 {
		n.Table, err = feed.NewEmbeddings(feed.EmbeddingOptions{
			Comm: collective.NewSingle(), Site: func(kind string) collective.Site { return collective.Site{Kind: kind} }, Nodes: 3, Cols: cols, Seed: 5,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func weights(t *testing.T, n *Network) []safetensors.Tensor {
	t.Helper()
	ts, err := n.Weights()
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

func names(ts []safetensors.Tensor) (out []string) {
	for _, t := range ts {
		out = append(out, t.Name)
	}
	return out
}

func TestNamesOfNetworks(t *testing.T) {
	plain, learned := newNetwork(t, 0, 0), newNetwork(t, 2, 4)
	for _, c := range []struct{ got, want []string }{
		{names(plain.Tensors()), []string{"model0.a", "model0.b"}},
		{names(weights(t, plain)), []string{"a", "b"}},
		{names(learned.Tensors()), []string{"model2.a", "model2.b", "embedding2.weight", "embedding2.exp_avg", "embedding2.exp_avg_sq"}},
		{names(weights(t, learned)), []string{"a", "b", EmbeddingWeights}},
		{[]string{plain.File("best"), learned.File("best")}, []string{"best.safetensors", "best-2-pair.safetensors"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	var st State
	ts := st.Add(learned, st.Add(plain, nil))
	ts = st.AddOptimizer(optim.NewSGD(optim.SGDOptions{LR: 0.5}), 0.25, ts)
	if len(ts) != 7 || len(st.Embeddings) != 1 || st.Embeddings[0].Network != 2 || st.Optim[0].LR != 0.5 || *st.Optim[0].Start != 0.25 {
		t.Errorf("%v, %+v", names(ts), st)
	}
}

// A network gets the weights of a file that fits it, all of them or none.
func TestLoadNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		from, to int // columns of learned rows
		spoil    func(ts []safetensors.Tensor) []safetensors.Tensor
		fails    string
	}{
		"features":           {},
		"learned rows":       {from: 4, to: 4},
		"rows of other size": {from: 4, to: 5, fails: "of shape [3 4], and here they are [3 5]"},
		"rows for features":  {from: 4, fails: "and the model's input are features"},
		"features for rows":  {to: 4, fails: "have no learned embeddings"},
		"a missing weight":   {spoil: func(ts []safetensors.Tensor) []safetensors.Tensor { return ts[:1] }, fails: " b"},
		"another shape": {from: 4, to: 4, spoil: func(ts []safetensors.Tensor) []safetensors.Tensor {
			ts[1].Shape = []int{1, 2}
			return ts
		}, fails: " b"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := newNetwork(t, 0, c.from), newNetwork(t, 1, c.to)
			clear(to.Params.Flat())
			if to.Table != nil {
				clear(to.Table.W)
			}
			ts := weights(t, from)
			if c.spoil != nil {
				ts = c.spoil(ts)
			}
			err := to.Load(ts)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("error %v, want one about %q", err, c.fails)
				}
				if slices.Max(to.Params.Flat()) != 0 || to.Table != nil && slices.Max(to.Table.W) != 0 {
					t.Error("a file that does not fit changed weights")
				}
				return
			}
			if err != nil || !slices.Equal(to.Params.Flat(), from.Params.Flat()) || to.Table != nil && !slices.Equal(to.Table.W, from.Table.W) {
				t.Errorf("%v; parameters %v, want %v", err, to.Params.Flat(), from.Params.Flat())
			}
		})
	}
}
