package recorded

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/internal/testneed"
)

var (
	update = flag.Bool("update", false, "record the digests and the interrupted run")
	gnbAt  = flag.String("gnb", "", "the executable to record or test; default: built from this checkout")
)

// runs holds the arguments of the recorded runs. CORA stands for the converted Cora graph.
var runs = []struct {
	name string
	args []string
}{
	{"karate gcn", []string{"train", "karate", "--dropout", "0.5", "--model", "gcn", "--epochs", "20"}},
	{"planted sage, 1 worker of 4 virtual ranks", []string{"train", "planted?nodes=2000", "--dropout", "0.5", "--epochs", "3", "--batch", "256", "--virtual-ranks", "4"}},
	{"planted sage, 2 workers of 2 virtual ranks", []string{"train", "planted?nodes=2000", "--dropout", "0.5", "--epochs", "3", "--batch", "256", "--workers", "2", "--virtual-ranks", "2"}},
	{"planted sage, 4 workers", []string{"train", "planted?nodes=2000", "--dropout", "0.5", "--epochs", "3", "--batch", "256", "--workers", "4"}},
	{"planted sage, 1 worker", []string{"train", "planted?nodes=2000", "--dropout", "0.5", "--epochs", "3", "--batch", "256", "--norm", "layer", "--residual", "--layers", "3"}},
	{"planted gat", []string{"train", "planted?nodes=2000", "--dropout", "0.5", "--epochs", "2", "--model", "gat", "--heads", "4", "--batch", "512"}},
	{"planted gin, 2 workers", []string{"train", "planted?nodes=2000", "--dropout", "0.5", "--epochs", "2", "--model", "gin", "--norm", "batch", "--workers", "2"}},
	{"Cora gcn", []string{"train", "CORA", "--dropout", "0.5", "--model", "gcn", "--epochs", "10", "--hidden", "16", "--fanout", "full"}},
}

var sweepArgs = []string{"sweep", "planted?nodes=1000", "--dropout", "0.5", "--param", "lr=log:1e-3:1e-1", "--param", "hidden=16,32", "--trials", "4", "--epochs", "2", "--seed", "7"}

// interruptedArgs describe a training that is long enough for the recorder to interrupt it.
var interruptedArgs = []string{"train", "karate", "--dropout", "0.5", "--model", "gcn", "--epochs", "10000", "--checkpoint-every", "20", "--eval-every", "5000"}

// record is the content of testdata/weights.json.
type record struct {
	// Weights holds the digest of the final weights of each run, by the run's name.
	Weights map[string]string `json:"weights"`
	// Trials holds the digests of a sweep's trials, in order.
	Trials []string `json:"trials"`
	// Resumed is the digest of the interrupted run's weights after it was resumed and has ended.
	Resumed string `json:"resumed"`
}

const recordFile = "testdata/weights.json"

// world is a separate directory in which the command runs.
type world struct {
	t        *testing.T
	gnb, dir string
}

func newWorld(t *testing.T) world {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the command and trains ten runs")
	}
	if simd.Best() == simd.Go {
		t.Skip("the digests are those of a processor with AVX2, whose products are rounded otherwise than in plain Go")
	}
	if *gnbAt == "" {
		t.Fatal("no executable") // TestMain builds an executable
	}
	return world{t, *gnbAt, t.TempDir()}
}

// TestMain builds the command, unless -gnb names one or newWorld skips the tests.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if *gnbAt != "" || testing.Short() {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "recorded-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		*gnbAt = filepath.Join(dir, "gnb")
		if out, err := exec.Command("go", "build", "-ldflags=-s", "-o", *gnbAt, "github.com/graphnb/graphnb/gnb/cmd/gnb").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

func (w world) command(ctx context.Context, args []string) *exec.Cmd {
	c := exec.CommandContext(ctx, w.gnb, args...)
	c.Dir = w.dir
	c.Env = append(os.Environ(), "GNB_HOME="+filepath.Join(w.dir, "home"), "GNB_RUNS="+filepath.Join(w.dir, "runs"), "GNB_WORKERS=")
	return c
}

func (w world) run(args ...string) string {
	w.t.Helper()
	out, err := w.command(w.t.Context(), args).CombinedOutput()
	if err != nil {
		w.t.Fatalf("gnb %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// digest returns the digest of a safetensors file's tensors: their names, shapes and elements, but
// not the rest of the header.
func (w world) digest(file string) string {
	w.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(b)
	var header map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &header); err != nil {
		w.t.Fatalf("%s: %v", file, err)
	}
	delete(header, "__metadata__")
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(header)) {
		var tensor struct {
			DType   string
			Shape   []int
			Offsets [2]int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(header[name], &tensor); err != nil {
			w.t.Fatalf("%s: %v", file, err)
		}
		fmt.Fprintln(h, name, tensor.DType, tensor.Shape)
		h.Write(b[8+int64(n):][tensor.Offsets[0]:tensor.Offsets[1]])
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

// train returns the digest of a run's final weights, or "" if the run needs Cora and Cora is
// missing.
func (w world) train(name string, args []string) string {
	w.t.Helper()
	args = slices.Clone(args)
	if i := slices.Index(args, "CORA"); i >= 0 {
		args[i] = filepath.Join(w.dir, "cora")
		w.run("data", "convert", filepath.Dir(testneed.RealData(w.t, "planetoid/ind.cora.graph")), args[i], "--name", "cora")
	}
	dir := filepath.Join(w.dir, strings.NewReplacer(" ", "-", ",", "").Replace(name))
	w.run(append(args, "--run", dir, "--seed", "3", "--threads", "1")...)
	return w.digest(filepath.Join(dir, "model.safetensors"))
}

func readRecord(t *testing.T) record {
	t.Helper()
	b, err := os.ReadFile(recordFile)
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("%s: %v", recordFile, err)
	}
	return r
}

func TestWeightsAreThoseRecorded(t *testing.T) {
	want := readRecord(t)
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			if got := newWorld(t).train(r.name, r.args); got != want.Weights[r.name] {
				t.Errorf("weights have the digest %s, recorded is %s", got, want.Weights[r.name])
			}
		})
	}
}

func (w world) trials() []string {
	w.t.Helper()
	dir := filepath.Join(w.dir, "sweep")
	w.run(append(sweepArgs, "--dir", dir, "--threads", "1")...)
	files, err := filepath.Glob(filepath.Join(dir, "trial-*", "model.safetensors"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("no trial's weights in %s: %v", dir, err)
	}
	var digests []string
	for _, f := range files {
		digests = append(digests, w.digest(f))
	}
	return digests
}

func TestTrialsAreThoseRecorded(t *testing.T) {
	if got, want := newWorld(t).trials(), readRecord(t).Trials; !slices.Equal(got, want) {
		t.Errorf("trials' weights have the digests\n%q, recorded are\n%q", got, want)
	}
}

// resume continues the run of testdata/run to its end.
func (w world) resume() (digest, said string) {
	w.t.Helper()
	dir := filepath.Join(w.dir, "runs", "recorded")
	if err := os.CopyFS(dir, os.DirFS("testdata/run")); err != nil {
		w.t.Fatal(err)
	}
	said = w.run("train", "--resume", dir)
	return w.digest(filepath.Join(dir, "model.safetensors")), said
}

func TestRecordedRunIsReadAndResumed(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	w := newWorld(t)
	dir := filepath.Join(w.dir, "runs", "recorded")
	if err := os.CopyFS(dir, os.DirFS("testdata/run")); err != nil {
		t.Fatal(err)
	}
	if out := w.run("runs", "list"); !strings.Contains(out, "interrupted") || !strings.Contains(out, "karate") {
		t.Errorf("runs list does not show the interrupted run:\n%s", out)
	}
	if out := w.run("runs", "show", dir); !strings.Contains(out, "interrupted") {
		t.Errorf("runs show does not report the run as interrupted:\n%s", out)
	}
	digest, said := newWorld(t).resume()
	if !strings.Contains(said, "checkpoint after step") {
		t.Errorf("the run did not resume from its checkpoint:\n%s", said)
	}
	if want := readRecord(t).Resumed; digest != want {
		t.Errorf("the resumed run's weights have the digest %s, recorded is %s", digest, want)
	}
}

// TestRecord writes testdata with -update.
func TestRecord(t *testing.T) {
	if !*update {
		return
	}
	w := newWorld(t)
	r := record{Weights: map[string]string{}}
	for _, run := range runs {
		r.Weights[run.name] = w.train(run.name, run.args)
	}
	r.Trials = w.trials()

	dir := filepath.Join(w.dir, "interrupted")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := w.command(ctx, append(interruptedArgs, "--run", dir, "--seed", "3", "--threads", "1"))
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	go func() { // interrupts the run at its first checkpoint
		for {
			if files, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*.safetensors")); len(files) > 0 || ctx.Err() != nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	out, err := c.CombinedOutput()
	if err == nil {
		t.Fatalf("the run ended before it was interrupted:\n%s", out)
	}
	if err := os.RemoveAll("testdata/run"); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS("testdata/run", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	var said string
	r.Resumed, said = w.resume()
	t.Log(said)
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordFile, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
