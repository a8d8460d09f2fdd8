package main

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"strings"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/runs"
)

var trainCommand = cli.Command{Name: "train", Summary: "train a model by neighbour sampling", Run: runTrain}

// trainResult is the result of "gnb train"; the finite values of the run's result are fields beside it.
type trainResult struct {
	Loss           *float64          `json:"loss,omitempty"`
	Undefined      map[string]string `json:"undefined,omitempty"` // reasons, by metrics that do not exist
	Eval           string            `json:"eval"`
	Epochs         int               `json:"epochs"`
	Steps          int64             `json:"steps"`
	EpochSeconds   []float64         `json:"epoch_seconds"`
	Seconds        float64           `json:"seconds"`
	SampledEdges   int64             `json:"sampled_edges"`
	UniqueEdges    *int64            `json:"unique_edges,omitempty"`
	Digest         string            `json:"digest,omitempty"`
	PeakRSSBytes   int64             `json:"peak_rss_bytes"`
	Restarts       int               `json:"restarts,omitempty"`
	Rows           *runs.FeatureRows `json:"rows,omitempty"`
	Workers        int               `json:"workers"`
	VirtualRanks   int               `json:"virtual_ranks"`
	Device         string            `json:"device"`
	Precision      string            `json:"precision"`
	Run            string            `json:"run"`
	ParameterCount int               `json:"parameters"`
}

func runTrain(ctx context.Context, args []string, out *cli.Output) error {
	t, old, err := taskOf(args)
	if err != nil {
		return err
	}
	fs := out.Flags("[DATASET]", "Trains a model and evaluates it exactly. DATASET is a dataset's directory, or a generator such as karate or planted?nodes=100000&classes=8. With --resume RUN, DATASET and all flags that are not given are the run's own. These are the flags of --task "+t.name+"; --task links --help, --task triples --help and --task numbers --help list those of other tasks.")
	ranks.InsecureFlag(fs)
	t.flags(fs)
	options.Verify(out, fs)
	if err := t.strange(fs, args); err != nil {
		return err
	}
	rest, err := out.Parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	if err := t.checkRead(fs, old); err != nil {
		return err
	}
	if err := checkResume(t.launch); err != nil {
		return err
	}
	if old != nil {
		if err := t.takeFlags(fs, old); err != nil {
			return err
		}
	}
	spec, err := datasetOf(rest, old)
	if err != nil {
		return err
	}
	ds, err := t.load(ctx, out, fs, spec)
	if err != nil {
		return err
	}
	defer ds.Close()
	t.launch.Events = func(e runs.Event) { trainEvent(out, e) }
	t.launch.Quiet = out.JSON
	run, err := t.train(ctx, ds)
	if err != nil {
		return err
	}
	result, err := withValues(resultOf(run, cmp.Or(t.eval.Eval, "full")), run)
	if err != nil {
		return err
	}
	out.Result(result)
	out.Printf("%s\n", run)
	if t.hint != nil {
		if hint := t.hint(ds); hint != "" {
			out.Printf("%s\n", hint)
		}
	}
	return nil
}

// resultOf returns the result of a run.
func resultOf(run *runs.Run, eval string) trainResult {
	res := run.Result
	result := trainResult{
		Loss: finite(run.Loss()), Eval: eval, Epochs: res.Epochs, Steps: res.Steps, EpochSeconds: res.EpochSeconds, Seconds: res.Seconds,
		SampledEdges: res.SampledEdges, Digest: res.Text["digest"], PeakRSSBytes: res.PeakMemory, Restarts: res.Restarts, Rows: res.Rows,
		Workers: run.Config.Workers, VirtualRanks: run.Config.VirtualRanks, Device: run.Config.Device, Precision: run.Config.Precision, Run: run.Dir,
	}
	for name, text := range res.Text {
		if why, ok := strings.CutPrefix(text, runs.Undefined); ok {
			if result.Undefined == nil {
				result.Undefined = map[string]string{}
			}
			result.Undefined[name] = why
		}
	}
	if res.Model != nil {
		result.ParameterCount = res.Model.Parameters
	}
	if u := finite(run.Value("unique_edges")); u != nil {
		n := int64(*u)
		result.UniqueEdges = &n
	} else if run.Config.Workers*run.Config.VirtualRanks == 1 {
		result.UniqueEdges = &res.SampledEdges // one rank samples no edge twice
	}
	return result
}

// withValues returns the fields of a result, which encode as a JSON object, with the finite values of a run's result.
func withValues(fields any, run *runs.Run) (map[string]json.RawMessage, error) {
	b, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	for name, x := range run.Result.Values {
		if _, has := all[name]; has || finite(x) == nil {
			continue
		}
		if all[name], err = json.Marshal(x); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// trainEvent writes a run's event.
func trainEvent(out *cli.Output, e runs.Event) {
	fields := map[string]any{"epoch": e.Epoch}
	for _, v := range e.Values {
		if x := finite(v.Value); x != nil {
			fields[v.Name] = *x
		}
	}
	switch e.Kind {
	case runs.KindEpoch:
		if x := finite(e.Loss); x != nil {
			fields["loss"] = *x
		}
		fields["seconds"], fields["stages"] = e.Seconds, e.Stages
	case runs.KindLog, runs.KindMetrics:
	case runs.KindRestart:
		fields["text"], fields["restart"] = e.Text, e.Restart
	default:
		fields["text"] = e.Text
	}
	out.Event(string(e.Kind), fields)
}
