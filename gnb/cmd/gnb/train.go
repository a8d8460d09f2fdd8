package main

import (
	"context"
	"math"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/linktask"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/runs"
)

var trainCommand = cli.Command{Name: "train", Summary: "train a model by neighbour sampling", Run: runTrain}

// trainResult is the result of "gnb train". Values that the run lacks are omitted.
type trainResult struct {
	Loss           *float64          `json:"loss,omitempty"`
	ValAccuracy    *float64          `json:"val_accuracy,omitempty"`
	TestAccuracy   *float64          `json:"test_accuracy,omitempty"`
	ValAUC         *float64          `json:"val_auc,omitempty"`
	TestAUC        *float64          `json:"test_auc,omitempty"`
	ValMicroF1     *float64          `json:"val_micro_f1,omitempty"`
	TestMicroF1    *float64          `json:"test_micro_f1,omitempty"`
	ValMacroF1     *float64          `json:"val_macro_f1,omitempty"`
	TestMacroF1    *float64          `json:"test_macro_f1,omitempty"`
	ValLoss        *float64          `json:"val_loss,omitempty"`
	BestEpoch      *float64          `json:"best_epoch,omitempty"`
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
	fs := out.Flags("[DATASET]", "Trains a model and evaluates it exactly. DATASET is a dataset's directory, or a generator such as karate or planted?nodes=100000&classes=8. With --resume RUN, DATASET and all flags that are not given are the run's own.")
	ranks.InsecureFlag(fs)
	var (
		o     gnb.TrainOptions
		model = options.WithSplit(fs, &o)
	)
	options.Training(fs, &o)
	options.Verify(out, fs)
	link := linktask.New(fs)
	resumeFlags(fs, &o)
	rest, err := out.Parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	old, err := resumedRun(&o)
	if err != nil {
		return err
	}
	if old != nil {
		if err := link.SameTask(old); err != nil {
			return cli.Usagef("%w", err)
		}
		if err := takeFlags(fs, old, link); err != nil {
			return err
		}
	}
	if err := link.Check(); err != nil {
		return cli.Usagef("%s", err)
	}
	spec, err := datasetOf(rest, old)
	if err != nil {
		return err
	}
	m, ds, err := model.Load(ctx, out, fs, &o, spec)
	if err != nil {
		return err
	}
	defer ds.Close()
	o.Events = func(e runs.Event) { trainEvent(out, e) }
	o.Quiet, o.Metric = out.JSON, link.Metric()
	train := func() (*runs.Run, error) { return gnb.Train(ctx, ds, m, o) }
	if link.Chosen() {
		train = func() (*runs.Run, error) { return link.Train(ctx, ds, m, o) }
	}
	run, err := train()
	if err != nil {
		return err
	}
	result, err := linktask.WithMetrics(resultOf(run, o), run)
	if err != nil {
		return err
	}
	out.Result(result)
	out.Printf("%s\n", run)
	return nil
}

// resultOf returns the result of a run.
func resultOf(run *runs.Run, o gnb.TrainOptions) trainResult {
	res := run.Result
	result := trainResult{
		Loss: finite(run.Loss()), ValAccuracy: finite(run.ValAccuracy()), TestAccuracy: finite(run.TestAccuracy()),
		ValAUC: finite(run.Value("val_auc")), TestAUC: finite(run.Value("test_auc")),
		ValMicroF1: finite(run.Value("val_micro_f1")), TestMicroF1: finite(run.Value("test_micro_f1")),
		ValMacroF1: finite(run.Value("val_macro_f1")), TestMacroF1: finite(run.Value("test_macro_f1")),
		ValLoss: finite(run.Value("val_loss")), BestEpoch: finite(run.Value("best_epoch")),
		Eval: o.Eval, Epochs: res.Epochs, Steps: res.Steps, EpochSeconds: res.EpochSeconds, Seconds: res.Seconds,
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
