package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/internal/phrase"
)

var planCommand = cli.Command{Name: "plan", Summary: "predict memory, bytes and time of training before it runs", Run: runPlan}

func runPlan(ctx context.Context, args []string, out *cli.Output) error {
	t, err := chosenTask(args)
	if err != nil {
		return err
	}
	fs := out.Flags("DATASET", "Predicts what gnb train with the same flags takes: the memory of each worker, the bytes of a batch by stage and by source, and the time of a step, also with other numbers of workers and in other modes. Times are measured: workers train some steps for about a second, in each way. These are the flags of --task "+t.name+".")
	var (
		gpu   = fs.String("gpu-memory", "", "plan for GPUs with `24GB` free, here or not")
		hosts = fs.Int("machines", 0, "machines that have the workers (default one)")
		net   = fs.String("network", "", "network between machines: `10Gbit/s,0.1ms`, or measure:HOST:PORT")
	)
	t.flags(fs, notPlanned...)
	options.Verify(out, fs)
	if err := t.strange(fs, args); err != nil {
		return err
	}
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if err := t.checkRead(fs, nil); err != nil {
		return err
	}
	ds, err := t.load(ctx, out, fs, rest[0])
	if err != nil {
		return err
	}
	defer ds.Close()
	if t.name == taskNames[0] {
		if err := noTriples(ds, "plan without --task", "gnb plan --task triples plans one"); err != nil {
			return err
		}
	}
	if *gpu != "" {
		free, err := phrase.ParseBytes(*gpu)
		if err != nil {
			return fmt.Errorf("--gpu-memory is %q; it is a number of bytes above 0, such as 24GB", *gpu)
		}
		ctx = plan.ForGPU(ctx, free)
	}
	if *net != "" {
		n, err := networkOf(ctx, *net)
		if err != nil {
			return fmt.Errorf("--network: %w", err)
		}
		ctx = plan.Over(ctx, n)
	}
	if err := onMachines(t.launch, *hosts, *gpu != ""); err != nil {
		return err
	}
	t.launch.Quiet = out.JSON
	p, err := t.plan(ctx, ds)
	if err != nil {
		return err
	}
	out.Result(p)
	out.Printf("%s", p)
	return nil
}

// notPlanned are the flags of "gnb train" that are of one run's directory.
var notPlanned = []string{"run", "resume", "resume-changed", "from"}

// networkOf measures a network or reads what the user says of it.
func networkOf(ctx context.Context, text string) (plan.Network, error) {
	if address, ok := strings.CutPrefix(text, "measure:"); ok {
		return plan.MeasureNetwork(ctx, address)
	}
	return plan.ParseNetwork(text)
}

// The largest run that a plan can be made for. A launcher starts no more ranks.
const (
	mostMachines = 4096
	mostRanks    = 1 << 16
)

// onMachines divides the workers among machines, as many on each; 0 machines leave the options as they are.
func onMachines(o *gnb.LaunchOptions, machines int, gpus bool) error {
	switch {
	case machines == 0:
		return nil
	case machines > mostMachines || machines*max(1, o.Workers/machines) > mostRanks:
		return fmt.Errorf("--machines is %d; a plan has at most %d machines, with %d workers in all", machines, mostMachines, mostRanks)
	case machines < 0 || o.Workers%machines != 0:
		return fmt.Errorf("--machines is %d, and --workers %d; take a number of machines above 0 of which each has as many workers", machines, o.Workers)
	}
	if machines > 1 {
		o.Cluster = gnb.Slurm{Nodes: machines, RanksPerNode: max(1, o.Workers/machines)}
		if (o.Device == "" || o.Device == "auto") && !gpus { // whether the machines have GPUs is not known here
			o.Device = "cpu"
		}
	}
	return nil
}
