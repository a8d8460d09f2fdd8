package metrics

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/graphnb/graphnb/graphops/nn"
)

// Metric is a measure of a network's outputs as a value: its name, its better direction, how it is written, and how what
// several ranks have counted combines. Its JSON has all but New.
type Metric struct {
	// Name is its name in results, where it follows that of the split: "val_" + Name.
	Name string `json:"name"`
	// Title is its name in sentences and figures, such as "ROC AUC"; empty means Name.
	Title string `json:"title,omitempty"`
	// Lower says that a lower value is better, as of a loss.
	Lower bool `json:"lower,omitempty"`
	// Format is how package fmt writes a value where a run or an evaluation is described in words, such as "%.1f km"; empty
	// means "%.4f".
	Format string `json:"format,omitempty"`
	// Ranks says that rows are ranked by their scores, so that the metric takes two classes, or several labels for each
	// row, and positives and negatives among the rows.
	Ranks bool `json:"ranks,omitempty"`
	// New returns a tally of no rows, of outputs for a number of classes. Its tally takes rows of one class and rows of several
	// labels (Answer.Labels), or rows of numbers; a metric that is not defined for them is NaN. It is nil for a metric that a task
	// computes itself.
	New func(classes int) Tally `json:"-"`
}

// Tally is what has been counted of the rows of a split. What it says of rows that several tallies have counted, one of
// which has merged the others in the order of their ranks, must be the same bits as if one had counted all of them.
type Tally interface {
	// Add counts a row of outputs, which are finite, whose answer is known.
	Add(row []float32, known Answer)
	// Value is the metric, NaN if it does not exist, and the number of rows (or of labels, if a row can have several) that
	// it is the metric of.
	Value() (value float64, count int64)
	// Encode returns what was counted, and Merge adds what another tally of the same metric has encoded.
	Encode() []byte
	Merge(encoded []byte) error
}

// Answer is what is known of a row: its class or, if it can have several labels, Labels: 1, 0, or -1 for an unknown one; or, if
// numbers are predicted, Numbers, NaN for a missing one.
type Answer struct {
	Class   int32
	Labels  []int8
	Numbers []float32
}

// Text writes a value.
func (m Metric) Text(value float64) string {
	if m.Format == "" {
		return fmt.Sprintf("%.4f", value)
	}
	return fmt.Sprintf(m.Format, value)
}

// String is the metric's name in sentences.
func (m Metric) String() string {
	if m.Title != "" {
		return m.Title
	}
	return strings.ReplaceAll(m.Name, "_", " ")
}

// Of cuts the name of an evaluation's value, such as "val_auc", into that of the split and this metric's.
func (m Metric) Of(value string) (split string, ok bool) {
	if m.Name == "" {
		return "", false
	}
	return strings.CutSuffix(value, "_"+m.Name)
}

// All are the metrics of classes and labels that the library has.
var All = []Metric{AccuracyMetric, ROCAUCMetric, AveragePrecisionMetric, MicroF1Metric, MacroF1Metric, BalancedAccuracyMetric, MatthewsMetric}

// The metrics of classes and labels.
var (
	// AccuracyMetric is the share of correct rows or, with several labels, of correct labels.
	AccuracyMetric = Metric{Name: "accuracy", New: func(int) Tally { return &share{} }}
	// MicroF1Metric is [F1.Micro] over all rows and classes together.
	MicroF1Metric = Metric{Name: "micro_f1", Title: "micro-F1", New: func(classes int) Tally { return newClasses(classes, micro) }}
	// MacroF1Metric is [MacroF1].
	MacroF1Metric = Metric{Name: "macro_f1", Title: "macro-F1", New: func(classes int) Tally { return newClasses(classes, MacroF1) }}
	// BalancedAccuracyMetric is the mean of the classes' recalls, each the share of its rows that are found, over the classes
	// that have rows: sklearn.metrics.balanced_accuracy_score, which rare classes count in as much as frequent ones.
	BalancedAccuracyMetric = Metric{Name: "balanced_accuracy", Title: "balanced accuracy", New: func(classes int) Tally { return newClasses(classes, meanRecall) }}
	// MatthewsMetric is Matthews' correlation coefficient of the classes and the answers: sklearn.metrics.matthews_corrcoef. It is
	// 1 if all answers are right, about 0 if they do not depend on the classes, at least -1, and 0 if all rows are of one class or
	// have one answer. If a row can have several labels, it is that of all labels together, each with the classes 0 and 1, which
	// scikit-learn does not define. Source: B. W. Matthews, BBA 1975, https://doi.org/10.1016/0005-2795(75)90109-9; for more than
	// two classes J. Gorodkin, Comput. Biol. Chem. 2004, https://doi.org/10.1016/j.compbiolchem.2004.09.006.
	MatthewsMetric = Metric{Name: "mcc", Title: "Matthews correlation", New: func(classes int) Tally { return newMatthews(classes) }}
	// ROCAUCMetric is [ROCAUC], and [MultiLabelAUC] if a row can have several labels.
	ROCAUCMetric = Metric{Name: "auc", Title: "ROC AUC", Ranks: true, New: func(int) Tally { return &scoredRows{one: ROCAUC, several: MultiLabelAUC} }}
	// AveragePrecisionMetric is [AveragePrecision], and [MultiLabelAveragePrecision] if a row can have several labels.
	AveragePrecisionMetric = Metric{Name: "ap", Title: "average precision", Ranks: true, New: func(int) Tally {
		return &scoredRows{one: AveragePrecision, several: MultiLabelAveragePrecision}
	}}
)

// counts are sums of whole numbers, which combine exactly in any order.
type counts []int64

func (c counts) Encode() []byte {
	b := make([]byte, 0, 8*len(c))
	for _, n := range c {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func (c counts) Merge(b []byte) error {
	if len(b) != 8*len(c) {
		return fmt.Errorf("metrics: %d bytes are not the %d counts of a metric; all ranks must have the same metric and classes", len(b), len(c))
	}
	for i := range c {
		c[i] += int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return nil
}

// share counts correct answers.
type share struct{ correct, count int64 }

func (s *share) Add(row []float32, known Answer) {
	if known.Labels == nil {
		s.count++
		if nn.Argmax(row) == int(known.Class) {
			s.correct++
		}
		return
	}
	for c, y := range known.Labels {
		if y >= 0 {
			s.count++
			if (row[c] > 0) == (y == 1) {
				s.correct++
			}
		}
	}
}

func (s *share) Value() (float64, int64) { return float64(s.correct) / float64(s.count), s.count }

func (s *share) Encode() []byte { return counts{s.correct, s.count}.Encode() }

func (s *share) Merge(b []byte) error {
	c := counts{s.correct, s.count}
	err := c.Merge(b)
	s.correct, s.count = c[0], c[1]
	return err
}

// classes counts the answers for each class, and all answers.
type classes struct {
	each []F1
	all  int64
	of   func(classes []F1) float64
}

func newClasses(n int, of func([]F1) float64) *classes {
	return &classes{each: make([]F1, max(n, 1)), of: of}
}

func micro(classes []F1) float64 {
	var all F1
	for _, c := range classes {
		all.TruePositives += c.TruePositives
		all.FalsePositives += c.FalsePositives
		all.FalseNegatives += c.FalseNegatives
	}
	return all.Micro()
}

func meanRecall(classes []F1) float64 {
	sum, n := 0.0, 0
	for _, c := range classes {
		if rows := c.TruePositives + c.FalseNegatives; rows > 0 {
			sum += float64(c.TruePositives) / float64(rows)
			n++
		}
	}
	return sum / float64(n)
}

func (s *classes) Add(row []float32, known Answer) {
	if known.Labels == nil {
		s.all++
		y, answer := int(known.Class), nn.Argmax(row)
		if answer == y {
			s.each[y].TruePositives++
			return
		}
		s.each[min(answer, len(s.each)-1)].FalsePositives++ // one class was missed and another was predicted
		s.each[y].FalseNegatives++
		return
	}
	for c, y := range known.Labels {
		if y >= 0 {
			s.all++
		}
		s.each[c].AddRow(row[c:c+1], known.Labels[c:c+1])
	}
}

func (s *classes) Value() (float64, int64) {
	if s.all == 0 {
		return math.NaN(), 0
	}
	return s.of(s.each), s.all
}

func (s *classes) Encode() []byte {
	c := counts{s.all}
	for _, f := range s.each {
		c = append(c, f.TruePositives, f.FalsePositives, f.FalseNegatives)
	}
	return c.Encode()
}

func (s *classes) Merge(b []byte) error {
	c := make(counts, 1+3*len(s.each))
	if err := c.Merge(b); err != nil {
		return err
	}
	s.all += c[0]
	for i := range s.each {
		s.each[i].TruePositives += c[3*i+1]
		s.each[i].FalsePositives += c[3*i+2]
		s.each[i].FalseNegatives += c[3*i+3]
	}
	return nil
}

// matthews counts rows by class and by answer, and right answers, in counts: all rows, right ones, then for each class the rows
// of it and those answered with it.
type matthews struct{ counts }

func newMatthews(classes int) matthews { return matthews{make(counts, 2+2*max(classes, 2))} }

func (m matthews) answer(class, answer int) {
	m.counts[0]++
	if answer == class {
		m.counts[1]++
	}
	m.counts[2+2*class]++
	m.counts[3+2*min(answer, len(m.counts)/2-2)]++
}

func (m matthews) Add(row []float32, known Answer) {
	if known.Labels == nil {
		m.answer(int(known.Class), nn.Argmax(row))
		return
	}
	for c, y := range known.Labels {
		if y >= 0 {
			said := 0
			if row[c] > 0 {
				said = 1
			}
			m.answer(int(y), said)
		}
	}
}

func (m matthews) Value() (float64, int64) {
	all, right := float64(m.counts[0]), float64(m.counts[1])
	if m.counts[0] == 0 {
		return math.NaN(), 0
	}
	both, classes, answers := right*all, all*all, all*all // covariance, and the two variances, each times all*all
	for c := 2; c < len(m.counts); c += 2 {
		of, said := float64(m.counts[c]), float64(m.counts[c+1])
		both, classes, answers = both-of*said, classes-of*of, answers-said*said
	}
	if classes == 0 || answers == 0 {
		return 0, m.counts[0]
	}
	return both / (math.Sqrt(classes) * math.Sqrt(answers)), m.counts[0]
}

// scoredRows keeps the scores of all rows: [rows, cols], and the labels for them.
type scoredRows struct {
	one     func(scores []float32, labels []int8) float64
	several func(scores []float32, cols int, labels []int8) (float64, []float64)

	cols   int // 0: a row has one score, of class 1
	rows   int64
	scores []float32
	labels []int8
}

func (s *scoredRows) Add(row []float32, known Answer) {
	s.rows++
	if known.Labels == nil {
		s.scores = append(s.scores, BinaryScores(row, len(row))...)
		s.labels = append(s.labels, int8(known.Class))
		return
	}
	s.cols = len(row)
	s.scores, s.labels = append(s.scores, row...), append(s.labels, known.Labels...)
}

func (s *scoredRows) Value() (value float64, count int64) {
	switch {
	case s.rows == 0:
		return math.NaN(), 0
	case s.cols == 0:
		return s.one(s.scores, s.labels), s.rows
	}
	value, _ = s.several(s.scores, s.cols, s.labels)
	return value, s.rows
}

func (s *scoredRows) Encode() []byte {
	b := make([]byte, 0, 24+len(s.labels)+4*len(s.scores))
	for _, n := range []int{s.cols, int(s.rows), len(s.scores)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	for _, x := range s.scores {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	for _, y := range s.labels {
		b = append(b, byte(y))
	}
	return b
}

func (s *scoredRows) Merge(b []byte) error {
	short := errors.New("metrics: the scores of another rank were cut short")
	if len(b) < 24 {
		return short
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	cols, rows, n := word(0), word(1), word(2)
	if n > uint64(len(b)) || uint64(len(b)-24) != 5*n {
		return short
	}
	if cols > 0 {
		s.cols = int(cols)
	}
	s.rows += int64(rows)
	b = b[24:]
	for i := range int(n) {
		s.scores = append(s.scores, math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	}
	for _, y := range b[4*n:] {
		s.labels = append(s.labels, int8(y))
	}
	return nil
}
