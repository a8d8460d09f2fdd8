//go:build linux

package onranks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
)

// sharedBytes returns the memory that the files without names of this process take: those that the ranks of its machine
// share.
func sharedBytes() (n int64) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	seen := map[uint64]bool{}
	for _, f := range files {
		path := filepath.Join("/proc/self/fd", f.Name())
		var st syscall.Stat_t
		if to, err := os.Readlink(path); err == nil && strings.HasPrefix(to, "/memfd:") && syscall.Stat(path, &st) == nil && !seen[st.Ino] {
			seen[st.Ino] = true
			n += 512 * st.Blocks
		}
	}
	return n
}

const learnedCols = 1024

// learn trains learned rows in every way that a program can, and measures the memory of each rank's machine.
var learn = gnb.Program("onranks.learn", func(w *gnb.Worker, _ int) error {
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: learnedCols, Embedding: true, Hidden: 8, Out: w.Dataset().Classes(), Layers: 2})
	opt := w.Adam(net, 0.05)
	for range w.Epochs(2) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{5, 5}, Batch: 64}) {
			w.Step(b.Loss(net.Forward(b)), opt)
		}
		w.SaveBest(net, -w.EpochLoss())
	}
	bytes := make([]float64, w.World())
	bytes[w.Rank()] = float64(sharedBytes())
	w.AllReduce(bytes)
	for r, n := range bytes {
		w.Result(fmt.Sprint("bytes ", r), n)
	}
	w.Result("sampled", w.Evaluate(net, gnb.Sampled([]int{3, 3}, 100, 2), "val").Splits[0].Value())
	full := w.FullGraph("train") // another rank has its seeds
	for range 3 {
		w.Step(full.Loss(net.Forward(full)), opt)
	}
	w.Result("moved", w.Evaluate(net, gnb.Evaluation{Loss: true}, "test").Splits[0].Loss)
	w.LoadBest(net)
	w.Result("best", w.Evaluate(net, gnb.Evaluation{Loss: true}, "test").Splits[0].Loss)
	return nil
})

// learnCell is a program that learns rows, and infers.
func learnCell(raw []byte) error {
	ctx := context.Background()
	o, ds, err := loaded(ctx, raw)
	if err != nil {
		return err
	}
	run, err := gnb.Launch(ctx, learn, 0, gnb.LaunchOptions{Data: ds, Workers: o.Workers, Threads: 1, RunDir: o.Dir, Seed: 4, Quiet: true, Device: "cpu"})
	if err != nil {
		return err
	}
	_, err = gnb.Infer(ctx, run, ds, filepath.Join(o.Dir, "out.npy"), gnb.InferOptions{Workers: o.Workers, Quiet: true, Device: "cpu"})
	return err
}

// On several machines each has the learned rows of its own ranks alone, and asks the others for what its batches read.
// Training, evaluation of both kinds, steps on the whole graph, the best weights and inference have the bits of workers
// on one machine.
func TestEmbeddingsByOwner(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	dir := t.TempDir()
	ref, to := filepath.Join(dir, "own"), filepath.Join(dir, "ranks")
	own(t, "learn", options{Data: planted, Dir: ref, Workers: 4})
	start(t, w, []int{0, 0, 1, 1}, "learn", options{Data: planted, Dir: to}).wait(t, 0)
	x, y := must(runs.Open(ref)), must(runs.Open(to))
	for _, file := range []string{"model.safetensors", "best.safetensors"} {
		if a, b := x.Result.Weights[file], y.Result.Weights[file]; a == "" || a != b {
			t.Errorf("%s is %s on two machines, want %s", file, b, a)
		}
	}
	for _, name := range []string{"sampled", "moved", "best"} {
		if a, b := x.Value(name), y.Value(name); a != b {
			t.Errorf("%s is %v on two machines, want %v", name, b, a)
		}
	}
	if x.Value("moved") == x.Value("best") {
		t.Errorf("the loss is %v before and after LoadBest", x.Value("best"))
	}
	a, b := must(os.ReadFile(filepath.Join(ref, "out.npy"))), must(os.ReadFile(filepath.Join(to, "out.npy")))
	if string(a) != string(b) {
		t.Error("the inferred outputs differ")
	}
	// Table and state of all nodes, of which the epochs touch nearly all.
	const whole = 3000 * learnedCols * 12
	one := x.Value("bytes 0")
	t.Logf("shared memory: one machine %.1f MB, of two %.1f and %.1f MB; the table has %.1f MB", one/1e6, y.Value("bytes 0")/1e6, y.Value("bytes 2")/1e6, whole/1e6)
	if one < 0.8*whole {
		t.Errorf("the shared memory of one machine is %v bytes, so it is not measured, or the epochs touch too few rows", one)
	}
	for r := range 4 {
		// The rest is messages of some hundred rows, the dataset and gradients.
		if n := y.Value(fmt.Sprint("bytes ", r)); n < 0.4*whole || n > 0.85*whole {
			t.Errorf("the machine of rank %d takes %v bytes of shared memory; its half of the table has %v", r, n, whole/2)
		}
	}
}

// Machines train learned embeddings to the bits of workers that the program starts itself: on the whole dataset, where a
// machine has a range of the rows, and on parts, where it has the rows of its parts. GNB_SOAK tries more placements.
func TestEmbeddingsOverHosts(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	dir := t.TempDir()
	ref, refParts, parts := filepath.Join(dir, "own"), filepath.Join(dir, "own parts"), filepath.Join(dir, "parts")
	inParts(t, parts)
	own(t, "train", options{Data: planted, Dir: ref, Workers: 4, Epochs: 3, Embedding: 8})
	own(t, "train", options{Data: parts, Dir: refParts, Workers: 2, Epochs: 3, Embedding: 8})
	for _, c := range []struct {
		name    string
		place   []int
		virtual int
		data    string
		soak    bool
	}{
		{"3 ranks and 1", []int{0, 0, 0, 1}, 1, planted, true},
		{"2 ranks × 2", []int{0, 1}, 2, planted, false},
		{"4 ranks, in turn", []int{0, 1, 0, 1}, 1, planted, false},
		{"3 ranks and 1 on parts", []int{0, 0, 0, 1}, 0, parts, false},
		{"2 ranks on parts", []int{0, 1}, 0, parts, true},
	} {
		if c.soak && !envknob.Soak.On() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			to, want := filepath.Join(dir, c.name), ref
			if c.data == parts {
				want = refParts
			}
			start(t, w, c.place, "train", options{Data: c.data, Dir: to, Virtual: c.virtual, Epochs: 3, Embedding: 8}).wait(t, 0)
			sameRun(t, c.name, want, to)
		})
	}
	t.Run("cooperative batches", func(t *testing.T) {
		want, to := filepath.Join(dir, "own together"), filepath.Join(dir, "together")
		own(t, "train", options{Data: planted, Dir: want, Workers: 3, Epochs: 3, Embedding: 8, Cooperative: true})
		start(t, w, []int{0, 1, 1}, "train", options{Data: planted, Dir: to, Epochs: 3, Embedding: 8, Cooperative: true}).wait(t, 0)
		sameRun(t, "cooperative batches", want, to)
	})
}

// Learned rows that stop being finite end the run on all machines, with an error that names what was not finite. The rank
// that searches for it computes its batch again alone.
func TestEmbeddingsNotFiniteOverHosts(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	s := start(t, w, []int{0, 1, 1}, "train", options{Data: planted, Dir: filepath.Join(t.TempDir(), "run"), Epochs: 3, Embedding: 8, LR: 1e30})
	for r, cell := range s {
		if err := cell.Wait(time.Minute); r == 0 && err == nil || cell.Cmd.ProcessState == nil {
			t.Errorf("rank %d ended with %v: %s", r, err, cell.Out.String())
		}
	}
	if out := s[0].Out.String(); !strings.Contains(out, "numbers stopped being finite at epoch 0") {
		t.Errorf("rank 0 printed %q", out)
	}
}

// inParts writes the planted dataset in four parts, whose nodes are no ranges.
func inParts(t *testing.T, dir string) {
	t.Helper()
	ds, err := gnb.Load(t.Context(), planted)
	if err != nil {
		t.Fatal(err)
	}
	of := make([]int32, ds.Nodes())
	for v := range of {
		of[v] = []int32{0, 1, 2, 3, 1, 1, 2}[v%7]
	}
	if err := divided.Write(t.Context(), dir, ds, of, 4, divided.Options{}); err != nil {
		t.Fatal(err)
	}
}

// A run with learned rows that is interrupted, or one of whose ranks is killed, resumes on another number of machines
// with the bits of an undisturbed run: a checkpoint has all rows, wherever they were. GNB_SOAK tries two more ways.
func TestEmbeddingsResumeOnOtherMachines(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	dir := t.TempDir()
	const epochs = 20
	parts, refs := filepath.Join(dir, "parts"), map[string]string{}
	inParts(t, parts)
	for _, data := range []string{planted, parts} {
		refs[data] = filepath.Join(dir, fmt.Sprint("own ", len(refs)))
		own(t, "train", options{Data: data, Dir: refs[data], Workers: 4, Epochs: epochs, Every: 1000, Embedding: 8})
	}
	for _, c := range []struct {
		name     string
		data     string
		from, to []int
		how      syscall.Signal
		soak     bool
	}{
		{"from two machines to one, interrupted", planted, []int{0, 0, 1, 1}, []int{0, 0}, syscall.SIGTERM, false},
		{"from one machine to two, killed", planted, []int{0, 0}, []int{0, 1, 1, 1}, syscall.SIGKILL, true},
		{"from two machines to two on parts, killed", parts, []int{0, 1}, []int{0, 0, 0, 1}, syscall.SIGKILL, false},
		{"from two machines to one on parts, interrupted", parts, []int{0, 1}, []int{0, 0, 0, 0}, syscall.SIGTERM, true},
	} {
		if c.soak && !envknob.Soak.On() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			to := filepath.Join(dir, c.name)
			o := options{Data: c.data, Dir: to, Epochs: epochs, Every: 3, Embedding: 8, Virtual: 4 / len(c.from)}
			s := start(t, w, c.from, "train", o)
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
				if r, err := runs.Open(to); err == nil {
					if steps, err := r.Steps(); err == nil && len(steps) > 15 {
						break
					}
				}
				if time.Now().After(deadline) {
					t.Fatalf("no steps: %s", s[0].Out.String())
				}
			}
			if err := s[len(s)-1].Cmd.Process.Signal(c.how); err != nil {
				t.Fatal(err)
			}
			for _, cell := range s {
				_ = cell.Wait(time.Minute)
			}
			if state := must(runs.Open(to)).Result.State; state == runs.StateDone {
				t.Fatalf("the run's state is %s", state)
			}
			o.Resume, o.Virtual = to, 4/len(c.to)
			start(t, w, c.to, "train", o).wait(t, 0)
			x, y := must(runs.Open(refs[c.data])), must(runs.Open(to))
			for _, file := range []string{"model.safetensors", "best.safetensors"} {
				if a, b := x.Result.Weights[file], y.Result.Weights[file]; a == "" || a != b {
					t.Errorf("%s is %s, want %s", file, b, a)
				}
			}
		})
	}
}
