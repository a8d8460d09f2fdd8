package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Questions are rows of a table about nodes at moments: what was known later of a node at a time, such as whether a customer came back.
type Questions struct {
	// Nodes and Times [questions] say about which node and moment; times ascend, in the unit of the edges' times.
	Nodes []int32
	Times []int64
	// Answers [questions·columns] are numbers or, in a column of classes, the numbers of the classes; NaN is an unknown answer.
	Answers []float32
	Columns []QuestionColumn
}

// QuestionColumn is a column of answers: numbers or, with names of classes, classes.
type QuestionColumn struct {
	Name    string   `json:"name"`
	Classes []string `json:"classes,omitempty"`
}

// The arrays of a dataset with questions; answers are the bits of float32.
const (
	questionNodes   = "question_nodes"
	questionTimes   = "question_times"
	questionAnswers = "question_answers"
)

// SetQuestions gives a dataset questions, in place of earlier ones. It returns an error for questions about nodes that it does not have, for
// times that do not ascend, for two about one node at one time, and for answers that are infinite or no classes.
func (d *Dataset) SetQuestions(q *Questions) error {
	if err := q.check(d.Nodes()); err != nil {
		return fmt.Errorf("dataset: the questions about nodes of %s: %w", d.Name(), err)
	}
	bits := make([]int32, len(q.Answers))
	for i, y := range q.Answers {
		bits[i] = int32(math.Float32bits(y))
	}
	arrays := map[string]Array{questionNodes: {I32: q.Nodes}, questionTimes: {I64: q.Times}, questionAnswers: {I32: bits}}
	for name, a := range d.Arrays {
		if arrays[name].I32 == nil && arrays[name].I64 == nil {
			arrays[name] = a
		}
	}
	d.Arrays, d.Meta.Questions = arrays, slices.Clone(q.Columns)
	return nil
}

// Questions returns the questions that the data gives, nil if there are none. The nodes and times are the dataset's memory.
func (d *Dataset) Questions() (*Questions, error) {
	if len(d.Meta.Questions) == 0 || d.Arrays[questionNodes].I32 == nil {
		return nil, nil //nolint:nilnil // there are none
	}
	q := &Questions{Nodes: d.Arrays[questionNodes].I32, Times: d.Arrays[questionTimes].I64, Columns: d.Meta.Questions}
	for _, b := range d.Arrays[questionAnswers].I32 {
		q.Answers = append(q.Answers, math.Float32frombits(uint32(b)))
	}
	if err := q.check(d.Nodes()); err != nil {
		return nil, d.wrong(questionNodes+".npy", "the questions about nodes: %w", err)
	}
	return q, nil
}

func (q *Questions) check(nodes int) error {
	cols := len(q.Columns)
	switch {
	case len(q.Nodes) == 0 || cols == 0:
		return errors.New("there are none, or they have no answers")
	case len(q.Times) != len(q.Nodes) || len(q.Answers) != len(q.Nodes)*cols:
		return fmt.Errorf("there are %d nodes, %d times and %d answers in %d columns; each question has one of each", len(q.Nodes), len(q.Times), len(q.Answers), cols)
	}
	now := map[int32]bool{} // the nodes of the questions of one time
	for i, v := range q.Nodes {
		if i > 0 && q.Times[i] != q.Times[i-1] {
			clear(now)
		}
		switch {
		case now[v]:
			return fmt.Errorf("question %d is about node %d at time %d, as an earlier one is; keep one of them", i, v, q.Times[i])
		case v < 0 || int(v) >= nodes:
			return fmt.Errorf("question %d is about node %d, and the nodes are 0 to %d", i, v, nodes-1)
		case i > 0 && q.Times[i] < q.Times[i-1]:
			return fmt.Errorf("question %d has time %d, and the one before it %d; times ascend", i, q.Times[i], q.Times[i-1])
		}
		now[v] = true
		for c, col := range q.Columns {
			y := q.Answers[i*cols+c]
			switch n := len(col.Classes); {
			case math.IsInf(float64(y), 0):
				return fmt.Errorf("the answer %q of question %d is %v; it is a number, or NaN if unknown", col.Name, i, y)
			case n > 0 && y == y && (y < 0 || y >= float32(n) || y != float32(int(y))):
				return fmt.Errorf("the answer %q of question %d is %v, and its classes are 0 to %d", col.Name, i, y, n-1)
			}
		}
	}
	return nil
}

// checkQuestions finds questions that are damaged.
func (d *Dataset) checkQuestions(r *reading) error {
	if len(d.Meta.Questions) == 0 {
		return nil
	}
	if err := r.next(4 * int64(len(d.Arrays[questionNodes].I32))); err != nil {
		return err
	}
	_, err := d.Questions()
	return err
}

// keepQuestions gives s, whose nodes are some of d's, the questions about those. number is the new number of each node plus 1, 0 for one that is
// left out.
func (d *Dataset) keepQuestions(s *Dataset, number []int32) error {
	q, err := d.Questions()
	if q == nil || err != nil {
		return err
	}
	kept := &Questions{Columns: q.Columns}
	cols := len(q.Columns)
	for i, v := range q.Nodes {
		if number[v] > 0 {
			kept.Nodes, kept.Times = append(kept.Nodes, number[v]-1), append(kept.Times, q.Times[i])
			kept.Answers = append(kept.Answers, q.Answers[i*cols:(i+1)*cols]...)
		}
	}
	if s.Meta.Questions = nil; len(kept.Nodes) == 0 {
		return nil
	}
	return s.SetQuestions(kept)
}

// dropQuestions leaves out what metadata says of questions that the dataset does not have.
func (m *Metadata) dropQuestions(arrays map[string]Array) {
	if arrays[questionNodes].I32 == nil {
		m.Questions = nil
	}
}
