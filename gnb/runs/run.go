package runs

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// ErrInterrupted matches (errors.Is) the error of an interrupted run. The run has written a
// checkpoint; running the same cell again resumes from it.
var ErrInterrupted error = multigpu.ErrorKind("interrupted")

// Run is a training run: its directory, its settings and its result.
type Run struct {
	Dir    string
	Config Config
	Result Result

	files fs.FS // of OpenFS, else nil
}

// Value returns a value of the result by name, NaN if there is none: "val_accuracy",
// "test_accuracy", or what the program reported with gnb.Worker.Result.
func (r *Run) Value(name string) float64 {
	if v, ok := r.Result.Values[name]; ok {
		return v
	}
	return math.NaN()
}

// Loss returns the mean loss of the last epoch.
func (r *Run) Loss() float64 { return r.Result.Loss }

// ValAccuracy returns the reported accuracy on the validation split; for a run of gnb.Train, the
// one at the epoch with the best validation accuracy.
func (r *Run) ValAccuracy() float64 { return r.Value("val_accuracy") }

// TestAccuracy returns the accuracy on the test split, at the same epoch as [Run.ValAccuracy].
func (r *Run) TestAccuracy() float64 { return r.Value("test_accuracy") }

func (r *Run) String() string {
	var b strings.Builder
	if r.named() || len(r.Config.Tags) > 0 {
		fmt.Fprintf(&b, "%s\n", strings.Join(append([]string{r.Config.Title}, r.Config.Tags...), "  #"))
	}
	fmt.Fprintf(&b, "run %s: %s on %s, %s", r.Config.ID, r.Config.Program, cmp.Or(r.Config.Dataset, "no dataset"), r.Result.State)
	if r.Result.Epochs > 0 {
		fmt.Fprintf(&b, " after %s, loss %.4f", phrase.Count(r.Result.Epochs, "epoch"), r.Loss())
	}
	for _, m := range append(metrics.All, metrics.Metric{Name: runfile.MRR}) {
		for _, split := range []string{"val", "test"} {
			if v, ok := r.Result.Values[split+"_"+m.Name]; ok {
				fmt.Fprintf(&b, ", %s %s %.4f", split, strings.ReplaceAll(m.Name, "_", " "), v)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Result.Values)) { // of links: recall_20 and such
		for _, kind := range []string{"test_hits_", "val_recall_", "test_recall_", "test_ndcg_"} {
			if strings.HasPrefix(name, kind) {
				fmt.Fprintf(&b, ", %s %.4f", strings.ReplaceAll(name, "_", " "), r.Result.Values[name])
			}
		}
	}
	if !strings.Contains(b.String(), "val ") && !strings.Contains(b.String(), "test ") { // the metrics of another task
		for _, name := range slices.Sorted(maps.Keys(r.Result.Values)) {
			if split, _, _ := strings.Cut(name, "_"); split == "val" || split == "test" {
				fmt.Fprintf(&b, ", %s %s", strings.ReplaceAll(name, "_", " "), r.text(name, r.Result.Values[name]))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Result.Text)) {
		if why, ok := strings.CutPrefix(r.Result.Text[name], Undefined); ok {
			fmt.Fprintf(&b, "\n%s is undefined: %s", strings.ReplaceAll(name, "_", " "), why)
		}
	}
	fmt.Fprintf(&b, "\n%s, %s, seed %d", phrase.Count(r.Config.Workers, "worker"), cmp.Or(r.Config.Device, "cpu"), r.Config.Seed)
	if m := r.Result.Model; m != nil {
		fmt.Fprintf(&b, ", model %s of %d weights", m.Name, m.Parameters)
	}
	if r.Result.Steps > 0 {
		fmt.Fprintf(&b, ", %s in %.1f s", phrase.Count(int(r.Result.Steps), "step"), r.Result.Seconds)
	}
	if r.Result.Rows != nil {
		fmt.Fprintf(&b, "\nrows of features: %v", r.Result.Rows)
	}
	if f := r.Config.From; f != nil {
		fmt.Fprintf(&b, "\nstarted with the weights of %s", f)
	}
	for _, c := range r.Config.Changes {
		fmt.Fprintf(&b, "\nchanged %s", c)
	}
	for _, c := range r.Config.Restarts {
		fmt.Fprintf(&b, "\nrestarted: %s", c)
	}
	if r.Config.Notes != "" {
		fmt.Fprintf(&b, "\nnotes: %s", r.Config.Notes)
	}
	fmt.Fprintf(&b, "\n%s", r.Dir)
	return phrase.Clean(b.String())
}

// Weights returns the path of the final weights.
func (r *Run) Weights() string { return filepath.Join(r.Dir, "model.safetensors") }

// BestWeights returns the path of the weights of the last gnb.Worker.SaveBest; for a run of
// gnb.Train, those of the best epoch.
func (r *Run) BestWeights() string { return filepath.Join(r.Dir, "best.safetensors") }

// DatasetSpec returns the argument with which gnb.Load opens the run's dataset: its directory, which
// config.json can name relative to that of the run (an exported model has it inside), or its generator. It is "" if the program made the dataset itself. Resuming the run checks that the
// dataset is still the same.
func (r *Run) DatasetSpec() string {
	c := r.Config
	remote := func(spec string) bool { return strings.Contains(spec, "://") } // servers are named by the user, never by a record
	if c.DatasetDir != "" && !remote(c.DatasetDir) {
		if !filepath.IsAbs(c.DatasetDir) {
			return filepath.Join(r.Dir, c.DatasetDir)
		}
		return c.DatasetDir
	}
	if spec, ok := strings.CutPrefix(c.DatasetSource, generatedBy); ok && !remote(spec) {
		return spec
	}
	if c.DatasetSource == "embedded" {
		return c.Dataset
	}
	return ""
}

// generatedBy is the prefix of the source of a dataset that package dataset generated.
const generatedBy = "generated by "
