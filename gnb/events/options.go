package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// Options configure [Train]. The zero value trains a perceptron on counts.
//
// Batch counts events, and 0 means 200: the answers of a step rest on what happened before its first event. Epochs 0 means
// 20, LR 0 means 0.001, for tgn, mixer and tgat 0.0001. Metric chooses the best epoch: mrr, hits_1, hits_3 or hits_10; "" means mrr. Eval is full or none. Training is
// on CPUs only.
type Options struct {
	gnb.OptimizerOptions
	gnb.EvaluationOptions
	gnb.LaunchOptions
	// Model is counts (a perceptron on how often and how recently both nodes had events, also with each other), walks (that, and how
	// walks through earlier events meet, as TPNet), tgn (a temporal graph network: learned memory and attention), mixer (GraphMixer: an MLP-Mixer over
	// the last events of a node) or tgat (attention over the last events, in layers); "" means counts.
	Model string `json:",omitempty" flag:"model" help:"counts, walks, tgn, mixer or tgat (default counts)"`
	// Hidden is the width of memories and embeddings of tgn, mixer and tgat, and of the perceptron of the others; 0 means 100, for counts and
	// walks 64.
	Hidden int `json:",omitempty" flag:"hidden" help:"width of layers (default 64, networks 100)" least:"1"`
	// TimeDim is the number of columns that encode a span of time; 0 means Hidden.
	TimeDim int `json:",omitempty" flag:"time-dim" help:"columns that encode a span of time (default --hidden)" least:"1"`
	// Neighbors is the number of last events of a node that tgn, mixer and tgat see; 0 means 10, for mixer 20.
	Neighbors int `json:",omitempty" flag:"neighbors" help:"last events of a node seen (default 10, mixer 20)" least:"1"`
	// Heads is the number of heads of the attention of tgn and tgat, which share Hidden; 0 means 2.
	Heads int `json:",omitempty" flag:"heads" help:"attention heads of tgn and tgat (default 2)" least:"1"`
	// Layers is the number of layers of mixer and tgat; 0 means 2. Each further layer of tgat multiplies its time by Neighbors.
	Layers int `json:",omitempty" flag:"layers" help:"layers of mixer and tgat (default 2)" least:"1"`
	// NodeRows is the number of columns of a row that mixer and tgat learn of each node; 0 means none, but Hidden for mixer if nodes have no
	// features. With learned rows a model knows which node it sees; nodes that training does not have get zeros.
	NodeRows int `json:",omitempty" flag:"node-rows" help:"learned columns per node (default mixer without features)" least:"1"`
	// Window is how far back mixer looks for the nodes that a node had events with: a number with s, m, h, d or w, such as "7d", or one in the
	// unit of the times. "" means its last 2,000 events.
	Window string `json:",omitempty" flag:"window" help:"<span> within which mixer averages nodes (default all)"`
	// Dropout is the dropout probability of attention and of the perceptron; 0 means none, and 0.1 is usual.
	Dropout float64 `json:",omitempty" flag:"dropout" help:"dropout probability; 0.1 is usual"`
	// TimeScale is the unit in which the model takes spans of time; 0 means the mean time between two events of a node in training, for
	// tgn, mixer and tgat 1.
	TimeScale float64 `json:",omitempty" flag:"time-scale" help:"unit of spans of time (default mean gap; networks 1)" positive:"true"`
	// Until is the last time of training and that of validation; nil means the 0.70 and the 0.85 quantile of the events' times. Test has the
	// later events. An event of the last time belongs to the split.
	Until []int64 `json:",omitempty" flag:"until" help:"last times of training, validation (default quantiles .70, .85)"`
	// Hops is the most events of a walk of walks; 0 means 2.
	Hops int `json:",omitempty" flag:"hops" help:"events of a walk, for walks (default 2)" least:"1"`
	// WalkDim is the number of columns to which walk matrices are projected; 0 means about 10 ln of the number of events.
	WalkDim int `json:",omitempty" flag:"walk-dim" help:"columns of a projected walk matrix (default by events)" least:"1"`
	// Negatives is the number of negatives of each event in training; 0 means 10, for tgn, mixer and tgat 1.
	Negatives int `json:",omitempty" flag:"negatives" help:"negatives per event in training (default 10, networks 1)" least:"1"`
	// History is the share of them that are earlier destinations of the event's source; 0 means none.
	History float64 `json:",omitempty" flag:"history" help:"share of negatives that are the source's earlier destinations"`
	// Loss is bce (each candidate by itself) or softmax (an event's destination among its negatives); "" means softmax, for tgn, mixer and tgat bce.
	Loss string `json:",omitempty" flag:"loss" help:"softmax or bce (default softmax, networks bce)"`
	// EvalNegatives is the number of negatives of each event of validation and test, which are those of the Temporal Graph Benchmark: half of
	// them, if there are as many, are nodes that the source had events to in training; 0 means 1000, or fewer where all would be more than 50
	// million.
	EvalNegatives int `json:",omitempty" flag:"eval-negatives" help:"negatives of an evaluated event (default 1000)" least:"1"`
}

// manyNegatives is the most negatives of an evaluation unless their number is given.
const manyNegatives = 50e6

// kind is a model of Options.Model: its defaults, and what it reads.
type kind struct {
	name              string
	lr                float64
	hidden, negatives int
	loss              string
	neighbors, layers int
	timeScale         float64 // 0: the mean time between two events of a node
	features          bool    // it reads features of events and of nodes
	learnsNodes       bool    // it learns rows of nodes that have no features
	options           []string
	make              func(s *stream, x *dataset.Matrix, trained int, o *Options) model
}

// kinds are the models; the first is the default.
var kinds = []kind{
	{name: "counts", lr: 0.001, hidden: 64, negatives: 10, loss: "softmax", make: newCounts},
	{name: "walks", lr: 0.001, hidden: 64, negatives: 10, loss: "softmax", options: []string{"Hops", "WalkDim"}, make: newCounts},
	{
		name: "tgn", lr: 0.0001, hidden: 100, negatives: 1, loss: "bce", features: true, options: []string{"Neighbors", "Heads", "TimeDim"},
		make:      func(s *stream, x *dataset.Matrix, trained int, o *Options) model { return newTGN(s, x, trained, o) },
		timeScale: 1, // as PyG's; spans in mean gaps fit the times of training too well
	},
	{
		name: "mixer", lr: 0.0001, hidden: 100, negatives: 1, loss: "bce", features: true, timeScale: 1, neighbors: 20, layers: 2, learnsNodes: true, make: newMixer,
		options: []string{"Neighbors", "TimeDim", "Layers", "NodeRows", "Window"},
	},
	{
		name: "tgat", lr: 0.0001, hidden: 100, negatives: 1, loss: "bce", features: true, timeScale: 1, layers: 2, make: newTGAT,
		options: []string{"Neighbors", "Heads", "TimeDim", "Layers", "NodeRows"},
	},
}

// kindOf returns the model of a name.
func kindOf(name string) (kind, error) {
	var names []string
	for _, k := range kinds {
		if k.name == cmp.Or(name, kinds[0].name) {
			return k, nil
		}
		names = append(names, k.name)
	}
	return kind{}, fmt.Errorf("events: there is no model %q; choose %s", name, strings.Join(names, ", "))
}

// defaultLR is what LR 0 means for a model.
func defaultLR(model string) float64 {
	k, err := kindOf(model)
	if err != nil {
		return 0.001
	}
	return k.lr
}

// nodeFeatures returns the features of nodes, nil if the model reads none.
func (o *Options) nodeFeatures(ctx context.Context, ds *dataset.Dataset) (*dataset.Matrix, error) {
	if k, err := kindOf(o.Model); err != nil || !k.features {
		return nil, err
	}
	return nodeFeatures(ctx, ds, o.Threads)
}

// checkModel returns an error if an option is set that the model does not read.
func (o *Options) checkModel(k kind) error {
	for _, of := range []struct {
		name  string
		given bool
	}{
		{"Neighbors", o.Neighbors > 0},
		{"Heads", o.Heads > 0},
		{"TimeDim", o.TimeDim > 0},
		{"Layers", o.Layers > 0},
		{"NodeRows", o.NodeRows > 0},
		{"Window", o.Window != ""},
		{"Hops", o.Hops > 0},
		{"WalkDim", o.WalkDim > 0},
	} {
		if !of.given || slices.Contains(k.options, of.name) {
			continue
		}
		var read []string
		for _, other := range kinds {
			if slices.Contains(other.options, of.name) {
				read = append(read, other.name)
			}
		}
		return fmt.Errorf("events: %s is an option of %s, and Model is %s; leave it out", of.name, strings.Join(read, ", "), k.name)
	}
	return nil
}

// fill fills in the defaults of the options that the model reads.
func (o *Options) fill(k kind) {
	o.Model = k.name
	o.Hidden, o.Negatives, o.Loss, o.Metric = cmp.Or(o.Hidden, k.hidden), cmp.Or(o.Negatives, k.negatives), cmp.Or(o.Loss, k.loss), cmp.Or(o.Metric, "mrr")
	for name, of := range map[string]struct {
		option    *int
		otherwise int
	}{
		"Neighbors": {&o.Neighbors, cmp.Or(k.neighbors, 10)}, "Heads": {&o.Heads, 2}, "TimeDim": {&o.TimeDim, o.Hidden}, "Layers": {&o.Layers, k.layers}, "Hops": {&o.Hops, 2},
	} {
		if slices.Contains(k.options, name) {
			*of.option = cmp.Or(*of.option, of.otherwise)
		}
	}
}

// checkShared checks options that mean the same for questions about events and about nodes.
func checkShared(of gnb.OptimizerOptions, l gnb.LaunchOptions, dropout, timeScale float64, until []int64) error {
	switch {
	case l.Device == "cuda":
		return errors.New(`events: Train computes on the CPU; leave Device out, or set it to "cpu"`)
	case of.Accumulate > 1:
		return errors.New("events: Accumulate is set, but the events of a step are those that do not see each other; set Batch")
	case !(dropout >= 0 && dropout < 1):
		return fmt.Errorf("events: Dropout is %v; it is a probability below 1", dropout)
	case !(timeScale >= 0) || math.IsInf(timeScale, 0):
		return fmt.Errorf("events: TimeScale is %v; it is a number above 0 (0 means the mean time between two events of a node)", timeScale)
	case until != nil && (len(until) != 2 || until[1] < until[0]):
		return fmt.Errorf("events: Until is %v; it is the last time of training and that of validation, which is no earlier", until)
	case of.BatchPerWorker > 0:
		return errors.New("events: BatchPerWorker is set, but the events of a step are those that do not see each other, whatever the number of workers; set Batch")
	}
	return nil
}

// complete checks the options, and fills in their defaults.
func (o *Options) complete(ctx context.Context, ds *gnb.Dataset) error {
	if err := checkShared(o.OptimizerOptions, o.LaunchOptions, o.Dropout, o.TimeScale, o.Until); err != nil {
		return err
	}
	switch {
	case min(o.Hidden, o.TimeDim, o.Neighbors, o.Heads, o.Layers, o.NodeRows, o.Hops, o.WalkDim, o.Negatives, o.EvalNegatives) < 0:
		return errors.New("events: Hidden, TimeDim, Neighbors, Heads, Layers, NodeRows, Hops, WalkDim, Negatives and EvalNegatives cannot be negative")
	case !(o.History >= 0 && o.History <= 1):
		return fmt.Errorf("events: History is %v; it is a share from 0 to 1", o.History)
	}
	o.Device = "cpu"
	k, err := kindOf(o.Model)
	if err != nil {
		return err
	}
	if err := o.checkModel(k); err != nil {
		return err
	}
	o.fill(k)
	switch {
	case o.Loss != "bce" && o.Loss != "softmax":
		return fmt.Errorf("events: there is no loss %q; choose bce or softmax", o.Loss)
	case o.Heads > 0 && o.Hidden%o.Heads != 0:
		return fmt.Errorf("events: %d heads cannot share %d columns; take a divisor", o.Heads, o.Hidden)
	}
	if _, err := measureOf(o.Metric); err != nil {
		return err
	}
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return err
	}
	whole, err := edgesOf(ctx, ds, o.Quiet)
	if err != nil {
		return err
	}
	s, err := newStream(whole, o)
	if err != nil {
		return err
	}
	if o.Eval != "none" && (s.Val == s.Train || s.Val == s.Test) {
		return fmt.Errorf("events: of the %d events of %s, training has %d, validation %d and test %d; each needs some, so give other times (Until, --until), or data with more times", s.Test, ds.Name(), s.Train, s.Val-s.Train, s.Test-s.Val)
	}
	if !slices.ContainsFunc(s.Dst, func(v int32) bool { return v != s.Dst[0] }) {
		return fmt.Errorf("events: all events of %s have the destination %d, so there is nothing to tell apart", ds.Name(), s.Dst[0])
	}
	if k.features {
		if err := checkFitted(ds, s); err != nil {
			return err
		}
	}
	if k.learnsNodes && !denseFeatures(ds) {
		o.NodeRows = cmp.Or(o.NodeRows, o.Hidden)
	}
	if s.window > 0 {
		o.Window = temporal.SpanText(s.window, s.unit)
	}
	o.Until = s.until
	o.TimeScale = cmp.Or(o.TimeScale, k.timeScale, s.gap())
	o.EvalNegatives = cmp.Or(o.EvalNegatives, max(1, min(1000, manyNegatives/max(1, s.Test-s.Train))))
	if o.Model == "walks" {
		of, err := o.walkOptions()[0].For(s.Events)
		if err != nil {
			return fmt.Errorf("events: %w", err)
		}
		o.WalkDim = of.Dim
	}
	return nil
}
