package runs

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Config is the configuration of a run: config.json in its directory.
type Config struct {
	ID         string          `json:"id"`
	Program    string          `json:"program"`
	Args       json.RawMessage `json:"args"`
	Dataset    string          `json:"dataset,omitempty"`
	DatasetDir string          `json:"dataset_dir,omitempty"`
	// DatasetSource is the source recorded in the dataset.
	DatasetSource string `json:"dataset_source,omitempty"`
	Nodes         int    `json:"nodes,omitempty"`
	Edges         int64  `json:"edges,omitempty"`
	SplitSet      int    `json:"split_set,omitempty"`
	// Metric is the metric of the dataset's nodes, if it is neither the dataset's own nor that of the options: that of a view
	// (dataset.Dataset.WithMetric).
	Metric string `json:"metric,omitempty"`
	// FeatureNames are the names of the features by node type, "" without types; data of other files is matched by them.
	FeatureNames map[string][]string `json:"feature_names,omitempty"`
	Seed         uint64              `json:"seed"`
	Workers      int                 `json:"workers"`
	VirtualRanks int                 `json:"virtual_ranks"`
	Threads      int                 `json:"threads"` // threads per worker
	Device       string              `json:"device"`
	Precision    string              `json:"precision,omitempty"` // "" is float32
	Version      string              `json:"graphnb_version"`
	Go           string              `json:"go"`
	CPU          string              `json:"cpu"`
	Created      time.Time           `json:"created"`
	// Title is the run's name in panels and lists; "" means the program and the dataset. Tags and Notes are the user's.
	Title string   `json:"title,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	Notes string   `json:"notes,omitempty"`
	// From is nil in a run that did not start with another run's weights.
	From *From `json:"from,omitempty"`
	// Identity is nil in a run of a version that did not record it.
	Identity *Identity `json:"identity,omitempty"`
	// Changes are the settings that changed when the run was resumed, the earliest first.
	Changes []Change `json:"changes,omitempty"`
	// Restarts are the restarts of failed workers, the earliest first. Workers and VirtualRanks are
	// those since the last one.
	Restarts []Restart `json:"restarts,omitempty"`
}

// From says which run's weights a run started with; see gnb.LaunchOptions.From.
type From struct {
	Run string `json:"run"` // its ID
	Dir string `json:"dir"`
	// Weights are the checksums of the files of weights by their names, one file for each of its networks.
	Weights map[string]string `json:"weights"`
	// Structure is the digest of the structure of its dataset; "" if it has not recorded one.
	Structure string `json:"structure,omitempty"`
}

func (f From) String() string { return fmt.Sprintf("run %s (%s)", f.Run, f.Dir) }

// Identity is the data and the code of a run. A run can be resumed as itself if data, code, program, arguments, seed,
// precision, workers × virtual ranks, and kind of device are the same.
type Identity struct {
	// Data is nil for a run without a dataset.
	Data *DataIdentity `json:"data,omitempty"`
	// Code is the code of the program, and of the models whose names are in its arguments.
	Code CodeIdentity `json:"code"`
	// Library is the version of GraphNB, with the revision if it is known. A run can be resumed
	// with another version; it reports the difference.
	Library string `json:"library"`
	// Run is the digest of everything that determines the run's results; its checkpoints contain
	// it too.
	Run string `json:"run,omitempty"`
}

// DataIdentity is the SHA-256 of each part of a dataset's content; see dataset.Digests.
type DataIdentity struct {
	Structure string `json:"structure"` // of indptr, indices and edge weights
	Features  string `json:"features"`  // of the features, dense or sparse, float32 or float16
	Labels    string `json:"labels"`    // of the labels, the number of classes and the metric
	Splits    string `json:"splits"`    // of every split: its name and its ids in their order
	Whole     string `json:"whole"`     // of the four above
}

// CodeIdentity is the code that a run executed: a digest of each declaration that its program and
// model use, and the versions of their modules. If the sources could not be read it is the
// revision from which the program was built, or the executable's digest.
type CodeIdentity struct {
	// By names the method that identifies the code: "library", "source", "revision" or
	// "executable".
	By string `json:"by"`
	// Parts are digests by declaration and versions by module.
	Parts map[string]string `json:"parts,omitempty"`
	// Revision is the revision from which the program was built, if the working tree had no
	// changes.
	Revision string `json:"revision,omitempty"`
	// Executable is the SHA-256 of the program's file, if nothing else identifies the code.
	Executable string `json:"executable,omitempty"`
	// Why explains why the source does not identify the code.
	Why string `json:"why,omitempty"`
}

// Change is what changed when a run was resumed; see gnb.LaunchOptions.ResumeChanged.
type Change struct {
	When time.Time `json:"when"`
	// Step is the step after which the run resumed.
	Step int64 `json:"step"`
	// What describes each change: "LR was 0.01 and is 0.0001".
	What []string `json:"what"`
	// Before is Identity.Run before the change.
	Before string `json:"before"`
}

func (c Change) String() string {
	return fmt.Sprintf("after step %d, %s: %s", c.Step, c.When.Local().Format("2006-01-02 15:04"), strings.Join(c.What, "; "))
}

// named reports whether the user named the run: the default title says no more than the model and the dataset.
func (r *Run) named() bool {
	c := r.Config
	var args struct{ Model string }
	_ = json.Unmarshal(c.Args, &args)
	return c.Title != "" && c.Title != args.Model+" on "+c.Dataset
}
