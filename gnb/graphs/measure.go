package graphs

import (
	"encoding/binary"
	"errors"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/internal/simd"
)

// counter counts the outputs for graphs of a split by the task's metrics, so that counters of ranks combine exactly.
type counter interface {
	// add counts a graph's outputs. It returns false if they are not finite.
	add(i int32, row []float32) bool
	encode() []byte
	merge(b []byte) error
	values() []runs.NamedValue
}

func (t *graphTask) counter() counter {
	if t.o.numeric() {
		c := &numberCounter{g: t.g, o: &t.o}
		for _, m := range metrics.Numbers {
			c.tallies = append(c.tallies, m.New(0))
		}
		return c
	}
	return &labelCounter{tally.New(t.g, nil, true), tally.Metric(t.g).Name}
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
func (c *labelCounter) encode() []byte       { return c.Encode() }
func (c *labelCounter) merge(b []byte) error { return c.Merge(b) }
func (c *labelCounter) values() []runs.NamedValue {
	r := c.Result()
	return []runs.NamedValue{{Name: c.metric, Value: r.Value}, {Name: "loss", Value: r.Loss}}
}

// numberCounter measures numbers by all metrics of numbers.
type numberCounter struct {
	g       *gnb.Dataset
	o       *recorded
	tallies []metrics.Tally
}

func (c *numberCounter) add(i int32, row []float32) bool {
	if !simd.Finite(row) {
		return false
	}
	middle := make([]float32, c.g.Targets.Cols)
	c.o.Middle(middle, row)
	for _, t := range c.tallies {
		t.Add(middle, metrics.Answer{Numbers: c.g.Target(i)})
	}
	return true
}

func (c *numberCounter) encode() (b []byte) {
	for _, t := range c.tallies {
		part := t.Encode()
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	return b
}

func (c *numberCounter) merge(b []byte) error {
	for _, t := range c.tallies {
		if len(b) < 4 || len(b)-4 < int(binary.LittleEndian.Uint32(b)) {
			return errors.New("graphs: what another rank counted in an evaluation was cut short")
		}
		n := int(binary.LittleEndian.Uint32(b))
		if err := t.Merge(b[4 : 4+n]); err != nil {
			return err
		}
		b = b[4+n:]
	}
	return nil
}

func (c *numberCounter) values() (values []runs.NamedValue) {
	for k, m := range metrics.Numbers {
		x, _ := c.tallies[k].Value()
		values = append(values, runs.NamedValue{Name: m.Name, Value: x})
	}
	return values
}
