package graphs

import (
	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/simd"
)

// counter counts the outputs for graphs of a split, so that counters of ranks combine exactly.
type counter interface {
	// add counts a graph's outputs. It returns false if they are not finite.
	add(i int32, row []float32) bool
	Encode() []byte
	Merge(b []byte) error
	values(split string) []runs.NamedValue
}

func (t *graphTask) counter() (counter, error) {
	if !t.o.numeric() {
		return &labelCounter{tally.New(t.g, nil, true), tally.Metric(t.g).Name}, nil
	}
	c, err := t.o.NewTally(t.o.Metric)
	return &numberCounter{c, t.g}, err
}

// labelCounter measures labels by the chosen metric and the loss.
type labelCounter struct {
	*tally.Tally
	metric string
}

func (c *labelCounter) add(i int32, row []float32) bool {
	c.Add(i, row)
	return !c.NotFinite()
}

func (c *labelCounter) values(split string) []runs.NamedValue {
	r := c.Result()
	return []runs.NamedValue{{Name: split + "_" + c.metric, Value: r.Value}, {Name: split + "_loss", Value: r.Loss}}
}

// numberCounter measures numbers by all metrics of numbers.
type numberCounter struct {
	*numbers.Tally
	g *gnb.Dataset
}

func (c *numberCounter) add(i int32, row []float32) bool {
	if !simd.Finite(row) {
		return false
	}
	c.Add(row, c.g.Target(i))
	return true
}

func (c *numberCounter) values(split string) []runs.NamedValue {
	return c.Values(split, c.g.Meta.TargetNames)
}
