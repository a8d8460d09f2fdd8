// Package ranks decides how the command gnb runs under a launcher (Slurm, MPI, torchrun), which starts
// it once for each rank.
package ranks

import (
	"flag"
	"os"
	"slices"

	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// How a command runs under a launcher (Slurm, MPI, torchrun).
const (
	everywhere = iota // on every rank, as if there were no launcher
	onRanks           // on rank 0; its workers are the ranks
	onFirst           // on rank 0 alone, which starts workers of its own
)

// underLauncher returns how a command runs under a launcher.
func underLauncher(command string, args []string) int {
	if i := slices.Index(args, "--transport"); command == "bench" && (slices.Contains(args, "--transport=mpi") || i >= 0 && i+1 < len(args) && args[i+1] == "mpi") {
		return everywhere // its ranks find each other through MPI
	}
	switch command {
	case "train", "embed", "sample", "infer", "sweep":
		return onRanks
	case "scaling", "inspect", "bench":
		return onFirst
	}
	return everywhere
}

// InsecureFlag makes the flag --insecure, which [Enter] has already read.
func InsecureFlag(fs *flag.FlagSet) {
	fs.Bool("insecure", false, "accept ranks of other machines without a token")
}

// FeaturesFlag makes the flag --features.
func FeaturesFlag(fs *flag.FlagSet, features *string) {
	fs.StringVar(features, "features", "", "memory or disk (default disk if memory is too small)")
}

// InferFlags makes the flags of the workers of gnb infer.
func InferFlags(fs *flag.FlagSet, workers, threads *int, device, features *string) {
	fs.IntVar(workers, "workers", 0, "number of worker processes (default one per GPU, or one)")
	fs.IntVar(threads, "threads", 0, "threads per worker (default an even share of the CPUs)")
	fs.StringVar(device, "device", "auto", "auto, cpu or cuda")
	FeaturesFlag(fs, features)
}

// RowFlags makes the flags --cache, --cache-policy and --prefetch, of rows of features that are on disk or that other ranks have.
func RowFlags(fs *flag.FlagSet, cache, policy *string, prefetch *int) {
	fs.StringVar(cache, "cache", "", "cached rows: `20%` of a worker's, or 512MB per machine")
	fs.StringVar(policy, "cache-policy", "", "static, or belady for what the next steps read")
	fs.IntVar(prefetch, "prefetch", 0, "`steps` ahead that such rows are asked for (default 4)")
}

// SamplerFlags makes the flags of the sampler of training batches.
func SamplerFlags(fs *flag.FlagSet, sampler *string, batches *int, layers *bool) {
	fs.StringVar(sampler, "sampler", "", "uniform, labor, labor-poisson or hgt (default uniform)")
	fs.IntVar(batches, "batch-dependency", 0, "`steps` for which labor keeps random numbers (default 1)")
	fs.BoolVar(layers, "layer-dependency", false, "same random numbers of labor at all hops")
}

// Enter prepares this process as a rank of a launcher, if one started it. It does not return on
// ranks that serve rank 0; ends reports that this rank has nothing to do.
func Enter(args []string) (ends bool, err error) {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	if slices.Contains(args, "--insecure") || slices.Contains(args, "-insecure") { // other ranks parse no flags
		_ = os.Setenv(envknob.Insecure.Name, "1") // fails only for invalid names
	}
	how := underLauncher(command, args)
	if how == onRanks {
		_, err := multigpu.Launcher()
		multigpu.EnterIfWorker()
		return false, err
	}
	if how == onFirst {
		p, err := cluster.Detect()
		if err != nil {
			return false, err
		}
		ends = p != nil && p.Rank > 0
	}
	_ = os.Setenv(envknob.Launcher.Name, "none")
	return ends, nil
}
