package events

import (
	"math"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/parallel"
)

// nodeModels are the models of NodeOptions.Model.
var nodeModels = []string{"counts", "tgn"}

// nodeModel answers questions about nodes: a linear map and a perceptron of what the stream says about the node, and for tgn of its embedding.
type nodeModel struct {
	Skip *nn.Linear     `nn:"skip"`
	MLP  *nn.Perceptron `nn:"mlp"`
	TGN  *tgn           `nn:"tgn,optional"`

	r       *nodeRows
	decays  []float64
	mean    float64 // of the answers of training, and their deviation
	spread  float64
	dropout float64
}

// newNodeModel makes the model of a run's options; x has the features of nodes, nil for none, and trained is the number of nodes of the
// run's dataset.
func (o *NodeOptions) newModel(r *nodeRows, x *dataset.Matrix, trained int) *nodeModel {
	shared := &Options{Hidden: o.Hidden, TimeDim: o.TimeDim, Neighbors: o.Neighbors, Heads: o.Heads, Dropout: o.Dropout, TimeScale: o.TimeScale}
	m := &nodeModel{r: r, decays: shared.decays(), spread: 1, dropout: o.Dropout}
	out := r.classes
	if out == 0 {
		m.mean, m.spread = o.Scale.Mean[0], o.Scale.Deviation[0]
		out = o.Columns(1)
	}
	cols := recentCols + m.earlierCols()
	m.Skip = nn.NewLinear(cols, out, true)
	if o.Model == "tgn" {
		m.TGN = newTGN(r.stream, x, trained, shared)
		m.TGN.Score, m.TGN.stepOf = nil, r.chunkOf
		cols += o.Hidden
	}
	m.MLP = nn.NewPerceptron(cols, o.Hidden, o.Hidden, out)
	m.MLP.Dropout = o.Dropout
	return m
}

// NumLayers implements [nn.Model].
func (m *nodeModel) NumLayers() int { return 1 }

// Layer implements [nn.Model]. A nodeModel computes by its [nodeState] alone.
func (m *nodeModel) Layer(f *nn.Fwd, _ int, b *nn.Block, h *nn.Tensor) *nn.Tensor { return f.Dst(b, h) }

// Reads implements [nn.Reader].
func (m *nodeModel) Reads() nn.Reads {
	reads := nn.Reads{Edges: true, Times: true}
	if m.TGN != nil {
		reads = m.TGN.Reads()
	}
	if m.r.ask.Values != nil { // the answers are made of them
		reads.Weights, reads.EdgeFeatures = true, true
	}
	return reads
}

// earlierCols is the number of columns of what the last windows held. Of numbers these are of each window its answer by the node's level and
// whether it is known; then the mean of the known ones, and the level by its order of magnitude. Of classes these are the class of each
// window, and the share of each class.
func (m *nodeModel) earlierCols() int {
	if n := m.r.classes; n > 0 {
		return n * (pastWindows + 1)
	}
	return 2*pastWindows + 2
}

// leastLevel is the least level of a node, in deviations of the answers of training.
const leastLevel = 0.1

// earlierFeatures writes the columns of a node's last windows, and returns its level: the mean size of the known answers. The outputs for numbers
// are in this unit, so that what is learned of busy nodes holds for quiet ones, and for times when all are quiet.
func (m *nodeModel) earlierFeatures(row, earlier []float32) (level float64) {
	clear(row)
	sum, size, n := 0.0, 0.0, 0
	if of := m.r.classes; of > 0 {
		for _, share := range shares(earlier, of) {
			row[of*pastWindows+n] = share
			n++
		}
		for k, y := range earlier {
			if y == y {
				row[k*of+int(y)] = 1
			}
		}
		return 1
	}
	for _, y := range earlier {
		if y == y {
			sum, size, n = sum+float64(y), size+math.Abs(float64(y)), n+1
		}
	}
	if n == 0 {
		return math.Abs(m.mean) + m.spread
	}
	level = size/float64(n) + leastLevel*m.spread
	for k, y := range earlier {
		if y == y {
			row[2*k], row[2*k+1] = float32(float64(y)/level), 1
		}
	}
	row[2*pastWindows] = float32(sum / float64(n) / level)
	row[2*pastWindows+1] = float32(math.Log(level / m.spread))
	return level
}

// recentCols are the columns of a node's decayed counts and ages: those of its history without its total counts, which only grow.
const recentCols = nodeCols - 2

// shares are those of the classes among the known answers; 0 if there are none.
func shares(earlier []float32, classes int) []float32 {
	all, n := make([]float32, classes), 0
	for _, y := range earlier {
		if y == y {
			all[int(y)]++
			n++
		}
	}
	for c := range all {
		all[c] /= float32(max(1, n))
	}
	return all
}

// base is the answer that the outputs for numbers correct: the last known one.
func (m *nodeModel) base(earlier []float32) float64 {
	for _, y := range earlier {
		if y == y {
			return float64(y)
		}
	}
	return m.mean
}

// nodeView is what a model takes of the stream to answer questions.
type nodeView struct {
	*neighbourhood         // of tgn
	rows           []int32 // the row of each question's node in it
}

// view returns what the model takes of the stream for questions. It is a function of its argument alone, and called ahead of training.
func (m *nodeModel) view(q *nodeQuestions) *nodeView {
	v := &nodeView{}
	if m.TGN == nil {
		return v
	}
	var roots numbered
	for _, u := range q.nodes {
		v.rows = append(v.rows, roots.add(u))
	}
	v.neighbourhood = m.TGN.around(roots.ids, q.happened)
	return v
}

// nodeState is what a model knows of the events that have happened.
type nodeState struct {
	*nodeModel
	*histories
	memories *memories // of tgn
}

// begin returns the state before the first event; in training it is part of checkpoints, as far as it is no function of the stream.
func (m *nodeModel) begin(training bool) (*nodeState, error) {
	s := &nodeState{nodeModel: m, histories: newHistories(m.r.Nodes, m.decays)}
	if m.TGN == nil {
		return s, nil
	}
	of, err := m.TGN.begin(training)
	if err == nil {
		s.memories = of.(*memories)
	}
	return s, err
}

// resumed returns the state of a resumed training after some events, of which the one in the checkpoint had taken in so many.
func (m *nodeModel) resumed(happened *temporal.Events, taken int) (*nodeState, error) {
	s := &nodeState{nodeModel: m, histories: newHistories(m.r.Nodes, m.decays)}
	s.add(happened, 0)
	if m.TGN == nil {
		return s, nil
	}
	of, err := m.TGN.resumed(happened, taken)
	if err == nil {
		s.memories = of.(*memories)
	}
	return s, err
}

// taken is the number of events that the state has taken in.
func (s *nodeState) taken() int {
	if s.memories != nil {
		return s.memories.taken()
	}
	return s.histories.taken()
}

// outputs returns the answers [questions, columns], and leaves the state as it is.
func (s *nodeState) outputs(f *nn.Fwd, q *nodeQuestions, v *nodeView) *nn.Tensor {
	cols := recentCols + s.earlierCols()
	n, wide := len(q.nodes), s.Skip.Bias.Cols
	x, names := make([]float32, n*cols), make([]int32, n)
	levels, offsets := make([]float32, n*wide), make([]float32, n*wide)
	parallel.For(f.Config().Threads, n, 64, func(lo, hi int) {
		var of [nodeCols]float32
		for i := lo; i < hi; i++ {
			row := x[i*cols : (i+1)*cols]
			s.of[q.nodes[i]].features(of[:], s.histories.decays, q.times[i])
			copy(row, of[nodeCols-recentCols:])
			level := s.earlierFeatures(row[recentCols:], q.earlier[i*pastWindows:(i+1)*pastWindows])
			for k := i * wide; k < (i+1)*wide; k++ {
				levels[k], offsets[k] = float32(level/s.spread), float32((s.base(q.earlier[i*pastWindows:(i+1)*pastWindows])-s.mean)/s.spread)
			}
			names[i] = int32(q.first + i)
		}
	})
	h := f.Input(n, cols, x, nil)
	out := s.Skip.Forward(f, h)
	if s.TGN != nil {
		h = f.Concat(h, f.Gather(s.TGN.embed(f, v.neighbourhood, s.memories.rows), v.rows))
	}
	out = f.Add(out, s.MLP.Forward(f, h.SetSpace(&nn.Space{IDs: names}))) // which name the rows in the draws of dropout
	if s.r.classes > 0 {
		return out
	}
	return f.Add(f.Mul(out, f.Input(n, wide, levels, nil)), f.Input(n, wide, offsets, nil))
}

// happen adds the events until the known one behind those that the state has taken in. Collective.
func (s *nodeState) happen(to int, w ranks) error {
	s.add(s.r.Head(to), s.histories.taken())
	for s.memories != nil && s.memories.taken() < to {
		from := s.memories.taken()
		_, end := s.r.chunkOf(from)
		if err := s.memories.happen(s.r.Head(min(end, to)), from, w); err != nil {
			return err
		}
	}
	return nil
}
