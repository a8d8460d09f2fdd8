package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
)

// onParts holds the results of training on parts and of inference with its weights.
type onParts struct {
	digest, weights, logits string
	rows                    *runs.FeatureRows
}

// runGNB runs gnb to its end and returns its standard output.
func runGNB(t testing.TB, cmd *exec.Cmd, args ...string) string {
	t.Helper()
	cmd.Args = append(cmd.Args, args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %v: %s%s", cmd.Args, err, out.Bytes(), problems.Bytes())
	}
	return out.String()
}

// trainOnParts trains on a directory with ranks that run starts, then infers.
func trainOnParts(t *testing.T, run func() *exec.Cmd, data string, workers []string, args ...string) (got onParts) {
	t.Helper()
	dir := t.TempDir()
	text := runGNB(t, run(), slices.Concat([]string{"train", data, "--json", "--digest", "--device", "cpu", "--run", filepath.Join(dir, "run")}, workers, args)...)
	for line := range strings.Lines(text) {
		var r trainResult
		if json.Unmarshal([]byte(line), &r) == nil && r.Digest != "" {
			got.digest, got.rows = r.Digest, r.Rows
		}
	}
	out := filepath.Join(dir, "logits.npy")
	runGNB(t, run(), slices.Concat([]string{"infer", data, "--run", filepath.Join(dir, "run"), "--final", "--device", "cpu", "--json", "--out", out}, workers)...)
	for path, to := range map[string]*string{filepath.Join(dir, "run", "model.safetensors"): &got.weights, out: &got.logits} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		*to = fmt.Sprintf("%x", sha256.Sum256(b))
	}
	return got
}

// giveParts copies a division to the hosts. Each host gets the files that all ranks need and only
// the parts of its own ranks.
func giveParts(t testing.TB, w *clustertest.Network, from string, parts int) (data string) {
	t.Helper()
	for i, h := range w.Hosts {
		to := filepath.Join(h.Disk(), "parts")
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		for p := range parts {
			if p*len(w.Hosts)/parts != i {
				if err := os.RemoveAll(filepath.Join(to, fmt.Sprintf("part-%04d", p))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return filepath.Join(w.Disk(), "parts")
}

// A division into 8 parts on 1, 2 or 4 machines, each with only its own parts, has the digest of
// the undivided graph. Weights and outputs are the same to the bit, with the topology on each
// machine or divided, and with any cache. The test covers all pairs of settings; with GNB_SOAK=1 it
// runs all combinations with more steps.
func TestPartsOnHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds gnb")
	}
	exe := filepath.Join(t.TempDir(), "gnb")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	plain := func() *exec.Cmd { return exec.Command(exe) }
	const parts = 8
	train := []string{"--batch", "256", "--fanout", "6,4", "--hidden", "16", "--seed", "5", "--threads", "1"}
	type graph struct{ name, spec, epochs string }
	graphs := []graph{{"planted", "planted?nodes=3000&features=20&classes=6&seed=4", "3"}}
	type setting struct {
		machines        int
		topology, cache string
	}
	settings := []setting{{1, "divided", "20%"}, {2, "replicated", "20%"}, {2, "divided", ""}}
	if envknob.Soak.On() {
		settings = nil
		for _, m := range []int{1, 2, 4} {
			for _, topology := range []string{"replicated", "divided"} {
				for _, cache := range []string{"", "20%"} {
					settings = append(settings, setting{m, topology, cache})
				}
			}
		}
		graphs = []graph{
			{"planted", "planted?nodes=3000&features=20&classes=6&seed=4", "40"},
			{"skewed", "rmat?scale=14&degree=30&features=32&classes=8&seed=4", "7"}, // resembles products, but is smaller
		}
		if testneed.Data.Here() {
			path, arxiv := testneed.RealData(t, "ogbn_arxiv/graphsaint"), filepath.Join(t.TempDir(), "arxiv")
			runGNB(t, plain(), "data", "convert", path, arxiv, "--undirected", "--features", "random:32")
			graphs = append(graphs, graph{"arxiv", arxiv, "1"})
		}
	}
	for _, g := range graphs {
		name, spec, train := g.name, g.spec, slices.Concat(train, []string{"--epochs", g.epochs})
		dir := filepath.Join(t.TempDir(), name)
		runGNB(t, plain(), "partition", spec, "--parts", fmt.Sprint(parts), "--balance", "train", "--out", dir, "--seed", "3")
		whole := trainOnParts(t, plain, spec, []string{"--workers", "1"}, slices.Concat(train, []string{"--virtual-ranks", "8"})...)
		want := trainOnParts(t, plain, dir, []string{"--workers", "2"}, train...)
		if want.digest != whole.digest || want.rows != nil {
			t.Errorf("%s: the digest is %q with two workers that have all files, and %q with the undivided graph; rows %v", name, want.digest, whole.digest, want.rows)
		}
		for _, s := range settings {
			t.Run(fmt.Sprintf("%s, %d machines, %s, cache %s", name, s.machines, s.topology, s.cache), func(t *testing.T) {
				args := slices.Concat(train, []string{"--topology", s.topology, "--cache", s.cache, "--prefetch", "3"})
				var got onParts
				if s.machines == 1 {
					got = trainOnParts(t, plain, dir, []string{"--workers", "2"}, args...)
				} else {
					w := clustertest.Hosts(t, s.machines)
					data := giveParts(t, w, dir, parts)
					perHost := slices.Repeat([]int{1}, s.machines)
					got = trainOnParts(t, func() *exec.Cmd { return w.Torchrun(perHost, exe) }, data, nil, args...)
				}
				if got.digest != want.digest || got.weights != want.weights || got.logits != want.logits {
					t.Errorf("%+v, want %+v", got, want)
				}
				if got.rows == nil || got.rows.Remote == 0 || (got.rows.Cached > 0) != (s.cache != "") {
					t.Errorf("the rows of features are %v", got.rows)
				}
			})
		}
	}
}
