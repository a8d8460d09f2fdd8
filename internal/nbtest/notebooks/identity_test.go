package notebooks_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// In a notebook a run goes on after other cells were edited, added, removed and reordered,
// after comments, formatting and prints, and after the kernel was restarted; it does not
// after an edit of its own model.
func TestNotebookIdentity(t *testing.T) {
	env := nbtest.Setup(t)
	const (
		imports = `import (
	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
)
`
		model = `type gnn struct{ Convs []*nn.SAGEConv }

func (n *gnn) NumLayers() int { return len(n.Convs) }

func (n *gnn) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	h = n.Convs[i].Forward(f, b, h)
	if i < len(n.Convs)-1 {
		h = f.ReLU(h)
	}
	return h
}

var GNN = gnb.Model("gnn", func(s gnb.ModelConfig) *gnn { return &gnn{nn.Stack(s, nn.NewSAGE)} })
`
		// It interrupts its run after two more epochs, as ■ does.
		train = `%%
ctx, cancel := context.WithCancel(context.Background())
epochs := 0
_, err := gnb.Train(ctx, gnb.Must(gnb.Load(ctx, "planted?nodes=500")), GNN, gnb.TrainOptions{
OptimizerOptions: gnb.OptimizerOptions{Epochs: 4000},
LaunchOptions: gnb.LaunchOptions{
Workers: 1,
Threads: 1,
Quiet: true,
Events: func(e runs.Event) {
		if e.Kind == "start" && !strings.HasPrefix(e.Text, "1 worker") {
			fmt.Println("TOLD", e.Text)
		}
		if e.Kind == "epoch" {
			if epochs++; epochs == 2 {
				cancel()
			}
		}
	},
},
ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5},
EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
})
fmt.Println(errors.Is(err, gnb.ErrInterrupted))`
	)
	reformatted := strings.NewReplacer("\t\th = f.ReLU(h)\n", "\t\t// not linear\n\n\t\th = f.ReLU( h )\n", "{nn.Stack(s, nn.NewSAGE)}", "{\n\tnn.Stack(s,\n\t\tnn.NewSAGE),\n}").Replace(model)
	linear := strings.Replace(model, "\tif i < len(n.Convs)-1 {\n\t\th = f.ReLU(h)\n\t}\n", "", 1)
	if reformatted == model || linear == model {
		t.Fatal("the edits change nothing")
	}
	const other = "var unrelated = 1\n\nfunc helper() int { return unrelated }"
	const goesOn = "TOLD resuming run "
	dir := t.TempDir()
	for i, kernel := range []struct {
		cells []string
		said  []string // of each training
	}{
		{
			[]string{
				imports + model, other + "\n\n" + train, strings.Replace(other, "= 1", "= 2", 1) + "\n\n" + train,
				"%rm unrelated helper\n" + reformatted + "\n%%\nfmt.Println(\"a print\")", "%%\nfmt.Println(\"before\")\n" + strings.TrimPrefix(train, "%%\n") + "\nfmt.Println(\"after\")",
			},
			[]string{"", goesOn, goesOn},
		},
		{ // restarted
			[]string{"func first() {}\n\nvar ABC = 3", imports + model + "\n" + train, linear + "\n" + train},
			[]string{goesOn, "TOLD not resuming the interrupted run "},
		},
	} {
		r := env.Run(t, notebookOf(t, kernel.cells...), nbtest.Options{Dir: dir, Env: []string{"GNB_RUNS=" + filepath.Join(dir, "runs")}})
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, c := range r.Cells {
			if strings.Contains(c.Source, "gnb.Train") {
				said = append(said, c.Stdout)
			}
		}
		if len(said) != len(kernel.said) {
			t.Fatalf("kernel %d: %d trainings said something: %q", i, len(said), said)
		}
		for j, want := range kernel.said {
			if !strings.Contains(said[j], want) || want == "" && strings.Contains(said[j], "TOLD") || !strings.Contains(said[j], "true") {
				t.Errorf("kernel %d, training %d: %q, want %q", i, j, said[j], want)
			}
		}
		if i == 1 && !strings.Contains(said[1], "function `(*gnn).Layer` changed; a new run begins") {
			t.Errorf("the edit of the model: %q", said[1])
		}
	}
}
