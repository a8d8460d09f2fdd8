package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The test trains on 8 GB of features on disk in a control group of 2 GB, or on 64 MB without a
// control group in the short version. The weights are those of a run that maps the features, even
// after the run is killed in the middle. The test compares an epoch's time with the larger of two
// times: that with mapped features in free memory, and the bytes read divided by the disk's rate.
func TestOutOfCore(t *testing.T) {
	testneed.NotShort(t, "it trains on 64 MB of features")
	nodes, features, limit := 1<<15, 512, int64(0)
	if testneed.Soak.Here() {
		testneed.Root(t)
		nodes, features, limit = 2_000_000, 1024, 2<<30
		if m, err := machine.ReadMemory(); err != nil || m.Free < 10<<30 {
			t.Skipf("it compares with features of 8 GB in memory, and %d bytes are free: %v", m.Free, err)
		}
	}
	if _, err := binary(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/data"
	bigDataset(t, dir, nodes, features)
	enter := ""
	if limit > 0 {
		enter = memoryGroup(t, limit)
	}
	args := func(run, features string, epochs int) []string {
		args := []string{
			"train", dir, "--epochs", strconv.Itoa(epochs), "--batch", "256", "--fanout", "10,5", "--hidden", "32", "--eval", "none", "--device", "cpu", "--checkpoint-every", "10",
			"--features", features, "--seed", "3", "--run", run, "--json",
		}
		if limit == 0 && features == "disk" { // the default cache, a quarter of the free memory, would hold all features
			args = append(args, "--cache", "8MB")
		}
		return args
	}
	mapped := t.TempDir() + "/mapped"
	inMemory := trainIn(t, "", args(mapped, "memory", 3))
	killed := t.TempDir() + "/killed"
	trainUntil(t, enter, args(killed, "disk", 3), killed)
	trainIn(t, enter, []string{"train", "--resume", killed, "--features", "disk", "--json"})
	whole := t.TempDir() + "/whole"
	onDisk := trainIn(t, enter, args(whole, "disk", 3))
	want, err := os.ReadFile(mapped + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]string{"from disk": whole, "from disk, killed and resumed": killed} {
		got, err := os.ReadFile(run + "/model.safetensors")
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the weights differ from those with mapped features: %v", name, err)
		}
	}
	inferBoth(t, enter, dir, mapped, whole)
	r := onDisk.Rows
	t.Logf("mapped: epochs of %.3v s; from disk: epochs of %.3v s", inMemory.Epochs, onDisk.Epochs)
	t.Logf("%d %% of %d rows were in the cache, %d %% in the window", 100*onDisk.Rows.Cached/onDisk.all(), onDisk.all(), 100*onDisk.Rows.Window/onDisk.all())
	t.Logf("%d requests of %d bytes, %.1f MB/s while reading, %.1f MB/s measured by the run", r.Requests, r.Bytes/r.Requests, float64(r.Bytes)/r.Seconds/1e6, r.Limit/1e6)
	if limit > 0 {
		first := trainIn(t, enter, args(t.TempDir()+"/first", "disk", 1)) // measures what fills the cache, to leave it out
		rate := diskRate(t, filepath.Join(dir, "features.npy"), r.Bytes/r.Requests)
		epoch, compute := (onDisk.Epochs[1]+onDisk.Epochs[2])/2, (inMemory.Epochs[1]+inMemory.Epochs[2])/2
		bytes := float64(onDisk.bytes-first.bytes) / 2
		t.Logf("an epoch reads %.1f MB (/proc/PID/io) at a disk's rate of %.1f MB/s: %.2f s; with mapped features it takes %.2f s; the epoch took %.2f s, %.2f times the larger",
			bytes/1e6, rate/1e6, bytes/rate, compute, epoch, epoch/max(bytes/rate, compute))
	}
}

// outOfCore holds the output and results of a run, and the bytes that its processes read.
type outOfCore struct {
	Epochs []float64 `json:"epoch_seconds"`
	Rows   struct {
		Cached, Window, Disk, Bytes, Requests int64
		Seconds, Limit                        float64
	} `json:"rows"`
	bytes int64
}

func (r *outOfCore) all() int64 { return max(1, r.Rows.Cached+r.Rows.Window+r.Rows.Disk) }

// bigDataset writes a dataset and writes its features row by row.
func bigDataset(t *testing.T, dir string, nodes, features int) {
	t.Helper()
	ds, err := datasets.Load(fmt.Sprintf("planted?nodes=%d&degree=5&features=8&classes=8&seed=1", nodes))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	seeds := make([]int32, 10_000)
	for i, v := range r.Perm(ds.Nodes())[:len(seeds)] {
		seeds[i] = int32(v)
	}
	ds.Features = nil
	ds.Splits = map[string][]int32{"train": seeds}
	if err := dataset.Write(dir, ds); err != nil {
		t.Fatal(err)
	}
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", ds.Nodes(), features)
	header += strings.Repeat(" ", 128-10-1-len(header)) + "\n"
	f, err := os.Create(filepath.Join(dir, "features.npy"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprintf(w, "\x93NUMPY\x01\x00%c%c%s", len(header), 0, header)
	noise := make([]float32, 1<<20)
	for i := range noise {
		noise[i] = float32(r.NormFloat64())
	}
	row := make([]float32, features)
	for v := range ds.Nodes() {
		copy(row, noise[r.IntN(len(noise)-features):])
		row[ds.Labels[v]] += 2
		if _, err := w.Write(unsafe.Slice((*byte)(unsafe.Pointer(&row[0])), 4*features)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	dividedtest.Undigested(t, dir, func(m map[string]any) { m["feature_dim"] = features })
}

// memoryGroup creates a control group with a memory limit below the test's own group, and returns
// the file that takes the ids of its processes.
func memoryGroup(t *testing.T, limit int64) string {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	dir, file := "", ""
	if m := regexp.MustCompile(`(?m)^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(.*)$`).FindSubmatch(own); m != nil {
		dir, file = filepath.Join("/sys/fs/cgroup/memory", string(m[1])), "memory.limit_in_bytes"
	} else if m := regexp.MustCompile(`(?m)^0::(.*)$`).FindSubmatch(own); m != nil {
		dir, file = filepath.Join("/sys/fs/cgroup", string(m[1])), "memory.max"
	}
	dir = filepath.Join(dir, fmt.Sprintf("graphnb-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no group of its own: %v", err)
	}
	t.Cleanup(func() {
		for range 100 { // a killed process leaves its group with a delay
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("the group %s has processes or cannot be removed", dir)
	})
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(limit, 10)), 0o600); err != nil {
		t.Skipf("no limit of memory: %v", err)
	}
	return filepath.Join(dir, "cgroup.procs")
}

// startIn starts gnb in the control group whose file of process ids is enter, or without a group if
// enter is empty.
func startIn(t *testing.T, enter string, args []string) (c *exec.Cmd, stdout *bytes.Buffer) {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	c = exec.Command(bin, args...)
	if enter != "" {
		c = exec.Command("sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, enter, bin}, args...)...)
	}
	stdout = &bytes.Buffer{}
	c.Stdout, c.Stderr = stdout, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, stdout
}

// trainIn trains and returns the run's output and the bytes that it read.
func trainIn(t *testing.T, enter string, args []string) *outOfCore {
	t.Helper()
	c, stdout := startIn(t, enter, args)
	read := map[string]int64{}
	ended := make(chan struct{})
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for {
			readBytes(enter, read)
			select {
			case <-ended:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	err := c.Wait()
	close(ended)
	<-counted
	if err != nil {
		t.Fatalf("gnb %s: %v\n%s", strings.Join(args, " "), err, stdout)
	}
	lines := bytes.Split(bytes.TrimSpace(stdout.Bytes()), []byte("\n"))
	r := &outOfCore{}
	if err := json.Unmarshal(lines[len(lines)-1], r); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	for _, n := range read {
		r.bytes += n
	}
	return r
}

// readBytes records the bytes that each process of a group has read from the disk.
func readBytes(enter string, of map[string]int64) {
	ids, err := os.ReadFile(enter)
	if err != nil {
		return
	}
	for _, id := range strings.Fields(string(ids)) {
		text, err := os.ReadFile("/proc/" + id + "/io")
		if m := regexp.MustCompile(`(?m)^read_bytes: (\d+)$`).FindSubmatch(text); err == nil && m != nil {
			of[id], _ = strconv.ParseInt(string(m[1]), 10, 64)
		}
	}
}

// trainUntil trains until the run has its second checkpoint, then kills the run.
func trainUntil(t *testing.T, enter string, args []string, run string) {
	t.Helper()
	c, stdout := startIn(t, enter, args)
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case err := <-ended:
			t.Fatalf("the run ended before it had two checkpoints: %v\n%s", err, stdout)
		case <-time.After(5 * time.Millisecond):
		}
		found, err := filepath.Glob(filepath.Join(run, "checkpoints", "*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) >= 2 {
			break
		}
	}
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// inferBoth computes the outputs of all nodes twice: with mapped features and from disk.
func inferBoth(t *testing.T, enter, dir, mapped, whole string) {
	t.Helper()
	var got [2][]byte
	for i, c := range []struct{ enter, run, features string }{{"", mapped, "memory"}, {enter, whole, "disk"}} {
		out := filepath.Join(t.TempDir(), "out.npy")
		began := time.Now()
		cmd, stdout := startIn(t, c.enter, []string{"infer", dir, "--run", c.run, "--out", out, "--device", "cpu", "--features", c.features, "--json"})
		if err := cmd.Wait(); err != nil {
			t.Fatalf("gnb infer: %v\n%s", err, stdout)
		}
		t.Logf("infer with features in %s: %.1f s", c.features, time.Since(began).Seconds())
		var err error
		if got[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Error("the outputs differ with features on disk")
	}
}

// diskRate measures the rate of the file's disk for O_DIRECT requests of the given size, in bytes
// per second.
func diskRate(t *testing.T, path string, size int64) float64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	best := 0.0
	for _, o := range []plane.DiskOptions{{}, {Pread: true}} {
		r, err := plane.OpenDisk(path, 0, int(info.Size()/512), 512, o)
		if err != nil {
			t.Fatal(err)
		}
		best = max(best, r.Limit(size, 2*time.Second))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return best
}
