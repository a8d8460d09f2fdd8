package options_test

import (
	"flag"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/graphops/optim"
)

func bound(t *testing.T, o any) *flag.FlagSet {
	t.Helper()
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	options.Bind(fs, o)
	return fs
}

// Each flag sets its option, whatever the type; 0 is refused where it would mean a default.
func TestBind(t *testing.T) {
	var o options.Nodes
	fs := bound(t, &o)
	if err := fs.Parse(strings.Fields("--model gcn --hidden 32 --dropout 0.25 --residual --fanout 15,full --relation-fanout cites=5,0 --schedule cosine,warmup:5 --groups *.bias:decay=0 --average swa:3 --class-weights 1,2.5 --tags a,b --seed 9 --gpu-cache 20%")); err != nil {
		t.Fatal(err)
	}
	want := gnb.TrainOptions{
		ModelOptions:     gnb.ModelOptions{Hidden: 32, Dropout: 0.25, Residual: true},
		SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{15, -1}, RelationFanouts: map[string][]int{"cites": {5, 0}}},
		OptimizerOptions: gnb.OptimizerOptions{Schedule: optim.Cosine(0).After(5), Groups: []optim.Group{{Match: "*.bias", WeightDecay: optim.None}}, Average: optim.SWA(3)},
		LaunchOptions:    gnb.LaunchOptions{Seed: 9, Tags: []string{"a", "b"}, PlaneOptions: gnb.PlaneOptions{GPUCache: "20%"}},
		ClassWeights:     []float32{1, 2.5},
	}
	if o.Model.Name() != "gcn" || !reflect.DeepEqual(o.TrainOptions, want) {
		t.Errorf("the flags set %+v, want %+v", o, want)
	}
	for _, arg := range []string{"--hidden=0", "--lr=0", "--epochs=0", "--fanout=x", "--model=none", "--tags=a b"} {
		if err := bound(t, &options.Nodes{}).Parse([]string{arg}); err == nil {
			t.Errorf("%s is taken", arg)
		}
	}
}

// What the user gave stays, and everything else is that of the run that is resumed; flags that determine each other go
// together.
func TestTake(t *testing.T) {
	var o links.Options
	fs := bound(t, &o)
	if err := fs.Parse(strings.Fields("--hidden 8 --layers 3 --negatives 4")); err != nil {
		t.Fatal(err)
	}
	had := links.Options{
		ModelOptions: gnb.ModelOptions{Hidden: 64, Layers: 2, Norm: "batch"}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 5}},
		OptimizerOptions: gnb.OptimizerOptions{LR: 0.5}, Negatives: 1, Decoder: "mlp", Model: gnb.GAT,
	}
	options.Take(fs, &o, &had)
	if o.Hidden != 8 || o.Layers != 3 || o.Fanouts != nil || o.Negatives != 4 || o.Norm != "batch" || o.LR != 0.5 || o.Decoder != "mlp" || o.Model.Name() != "gat" {
		t.Errorf("taken are %+v", o)
	}
}

// Every task's options that can be set in a terminal have a flag; what has none is listed here with its reason.
func TestEveryOptionHasAFlag(t *testing.T) {
	without := []string{
		"Data", "Scratch", "Quiet", "Events", "StallAfter", "Cluster", // of the command or of programs
		"OwnLoss", // only a program declares one
		"Chosen",  // of a recipe
		"Of",      // of decoders, rarely
		"Scale",   // the task sets it
	}
	for _, o := range []any{&options.Nodes{}, &links.Options{}, &links.EmbedOptions{}, &kg.Options{}, &numbers.Options{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(o).Elem()) {
			if f.Anonymous || f.Tag.Get("flag") != "" || slices.Contains(without, f.Name) || f.Type.Kind() == reflect.Struct && f.Name == "Encoder" {
				continue
			}
			t.Errorf("%T: %s has no flag", o, f.Name)
		}
	}
}
