package predict

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/graphnb/graphnb/graphops/nn"
)

// Class returns the most probable class of node i and its probability; "" and 0 if the answers are not of kind [Classes].
func (a *Answers) Class(i int) (name string, probability float64) {
	p := a.Probabilities(i)
	if a.Kind != Classes || p == nil {
		return "", 0
	}
	best := nn.Argmax(a.logits(i))
	return a.names(i)[best], p[best]
}

// logits are those of row i: one column is the logit of class 1 of two.
func (a *Answers) logits(i int) []float32 {
	row := a.Rows.Row(i)
	if a.Kind == Classes && len(row) == 1 {
		return []float32{0, row[0]}
	}
	return row
}

// Probabilities returns the probability of each class of node i, which add up to 1, or of each label; nil for other answers.
func (a *Answers) Probabilities(i int) []float64 {
	row := a.logits(i)
	p := make([]float64, len(row))
	switch a.Kind {
	case Classes:
		most, sum := row[nn.Argmax(row)], 0.0
		for k, z := range row {
			p[k] = math.Exp(float64(z - most))
			sum += p[k]
		}
		for k := range p {
			p[k] /= sum
		}
	case Labels:
		for k, z := range row {
			p[k] = 1 / (1 + math.Exp(-float64(z)))
		}
	default:
		return nil
	}
	return p
}

// Line shows the answer for node i.
func (a *Answers) Line(i int) string {
	switch a.Kind {
	case Classes:
		class, p := a.Class(i)
		return fmt.Sprintf("%s  %.4f", class, p)
	case Labels:
		var parts []string
		names := a.names(i)
		for k, p := range a.Probabilities(i) {
			if p > .5 {
				parts = append(parts, fmt.Sprintf("%s %.4f", names[k], p))
			}
		}
		return strings.Join(parts, "  ")
	case Numbers:
		var parts []string
		for k, x := range a.Rows.Row(i) {
			parts = append(parts, fmt.Sprintf("%s %.6g", a.Columns[k], x))
		}
		return strings.Join(parts, "  ")
	}
	row := a.Rows.Row(i)
	if len(row) > 8 {
		return fmt.Sprintf("%.4g … (%d columns)", row[:8], len(row))
	}
	return fmt.Sprintf("%.4g", row)
}

// Answer is the answer for one node, as JSON has it.
type Answer struct {
	ID string `json:"id"`
	// Class and Probability are the most probable class and its probability.
	Class       string   `json:"class,omitempty"`
	Probability *float64 `json:"probability,omitempty"`
	// Probabilities are those of all classes or labels.
	Probabilities map[string]float64 `json:"probabilities,omitempty"`
	Numbers       map[string]float32 `json:"numbers,omitempty"`
	// Row is an embedding or another output.
	Row []float32 `json:"row,omitempty"`
}

// Of returns the answer for node i.
func (a *Answers) Of(i int) Answer {
	r := Answer{ID: a.IDs[i]}
	switch a.Kind {
	case Classes, Labels:
		r.Probabilities = map[string]float64{}
		for k, p := range a.Probabilities(i) {
			r.Probabilities[a.names(i)[k]] = p
		}
		if class, p := a.Class(i); a.Kind == Classes {
			r.Class, r.Probability = class, &p
		}
	case Numbers:
		r.Numbers = map[string]float32{}
		for k, x := range a.Rows.Row(i) {
			r.Numbers[a.Columns[k]] = x
		}
	default:
		r.Row = a.Rows.Row(i)
	}
	return r
}

// MarshalJSON writes the kind, an [Answer] for each node, and the notices.
func (a *Answers) MarshalJSON() ([]byte, error) {
	all := make([]Answer, len(a.IDs))
	for i := range all {
		all[i] = a.Of(i)
	}
	out := map[string]any{"kind": a.Kind, "answers": all}
	if len(a.Notices) > 0 {
		out["notices"] = a.Notices
	}
	return json.Marshal(out)
}
