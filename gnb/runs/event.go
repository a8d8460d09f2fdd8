package runs

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/metrics"
)

// Kind says what an [Event] reports.
type Kind string

// The kinds of event. Steps, Epoch, Metrics, Metric, Log, Drawn and Restart are also the lines of a run's metrics.jsonl.
const (
	KindStart      Kind = "start"      // a note on the run's start, such as that it is resumed: Text
	KindPlan       Kind = "plan"       // the number of epochs: Epochs
	KindModel      Kind = "model"      // a network was made: Model
	KindDevice     Kind = "device"     // the workers fall back to another device: Text
	KindLoop       Kind = "loop"       // a loop over batches begins: Epoch, Split, Step, Steps, Unit
	KindSteps      Kind = "steps"      // steps were done: Records
	KindRate       Kind = "rate"       // the work of one rank so far: Seeds (of the loop's Unit), Edges, Work, Rows, Seconds
	KindEpoch      Kind = "epoch"      // an epoch ended: Epoch, Loss, Accuracy, Seconds, Stages
	KindMetrics    Kind = "metrics"    // an evaluation: Epoch, Values
	KindMetric     Kind = "metric"     // what chooses the best epoch: Metric
	KindLog        Kind = "log"        // a call of gnb.Worker.Log: Values, Text
	KindDrawn      Kind = "drawn"      // something that gnb.Worker.Log got to look at: Drawn
	KindPrint      Kind = "print"      // a call of gnb.Worker.Printf: Text
	KindProgress   Kind = "progress"   // the progress of a long task: Text, Done, Of
	KindCheckpoint Kind = "checkpoint" // a checkpoint was written: Text is its file
	KindOutput     Kind = "output"     // a worker wrote a line to its standard output or error: Rank, Text
	KindStatus     Kind = "status"     // the state of each worker, about 20 times per second: Workers
	KindRestart    Kind = "restart"    // failed workers were started again: Restart, Text
	KindResult     Kind = "result"     // values of the run's result: Values, or Split and Text
)

// Event is one thing that a run reports while it trains. Which fields are set depends on Kind; At, Total and Epoch are set
// in each event that a worker sends.
type Event struct {
	Kind Kind
	// At is the position at which the event was sent: the epoch, the loop within the epoch, the
	// step within the loop. A resumed run repeats the events from its checkpoint's position on.
	At [3]int
	// Total is the number of steps of the whole run so far.
	Total int64
	// Epoch is the epoch, counted from 0, and Epochs the number of epochs.
	Epoch, Epochs int
	// Split is the split used for training or evaluation.
	Split string
	// Unit names what Seeds count if a loop goes through something else than seed nodes: "graphs", "links", "triples".
	Unit string
	// Step is the number of steps done in the epoch, of Steps.
	Step, Steps int
	Records     []Step
	// Loss is the mean loss of the epoch, and Accuracy the share of its seeds classified
	// correctly, measured during training with dropout and changing weights. Both can be NaN.
	Loss, Accuracy float64
	Seconds        float64
	Stages         map[string]float64 // seconds by stage, of rank 0
	Values         []NamedValue
	Metric         *metrics.Metric
	Text           string
	Model          *ModelInfo
	Seeds, Edges   int64
	Work           *Work
	Rows           *FeatureRows // nil if the rank has all rows of features
	Done, Of       int64        // progress of a task: Done out of Of
	Restart        *Restart
	Drawn          *Drawn
	// Time is when the event was sent, in seconds since 1970.
	Time float64
	// Rank is the worker that sent the event, and Workers the state of each worker; metrics.jsonl
	// contains neither.
	Rank    int
	Workers []WorkerStatus
}

// WorkerStatus is the state of one worker at one moment.
type WorkerStatus struct {
	Epoch, Step int                // both from 0; -1 before the first
	Stage       string             // such as "forward"
	Stages      map[string]float64 // seconds in each stage so far
	Memory      int64              // bytes: the memory of all workers, divided evenly; 0 if not measured
}

// Work is the arithmetic and the memory traffic of a rank: floating-point operations of matrix
// products, bytes of rows read at random, and bytes read or written in order.
type Work struct {
	FLOP, RowBytes, StreamBytes int64
}

// Step is one step of a run: its position, its mean loss, the share of its seeds classified
// correctly, and its learning rate (0 in runs of versions that did not record it). Loss and
// Accuracy can be NaN.
type Step struct {
	Epoch, Step    int    // both from 0
	Total          int64  // steps of the whole run up to this one
	At             [3]int // see [Event]
	Loss, Accuracy float64
	LR             float64
}

// NamedValue is a number that a run has reported, with its name.
type NamedValue struct {
	Name  string
	Value float64
}

func (v NamedValue) String() string {
	if v.Value == math.Trunc(v.Value) && math.Abs(v.Value) < 1e9 {
		return fmt.Sprintf("%s %d", v.Name, int64(v.Value))
	}
	return fmt.Sprintf("%s %.4g", v.Name, v.Value)
}

// The JSON of events, steps and values: numbers that are not finite are null.
type (
	eventJSON struct {
		Kind     Kind               `json:"event"`
		At       [3]int             `json:"at"`
		Total    int64              `json:"total"`
		Epoch    int                `json:"epoch"`
		Epochs   int                `json:"epochs,omitempty"`
		Split    string             `json:"split,omitempty"`
		Unit     string             `json:"unit,omitempty"`
		Step     int                `json:"step,omitempty"`
		Steps    int                `json:"steps,omitempty"`
		Records  []Step             `json:"records,omitempty"`
		Loss     runfile.Number     `json:"loss,omitempty"`
		Accuracy runfile.Number     `json:"accuracy,omitempty"`
		Seconds  float64            `json:"seconds,omitempty"`
		Stages   map[string]float64 `json:"stages,omitempty"`
		Values   []NamedValue       `json:"values,omitempty"`
		Metric   *metrics.Metric    `json:"metric,omitempty"`
		Text     string             `json:"text,omitempty"`
		Model    *ModelInfo         `json:"model,omitempty"`
		Seeds    int64              `json:"seeds,omitempty"`
		Edges    int64              `json:"edges,omitempty"`
		Work     *Work              `json:"work,omitempty"`
		Rows     *FeatureRows       `json:"rows,omitempty"`
		Done     int64              `json:"done,omitempty"`
		Of       int64              `json:"of,omitempty"`
		Restart  *Restart           `json:"restart,omitempty"`
		Time     float64            `json:"time,omitempty"`
		Drawn    *Drawn             `json:"drawn,omitempty"`
	}
	stepJSON struct {
		Epoch    int            `json:"epoch"`
		Step     int            `json:"step"`
		Total    int64          `json:"total"`
		At       [3]int         `json:"at"`
		Loss     runfile.Number `json:"loss"`
		Accuracy runfile.Number `json:"accuracy"`
		LR       runfile.Number `json:"lr,omitempty"`
	}
	valueJSON struct {
		Name  string         `json:"name"`
		Value runfile.Number `json:"value"`
	}
)

// MarshalJSON writes the event in the format of metrics.jsonl, with null for numbers that are not
// finite.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(eventJSON{
		e.Kind, e.At, e.Total, e.Epoch, e.Epochs, e.Split, e.Unit, e.Step, e.Steps, e.Records, runfile.Number(e.Loss), runfile.Number(e.Accuracy),
		e.Seconds, e.Stages, e.Values, e.Metric, e.Text, e.Model, e.Seeds, e.Edges, e.Work, e.Rows, e.Done, e.Of, e.Restart, e.Time, e.Drawn,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Event) UnmarshalJSON(b []byte) error {
	var j eventJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*e = Event{
		Kind: j.Kind, At: j.At, Total: j.Total, Epoch: j.Epoch, Epochs: j.Epochs, Split: j.Split, Unit: j.Unit, Step: j.Step, Steps: j.Steps, Records: j.Records,
		Loss: float64(j.Loss), Accuracy: float64(j.Accuracy), Seconds: j.Seconds, Stages: j.Stages, Values: j.Values, Metric: j.Metric, Text: j.Text, Model: j.Model,
		Seeds: j.Seeds, Edges: j.Edges, Work: j.Work, Rows: j.Rows, Done: j.Done, Of: j.Of, Restart: j.Restart, Time: j.Time, Drawn: j.Drawn,
	}
	return nil
}

// MarshalJSON writes the step in the format of metrics.jsonl, with null for numbers that are not
// finite.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(stepJSON{s.Epoch, s.Step, s.Total, s.At, runfile.Number(s.Loss), runfile.Number(s.Accuracy), runfile.Number(s.LR)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Step) UnmarshalJSON(b []byte) error {
	var j stepJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*s = Step{j.Epoch, j.Step, j.Total, j.At, float64(j.Loss), float64(j.Accuracy), float64(j.LR)}
	return nil
}

// MarshalJSON writes {"name":…,"value":…}, with null for a value that is not finite.
func (v NamedValue) MarshalJSON() ([]byte, error) {
	return json.Marshal(valueJSON{v.Name, runfile.Number(v.Value)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *NamedValue) UnmarshalJSON(b []byte) error {
	var j valueJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	v.Name, v.Value = j.Name, float64(j.Value)
	return nil
}
