package multigpu

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/collective/commtest"
)

// The test binary is also the worker of these tests: package testing parses the flags before the
// first test. The test binary also serves as a launcher that a test kills; see launcher.
func TestMain(m *testing.M) {
	if spec := os.Getenv(envRanks); spec != "" {
		os.Exit(rankMain(spec))
	}
	if os.Getenv(envEnter) != "" {
		EnterIfWorker() // needed by a program that parses no flags
	}
	if spec := os.Getenv(envLauncher); spec != "" {
		flag.Parse()
		os.Exit(launcher(spec))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/graphnb/graphnb/multigpu.spawnForever"))
}

func init() { Handle(testWorker) }

// testJob describes what a worker of the tests does.
type testJob struct {
	Kind  string // a case of testWorker
	Rank  int    // the rank that fails
	Step  int    // the step at which the rank fails
	Steps int
	Bytes int
	Dir   string

	Silent time.Duration // for runs on ranks; 0 stands for a time that suffices for a rank on a loaded machine
	Stall  time.Duration // likewise; 0 is a second
}

func testWorker(p *Process) error {
	var job testJob
	if err := p.Job(&job); err != nil {
		return err
	}
	if job.Kind == "train" || strings.HasPrefix(job.Kind, "at step: ") {
		return trainJob(p, job)
	}
	return oddJob(p, job)
}

// trainJob has the form of a training run: one sum over all ranks per step.
func trainJob(p *Process, job testJob) error {
	what, _ := strings.CutPrefix(job.Kind, "at step: ")
	for step := range job.Steps {
		p.SetPosition(step/100, step%100)
		p.Stage("sample")
		if p.Rank == job.Rank && step == job.Step {
			if what == "break" {
				break
			}
			if err := misbehave(p, what); err != nil {
				return err
			}
		}
		time.Sleep(time.Millisecond)
		p.Stage("reduce")
		v := []int64{int64(p.Rank)}
		if p.StopRequested() {
			v[0] -= 1000
		}
		if err := p.Comm.SumInt64(collective.Site{Kind: "step", Epoch: step / 100, Step: step % 100, At: "loop.go:12"}, v); err != nil {
			return err
		}
		if v[0] < 0 {
			return nil
		}
		if p.Rank == 0 {
			if err := p.Emit(map[string]any{"step": step}); err != nil {
				return err
			}
		}
	}
	return nil
}

func misbehave(p *Process, what string) error {
	switch what {
	case "panic":
		fmt.Fprintln(os.Stderr, "a last line")
		var none []int
		_ = none[p.Rank+3]
	case "panic elsewhere":
		go func() { panic("in a goroutine of the program") }()
		time.Sleep(time.Minute)
	case "error":
		return errors.New("the model has no layers")
	case "goexit":
		runtime.Goexit()
	case "exit 0":
		os.Exit(0)
	case "exit 7":
		fmt.Fprintln(os.Stderr, "about to leave")
		os.Exit(7)
	case "exit 7 after words": // the text looks like the runtime's
		fmt.Fprintln(os.Stderr, "panic: not really")
		fmt.Fprintln(os.Stderr, "goroutine 1 [fun]:")
		os.Exit(7)
	case "words": // the text looks like the runtime's, but the program continues
		fmt.Fprintln(os.Stderr, "runtime: all is well")
		time.Sleep(holdFor + 500*time.Millisecond)
		fmt.Fprintln(os.Stderr, "as I said")
		time.Sleep(time.Minute)
	case "SEGV", "BUS", "ABRT", "QUIT", "ILL", "FPE":
		_ = syscall.Kill(os.Getpid(), map[string]syscall.Signal{
			"SEGV": syscall.SIGSEGV, "BUS": syscall.SIGBUS, "ABRT": syscall.SIGABRT, "QUIT": syscall.SIGQUIT, "ILL": syscall.SIGILL, "FPE": syscall.SIGFPE,
		}[what])
		time.Sleep(time.Minute)
	case "memory":
		x := make([]byte, 1<<43)
		for i := range x {
			x[i] = 1
		}
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "hang":
		time.Sleep(time.Minute)
	}
	return nil
}

// oddJob runs every job except training.
func oddJob(p *Process, job testJob) error {
	switch job.Kind {
	case "exercise":
		return commtest.Exercise(p.Comm)
	case "divide":
		return divide(p, job)
	case "measure":
		return measure(p, job)
	case "hello":
		return p.Emit(helloEvent(p))
	case "events":
		for i := range job.Steps {
			if err := p.Emit(map[string]any{"rank": p.Rank, "i": i, "text": strings.Repeat("é\n", i%50)}); err != nil {
				return err
			}
		}
	case "print":
		for i := range job.Steps {
			fmt.Printf("rank %d line %d\n", p.Rank, i)
		}
		fmt.Fprint(os.Stderr, strings.Repeat("x", maxLine+5), "\nno end")
	case "print and die":
		for i := range job.Steps {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		os.Exit(9)
	case "rank facts":
		f := rankFacts{p.Rank, p.World, p.LocalRank, p.LocalWorld, p.Machine, p.Machines, runtime.GOMAXPROCS(0), p.RunID, "", InWorker(), launcherRank()}
		b := make([]byte, 100)
		n, _ := p.Files()[0].ReadAt(b, 0)
		f.Content = string(b[:n])
		return p.Emit(f)
	case "announce":
		if err := p.Emit("running"); err != nil {
			return err
		}
		job.Rank = -1
		return trainJob(p, job)
	case "deaf": // never checks whether it should stop
		time.Sleep(time.Minute)
	case "save": // takes Steps seconds to save once the run is told to stop
		if err := p.Emit("running"); err != nil {
			return err
		}
		for !p.StopRequested() {
			time.Sleep(10 * time.Millisecond)
		}
		if p.Rank == 0 {
			p.Stage(stageCheckpoint)
		}
		time.Sleep(time.Duration(job.Steps) * time.Second)
		p.Stage("program")
		time.Sleep(400 * time.Millisecond) // what it does after the checkpoint
	case "very deaf":
		signal.Ignore(syscall.SIGTERM)
		for {
			time.Sleep(time.Minute)
		}
	case "start a process": // the process outlives the worker and holds its output
		cmd := exec.Command("sleep", "1000")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		return p.Emit(startedProcess{cmd.Process.Pid, descriptorsOf(cmd.Process.Pid)})
	case "stages":
		for range 20 {
			p.Stage("a")
			time.Sleep(3 * time.Millisecond)
			p.Stage("b")
			time.Sleep(2 * time.Millisecond)
		}
		sum := time.Duration(0)
		for _, d := range p.StageTimes() {
			sum += d
		}
		return p.Emit(sum)
	default:
		return fmt.Errorf("no job %q", job.Kind)
	}
	return nil
}

// divide reduces 8 slots, divided among all ranks, and sends the bits of the sum.
func divide(p *Process, job testJob) error {
	const n, slots = 1003, 8
	virtual := slots / p.World
	at := func(step int) collective.Site {
		return collective.Site{Kind: "step", Step: step, At: "divide.go:1"}
	}
	r, err := p.Comm.NewReducer(at(0), n, virtual)
	if err != nil {
		return err
	}
	w := make([]float32, n)
	for step := range job.Steps {
		for v := range virtual {
			slot, id := r.Slot(v), p.Rank*virtual+v
			for i := range slot {
				slot[i] = (w[i] + 1) / float32(3+id+i%17+step)
			}
		}
		sum, err := r.Reduce(at(step))
		if err != nil {
			return err
		}
		for i := range w {
			w[i] = w[i]*0.9 + sum[i]
		}
	}
	return p.Emit(w)
}

type helloFacts struct {
	Rank, World, Procs int
	MemLimit           int64
	RunID              string
	Env                []string
	Descriptors        []string
	Files              []string
	Contents           []string
	Worker             bool
}

func helloEvent(p *Process) helloFacts {
	flag.Parse() // parses the worker's flag again, which must not enter the worker again
	f := helloFacts{
		Rank: p.Rank, World: p.World, Procs: runtime.GOMAXPROCS(0), RunID: p.RunID, Env: os.Environ(),
		MemLimit: debug.SetMemoryLimit(-1), Worker: InWorker(), Descriptors: descriptors(),
	}
	for _, file := range p.Files() {
		b := make([]byte, 100)
		n, _ := file.ReadAt(b, 0)
		f.Files, f.Contents = append(f.Files, file.Name()), append(f.Contents, string(b[:n]))
	}
	return f
}

// rankFacts is what a rank knows about itself.
type rankFacts struct {
	Rank, World, LocalRank, LocalWorld, Machine, Machines, Procs int
	RunID, Content                                               string
	Worker                                                       bool
	Launcher                                                     int // the rank's number under the launcher
}

func launcherRank() int {
	n, _ := strconv.Atoi(os.Getenv("RANK"))
	return n
}

type startedProcess struct {
	PID         int
	Descriptors []string
}

// descriptors returns the process's open descriptors, each as its number and its target.
func descriptors() []string { return descriptorsOf(os.Getpid()) }

func descriptorsOf(pid int) (out []string) {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if to, err := os.Readlink(dir + e.Name()); err == nil {
			out = append(out, e.Name()+" "+to)
		}
	}
	return out
}

// rankMain is the main function of a rank under a launcher; it is set on Linux only.
var rankMain func(spec string) int

const (
	// envRanks makes this test binary a rank of a launcher: rank 0 runs the jobs in it one after
	// another, and prints the result of each.
	envRanks    = "MULTIGPU_TEST_RANKS"
	envLauncher = "MULTIGPU_TEST_LAUNCHER"
	envEnter    = "MULTIGPU_TEST_ENTER"
)

// launcher runs a group in its own process, for tests that kill it.
func launcher(spec string) int {
	var s struct {
		Spec Spec
		Job  testJob
	}
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		fmt.Println(err)
		return 2
	}
	s.Spec.Job = s.Job
	// Lines of workers come through the callbacks; a worker never writes to this process's stdout
	// directly.
	s.Spec.OnOutput = func(_ int, _, line string) { fmt.Println(line) }
	s.Spec.OnEvent = func(_ int, data json.RawMessage) { fmt.Println(string(data)) }
	g, err := Start(context.Background(), s.Spec)
	if err == nil {
		err = g.Wait()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}
