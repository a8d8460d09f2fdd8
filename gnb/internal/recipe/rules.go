package recipe

import (
	"fmt"
	"math"
)

// The bounds of the rules.
const (
	wholeNodes = 100_000   // up to so many nodes, and
	wholeEdges = 4_000_000 // edges, a step is the whole graph
	fewLabels  = 50        // training nodes a class below which labels are few
	homophilic = 0.4       // adjusted homophily from which neighbours are mostly of one class
	sparse     = 10        // mean degree below which a graph needs more layers to reach as many nodes
	dense      = 20        // mean degree from which neighbours say enough without the residual
	small      = 5_000     // nodes below which a graph needs more regularisation
	narrow     = 32        // features below which a wide layer has little to learn from
	work       = 4 << 30   // most multiplications of a layer's width by itself over all nodes and layers
	deepWork   = 16 << 30  // the same where neighbours are of other classes, which takes wide and deep models
)

// Whole reports whether a step over the whole graph of so many nodes and edges takes no more than a few seconds.
func Whole(nodes, edges int64) bool { return nodes <= wholeNodes && edges <= wholeEdges }

// Rules chooses settings from facts, for a model; "" means the one that the rules choose. sample asks for sampled batches; they
// also take them for graphs that are too large for steps over the whole graph. docs/recipes.md has the rules in a table.
func Rules(f Facts, model string, sample bool) Settings {
	var s Settings
	why := func(format string, args ...any) { s.Why = append(s.Why, fmt.Sprintf(format, args...)) }
	if s.Model = model; model == "" {
		if s.Model = "gcn"; f.Typed {
			s.Model = "rgcn"
		}
	}
	if s.ScaleInput = f.Scaled; f.Scaled {
		why("sparse features with values: scaled input")
	}
	few := f.PerClass() < fewLabels
	mixed := f.Homophily < homophilic // false if it is unknown
	most := float64(work)
	switch {
	case few && !mixed:
		why("few labels: no normalisation, strong dropout")
		s.Hidden, s.Layers, s.Dropout, s.LR, s.WeightDecay, s.Epochs = 256, 3, 0.7, 0.001, 5e-4, 500
	case !mixed:
		why("many labels, and neighbours are mostly of one class: layer norm, two layers")
		s.Norm, s.Hidden, s.Layers, s.Dropout, s.LR, s.WeightDecay, s.Epochs = "layer", 256, 2, 0.5, 0.001, 5e-4, 1000
		if s.Residual = f.Degree() < dense; !s.Residual {
			s.WeightDecay = 5e-5
			why("high degrees: no residual, weak weight decay")
		}
	case f.Nodes < small:
		why("a small graph whose neighbours are of other classes: no normalisation, five layers, strong weight decay")
		s.Hidden, s.Layers, s.Dropout, s.LR, s.WeightDecay, s.Epochs = 512, 5, 0.2, 0.005, 0.001, 200
	default:
		why("neighbours are of other classes: batch norm and residual")
		s.Norm, s.Residual, s.Hidden, s.Layers, s.Dropout, s.LR, s.Epochs = "batch", true, 256, 4, 0.5, 0.001, 1000
		if most = deepWork; f.Degree() < sparse {
			s.Layers = 9
			why("low degrees: many layers")
		}
		if f.Features < narrow {
			s.Hidden, s.Dropout, s.LR = 64, 0.2, 0.01
			if s.Layers == 9 {
				s.Layers = 12
			}
			why("few features: narrow layers, weak dropout, a high rate")
		}
	}
	for s.Hidden > 64 && float64(f.Nodes)*float64(s.Hidden*s.Hidden*s.Layers) > most {
		s.Hidden /= 2
	}
	if sample || f.Parts || !Whole(f.Nodes, f.Edges) {
		s.Layers, s.Hidden, s.LR, s.WeightDecay, s.EvalEvery = min(s.Layers, 3), max(s.Hidden, 128), 0.003, 0, 1
		s.Epochs = int(math.Max(10, math.Min(100, 2_000_000/float64(max(f.Train, 1)))))
		s.Patience = max(5, s.Epochs/5)
		if s.Norm == "" {
			s.Norm = "layer"
		}
		why("sampled batches: at most three layers, fewer epochs")
		return s
	}
	s.FullGraph = true
	return s.paced()
}
