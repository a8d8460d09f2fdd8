package main

import (
	"bytes"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/testneed"
)

// say runs a command for at most a minute and returns its status and output.
func say(t *testing.T, args ...string) (status int, said string) {
	t.Helper()
	var out, errs bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- dispatch(t.Context(), args, &out, &errs) }()
	select {
	case status = <-done:
	case <-time.After(time.Minute):
		t.Fatalf("gnb %q was still running after a minute", args)
	}
	return status, out.String() + errs.String()
}

// Every command refuses numbers that no run can use, for each of its flags, with one sentence and
// before it creates any file.
func TestBoundsOfFlags(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	const huge, least = "9223372036854775807", "-9223372036854775808"
	numbers := map[string][]string{
		"train karate":                    {"layers", "hidden", "embedding", "batch", "batch-per-worker", "heads", "out-heads", "bases", "virtual-ranks", "threads", "workers", "epochs", "eval-every", "eval-batches", "patience", "checkpoint-every", "keep", "restarts", "split"},
		"scaling karate":                  {"layers", "hidden", "batch", "batch-per-worker", "heads", "virtual-ranks", "threads", "repeats", "steps", "warmup", "workers"},
		"sweep karate --param lr=0.1,0.2": {"trials", "parallel", "levels", "min-epochs", "reduction"},
		"sample karate":                   {"batch", "epoch", "steps", "workers", "threads"},
		"inspect karate":                  {"batch", "epoch", "step", "draw", "hidden", "threads", "seeds"},
		"partition karate":                {"parts", "threads"},
		"plan karate":                     {"layers", "hidden", "embedding", "batch", "heads", "virtual-ranks", "threads", "workers", "epochs", "eval-every", "split"},
		"bench train --dataset karate":    {"layers", "hidden", "batch", "threads", "workers", "windows", "steps", "warmup"},
		"bench infer --dataset karate":    {"layers", "hidden", "threads", "workers", "steps"},
		"bench gemm":                      {"m", "n", "k", "threads", "steps", "warmup"},
		"bench spmm --dataset karate":     {"columns", "threads"},
		"bench allreduce":                 {"elements", "workers", "threads", "steps"},
		"bench sample --dataset karate":   {"batch", "threads", "steps", "warmup"},
		"bench limits":                    {"row-bytes", "threads"},
		"serve karate":                    {"max-nodes", "max-edges", "max-bytes", "calls", "connections", "threads", "take-in-bytes"},
		"data convert x y":                {"threads"},
		"data tables x y":                 {"threads"},
	}
	for command, flags := range numbers {
		for _, name := range flags {
			for _, v := range []string{huge, least, "1e999", "nonsense"} {
				status, said := say(t, append(strings.Fields(command), "--"+name+"="+v)...)
				if status == cli.StatusOK || !strings.Contains(strings.ToLower(strings.ReplaceAll(said, "-", "")), strings.ReplaceAll(name, "-", "")) || strings.Contains(said, "goroutine") {
					t.Errorf("gnb %s --%s=%s: status %d, %s", command, name, v, status, said)
				}
			}
		}
	}
	for _, spec := range []string{
		"planted?nodes=9223372036854775807", "planted?nodes=2147483647&features=65536", "planted?nodes=-1", "planted?degree=NaN", "planted?degree=1e300", "planted?noise=Inf",
		"planted?homophily=2", "planted?classes=99999999999", "planted?features=9223372036854775807", "planted?seed=-1", "planted?nodes=1e9",
		"rmat?scale=64", "rmat?scale=30&features=65536", "rmat?scale=-1", "rmat?degree=Inf", "rmat?a=NaN", "rmat?a=2", "rmat?classes=9223372036854775807", "rmat?noise=-1",
	} {
		if status, said := say(t, "data", "info", spec); status == cli.StatusOK || strings.Contains(said, "goroutine") || !strings.Contains(said, "dataset: ") {
			t.Errorf("%s: status %d, %s", spec, status, said)
		}
	}
	for _, name := range []string{"lr", "weight-decay", "clip", "dropout", "input-dropout"} {
		for v, want := range map[string]string{"NaN": "not a number", "-1": "negative", "Inf": "it is", "-0.5": "it is"} {
			status, said := say(t, "train", "karate", "--"+name+"="+v)
			if status == cli.StatusOK || v == "NaN" && !strings.Contains(said, want) || strings.Contains(said, "goroutine") {
				t.Errorf("--%s=%s: status %d, %s; want %q", name, v, status, said, want)
			}
		}
	}
}

// A zero that has no meaning for a flag is refused; it does not select the default.
func TestZeroIsNoDefault(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	for command, flags := range map[string][]string{
		"train karate":                    {"layers", "hidden", "embedding", "batch", "batch-per-worker", "heads", "out-heads", "virtual-ranks", "eval-every", "keep"},
		"sweep karate --param lr=0.1,0.2": {"hidden", "trials", "parallel", "levels", "min-epochs", "reduction"},
		"scaling karate":                  {"hidden", "repeats", "steps", "warmup"}, "sample karate": {"batch"}, "inspect karate": {"batch", "hidden"},
		"serve karate":                 {"max-nodes", "max-edges", "max-bytes", "calls", "connections", "take-in-bytes"},
		"bench train --dataset karate": {"layers", "hidden", "windows"}, "bench infer --dataset karate": {"layers", "hidden"},
	} {
		for _, name := range flags {
			status, said := say(t, append(strings.Fields(command), "--"+name+"=0")...)
			if status != cli.StatusUsage || !strings.Contains(said, "--"+name+" is 0; it must ") {
				t.Errorf("gnb %s --%s=0: status %d, %s", command, name, status, said)
			}
		}
	}
}

// No command takes a negative number for a flag of which no negative one means anything.
func TestNegativeFlags(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	whole := regexp.MustCompile(`(?m)^  --([a-z-]+)`)
	for _, c := range commands() {
		for _, name := range []string{"threads", "workers", "parts", "machines", "recommend", "best", "steps", "layer", "cell", "prefetch", "patience", "keep", "draw", "epoch"} {
			_, help := say(t, c.Name, "--help")
			has := false
			for _, m := range whole.FindAllStringSubmatch(help, -1) {
				has = has || m[1] == name
			}
			if !has || c.Name == "serve" && name == "parts" || c.Name == "scaling" && name == "workers" { // lists
				continue
			}
			if status, said := say(t, c.Name, "--"+name+"=-1", "karate"); status != cli.StatusUsage || !strings.Contains(said, "--"+name) {
				t.Errorf("gnb %s --%s=-1: status %d, %s", c.Name, name, status, said)
			}
		}
	}
}

// A plan for more machines than any launcher starts ranks on is refused before it takes memory.
func TestPlanOfTooManyMachines(t *testing.T) {
	for _, n := range []string{"4097", "100000000", "9223372036854775807"} {
		if status, said := say(t, "plan", "karate", "--machines", n); status == cli.StatusOK || !strings.Contains(said, "--machines is "+n) {
			t.Errorf("--machines %s: status %d, %s", n, status, said)
		}
	}
}

// An address without a host means this machine alone, whatever listens there.
func TestListenLocally(t *testing.T) {
	l, err := cli.Listen(t.Context(), "metrics", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if at := l.Addr().(*net.TCPAddr); !at.IP.IsLoopback() {
		t.Errorf("it listens at %s", at)
	}
	if _, err := cli.Listen(t.Context(), "metrics", "nonsense"); err == nil || !strings.Contains(err.Error(), "--metrics nonsense") {
		t.Errorf("the error is %v", err)
	}
}

// An error for a word that is nearly the name of a flag or command names that flag or command.
func TestNearestFlag(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"train", "karate", "--epoch", "3"}, "there is no flag --epoch; is it --epochs?"},
		{[]string{"train", "karate", "--fanuot=3"}, "there is no flag --fanuot; is it --fanout?"},
		{[]string{"train", "karate", "--weight", "3"}, "there is no flag --weight; is it --weight-decay?"},
		{[]string{"train", "karate", "--xyzzy"}, "there is no flag --xyzzy\n"},
		{[]string{"bench", "train", "--layer", "3"}, "there is no flag --layer; is it --layers?"},
		{[]string{"trian", "karate"}, `there is no command "trian"; is it train? "gnb help" lists`},
	} {
		if status, said := say(t, c.args...); status != cli.StatusUsage || !strings.Contains(said, c.want) {
			t.Errorf("gnb %q: status %d, %s", c.args, status, said)
		}
	}
}

// The usage line of a benchmark names the benchmark once, and bench train has the flags of
// training.
func TestUsageOfBench(t *testing.T) {
	_, all := say(t, "bench", "--help")
	names := regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(all, -1)
	if len(names) < 8 {
		t.Errorf("gnb bench --help lists %q", names)
	}
	for _, n := range names {
		if _, said := say(t, "bench", n[1], "--help"); !strings.HasPrefix(said, "usage: gnb bench "+n[1]+" [flags]\n") {
			t.Errorf("bench %s: %s", n[1], said)
		}
	}
	_, train := say(t, "train", "--help")
	_, bench := say(t, "bench", "train", "--help")
	for _, name := range []string{
		"model", "fanout", "layers", "hidden", "batch", "batch-per-worker", "cooperative", "lr", "weight-decay", "clip", "dropout", "input-dropout", "heads", "out-heads", "norm", "residual",
		"batch-degrees", "virtual-ranks", "threads", "device", "precision", "seed", "workers",
	} {
		for where, said := range map[string]string{"train": train, "bench train --dataset karate": bench} {
			if !strings.Contains(said, "\n  --"+name+" ") && !strings.Contains(said, "\n  --"+name+"\n") {
				t.Errorf("%s has no --%s", where, name)
			}
		}
	}
	_, r := result(t, t.TempDir(), "bench", "train", "--dataset", "karate", "--layers", "1", "--hidden", "4", "--windows", "1", "--steps", "2", "--warmup", "1", "--limits=false", "--norm", "layer", "--virtual-ranks", "2", "--lr", "1e-30")
	if hops, ok := r["hops"].([]any); !ok || len(hops) != 1 {
		t.Errorf("with one layer the hops are %v", r["hops"])
	}
}

// A model that does not fit into memory is refused with an error that has both sizes.
func TestTooLargeAModel(t *testing.T) {
	testneed.NotShort(t, "it describes models of gigabytes")
	if _, err := machine.ReadMemory(); err != nil {
		t.Skip(err)
	}
	t.Setenv("GNB_RUNS", t.TempDir())
	for _, args := range []string{"--hidden 500000 --layers 3", "--layers 256 --hidden 8192", "--layers 256 --hidden 8192 --workers 2"} {
		status, said := say(t, append([]string{"train", "planted", "--epochs", "1"}, strings.Fields(args)...)...)
		if status != cli.StatusFailed || !strings.Contains(said, "would take") || !strings.Contains(said, "are free") || strings.Contains(said, "goroutine") || strings.Contains(said, "runtime: ") {
			t.Errorf("%s: status %d, %s", args, status, said)
		}
	}
}
