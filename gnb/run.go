package gnb

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
)

// Config is what a run was started with: config.json in its directory.
type Config struct {
	ID         string          `json:"id"`
	Program    string          `json:"program"`
	Args       json.RawMessage `json:"args"`
	Dataset    string          `json:"dataset,omitempty"`
	DatasetDir string          `json:"dataset_dir,omitempty"`
	// DatasetSource is where the dataset says that it comes from.
	DatasetSource string    `json:"dataset_source,omitempty"`
	Nodes         int       `json:"nodes,omitempty"`
	Edges         int64     `json:"edges,omitempty"`
	SplitSet      int       `json:"split_set,omitempty"`
	Seed          uint64    `json:"seed"`
	Workers       int       `json:"workers"`
	VirtualRanks  int       `json:"virtual_ranks"`
	Threads       int       `json:"threads"`
	Device        string    `json:"device"`
	Precision     string    `json:"precision,omitempty"` // none: float32
	Version       string    `json:"graphnb_version"`
	Go            string    `json:"go"`
	CPU           string    `json:"cpu"`
	Created       time.Time `json:"created"`
	// Identity is nil in a run of a version that did not record it.
	Identity *Identity `json:"identity,omitempty"`
	// Changes are what became another one when the run went on, the first ones first.
	Changes []Change `json:"changes,omitempty"`
}

// compact is JSON without white space, which files have and memory has not.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// The states a run can be in.
const (
	StateRunning     = "running"
	StateDone        = "done"
	StateInterrupted = "interrupted"
	StateFailed      = "failed"
	StateKilled      = "killed"  // it ended without saying how, as after kill -9
	StateDamaged     = "damaged" // its directory cannot be read; see [RunsOptions]
)

// Result is how a run ended: result.json in its directory.
type Result struct {
	State  string `json:"state"`
	Error  string `json:"error,omitempty"`
	Epochs int    `json:"epochs"`
	Steps  int64  `json:"steps"`
	// Loss is the mean loss of the last epoch.
	Loss    number  `json:"loss"`
	Seconds float64 `json:"seconds"`
	// EpochSeconds are the wall times of the epochs.
	EpochSeconds []float64 `json:"epoch_seconds,omitempty"`
	// Values are the last evaluation, and what the program reported with
	// Worker.Result, which counts where both have a name.
	Values map[string]float64 `json:"values,omitempty"`
	Text   map[string]string  `json:"text,omitempty"`
	// PeakMemory is the peak of the sum of the workers' proportional set sizes,
	// in bytes.
	PeakMemory int64      `json:"peak_memory"`
	Model      *ModelInfo `json:"model,omitempty"`
	// Weights are the checksums of the run's files of weights, by their names.
	Weights map[string]string `json:"weights,omitempty"`
	// SampledEdges is how many edges the workers sampled in all, and WorkerSeeds
	// how many seeds each took from loops over batches since this start of the run.
	SampledEdges int64   `json:"sampled_edges"`
	WorkerSeeds  []int64 `json:"worker_seeds,omitempty"`
}

// Run is a run's directory and what is in it.
type Run struct {
	Dir    string
	Config Config
	Result Result
}

// Value is a value of the result by name, NaN if there is none: "val_accuracy",
// "test_accuracy", or what the program reported with [Worker.Result].
func (r *Run) Value(name string) float64 {
	if v, ok := r.Result.Values[name]; ok {
		return v
	}
	return SplitMetric{}.Value()
}

// Loss is the mean loss of the last epoch.
func (r *Run) Loss() float64 { return float64(r.Result.Loss) }

// ValAccuracy and TestAccuracy are the accuracies that the run reports: for
// [Train], at the epoch with the best validation accuracy.
func (r *Run) ValAccuracy() float64 { return r.Value("val_accuracy") }

// TestAccuracy is the accuracy on the test split; see [Run.ValAccuracy].
func (r *Run) TestAccuracy() float64 { return r.Value("test_accuracy") }

func (r *Run) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s: %s on %s, %s", r.Config.ID, r.Config.Program, cmp.Or(r.Config.Dataset, "no dataset"), r.Result.State)
	if r.Result.Epochs > 0 {
		fmt.Fprintf(&b, " after %s, loss %.4f", counted(r.Result.Epochs, "epoch"), r.Loss())
	}
	for _, name := range []string{"val_accuracy", "test_accuracy", "val_auc", "test_auc", "val_micro_f1", "test_micro_f1"} {
		if v, ok := r.Result.Values[name]; ok {
			fmt.Fprintf(&b, ", %s %.4f", strings.ReplaceAll(name, "_", " "), v)
		}
	}
	fmt.Fprintf(&b, "\n%s, %s, seed %d", counted(r.Config.Workers, "worker"), cmp.Or(r.Config.Device, "cpu"), r.Config.Seed)
	if m := r.Result.Model; m != nil {
		fmt.Fprintf(&b, ", model %s of %d weights", m.Name, m.Parameters)
	}
	if r.Result.Steps > 0 {
		fmt.Fprintf(&b, ", %s in %.1f s", counted(int(r.Result.Steps), "step"), r.Result.Seconds)
	}
	for _, c := range r.Config.Changes {
		fmt.Fprintf(&b, "\nchanged %s", c)
	}
	fmt.Fprintf(&b, "\n%s", r.Dir)
	return live.Clean(b.String())
}

// counted is "1 worker", "2 workers".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// StepMetric is one step of a run: its place, mean loss, the share of its seeds
// that were right, and the learning rate it was made with (0 where the run is of
// before that was kept).
type StepMetric struct {
	Epoch, Step int
	Total       int64
	Loss        float64
	Accuracy    float64
	LR          float64
}

// Steps reads the steps of a run from its metrics, in order.
func (r *Run) Steps() ([]StepMetric, error) {
	var out []StepMetric
	err := readMetrics(r.Dir, func(e event) {
		for _, s := range e.Records {
			out = append(out, StepMetric{s.Epoch, s.Step, s.Total, float64(s.Loss), float64(s.Accuracy), float64(s.LR)})
		}
	})
	return out, err
}

// Losses are the losses of all steps, in order.
func (r *Run) Losses() ([]float64, error) {
	steps, err := r.Steps()
	out := make([]float64, len(steps))
	for i, s := range steps {
		out[i] = s.Loss
	}
	return out, err
}

// Weights is the file of the final weights.
func (r *Run) Weights() string { return filepath.Join(r.Dir, "model.safetensors") }

// BestWeights is the file of the weights that [Worker.SaveBest] wrote last, those
// of the best epoch of a run of [Train].
func (r *Run) BestWeights() string { return filepath.Join(r.Dir, "best.safetensors") }

// absolute is path as other processes find it.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// readMetrics calls f for each line of a run's metrics.jsonl. A last line that a
// kill cut short is left out, and so are damaged ones: see [runfile.ReadLines].
func readMetrics(dir string, f func(event)) error {
	_, err := readMetricsFrom(dir, 0, f)
	return err
}

// readMetricsFrom is readMetrics from an offset on, for a file that grows. It
// returns where to go on: behind the last whole line.
func readMetricsFrom(dir string, from int64, f func(event)) (next int64, err error) {
	next, err = runfile.ReadLines(filepath.Join(dir, runfile.Metrics), from, func(object []byte) bool {
		var e event
		if json.Unmarshal(object, &e) != nil {
			return false
		}
		f(e)
		return true
	})
	if _, some := errors.AsType[*runfile.DamagedLines](err); err != nil && !some {
		err = fmt.Errorf("gnb: reading a run's metrics: %w", err)
	}
	return next, err
}
