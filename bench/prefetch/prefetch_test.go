//go:build linux

package prefetch

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// The network of the hosts.
var link = clustertest.Link{Delay: time.Millisecond, Rate: 1e9}

var (
	rounds = flag.Int("rounds", 3, "turns of all sides; the medians count")
	only   = flag.String("only", "", "name of the one side to measure")
)

// side is a configuration whose runs are compared.
type side struct {
	Name   string
	Method string // of the division into two parts
	Args   []string
}

var sides = []side{
	{"compute-bound", "multilevel", []string{"--fanout", "15,10,5", "--hidden", "256", "--batch", "1024", "--epochs", "3"}},
	{"as long as its rows", "random", []string{"--fanout", "15,10", "--hidden", "128", "--batch", "1024", "--epochs", "4"}},
	{"wire-bound", "random", []string{"--fanout", "15,10", "--hidden", "16", "--batch", "1024", "--epochs", "4"}},
	{"short steps", "multilevel", []string{"--fanout", "10,5", "--hidden", "64", "--batch", "256", "--epochs", "4"}},
}

// record is what the benchmark writes.
type record struct {
	Date    string  `json:"date"`
	CPU     string  `json:"cpu"`
	CPUs    int     `json:"cpus"`
	Load    float64 `json:"load"` // before
	Dataset string  `json:"dataset"`
	Sides   []terms `json:"sides"`
}

// terms are the medians of a side's measurements. Times are of a step.
type terms struct {
	Name      string   `json:"name"`
	Method    string   `json:"method"`
	Args      []string `json:"args"`
	Hosts     float64  `json:"hosts_ms"`       // over two hosts, with prefetch
	Local     float64  `json:"local_ms"`       // two workers with all rows here
	Busy      float64  `json:"local_busy_ms"`  // the same, while another program takes the processors that the forwarder took
	Wire      float64  `json:"wire_ms"`        // the rows' bytes at the measured rate
	Reduce    float64  `json:"allreduce_ms"`   // alone, over the two hosts
	Rows      float64  `json:"rows_mb"`        // of features that a host gets per step
	Rate      float64  `json:"wire_mb_s"`      // in each direction, both at once
	Forwarder float64  `json:"forwarder_cpus"` // processors that the network between the hosts takes of the run's
	Weights   int      `json:"weights"`
	Steps     int      `json:"steps"` // of an epoch
	Turns     int      `json:"turns"`
	// RanksCPU is the processor time of both workers in a step of the run over hosts, and LocalCPU that of the run here. The
	// forwarder's comes in addition.
	RanksCPU float64 `json:"ranks_cpu_ms"`
	LocalCPU float64 `json:"local_cpu_ms"`
	// Ratio is that of hosts_ms less allreduce_ms to the larger of local_busy_ms and wire_ms, and RatioIdle to the
	// larger of local_ms and wire_ms.
	Ratio     float64 `json:"ratio"`
	RatioIdle float64 `json:"ratio_idle"`
	Same      bool    `json:"same_weights"`
}

// BenchmarkPrefetch measures all sides in turn, prints each term, and writes them to GNB_BENCH_PREFETCH_OUT if that is set.
func BenchmarkPrefetch(b *testing.B) {
	for b.Loop() {
		if err := measureAll(b); err != nil {
			b.Fatal(err)
		}
	}
}

func measureAll(b *testing.B) error {
	exe, arxiv, dir := filepath.Join(b.TempDir(), "gnb"), filepath.Join(b.TempDir(), "arxiv"), b.TempDir()
	source := testneed.RealData(b, "ogbn_arxiv/graphsaint")
	commands := []*exec.Cmd{
		exec.Command("go", "build", "-o", exe, "../../gnb/cmd/gnb"),
		exec.Command(exe, "data", "convert", source, arxiv, "--undirected", "--features", "random:128"),
	}
	sides := sides
	if *only != "" {
		sides = slices.DeleteFunc(slices.Clone(sides), func(s side) bool { return s.Name != *only })
	}
	methods := map[string]bool{}
	for _, s := range sides {
		if !methods[s.Method] {
			commands = append(commands, exec.Command(exe, "partition", arxiv, "--method", s.Method, "--parts", "2", "--balance", "train", "--out", filepath.Join(dir, s.Method), "--seed", "3"))
		}
		methods[s.Method] = true
	}
	for _, c := range commands {
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", c.Args, err, out)
		}
	}
	r := record{Date: time.Now().Format(time.DateOnly), CPU: machine.CPUModel(), CPUs: runtime.NumCPU(), Load: load(), Dataset: "arxiv in 2 parts"}
	w := clustertest.HostsOver(b, 2, link)
	for i, h := range w.Hosts {
		for m := range methods {
			at := filepath.Join(h.Disk(), m)
			if err := os.CopyFS(at, os.DirFS(filepath.Join(dir, m))); err != nil {
				return err
			}
			if err := os.RemoveAll(filepath.Join(at, fmt.Sprintf("part-%04d", 1-i))); err != nil {
				return err
			}
		}
	}
	for _, s := range sides {
		t, err := s.measure(b, w, exe, filepath.Join(dir, s.Method))
		if err != nil {
			return err
		}
		r.Sides = append(r.Sides, t)
		text, err := json.MarshalIndent(t, "", " ")
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", text)
		b.ReportMetric(t.Ratio, strings.NewReplacer("-", "_", " ", "_").Replace(t.Name)+"_ratio")
	}
	out := os.Getenv("GNB_BENCH_PREFETCH_OUT")
	if out == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if !filepath.IsAbs(out) {
		out = filepath.Join("..", "..", out)
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

// load is the machine's load average of the last minute.
func load() (x float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(text), &x)
	return x
}

// used is the processor time of the commands that have ended.
func used() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &u) // its arguments are right
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

func (s side) measure(b *testing.B, w *clustertest.Network, exe, dir string) (terms, error) {
	t := terms{Name: s.Name, Method: s.Method, Args: s.Args, Same: true}
	var hosts, local, busy, wire, reduce, forwarder, ranks, cpu []float64
	for round := range *rounds {
		here, err := s.train(b, exec.Command(exe), dir, "--workers", "2")
		if err != nil {
			return t, err
		}
		before, start := w.Traffic().CPU, time.Now()
		over, err := s.train(b, w.Torchrun([]int{1, 1}, exe), filepath.Join(w.Disk(), s.Method), "--prefetch", "4")
		if err != nil {
			return t, err
		}
		forwarder = append(forwarder, (w.Traffic().CPU-before).Seconds()/time.Since(start).Seconds())
		t.Same = t.Same && over.sum == here.sum
		end, err := burn(forwarder[round])
		if err != nil {
			return t, err
		}
		beside, err := s.train(b, exec.Command(exe), dir, "--workers", "2")
		end()
		if err != nil {
			return t, err
		}
		t.Weights, t.Steps = over.weights, over.steps
		t.Rows = float64(over.bytes) / 2 / float64(over.steps*over.epochs) / 1e6
		rate, err := pair(b, w, job{What: "wire", Bytes: 64 << 20})
		if err != nil {
			return t, err
		}
		sum, err := pair(b, w, job{What: "all-reduce", Elements: t.Weights})
		if err != nil {
			return t, err
		}
		hosts, local, busy, wire, reduce = append(hosts, over.ms), append(local, here.ms), append(busy, beside.ms), append(wire, rate), append(reduce, sum)
		ranks, cpu = append(ranks, over.cpu), append(cpu, here.cpu)
		fmt.Printf("%s, turn %d: %.2f ms over hosts, %.2f here, %.2f beside a program; %.1f MB/s, all-reduce %.2f ms\n", s.Name, round+1, over.ms, here.ms, beside.ms, rate, sum)
	}
	t.Hosts, t.Local, t.Busy, t.Rate, t.Reduce, t.Forwarder = median(hosts), median(local), median(busy), median(wire), median(reduce), median(forwarder)
	t.RanksCPU, t.LocalCPU, t.Turns = median(ranks), median(cpu), *rounds
	t.Wire = 1e3 * t.Rows / t.Rate
	t.Ratio, t.RatioIdle = (t.Hosts-t.Reduce)/max(t.Busy, t.Wire), (t.Hosts-t.Reduce)/max(t.Local, t.Wire)
	return t, nil
}

// trained is what a run measured.
type trained struct {
	ms            float64 // of a step, the median of the epochs but the first
	bytes         int64   // of rows that came from elsewhere, over all ranks
	steps, epochs int
	weights       int     // parameters, and the header of their file
	cpu           float64 // ms of all processors for a step, with the run's start
	sum           string  // their file
}

// train trains with a command and its arguments.
func (s side) train(b *testing.B, cmd *exec.Cmd, data string, args ...string) (t trained, err error) {
	run := filepath.Join(b.TempDir(), "run")
	cmd.Args = append(cmd.Args, slices.Concat([]string{"train", data, "--json", "--eval", "none", "--device", "cpu", "--threads", "1", "--seed", "5", "--run", run}, s.Args, args)...)
	var problems strings.Builder
	cmd.Stderr = &problems
	before := used()
	out, err := cmd.Output()
	taken := used() - before
	if err != nil {
		return t, fmt.Errorf("%v: %w: %s%s", cmd.Args, err, out, problems.String())
	}
	var result struct {
		Event   string
		Seconds []float64         `json:"epoch_seconds"`
		Rows    *runs.FeatureRows `json:"rows"`
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil || len(result.Seconds) < 2 {
		return t, fmt.Errorf("%v printed %s: %w", cmd.Args, lines[len(lines)-1], err)
	}
	r, err := runs.Open(run)
	if err != nil {
		return t, err
	}
	t.epochs, t.steps = len(result.Seconds), int(r.Result.Steps)/len(result.Seconds)
	t.ms = 1e3 * median(result.Seconds[1:]) / float64(t.steps)
	t.cpu = 1e3 * taken.Seconds() / float64(t.steps*t.epochs)
	if result.Rows != nil {
		t.bytes = result.Rows.Bytes
	}
	weights, err := os.ReadFile(filepath.Join(run, "model.safetensors"))
	t.weights, t.sum = len(weights)/4, string(weights)
	return t, err
}

// job is what a pair of processes on the two hosts measures.
type job struct {
	What     string
	Bytes    int
	Elements int
	Share    float64
	Rank     int
	Listen   string
}

const jobVariable = "GNB_BENCH_PREFETCH_JOB"

// burn starts a program that takes a share of a processor until end is called.
func burn(share float64) (end func(), err error) {
	text, err := json.Marshal(job{What: "burn", Share: share})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }, cmd.Start()
}

// pair runs a job on both hosts, and returns what rank 0 printed.
func pair(b *testing.B, w *clustertest.Network, j job) (x float64, err error) {
	var wait sync.WaitGroup
	errs := make([]error, 2)
	for r := range 2 {
		j.Rank, j.Listen = r, w.Hosts[0].Addr+":7000"
		text, err := json.Marshal(j)
		if err != nil {
			return 0, err
		}
		cmd := w.Hosts[r].Command(os.Args[0])
		cmd.Env = append(cmd.Env, jobVariable+"="+string(text))
		wait.Go(func() {
			out, err := cmd.CombinedOutput()
			if err == nil && r == 0 {
				_, err = fmt.Sscan(string(out), &x)
			}
			if err != nil {
				errs[r] = fmt.Errorf("%s on host %d: %w: %s", j.What, r, err, out)
			}
		})
	}
	wait.Wait()
	return x, errors.Join(errs...)
}

// TestMain is the process of a pair, if its job is set.
func TestMain(m *testing.M) {
	text := os.Getenv(jobVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (j job) run() error {
	for j.What == "burn" { // in pieces as short as the forwarder's
		const period = 500 * time.Microsecond
		for start := time.Now(); time.Since(start) < time.Duration(j.Share*float64(period)); {
			continue
		}
		time.Sleep(time.Duration((1 - j.Share) * float64(period)))
	}
	conns, err := j.join()
	if err != nil {
		return err
	}
	if j.What == "wire" {
		return j.wire(conns[0])
	}
	m := collective.Machines{Rank: j.Rank, World: 2, First: []int{0, 1}, Local: collective.NewSingle(), Conns: make([]net.Conn, 2), SplitConns: make([]net.Conn, 2)}
	m.Conns[1-j.Rank], m.SplitConns[1-j.Rank] = conns[0], conns[1]
	c, err := collective.NewMachines(m)
	if err != nil {
		return err
	}
	defer c.Close()
	at := collective.Site{Kind: "prefetch"}
	s, err := c.NewReducer(at, j.Elements, 1)
	if err != nil {
		return err
	}
	var ms []float64
	for range 60 {
		if err := c.Barrier(at); err != nil {
			return err
		}
		start := time.Now()
		clear(s.Slot(0))
		if _, err := s.Reduce(at); err != nil {
			return err
		}
		ms = append(ms, 1e3*time.Since(start).Seconds())
	}
	fmt.Println(median(ms[10:]))
	return nil
}

// wire sends bytes in both directions at once, as the exchange of rows does, and prints MB/s of one direction.
func (j job) wire(c net.Conn) error {
	defer c.Close()
	once := func() error {
		sent := make(chan error, 1)
		go func() {
			_, err := c.Write(make([]byte, j.Bytes))
			sent <- err
		}()
		_, err := io.CopyN(io.Discard, c, int64(j.Bytes))
		return errors.Join(err, <-sent)
	}
	if err := once(); err != nil { // until TCP has its rate
		return err
	}
	start := time.Now()
	for range 4 {
		if err := once(); err != nil {
			return err
		}
	}
	fmt.Println(4 * float64(j.Bytes) / time.Since(start).Seconds() / 1e6)
	return nil
}

// join makes two connections between the processes.
func (j job) join() (conns []net.Conn, err error) {
	if j.Rank == 0 {
		l, err := net.Listen("tcp", j.Listen)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		for range 2 {
			c, err := l.Accept()
			if err != nil {
				return nil, err
			}
			conns = append(conns, c)
		}
		return conns, nil
	}
	for start := time.Now(); len(conns) < 2; {
		c, err := net.Dial("tcp", j.Listen)
		switch {
		case err == nil:
			conns = append(conns, c)
		case time.Since(start) > time.Minute:
			return nil, err
		default:
			time.Sleep(10 * time.Millisecond)
		}
	}
	return conns, nil
}
