package gnb

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/nn"
)

// number is a float64 that is null in JSON where it is not finite.
type number = runfile.Number

// The kinds of event that a worker sends to the process that launched it.
const (
	evPlan       = "plan"       // how many epochs
	evLoop       = "loop"       // a loop over batches begins
	evModel      = "model"      // a network was made
	evDevice     = "device"     // that the workers compute on the CPU after all
	evSteps      = "steps"      // steps were done
	evRate       = "rate"       // what this rank has worked off
	evEpoch      = "epoch"      // an epoch ended
	evMetrics    = "metrics"    // an evaluation
	evLog        = "log"        // Worker.Log
	evPrint      = "print"      // Worker.Printf
	evProgress   = "progress"   // Worker.Progress, evaluation
	evCheckpoint = "checkpoint" // a checkpoint was written
	evResult     = "result"     // a value for the run's result
)

// event is one message from a worker. At is the position it was sent at, by
// which a resumed run knows what will be sent again.
type event struct {
	Type     string             `json:"event"`
	At       [3]int             `json:"at"`
	Total    int64              `json:"total"`
	Epoch    int                `json:"epoch"`
	Epochs   int                `json:"epochs,omitempty"`
	Split    string             `json:"split,omitempty"`
	Step     int                `json:"step,omitempty"`
	Steps    int                `json:"steps,omitempty"`
	Records  []stepRecord       `json:"records,omitempty"`
	Loss     number             `json:"loss,omitempty"`
	Accuracy number             `json:"accuracy,omitempty"`
	Seconds  float64            `json:"seconds,omitempty"`
	Stages   map[string]float64 `json:"stages,omitempty"`
	Values   []Value            `json:"values,omitempty"`
	Text     string             `json:"text,omitempty"`
	Model    *ModelInfo         `json:"model,omitempty"`
	Seeds    int64              `json:"seeds,omitempty"`
	Edges    int64              `json:"edges,omitempty"`
	Work     *nn.Work           `json:"work,omitempty"`
	Done     int64              `json:"done,omitempty"`
	Of       int64              `json:"of,omitempty"`
	Best     bool               `json:"best,omitempty"`
	// Time is when what belongs into the run's metrics was sent, in seconds since
	// 1970.
	Time float64 `json:"time,omitempty"`
}

// stepRecord is one step's line in metrics.jsonl.
type stepRecord struct {
	Epoch    int    `json:"epoch"`
	Step     int    `json:"step"`
	Total    int64  `json:"total"`
	At       [3]int `json:"at"`
	Loss     number `json:"loss"`
	Accuracy number `json:"accuracy"`
	// LR is the learning rate, of the run's first optimiser; none in runs of before it
	// was kept.
	LR number `json:"lr,omitempty"`
}

// ModelInfo describes a network of a run.
type ModelInfo struct {
	Name       string      `json:"name"`
	Config     ModelConfig `json:"sizes"`
	Parameters int         `json:"parameters"`
	Text       string      `json:"text"`
}

// String is the model's widths, and its parameters with shapes and counts.
func (m *ModelInfo) String() string {
	s := m.Config
	var b strings.Builder
	fmt.Fprintf(&b, "model %s: %d layers, %d features", m.Name, s.Layers, s.In)
	for range s.Layers - 1 {
		fmt.Fprintf(&b, " → %d", s.Hidden)
	}
	fmt.Fprintf(&b, " → %d classes; %d weights\n%s", s.Out, m.Parameters, m.Text)
	return b.String()
}

// Value is a named number that a run has logged.
type Value struct {
	Name  string
	Value float64
}

type valueJSON struct {
	Name  string `json:"name"`
	Value number `json:"value"`
}

// MarshalJSON writes {"name":…,"value":…}, with null for a value that is not
// finite.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(valueJSON{v.Name, number(v.Value)}) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value) UnmarshalJSON(b []byte) error {
	var j valueJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	v.Name, v.Value = j.Name, float64(j.Value)
	return nil
}

func (v Value) String() string {
	if v.Value == math.Trunc(v.Value) && math.Abs(v.Value) < 1e9 {
		return fmt.Sprintf("%s %d", v.Name, int64(v.Value))
	}
	return fmt.Sprintf("%s %.4g", v.Name, v.Value)
}

func (w *Worker) emit(e event) {
	e.At, e.Total, e.Epoch = w.loop.Pos.Place(), w.loop.Pos.Total, w.loop.Pos.ReportedEpoch()
	w.check(w.send(e))
}

// emitFirst sends an event from rank 0 only: what all ranks know alike.
func (w *Worker) emitFirst(e event) {
	if w.p.Rank == 0 {
		w.emit(e)
	}
}

// flushEvery bounds how often step records leave a worker: often enough for a
// panel at 20 frames a second, seldom enough to cost nothing at 1000 steps/s.
const flushEvery = 40 * time.Millisecond

// rates is what this rank has worked off since it started, and how long it has
// been in loops over batches for it.
type rates struct {
	seeds, edges int64
	work         nn.Work
	busy         time.Duration
	since        time.Time // of the loop that goes on, or of the batch before
}

func (r *rates) enter() { r.since = time.Now() }

// whole is the size of the batch that is the graph.
type whole struct{ seeds, edges int }

// add counts a batch that is done.
func (r *rates) add(seeds, edges int) {
	now := time.Now()
	r.busy += now.Sub(r.since)
	r.since = now
	r.seeds += int64(seeds)
	r.edges += int64(edges)
}

func (w *Worker) flush(now bool) {
	if !now && time.Since(w.lastFlush) < flushEvery {
		return
	}
	if now {
		w.catchUp(0)
	}
	w.lastFlush = time.Now()
	w.check(w.flushRecords())
	w.check(w.saving.Best.Write(false))
	work := w.rate.work
	w.emit(event{Type: evRate, Seeds: w.rate.seeds, Edges: w.rate.edges, Work: &work, Seconds: w.rate.busy.Seconds()})
}

// flushRecords sends the steps' records on. Any goroutine may call it.
func (w *Worker) flushRecords() error {
	w.mu.Lock()
	records := w.records
	w.records = nil
	w.mu.Unlock()
	if len(records) == 0 {
		return nil
	}
	return w.send(event{Type: evSteps, Records: records})
}

// Log reports values from rank 0: they appear in the cell and in the run's
// metrics. Arguments are pairs of a name and a number, or what [Worker.Evaluate]
// returned:
//
//	w.Log("epoch", epoch, "loss", w.EpochLoss())
//	w.Log(w.Evaluate(net, gnb.FullNeighbors, "val", "test"))
func (w *Worker) Log(args ...any) {
	var vs []Value
	for i := 0; i < len(args); i++ {
		switch a := args[i].(type) {
		case Metrics:
			vs = append(vs, a.values()...)
		case string:
			if i+1 == len(args) {
				w.Fail(fmt.Errorf("gnb: Log at %s got the name %q without a value", callSite(), a))
			}
			x, ok := toFloat(args[i+1])
			if !ok {
				w.Fail(fmt.Errorf("gnb: Log at %s got %T for %q; values are numbers (Printf takes anything)", callSite(), args[i+1], a))
			}
			vs = append(vs, Value{a, x})
			i++
		default:
			w.Fail(fmt.Errorf("gnb: Log at %s got %T where it takes a name or the result of Evaluate", callSite(), a))
		}
	}
	w.flush(true)
	w.emitFirst(event{Type: evLog, Values: vs})
}

func toFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case StepLoss:
		return x.Mean(), true
	case time.Duration:
		return x.Seconds(), true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	}
	switch x := reflect.ValueOf(v); {
	case x.CanFloat():
		return x.Float(), true
	case x.CanInt():
		return float64(x.Int()), true
	case x.CanUint():
		return float64(x.Uint()), true
	}
	return 0, false
}

// Printf prints a line (or several) from rank 0, into the cell, where it stays, or
// the terminal.
func (w *Worker) Printf(format string, args ...any) {
	w.emitFirst(event{Type: evPrint, Text: fmt.Sprintf(format, args...)})
}

// Result puts a number into the run's result, under a name of its own. Only rank
// 0's counts.
func (w *Worker) Result(name string, value float64) {
	w.emitFirst(event{Type: evResult, Values: []Value{{name, value}}})
}

// Progress shows how far something long has come, from rank 0: call the function
// it returns as often as you like with what is done of total.
//
// What is done within 40 ms is not shown.
func (w *Worker) Progress(label string, total int) func(done int) {
	last, shown := time.Now(), false
	return func(done int) {
		if now := time.Now(); now.Sub(last) > flushEvery || shown && done >= total {
			last, shown = now, true
			w.emitFirst(event{Type: evProgress, Text: label, Done: int64(done), Of: int64(total)})
		}
	}
}

// Timer measures iterations after a warm-up; see [Worker.Timer].
type Timer struct {
	warm, n int
	last    time.Time
	sum     time.Duration
}

// Timer measures the mean time of iterations, leaving out the first warmup ones.
// Call Lap at the end of each iteration; the first starts when the timer is made.
func (w *Worker) Timer(warmup int) *Timer { return &Timer{warm: warmup, last: time.Now()} }

// Lap ends an iteration and starts the next.
func (t *Timer) Lap() {
	now := time.Now()
	if t.n >= t.warm {
		t.sum += now.Sub(t.last)
	}
	t.n++
	t.last = now
}

// Mean is the mean time of the iterations after the warm-up, 0 if there was none.
func (t *Timer) Mean() time.Duration {
	if t.n <= t.warm {
		return 0
	}
	return t.sum / time.Duration(t.n-t.warm)
}
