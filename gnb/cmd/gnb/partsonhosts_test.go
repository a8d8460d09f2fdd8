package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
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
	losses                  []float64
	rows                    *runs.FeatureRows
}

func (p onParts) String() string {
	return fmt.Sprintf("%d steps, digest %.12s, weights %.12s, outputs %.12s, rows: %v", len(p.losses), p.digest, p.weights, p.logits, p.rows)
}

// firstSteps is the number of steps in which losses of different bits are compared: rounding makes those of later steps drift apart.
const firstSteps = 10

// lossesOf reads the losses of a run's steps.
func lossesOf(t *testing.T, run string) (losses []float64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e runs.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		for _, s := range e.Records {
			losses = append(losses, s.Loss)
		}
	}
	return losses
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
	got.losses = lossesOf(t, filepath.Join(dir, "run"))
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

// giveParts copies a division to hosts. Each host gets the files that all ranks need and only its own parts.
func giveParts(t testing.TB, w *clustertest.Network, to []*clustertest.Host, from string, parts int) (data string) {
	t.Helper()
	for i, h := range to {
		disk := filepath.Join(h.Disk(), "parts")
		if err := os.CopyFS(disk, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		for p := range parts {
			if p*len(to)/parts != i {
				if err := os.RemoveAll(filepath.Join(disk, fmt.Sprintf("part-%04d", p))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return filepath.Join(w.Disk(), "parts")
}

// serveParts starts a server of its parts on each host, and returns the address of all.
func serveParts(t *testing.T, on []*clustertest.Host, exe, data string) string {
	t.Helper()
	var addresses []string
	for _, h := range on {
		cmd := h.Command(exe, "serve", data, "--json", "--insecure", "--listen", h.Addr+":7700")
		var problems bytes.Buffer
		cmd.Stderr = &problems
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.Contains(lines.Text(), `"listening"`) {
			continue
		}
		if lines.Err() != nil || lines.Text() == "" {
			_ = cmd.Wait()
			t.Fatalf("the server on %s: %s", h.Name, problems.String())
		}
		addresses = append(addresses, h.Addr+":7700")
	}
	return "grpc://" + strings.Join(addresses, ",")
}

// equal reports whether two runs have the same bits.
func (p onParts) equal(q onParts) bool {
	return p.digest == q.digest && p.weights == q.weights && p.logits == q.logits && slices.Equal(p.losses, q.losses)
}

// checkRows checks that a run read rows of other machines, and some from its cache if it has one.
func (s partsSetting) checkRows(t *testing.T, got onParts) {
	t.Helper()
	// A cache can have all rows of other parts that batches read: then they came when it was filled.
	if got.rows == nil || got.rows.Bytes == 0 || got.rows.Remote == 0 && s.cache == "" || (got.rows.Cached > 0) != (s.cache != "") {
		t.Errorf("the rows of features are %v", got.rows)
	}
}

// onHosts trains in one setting, on the division at dir.
func (s partsSetting) onHosts(t *testing.T, exe, dir string, parts int, args []string) onParts {
	t.Helper()
	args = slices.Concat(args, []string{"--cache", s.cache, "--cache-policy", s.policy, "--prefetch", "3"})
	two := []string{"--workers", "2"}
	if s.servers { // and the workers on a machine without parts
		w := clustertest.Hosts(t, s.machines+1)
		servers, home := w.Hosts[:s.machines], t.TempDir()
		address := serveParts(t, servers, exe, giveParts(t, w, servers, dir, parts))
		if s.topology == "replicated" {
			address += "?copy=topology"
		}
		return trainOnParts(t, func() *exec.Cmd {
			cmd := w.Hosts[s.machines].Command(exe)
			cmd.Env = append(cmd.Env, envknob.Home.Name+"="+home, envknob.Insecure.Name+"=1")
			return cmd
		}, address, two, args...)
	}
	args = append(args, "--topology", s.topology)
	if s.machines == 1 {
		return trainOnParts(t, func() *exec.Cmd { return exec.Command(exe) }, dir, two, args...)
	}
	w := clustertest.Hosts(t, s.machines)
	data, perHost := giveParts(t, w, w.Hosts, dir, parts), slices.Repeat([]int{max(1, s.ranks)}, s.machines)
	return trainOnParts(t, func() *exec.Cmd { return w.Torchrun(perHost, exe) }, data, nil, args...)
}

// partsSetting is how a division is held and read.
type partsSetting struct {
	machines        int
	servers         bool
	topology, cache string
	policy          string // of the cache
	ranks           int    // on each machine; 0 means 1, and 2 where the program starts workers
}

func (s partsSetting) String() string {
	by := "workers"
	if s.servers {
		by = "servers"
	}
	text := fmt.Sprintf("%d machines, %s, %s, cache %s", s.machines, by, s.topology, cmp.Or(s.cache, "0"))
	if s.policy != "" {
		text += " " + s.policy
	}
	if s.ranks > 0 {
		text += fmt.Sprintf(", %d ranks each", s.ranks)
	}
	return text
}

// A division into 8 parts on 1, 2 or 4 machines, each with only its own parts, has the digest of the undivided graph.
// Weights and outputs are the same to the bit, with workers or with servers on these machines, with the topology on each
// machine or divided, and with any cache. Losses agree with those of the undivided graph to 1e-5. The test covers all
// pairs of settings, except those with 4 machines; with GNB_SOAK=1 it runs all combinations with more steps.
func TestPartsOnHosts(t *testing.T) {
	exe := command(t)
	plain := func() *exec.Cmd { return exec.Command(exe) }
	const parts = 8
	train := []string{"--batch", "256", "--fanout", "6,4", "--hidden", "16", "--seed", "5", "--threads", "1"}
	type graph struct{ name, spec, epochs string }
	graphs := []graph{{"planted", "planted?nodes=3000&features=20&classes=6&seed=4", "3"}}
	settings := []partsSetting{
		{machines: 1, topology: "divided", cache: "20%"},
		{machines: 2, topology: "divided"},
		{machines: 1, servers: true, topology: "replicated"},
		{machines: 2, servers: true, topology: "divided", cache: "20%"},
		{machines: 2, topology: "replicated", cache: "20%", ranks: 2}, // ranks of a machine share a cache and a window
		{machines: 2, topology: "divided", cache: "20%", policy: "belady", ranks: 2},
	}
	if envknob.Soak.On() {
		settings = nil
		for _, m := range []int{1, 2, 4} {
			for _, servers := range []bool{false, true} {
				for _, topology := range []string{"replicated", "divided"} {
					for _, cache := range []string{"", "20%"} {
						settings = append(settings, partsSetting{machines: m, servers: servers, topology: topology, cache: cache})
					}
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
			sparse, cora := testneed.RealData(t, "planetoid"), filepath.Join(t.TempDir(), "cora") // with sparse features
			runGNB(t, plain(), "data", "convert", sparse, cora)
			graphs = append(graphs, graph{"cora", cora, "40"})
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
		for i, loss := range want.losses[:min(firstSteps, len(want.losses), len(whole.losses))] {
			if of := whole.losses[i]; math.Abs(loss-of) > 1e-5*of {
				t.Errorf("%s: step %d has the loss %v, on the undivided graph %v", name, i, loss, of)
			}
		}
		if len(want.losses) < firstSteps {
			t.Errorf("%s: only %d steps", name, len(want.losses))
		}
		for _, s := range settings {
			if name == "cora" && s.servers {
				continue // sparse rows of servers are asked for batch by batch
			}
			t.Run(name+", "+s.String(), func(t *testing.T) {
				got := s.onHosts(t, exe, dir, parts, train)
				if !got.equal(want) {
					t.Errorf("%+v, want %+v", got, want)
				}
				s.checkRows(t, got)
			})
		}
	}
}

// Links on a division of which each machine has its own parts, and at servers on such machines, have the digest, losses,
// weights and embeddings of the undivided graph, to the bit. With GNB_SOAK=1 it takes 200 steps, on 1, 2 and 4 machines.
func TestLinksOnHosts(t *testing.T) {
	exe := command(t)
	plain := func() *exec.Cmd { return exec.Command(exe) }
	const parts = 8
	const spec = "planted?nodes=1500&features=20&classes=6&seed=4"
	args := []string{"--task", "links", "--batch", "512", "--fanout", "6,4", "--hidden", "16", "--seed", "5", "--threads", "1", "--negatives-from", "degree", "--metric", "recall_5"}
	steps, epochs := firstSteps, "2"
	settings := []partsSetting{
		{machines: 2, topology: "replicated", cache: "20%"},
		{machines: 2, topology: "replicated", ranks: 2},
		{machines: 2, servers: true, topology: "replicated", cache: "20%"},
		{machines: 2, topology: "divided", cache: "20%"},
	}
	if envknob.Soak.On() {
		settings, steps, epochs = []partsSetting{{machines: 2, topology: "divided"}, {machines: 4, topology: "divided", cache: "20%"}}, 200, "10"
		for _, m := range []int{1, 2, 4} {
			for _, servers := range []bool{false, true} {
				for _, cache := range []string{"", "20%"} {
					settings = append(settings, partsSetting{machines: m, servers: servers, topology: "replicated", cache: cache})
				}
			}
		}
	}
	args = append(args, "--epochs", epochs)
	dir := filepath.Join(t.TempDir(), "links")
	runGNB(t, plain(), "partition", spec, "--parts", fmt.Sprint(parts), "--out", dir, "--seed", "3")
	want := trainOnParts(t, plain, spec, []string{"--workers", "1"}, slices.Concat(args, []string{"--virtual-ranks", "8"})...)
	for _, s := range settings {
		t.Run(s.String(), func(t *testing.T) {
			got := s.onHosts(t, exe, dir, parts, args)
			if got.digest == "" || !got.equal(want) || len(got.losses) < steps {
				t.Errorf("%v, want %v", got, want)
			}
			t.Log(got)
			s.checkRows(t, got)
		})
	}
	t.Run("learned rows of which each machine has its own", func(t *testing.T) {
		args := slices.Concat(args, []string{"--embedding", "8"})
		want := trainOnParts(t, plain, spec, []string{"--workers", "1"}, slices.Concat(args, []string{"--virtual-ranks", "8"})...)
		got := partsSetting{machines: 2, topology: "replicated"}.onHosts(t, exe, dir, parts, args)
		if got.digest == "" || !got.equal(want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
