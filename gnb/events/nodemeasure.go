package events

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/simd"
)

// scorer measures answers. What ranks have counted combines exactly.
type scorer interface {
	Add(row []float32, target float32)
	Encode() []byte
	Merge(b []byte) error
	// Values returns the measures by names that begin with a prefix and "_"; those that do not exist are left out.
	Values(prefix string) []runs.NamedValue
}

// numberScorer measures numbers.
type numberScorer struct{ *numbers.Tally }

func (s numberScorer) Add(row []float32, target float32) { s.Tally.Add(row, []float32{target}) }

func (s numberScorer) Values(prefix string) []runs.NamedValue { return s.Tally.Values(prefix, nil) }

// classScorer measures classes by several metrics.
type classScorer struct {
	by []gnb.Metric
	of []metrics.Tally
}

func newClassScorer(classes int, chosen gnb.Metric) *classScorer {
	s := &classScorer{by: []gnb.Metric{chosen}}
	for _, m := range []gnb.Metric{metrics.ROCAUCMetric, metrics.AveragePrecisionMetric, metrics.AccuracyMetric} {
		if m.Name != chosen.Name && (!m.Ranks || classes == 2) {
			s.by = append(s.by, m)
		}
	}
	for _, m := range s.by {
		s.of = append(s.of, m.New(classes))
	}
	return s
}

func (s *classScorer) Add(row []float32, target float32) {
	for _, m := range s.of {
		m.Add(row, metrics.Answer{Class: int32(target)})
	}
}

func (s *classScorer) Encode() []byte {
	var all [][]byte
	for _, m := range s.of {
		all = append(all, m.Encode())
	}
	return packed(all)
}

func (s *classScorer) Merge(b []byte) error {
	return unpacked(b, len(s.of), func(i int, part []byte) error { return s.of[i].Merge(part) })
}

func (s *classScorer) Values(prefix string) (values []runs.NamedValue) {
	for i, m := range s.by {
		if x, _ := s.of[i].Value(); !math.IsNaN(x) {
			values = append(values, runs.NamedValue{Name: prefix + "_" + m.Name, Value: x})
		}
	}
	return values
}

// packed writes parts one after the other, each behind its length.
func packed(parts [][]byte) (b []byte) {
	for _, p := range parts {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(p))), p...)
	}
	return b
}

// unpacked calls use with the n parts that packed wrote.
func unpacked(b []byte, n int, use func(i int, part []byte) error) error {
	for i := range n {
		if len(b) < 4 || uint32(len(b)-4) < binary.LittleEndian.Uint32(b) {
			return errors.New("events: what another rank counted in an evaluation was cut short")
		}
		end := 4 + int(binary.LittleEndian.Uint32(b))
		if err := use(i, b[4:end]); err != nil {
			return err
		}
		b = b[end:]
	}
	return nil
}

// scorer returns a scorer of no answers of a model, or of a baseline, whose answers are numbers in their own unit.
func (t *nodeTrainer) scorer(baseline bool) (scorer, error) {
	if t.r.classes > 0 {
		return newClassScorer(t.r.classes, t.metric), nil
	}
	of := &t.o.LossOptions
	if baseline {
		of = &numbers.LossOptions{Scale: numbers.Scale{Mean: []float64{0}, Deviation: []float64{1}}}
	}
	s, err := of.NewTally(t.o.Metric)
	return numberScorer{s}, err
}

// baseline answers by what a node's last windows held, and learns nothing.
type baseline struct {
	name, title, what string
	// answer returns the answer by the known answers of the last windows, the latest first; there is one at least.
	answer func(known []float32) []float32
}

// baselines are those that a run is measured beside.
func (r *nodeRows) baselines() []baseline {
	last, of := "the answer of the node's last window", fmt.Sprintf("of its last %d windows", pastWindows)
	if r.given != nil {
		last, of = "the node's last known answer", fmt.Sprintf("of its last %d answers", pastWindows)
	}
	if n := r.classes; n > 0 {
		return []baseline{
			{"persistent", "persistent", last, func(known []float32) []float32 { return shares(known[:1], n) }},
			{"frequent", "most frequent", "the shares " + of, func(known []float32) []float32 { return shares(known, n) }},
		}
	}
	return []baseline{
		{"persistent", "persistent", last, func(known []float32) []float32 { return known[:1] }},
		{"average", "moving average", "the mean " + of, func(known []float32) []float32 { return []float32{float32(meanOf(known))} }},
	}
}

func meanOf(all []float32) float64 {
	sum := 0.0
	for _, y := range all {
		sum += float64(y)
	}
	return sum / float64(len(all))
}

// plainRow returns the answer of a baseline as a row of a network's outputs. without is the answer where nothing earlier is known.
func (b *baseline) plainRow(earlier, without []float32) []float32 {
	var known [pastWindows]float32
	n := 0
	for _, y := range earlier {
		if y == y {
			known[n] = y
			n++
		}
	}
	if n == 0 {
		return without
	}
	return b.answer(known[:n])
}

// without is the answer of baselines to a question of which nothing earlier is known: the mean of training, or the shares of its classes.
func (r *nodeRows) without() []float32 {
	lo, hi := r.part("train")
	if r.classes > 0 {
		return shares(r.targets[lo:hi], r.classes)
	}
	return []float32{float32(meanOf(r.targets[lo:hi]))}
}

// Splits implements [gnb.Task].
func (t *nodeTrainer) Splits() (names []string) {
	for _, split := range []string{"val", "test"} {
		if lo, hi := t.r.part(split); lo < hi {
			names = append(names, split)
		}
	}
	return names
}

// Chooses implements [gnb.Task].
func (t *nodeTrainer) Chooses() gnb.Metric { return t.metric }

// splitScores are what is counted of a split: of the model and the baselines, over the whole split and over its parts by time.
type splitScores struct {
	split  string
	whole  []scorer   // the model, then the baselines
	parts  []timePart // of the test
	scores [][]scorer // [parts][model, then baselines]
}

// Measure implements [gnb.Task].
func (t *nodeTrainer) Measure(splits ...string) (values []runs.NamedValue, err error) {
	var all []*splitScores
	for _, split := range splits {
		m := &splitScores{split: split}
		if split == "test" {
			m.parts = t.r.timeParts()
		}
		for i := range 1 + len(m.parts) {
			var row []scorer
			for k := range 1 + len(t.r.baselines()) {
				s, err := t.scorer(k > 0)
				if err != nil {
					return nil, err
				}
				row = append(row, s)
			}
			if i == 0 {
				m.whole = row
			} else {
				m.scores = append(m.scores, row)
			}
		}
		all = append(all, m)
	}
	if err := t.answer(all); err != nil {
		t.w.Fail(err) // at once: the other ranks are at other collectives
	}
	for _, m := range all {
		if err := t.gather(m); err != nil {
			return nil, err
		}
		values = append(values, m.whole[0].Values(m.split)...)
		t.compare(m)
		if m.split == "test" && t.w.Rank() == 0 && t.w.RunDir() != "" {
			if err := t.breakdown(m).write(t.w.RunDir()); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// compare records and prints the measures of the baselines, once for each split.
func (t *nodeTrainer) compare(m *splitScores) {
	if t.plain[m.split] {
		return
	}
	t.plain[m.split] = true
	for k, b := range t.r.baselines() {
		values := m.whole[k+1].Values(m.split + "_" + b.name)
		for _, v := range values {
			t.w.Result(v.Name, v.Value)
			if v.Name == m.split+"_"+b.name+"_"+t.metric.Name {
				t.w.Printf("%s, which answers by %s and learns nothing: %s %s on %s", b.title, b.what, t.metric, t.metric.Text(v.Value), m.split)
			}
		}
	}
}

// gather makes what this rank has counted what all have. Collective.
func (t *nodeTrainer) gather(m *splitScores) error {
	rows := append([][]scorer{m.whole}, m.scores...)
	var mine [][]byte
	for _, row := range rows {
		for _, s := range row {
			mine = append(mine, s.Encode())
		}
	}
	all := t.w.AllGather(packed(mine))
	per := len(m.whole)
	for i := range rows {
		for k := range rows[i] {
			s, err := t.scorer(k > 0)
			if err != nil {
				return err
			}
			rows[i][k] = s
		}
	}
	for _, b := range all {
		if err := unpacked(b, len(mine), func(i int, part []byte) error { return rows[i/per][i%per].Merge(part) }); err != nil {
			return err
		}
	}
	return nil
}

// answer goes through the stream from its beginning, and answers the questions of the splits. The ranks of the run divide those of a step.
// Collective.
func (t *nodeTrainer) answer(all []*splitScores) error {
	without, end := t.r.without(), 0
	for _, m := range all {
		_, hi := t.r.part(m.split)
		end = max(end, hi)
	}
	progress := t.w.Progress("evaluate", end)
	return t.w.OnHost(t.net, func(threads int) error {
		state, err := t.model.begin(false)
		if err != nil {
			return err
		}
		f := nn.NewFwd(nn.Config{})
		defer f.Close()
		for _, split := range splitNames {
			i := slices.IndexFunc(all, func(m *splitScores) bool { return m.split == split })
			if i < 0 {
				continue
			}
			for _, s := range t.r.stepsOf(split) {
				if err := state.happen(s.known, ranksOf(t.w, threads)); err != nil {
					return err
				}
				lo, hi := sample.Share(s.hi-s.lo, t.w.Rank(), t.w.World())
				q := t.r.about(s, s.lo+lo, s.lo+hi)
				if err := t.audit.check(q, s, split, state.taken()); err != nil {
					return err
				}
				rows, err := t.model.answers(f, state, q, threads)
				if err != nil {
					return err
				}
				t.add(all[i], q, rows, without)
				progress(s.hi)
			}
		}
		return nil
	})
}

// answers returns the model's outputs for questions, a row for each.
func (m *nodeModel) answers(f *nn.Fwd, state *nodeState, q *nodeQuestions, threads int) (rows [][]float32, err error) {
	if err := try(func() error {
		f.Reset(nn.Config{Threads: threads})
		out := state.outputs(f, q, m.view(q))
		x, cols := out.Data(), out.Cols()
		if !simd.Finite(x) {
			return errors.New("an answer is not a number; take a smaller learning rate (LR, --lr)")
		}
		for i := range q.nodes {
			rows = append(rows, x[i*cols:(i+1)*cols])
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("events: answering about nodes: %w", err)
	}
	return rows, nil
}

// add counts the answers to questions, of the model and of the baselines.
func (t *nodeTrainer) add(m *splitScores, q *nodeQuestions, rows [][]float32, without []float32) {
	list := t.r.baselines()
	for i, row := range rows {
		part := slices.IndexFunc(m.parts, func(p timePart) bool { return q.first+i < p.hi })
		count := func(k int, row []float32) {
			m.whole[k].Add(row, q.targets[i])
			if part >= 0 {
				m.scores[part][k].Add(row, q.targets[i])
			}
		}
		count(0, row)
		for k := range list {
			count(k+1, list[k].plainRow(q.earlier[i*pastWindows:(i+1)*pastWindows], without))
		}
	}
}
