// Command plan compares what gnb plan predicts with what gnb train takes: memory and the time of a step.
//
//	plan [--set test|tuning] [--only WORD] [--runs 3] [--gnb gnb] [--out FILE] DATA
//
// DATA is a directory with the datasets arxiv and cora (gnb data convert) and products (bench/productslike --scale 18
// --nodes 180000 --seeds 40000). The constants of package gnb/plan were chosen with the configurations of the set tuning alone;
// those of the set test are compared in docs/plan.md. Memory is anonymous and shared memory of all processes of the run
// (Pss of smaps_rollup without pages of files) at its peak, in a run of its own because reading it slows a run; the time of a step is the median over epochs, and each the
// median over the runs. The rates are measured right before each configuration.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tuning are the configurations by which the plan's constants were chosen, and test those that were not looked at before.
var sets = map[string][]string{
	"tuning": {
		"cora --model sage --fanout full --hidden 32 --epochs 60",
		"planted?nodes=20000 --model sage --epochs 6",
		"arxiv --model sage --eval none --epochs 4",
		"arxiv --model gcn --hidden 128 --workers 2 --epochs 3",
		"products --model sage --fanout 15,10,5 --batch 512 --hidden 128 --eval none --epochs 2",
		"arxiv --model gat --heads 2 --hidden 32 --eval sampled --epochs 2",
		"planted?nodes=100000 --model gin --workers 4 --epochs 3",
	},
	"test": {
		"cora --model gcn --fanout full --hidden 16 --epochs 100",
		"cora --model gat --fanout full --hidden 64 --heads 8 --epochs 60",
		"arxiv --model sage --fanout 15,10,5 --batch 512 --hidden 128 --epochs 2",
		"arxiv --model sage --fanout 10,10 --workers 2 --eval none --epochs 4",
		"arxiv --model gcn --fanout 10,5 --hidden 64 --epochs 4",
		"arxiv --model gat --fanout 8,8 --heads 4 --hidden 64 --workers 2 --eval sampled --epochs 2",
		"arxiv --model gin --fanout 10,5 --virtual-ranks 2 --eval none --epochs 4",
		"products --model sage --fanout 10,10 --workers 2 --cooperative --eval none --epochs 3",
		"products --model sage --fanout 15,10 --hidden 256 --precision bf16 --epochs 2",
		"planted?nodes=50000 --model sage --fanout 10,10 --norm layer --residual --workers 4 --epochs 4",
	},
}

// row is one configuration's comparison.
type row struct {
	Flags          string     `json:"flags"`
	PredictedBytes int64      `json:"predicted_bytes"`
	MeasuredBytes  int64      `json:"measured_bytes"`
	PredictedStep  float64    `json:"predicted_step_seconds"`
	MeasuredStep   float64    `json:"measured_step_seconds"`
	Load           float64    `json:"load_average"`
	Runs           []measured `json:"runs"`
}

func main() {
	set := flag.String("set", "test", "set of configurations: test or tuning")
	only := flag.String("only", "", "word that a configuration must contain")
	runs := flag.Int("runs", 3, "runs of each configuration")
	gnb := flag.String("gnb", "gnb", "the command gnb")
	out := flag.String("out", "", "file for the results as JSON")
	flag.Parse()
	if flag.NArg() != 1 || sets[*set] == nil {
		fmt.Fprintln(os.Stderr, "plan: it takes --set test or tuning, and the directory with the datasets")
		os.Exit(2)
	}
	var rows []row
	for _, flags := range sets[*set] {
		if !strings.Contains(flags, *only) {
			continue
		}
		r, err := compare(*gnb, flag.Arg(0), flags, *runs)
		if err != nil {
			fmt.Fprintln(os.Stderr, "plan:", err)
			os.Exit(1)
		}
		rows = append(rows, r)
		fmt.Println(r)
		if *out != "" {
			text, err := json.MarshalIndent(rows, "", "  ")
			if err == nil {
				err = os.WriteFile(*out, append(text, '\n'), 0o644)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "plan:", err)
				os.Exit(1)
			}
		}
	}
}

func (r row) String() string {
	change := func(predicted, measured float64) float64 { return 100 * (predicted/measured - 1) }
	return fmt.Sprintf("%-100s %7.1f MB, measured %7.1f (%+.0f %%); %8.2f ms, measured %8.2f (%+.0f %%); load %.0f", r.Flags,
		float64(r.PredictedBytes)/1e6, float64(r.MeasuredBytes)/1e6, change(float64(r.PredictedBytes), float64(r.MeasuredBytes)),
		1e3*r.PredictedStep, 1e3*r.MeasuredStep, change(r.PredictedStep, r.MeasuredStep), r.Load)
}

// compare plans a configuration and runs it.
func compare(gnb, data, flags string, runs int) (r row, err error) {
	r.Flags = flags
	args := strings.Fields(flags)
	if !strings.Contains(args[0], "?") {
		args[0] = filepath.Join(data, args[0])
	}
	args = append(args[1:], args[0])
	var steps []float64
	var bytes []int64
	var predicted []float64
	for range runs {
		p, err := planned(gnb, args)
		if err != nil {
			return r, err
		}
		r.PredictedBytes = p.TotalBytes
		predicted = append(predicted, p.StepSeconds)
		m, err := train(gnb, args, false)
		if err != nil {
			return r, err
		}
		watched, err := train(gnb, args, true)
		if err != nil {
			return r, err
		}
		m.Bytes, m.Workers = watched.Bytes, watched.Workers
		r.Runs = append(r.Runs, m)
		bytes, steps = append(bytes, m.Bytes), append(steps, m.StepTime)
		r.Load = math.Max(r.Load, m.Load)
	}
	slices.Sort(bytes)
	slices.Sort(steps)
	slices.Sort(predicted)
	r.MeasuredBytes, r.MeasuredStep, r.PredictedStep = bytes[len(bytes)/2], steps[len(steps)/2], predicted[len(predicted)/2]
	return r, nil
}

type plan struct {
	TotalBytes  int64   `json:"total_bytes"`
	StepSeconds float64 `json:"step_seconds"`
}

func planned(gnb string, args []string) (p plan, err error) {
	text, err := exec.Command(gnb, append([]string{"plan", "--json", "--calibrate"}, args...)...).Output()
	if err != nil {
		return p, fmt.Errorf("gnb plan %s: %w", strings.Join(args, " "), err)
	}
	return p, json.Unmarshal(text, &p)
}
