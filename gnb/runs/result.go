package runs

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/nn"
)

// The states of a run.
const (
	StateRunning     = "running"
	StateDone        = "done"
	StateInterrupted = "interrupted"
	StateFailed      = "failed"
	StateKilled      = "killed"  // its process ended without writing a result, as after kill -9
	StateDamaged     = "damaged" // its directory cannot be read; see [Options]
)

// Undefined is the beginning of the text of a metric that does not exist, such as Text["val_auc"] of a run whose validation
// nodes are all of one class. Values has no such metric.
const Undefined = "undefined: "

// Result is the result of a run: result.json in its directory.
type Result struct {
	State  string
	Error  string
	Epochs int
	Steps  int64
	// Loss is the mean loss of the last epoch.
	Loss    float64
	Seconds float64
	// EpochSeconds are the wall times of the epochs.
	EpochSeconds []float64
	// Values are the metrics of the last evaluation, the last value of each name that the program logged with
	// gnb.Worker.Log (but for epoch, step and loss), and the values that it reported with gnb.Worker.Result; if two
	// have the same name, the latest.
	Values map[string]float64
	Text   map[string]string
	// Metric is what chooses the best epoch, by its value "val_" + Metric.Name; nil if nothing does.
	Metric *metrics.Metric
	// PeakMemory is the peak of the sum of the workers' proportional set sizes, in bytes.
	PeakMemory int64
	Model      *ModelInfo
	// Weights are the checksums of the run's files of weights, by their names.
	Weights map[string]string
	// SampledEdges is the number of edges that all workers sampled, and WorkerSeeds the number of
	// seeds, or of graphs and other items of the task ([Event].Unit), that each worker processed in loops over batches, both since
	// the run was started or resumed.
	SampledEdges int64
	WorkerSeeds  []int64
	// Rows counts the rows of features by source since then; nil if each worker has all rows.
	Rows *FeatureRows
	// Restarts is the number of restarts of failed workers, those before an interrupt included.
	Restarts int
}

// resultJSON is result.json.
type resultJSON struct {
	State        string             `json:"state"`
	Error        string             `json:"error,omitempty"`
	Epochs       int                `json:"epochs"`
	Steps        int64              `json:"steps"`
	Loss         runfile.Number     `json:"loss"`
	Seconds      float64            `json:"seconds"`
	EpochSeconds []float64          `json:"epoch_seconds,omitempty"`
	Values       map[string]float64 `json:"values,omitempty"`
	Text         map[string]string  `json:"text,omitempty"`
	Metric       *metrics.Metric    `json:"metric,omitempty"`
	PeakMemory   int64              `json:"peak_memory"`
	Model        *ModelInfo         `json:"model,omitempty"`
	Weights      map[string]string  `json:"weights,omitempty"`
	SampledEdges int64              `json:"sampled_edges"`
	WorkerSeeds  []int64            `json:"worker_seeds,omitempty"`
	Rows         *FeatureRows       `json:"rows,omitempty"`
	Restarts     int                `json:"restarts,omitempty"`
}

// MarshalJSON writes the result in the format of result.json, with null for a loss that is not
// finite.
func (r Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(resultJSON{
		r.State, r.Error, r.Epochs, r.Steps, runfile.Number(r.Loss), r.Seconds, r.EpochSeconds, r.Values, r.Text, r.Metric, r.PeakMemory, r.Model, r.Weights,
		r.SampledEdges, r.WorkerSeeds, r.Rows, r.Restarts,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Result) UnmarshalJSON(b []byte) error {
	var j resultJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*r = Result{
		j.State, j.Error, j.Epochs, j.Steps, float64(j.Loss), j.Seconds, j.EpochSeconds, j.Values, j.Text, j.Metric, j.PeakMemory, j.Model, j.Weights,
		j.SampledEdges, j.WorkerSeeds, j.Rows, j.Restarts,
	}
	return nil
}

// hasMetric reports whether a value of the run is a metric, and of which split.
func (r *Run) hasMetric(name string) (split string, ok bool) {
	split, _, ok = runfile.CutMetric(name, r.Result.Metric)
	return split, ok && split != ""
}

// text writes a value of the run's result.
func (r *Run) text(name string, value float64) string {
	if m := r.Result.Metric; m != nil {
		if _, ok := m.Of(name); ok {
			return m.Text(value)
		}
	}
	return fmt.Sprintf("%.4f", value)
}

// Observe updates the run by an event: its device and its result so far. A program that gets the events
// of a run with gnb.LaunchOptions.Events knows the result before the run has ended.
func (r *Run) Observe(e Event) {
	res := &r.Result
	if res.Values == nil {
		res.Values = map[string]float64{}
	}
	switch e.Kind {
	case KindDevice:
		r.Config.Device = e.Text
	case KindModel:
		if res.Model == nil {
			res.Model = e.Model
		}
	case KindSteps:
		for _, s := range e.Records {
			res.Steps = s.Total
		}
	case KindEpoch:
		res.Epochs, res.Loss = e.Epoch+1, e.Loss
		res.EpochSeconds = append(res.EpochSeconds, e.Seconds)
	case KindMetric:
		res.Metric = e.Metric
	case KindMetrics, KindLog:
		for _, m := range e.Values {
			if e.Kind == KindMetrics || runfile.OwnCurve(m.Name) {
				res.Values[m.Name] = m.Value
			}
		}
	case KindRestart:
		res.Restarts++
	case KindResult:
		for _, v := range e.Values {
			res.Values[v.Name] = v.Value
		}
		if e.Text != "" {
			if res.Text == nil {
				res.Text = map[string]string{}
			}
			res.Text[e.Split] = e.Text
		}
	}
}

// ModelInfo describes a network of a run.
type ModelInfo struct {
	Name       string         `json:"name"`
	Config     nn.ModelConfig `json:"sizes"`
	Parameters int            `json:"parameters"`
	Text       string         `json:"text"`
	// Unread is what the dataset has and the model does not read, such as edge weights.
	Unread []string `json:"unread,omitempty"`
}

// String lists the model's widths, and its parameters with shapes and counts.
func (m *ModelInfo) String() string {
	s := m.Config
	var b strings.Builder
	fmt.Fprintf(&b, "model %s: %d layers, %d features", m.Name, s.Layers, s.In)
	for range s.Layers - 1 {
		fmt.Fprintf(&b, " → %d", s.Hidden)
	}
	fmt.Fprintf(&b, " → %d classes; %d weights\n%s", s.Out, m.Parameters, m.Text)
	if len(m.Unread) > 0 {
		fmt.Fprintf(&b, "\nnot read: %s", strings.Join(m.Unread, ", "))
	}
	return b.String()
}
