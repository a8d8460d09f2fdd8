//go:build linux

package onranks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The ranks of these tests are processes of the test binary, in which main calls gnb as a user's
// program does.
func TestMain(m *testing.M) {
	runtest.Main(m, map[string]func([]byte) error{
		"train":    trainCell,
		"launches": launchesCell,
		"learn":    learnCell,
	})
}

// options configures a cell.
type options struct {
	Data          string
	Dir           string
	Resume        string
	Workers       int
	Virtual       int
	Epochs, Every int
	Model         string
	LoadBest      bool
	Cooperative   bool
	Embedding     int
	LR            float64
}

// loaded reads a program's options and loads its dataset.
func loaded(ctx context.Context, raw []byte) (o options, ds *gnb.Dataset, err error) {
	if err := json.Unmarshal(raw, &o); err != nil {
		return o, nil, err
	}
	ds, err = gnb.Load(ctx, o.Data)
	return o, ds, err
}

// trainCell is a program that trains once.
func trainCell(raw []byte) error {
	ctx := context.Background()
	o, ds, err := loaded(ctx, raw)
	if err != nil {
		return err
	}
	run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{
		LaunchOptions: gnb.LaunchOptions{
			Workers:         o.Workers,
			VirtualRanks:    o.Virtual,
			CheckpointEvery: o.Every,
			RunDir:          o.Dir,
			Resume:          o.Resume,
			Seed:            3,
			Device:          "cpu",
		},
		OptimizerOptions: gnb.OptimizerOptions{Epochs: o.Epochs, Batch: 256, LR: o.LR},
		ModelOptions:     gnb.ModelOptions{Hidden: 16, Embedding: o.Embedding},
		SamplerOptions:   gnb.SamplerOptions{Digest: o.Every == 0},
		Cooperative:      o.Cooperative,
	}))
	fmt.Println("done", run.Result.Text["digest"])
	return nil
}

// twice loads its best weights again and reports the losses of its steps.
var twice = gnb.Program("onranks.twice", func(w *gnb.Worker, scale float64) error {
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 8, Out: w.Dataset().Classes(), Layers: 2})
	opt := w.Adam(net, 0.01*scale)
	for range w.Epochs(2) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{5, 5}, Batch: 256}) {
			w.Step(b.Loss(net.Forward(b)), opt)
		}
		w.SaveBest(net, -w.EpochLoss())
	}
	w.LoadBest(net)
	w.Result("world", float64(w.World()))
	return nil
})

// launchesCell is a program that launches several runs, one of which fails.
func launchesCell(raw []byte) error {
	ctx := context.Background()
	o, ds, err := loaded(ctx, raw)
	if err != nil {
		return err
	}
	for i := range 3 {
		run, err := gnb.Launch(ctx, twice, 1+float64(i), gnb.LaunchOptions{Data: ds, Workers: o.Workers, RunDir: filepath.Join(o.Dir, fmt.Sprint(i)), Quiet: true, Device: "cpu"})
		if err != nil {
			return err
		}
		fmt.Printf("run %d: %v ranks, loss %v\n", i, run.Value("world"), run.Loss())
	}
	_, err = gnb.Launch(ctx, twice, 1, gnb.LaunchOptions{Data: ds, Workers: 17, RunDir: filepath.Join(o.Dir, "wrong"), Quiet: true, Device: "cpu"})
	fmt.Println("wrong:", err)
	s, err := gnb.Sample(ctx, ds, gnb.SampleOptions{Workers: o.Workers, Quiet: true, Device: "cpu"})
	if err != nil {
		return err
	}
	fmt.Println("digest", s.Digest)
	run, err := runs.Open(filepath.Join(o.Dir, "1"))
	if err != nil {
		return err
	}
	if _, err := gnb.Infer(ctx, run, ds, filepath.Join(o.Dir, "out.npy"), gnb.InferOptions{Workers: o.Workers, Quiet: true, Device: "cpu"}); err != nil {
		return err
	}
	return nil
}

// started holds the ranks of a run.
type started []*runtest.Cell

// hostSetup holds shell commands that a host's ranks run first, in their own mount namespace.
var hostSetup = map[int]string{}

// start starts ranks with torchrun's variables. place[r] is the host of rank r; without hosts all
// ranks are on this machine.
func start(t *testing.T, w *clustertest.Network, place []int, cell string, o any) started {
	t.Helper()
	count, local := map[int]int{}, map[int]int{}
	for _, h := range place {
		count[h]++
	}
	var all started
	id := fmt.Sprint(t.Name(), os.Getpid(), time.Now().UnixNano())
	for r, h := range place {
		var cmd *exec.Cmd
		if w == nil {
			cmd = exec.Command("/proc/self/exe", "-test.run=^$")
			cmd.Env = os.Environ()
		} else {
			cmd = w.Hosts[h].Command(must(os.Executable()), "-test.run=^$")
			if before := hostSetup[h]; before != "" {
				cmd = w.Hosts[h].Command("unshare", "-m", "sh", "-c", before+` && exec "$0" "$@"`, must(os.Executable()), "-test.run=^$")
			}
			cmd.Env = append(cmd.Env, "MASTER_ADDR="+w.Hosts[place[0]].Addr, "MASTER_PORT=29501", "GNB_TOKEN=a secret of these tests")
		}
		cmd.Env = append(cmd.Env, fmt.Sprint("RANK=", r), fmt.Sprint("WORLD_SIZE=", len(place)), fmt.Sprint("LOCAL_RANK=", local[h]), fmt.Sprint("LOCAL_WORLD_SIZE=", count[h]),
			"TORCHELASTIC_RUN_ID="+id, "GNB_LAUNCHER=torchrun")
		local[h]++
		all = append(all, runtest.StartCellBy(t, cmd, cell, t.TempDir(), o))
	}
	return all
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// wait waits until the ranks have ended and checks that they have the given exit status and that
// only rank 0 has printed.
func (s started) wait(t *testing.T, status int) {
	t.Helper()
	for r, c := range s {
		_ = c.Wait(2 * time.Minute)
		if got := c.Cmd.ProcessState.ExitCode(); got != status {
			t.Fatalf("rank %d ended with status %d, want %d: %s\nrank 0: %s", r, got, status, c.Out.String(), s[0].Out.String())
		}
		if r > 0 && c.Out.Len() > 0 {
			t.Errorf("rank %d printed %q", r, c.Out.String())
		}
	}
}

// steps waits until the run in dir has made more than n steps.
func (s started) steps(t *testing.T, dir string, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if r, err := runs.Open(dir); err == nil {
			if steps, err := r.Steps(); err == nil && len(steps) > n {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no steps: %s", s[0].Out.String())
		}
	}
}

const planted = "planted?nodes=3000&classes=4"

// own trains with workers that the program starts itself, as the reference.
func own(t *testing.T, cell string, o any) string {
	t.Helper()
	c := runtest.StartCell(t, cell, t.TempDir(), o)
	if err := c.Wait(2 * time.Minute); err != nil {
		t.Fatalf("%v: %s", err, c.Out.String())
	}
	return c.Out.String()
}

// sameRun checks that two runs have the same weights, digest and losses.
func sameRun(t *testing.T, name, a, b string) {
	t.Helper()
	x, y := must(runs.Open(a)), must(runs.Open(b))
	for _, file := range []string{"model.safetensors", "best.safetensors"} {
		if x.Result.Weights[file] == "" || x.Result.Weights[file] != y.Result.Weights[file] {
			t.Errorf("%s: the weights %s differ", name, file)
		}
	}
	if x.Result.Text["digest"] != y.Result.Text["digest"] {
		t.Errorf("%s: other samples", name)
	}
	p, q := must(x.Steps()), must(y.Steps())
	if len(p) != len(q) || len(p) < 10 {
		t.Fatalf("%s: %d and %d steps", name, len(p), len(q))
	}
	for i := range p {
		if p[i].Loss != q[i].Loss {
			t.Errorf("%s: step %d has different losses, %v and %v", name, i, p[i].Loss, q[i].Loss)
			break
		}
	}
}

func TestRanksTrainAsOwnWorkersDo(t *testing.T) {
	dir := t.TempDir()
	own(t, "train", options{Data: planted, Dir: filepath.Join(dir, "own"), Workers: 4, Epochs: 3})
	s := start(t, nil, []int{0, 0, 0, 0}, "train", options{Data: planted, Dir: filepath.Join(dir, "ranks"), Epochs: 3})
	s.wait(t, 0)
	sameRun(t, "4 ranks", filepath.Join(dir, "own"), filepath.Join(dir, "ranks"))
}

// In this test, the launchers themselves start the ranks.
func TestLaunchersTrainAsOwnWorkersDo(t *testing.T) {
	testneed.NotShort(t, "it trains under three launchers")
	exe := must(os.Executable())
	for name, command := range map[string]func(t *testing.T) *exec.Cmd{
		"mpirun of Open MPI": func(t *testing.T) *exec.Cmd { return clustertest.OpenMPI(t).Run(4, exe, "-test.run=^$") },
		"mpirun of MPICH":    func(t *testing.T) *exec.Cmd { return clustertest.MPICH(t).Run(4, exe, "-test.run=^$") },
		"srun on two nodes": func(t *testing.T) *exec.Cmd {
			return clustertest.Slurm(t).Command("srun", "-N2", "-n4", exe, "-test.run=^$")
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t)
			dir := t.TempDir()
			own(t, "train", options{Data: planted, Dir: filepath.Join(dir, "own"), Workers: 4, Epochs: 3})
			c := runtest.StartCellBy(t, cmd, "train", t.TempDir(), options{Data: planted, Dir: filepath.Join(dir, "ranks"), Epochs: 3})
			if err := c.Wait(2 * time.Minute); err != nil {
				t.Fatalf("%v: %s", err, c.Out.String())
			}
			if n := strings.Count(c.Out.String(), "done "); n < 1 || strings.Count(c.Out.String(), "starting") > 1 {
				t.Errorf("ranks other than 0 have printed, or rank 0 has not: %s", c.Out.String())
			}
			sameRun(t, name, filepath.Join(dir, "own"), filepath.Join(dir, "ranks"))
		})
	}
}

func TestSeveralLaunchesInOneProgram(t *testing.T) {
	testneed.NotShort(t, "it starts several launches")
	dir := t.TempDir()
	text := own(t, "launches", options{Data: planted, Dir: filepath.Join(dir, "own"), Workers: 2})
	s := start(t, nil, []int{0, 0}, "launches", options{Data: planted, Dir: filepath.Join(dir, "ranks")})
	s.wait(t, 0)
	got := s[0].Out.String()
	line := func(text, prefix string) string {
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, prefix) {
				return l
			}
		}
		return ""
	}
	for _, prefix := range []string{"run 0", "run 1", "run 2", "digest"} {
		if a, b := line(text, prefix), line(got, prefix); a == "" || a != b {
			t.Errorf("own workers: %q, ranks: %q", a, b)
		}
	}
	if want := "Workers is 17 and torchrun has started 2 ranks"; !strings.Contains(line(got, "wrong"), want) {
		t.Errorf("%q does not contain %q", line(got, "wrong"), want)
	}
	a, b := must(os.ReadFile(filepath.Join(dir, "own", "out.npy"))), must(os.ReadFile(filepath.Join(dir, "ranks", "out.npy")))
	if string(a) != string(b) {
		t.Error("the inferred outputs differ")
	}
}

// Every split of 8 virtual ranks over hosts gives the bits of workers that the program starts
// itself.
func TestSplitsOverHosts(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	dir := t.TempDir()
	ref := filepath.Join(dir, "own")
	own(t, "train", options{Data: planted, Dir: ref, Workers: 4, Virtual: 2, Epochs: 3})
	for _, c := range []struct {
		name    string
		place   []int
		virtual int
	}{
		{"2 ranks × 4", []int{0, 1}, 4},
		{"4 ranks × 2", []int{0, 0, 1, 1}, 2},
		{"4 ranks × 2, in turn", []int{0, 1, 0, 1}, 2},
		{"8 ranks × 1", []int{0, 0, 0, 0, 1, 1, 1, 1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.place) == 8 && testing.Short() {
				t.Skip("eight processes")
			}
			to := filepath.Join(dir, c.name)
			before, _ := w.Hosts[1].Counters()
			start(t, w, c.place, "train", options{Data: planted, Dir: to, Virtual: c.virtual, Epochs: 3}).wait(t, 0)
			after, _ := w.Hosts[1].Counters()
			t.Logf("host 2 sent %d bytes", after-before)
			sameRun(t, c.name, ref, to)
		})
	}
	t.Run("2 ranks × 4, a link with delay and loss", func(t *testing.T) {
		w := clustertest.HostsOver(t, 2, clustertest.Link{Delay: time.Millisecond, Loss: 0.01, Rate: 1e9, Seed: 1})
		to := filepath.Join(dir, "lossy")
		start(t, w, []int{0, 1}, "train", options{Data: planted, Dir: to, Virtual: 4, Epochs: 3}).wait(t, 0)
		sum := w.Traffic()
		if sum.Lost == 0 {
			t.Errorf("the link lost no packet: %+v", sum)
		}
		t.Logf("%+v", sum)
		sameRun(t, "over the link", ref, to)
	})
}

// Workers on hosts that are connected by a network make cooperative batches with the bits of
// workers that the program starts itself. The data that they exchange travels over the network.
func TestCooperativeOverHosts(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	dir := t.TempDir()
	ref := filepath.Join(dir, "own")
	own(t, "train", options{Data: planted, Dir: ref, Workers: 3, Epochs: 3, Cooperative: true})
	sent := map[bool]int64{}
	for _, cooperative := range []bool{false, true} {
		before, _ := w.Hosts[1].Counters()
		to := filepath.Join(dir, fmt.Sprint("cooperative ", cooperative))
		start(t, w, []int{0, 0, 1}, "train", options{Data: planted, Dir: to, Epochs: 3, Cooperative: cooperative}).wait(t, 0)
		after, _ := w.Hosts[1].Counters()
		if sent[cooperative] = after - before; cooperative {
			sameRun(t, "2 ranks and 1", ref, to)
		}
	}
	t.Log(sent)
	// Rank 2 owns a third of the nodes. For each step's 256 seeds and their neighbours it sends the
	// hidden rows that others need, 64 bytes each, and gets their gradients, in addition to the ids
	// of sources.
	if extra := sent[true] - sent[false]; extra < 500_000 {
		t.Errorf("the second host sent %d bytes with cooperative batches and %d without", sent[true], sent[false])
	}
}

// An interrupted run ends with the status that asks for a restart, and then resumes automatically
// on another number of machines with the same bits. A rank on another machine gets the checkpoint
// from rank 0.
func TestResumeOnOtherMachines(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	dir := t.TempDir()
	ref, to := filepath.Join(dir, "own"), filepath.Join(dir, "ranks")
	const epochs = 30
	own(t, "train", options{Data: planted, Dir: ref, Workers: 4, Epochs: epochs, Every: 1000})
	s := start(t, w, []int{0, 0, 1, 1}, "train", options{Data: planted, Dir: to, Epochs: epochs, Every: 5, Resume: ""})
	s.steps(t, to, 20)
	if err := s[3].Cmd.Process.Signal(syscall.SIGTERM); err != nil { // this rank is on the other machine
		t.Fatal(err)
	}
	s.wait(t, 75)
	if r := must(runs.Open(to)); r.Result.State != runs.StateInterrupted {
		t.Fatalf("the run's state is %s", r.Result.State)
	}
	start(t, w, []int{0, 1}, "train", options{Data: planted, Dir: to, Epochs: epochs, Every: 5, Virtual: 2}).wait(t, 0)
	x, y := must(runs.Open(ref)), must(runs.Open(to))
	if a, b := x.Result.Weights["model.safetensors"], y.Result.Weights["model.safetensors"]; a == "" || a != b {
		t.Errorf("the weights are %s, want %s", b, a)
	}
}

// A run whose rank or whose rank 0 was killed ends, also before its first checkpoint; the same program, started again as
// a launcher does, resumes the run by itself and has the weights of a run to which nothing happened.
func TestFailedRunsResume(t *testing.T) {
	testneed.NotShort(t, "it starts ranks four times")
	dir := t.TempDir()
	ref, to := filepath.Join(dir, "own"), filepath.Join(dir, "ranks")
	const epochs = 40
	own(t, "train", options{Data: planted, Dir: ref, Workers: 2, Epochs: epochs, Every: 1000})
	o := options{Data: planted, Dir: to, Epochs: epochs, Every: 40}
	for _, c := range []struct {
		victim, steps int
		state         string
	}{{1, 2, runs.StateFailed}, {1, 90, runs.StateFailed}, {0, 170, runs.StateKilled}} {
		s := start(t, nil, []int{0, 0}, "train", o)
		s.steps(t, to, c.steps)
		_ = s[c.victim].Cmd.Process.Kill()
		for _, rank := range s {
			if err := rank.Wait(time.Minute); err == nil {
				t.Fatal("a rank ended well though the other one was killed")
			}
		}
		if r := must(runs.Open(to)); r.Result.State != c.state {
			t.Fatalf("the run's state is %s, want %s", r.Result.State, c.state)
		}
	}
	s := start(t, nil, []int{0, 0}, "train", o)
	s.wait(t, 0)
	if text := s[0].Out.String(); !strings.Contains(text, "resuming run") {
		t.Errorf("the run did not resume: %s", text)
	}
	x, y := must(runs.Open(ref)), must(runs.Open(to))
	if a, b := x.Result.Weights["model.safetensors"], y.Result.Weights["model.safetensors"]; a == "" || a != b {
		t.Errorf("the weights are %s, want %s", b, a)
	}
}

// The error names a machine whose dataset differs or is missing.
func TestDatasetsOfMachines(t *testing.T) {
	w := clustertest.Hosts(t, 2)
	dir := t.TempDir()
	for name, spec := range map[string]string{"data": planted + "&seed=1", "other": planted + "&seed=2"} {
		ds := must(gnb.Load(t.Context(), spec))
		if err := dataset.Write(filepath.Join(dir, name), ds); err != nil {
			t.Fatal(err)
		}
		if err := ds.Close(); err != nil {
			t.Fatal(err)
		}
	}
	data, other, empty := filepath.Join(dir, "data"), filepath.Join(dir, "other"), t.TempDir()
	for _, c := range []struct{ name, setup, want string }{
		{"the same", "", ""},
		{"another", "mount --bind " + other + " " + data, "rank 1 (host2) has another dataset in " + data + " than rank 0 (host1)"},
		{"none", "mount --bind " + empty + " " + data, "rank 1 (pid "},
	} {
		t.Run(c.name, func(t *testing.T) {
			hostSetup = map[int]string{1: c.setup}
			defer func() { hostSetup = map[int]string{} }()
			s := start(t, w, []int{0, 1}, "train", options{Data: data, Dir: filepath.Join(t.TempDir(), "run"), Epochs: 1})
			if c.want == "" {
				s.wait(t, 0)
				return
			}
			_ = s[0].Wait(time.Minute)
			_ = s[1].Wait(time.Minute)
			if text := s[0].Out.String(); !strings.Contains(text, c.want) || s[0].Cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("rank 0 ended with %d: %s", s[0].Cmd.ProcessState.ExitCode(), text)
			}
			t.Log(s[0].Out.String())
		})
	}
}
