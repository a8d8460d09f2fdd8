package multigpu

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

func init() { rankMain = runJobs }

// rankResult is what rank 0 prints about a job.
type rankResult struct {
	Events []json.RawMessage
	Err    string
	Forced []int `json:",omitempty"`
	Status int
	Ranks  []Status
	Peak   int64
}

// envLate is the time that a rank waits before it joins the others. envHold names a pipe; the rank
// waits until its other end is closed. envResult names a file for rank 0's results.
const (
	envLate   = "MULTIGPU_TEST_LATE"
	envHold   = "MULTIGPU_TEST_HOLD"
	envResult = "MULTIGPU_TEST_RESULT"
)

// listening is the line that rank 0 prints once it handles signals.
const listening = "rank 0 listens to signals"

// runJobs is the main function of a rank.
func runJobs(spec string) int {
	if late, err := time.ParseDuration(os.Getenv(envLate)); err == nil {
		time.Sleep(late)
	}
	if hold := os.Getenv(envHold); hold != "" {
		_, _ = os.ReadFile(hold)
	}
	EnterIfWorker()
	var jobs []testJob
	if err := json.Unmarshal([]byte(spec), &jobs); err != nil {
		fmt.Println(err)
		return 2
	}
	ctx, stop := Interruptible(context.Background())
	defer stop()
	fmt.Println(listening)
	status := 0
	for _, job := range jobs {
		r, err := rankJobResult(ctx, job)
		out, bad := json.Marshal(r)
		if bad != nil {
			fmt.Println(bad)
			return 2
		}
		fmt.Println(string(out))
		if path := os.Getenv(envResult); path != "" {
			_ = os.WriteFile(path+".new", out, 0o600)
			_ = os.Rename(path+".new", path)
		}
		status = statusOf(err)
	}
	Leave(status)
	return status
}

func rankJobResult(ctx context.Context, job testJob) (r rankResult, err error) {
	place, _ := Launcher()
	s := Spec{World: place.World, Job: job, RunID: "run", Silent: cmp.Or(job.Silent, time.Minute), Stall: cmp.Or(job.Stall, time.Second), OnEvent: func(rank int, data json.RawMessage) {
		r.Events = append(r.Events, data)
		if job.Kind == "announce" || job.Kind == "save" {
			fmt.Println("running", rank)
		}
	}}
	file, err := os.CreateTemp("", "file")
	if err != nil {
		return r, err
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil { // removed at once, because ranks may be killed
		return r, err
	}
	if _, err := file.WriteString("content"); err != nil {
		return r, err
	}
	s.Files = []*os.File{file}
	if job.Bytes == -1 {
		s.World++
	}
	g, err := Start(ctx, s)
	if err == nil {
		err = g.Wait()
		r.Ranks, r.Peak = g.Status(), g.PeakPss()
	}
	if err != nil {
		r.Err = err.Error()
		if i, ok := errors.AsType[*Interrupted](err); ok {
			r.Forced = i.Forced
		}
	}
	r.Status = statusOf(err)
	return r, err
}

func statusOf(err error) int {
	if err == nil {
		return 0
	}
	_, interrupted := errors.AsType[*Interrupted](err)
	return ExitStatus(err, interrupted)
}

// rank is a rank's process that a launcher (here the test) started.
type rank struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr output
	lines  chan string // lines that rank 0 prints
	ended  chan error
}

// output is what a process has printed up to now.
type output struct {
	mu   sync.Mutex
	text []byte
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// startAsRanks starts n processes of the test binary with torchrun's variables and those that more
// returns for each rank.
func startAsRanks(t *testing.T, n int, jobs []testJob, more func(rank int) []string) []*rank {
	t.Helper()
	spec, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	var all []*rank
	for i := range n {
		r := &rank{cmd: exec.Command(os.Args[0]), lines: make(chan string, 100), ended: make(chan error, 1)}
		r.cmd.Env = append(os.Environ(), envRanks+"="+string(spec), fmt.Sprint("RANK=", i), fmt.Sprint("WORLD_SIZE=", n), fmt.Sprint("LOCAL_RANK=", i), fmt.Sprint("LOCAL_WORLD_SIZE=", n),
			"TORCHELASTIC_RUN_ID="+t.Name()+strconv.Itoa(os.Getpid()), "GNB_LAUNCHER=torchrun", "GOMAXPROCS=2")
		if more != nil {
			r.cmd.Env = append(r.cmd.Env, more(i)...)
		}
		r.start(t)
		all = append(all, r)
	}
	return all
}

// start starts the rank's process. The end of the test kills it.
func (r *rank) start(t *testing.T) {
	t.Helper()
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stderr = &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	go func() {
		readLines(io.TeeReader(out, &r.stdout), func(line string) {
			select {
			case r.lines <- line:
			default:
			}
		})
		close(r.lines)
		r.ended <- r.cmd.Wait()
	}()
}

// waitRanks waits until the ranks have ended and returns their exit statuses.
func waitRanks(t *testing.T, all []*rank) (status []int) {
	t.Helper()
	for i, r := range all {
		select {
		case <-r.ended:
		case <-time.After(time.Minute):
			t.Fatalf("rank %d has not ended; its output is %s %s", i, r.stdout.String(), r.stderr.String())
		}
		status = append(status, r.cmd.ProcessState.ExitCode())
	}
	return status
}

// results returns the results that rank 0 printed.
func results(t *testing.T, all []*rank) (out []rankResult) {
	t.Helper()
	for line := range strings.Lines(all[0].stdout.String()) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var r rankResult
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, r)
	}
	for i, r := range all {
		if text := r.stderr.String(); text != "" {
			t.Logf("rank %d: %s", i, text)
		}
		if i > 0 && r.stdout.Len() > 0 {
			t.Errorf("rank %d prints %s", i, r.stdout.String())
		}
	}
	return out
}

func TestRanksOfALauncher(t *testing.T) {
	t.Parallel()
	all := startAsRanks(t, 4, []testJob{
		{Kind: "exercise"}, {Kind: "divide", Steps: 20}, {Kind: "rank facts"}, {Kind: "train", Steps: 150, Rank: -1}, {Kind: "train", Bytes: -1}, {Kind: "events", Steps: 300},
	}, nil)
	if status := waitRanks(t, all); !reflect.DeepEqual(status, []int{0, 0, 0, 0}) {
		t.Errorf("the ranks ended with %v", status)
	}
	got := results(t, all)
	if len(got) != 6 {
		t.Fatalf("%d results: %s %s", len(got), all[0].stdout.String(), all[0].stderr.String())
	}
	for i, r := range got {
		if (r.Err != "") != (i == 4) {
			t.Errorf("job %d: %s", i, r.Err)
		}
	}
	// The bits are those of workers that the program starts itself.
	own := collect(t, 4, testJob{Kind: "divide", Steps: 20})
	for i, e := range got[1].Events {
		if string(e) != own[0] {
			t.Errorf("event %d has other bits than with workers that the program starts itself", i)
		}
	}
	for _, e := range got[2].Events {
		var f rankFacts
		if err := json.Unmarshal(e, &f); err != nil {
			t.Fatal(err)
		}
		if f.World != 4 || f.LocalRank != f.Rank || f.LocalWorld != 4 || f.Machines != 1 || f.Content != "content" || f.RunID != "run" || f.Procs < 1 || f.Worker != (f.Rank > 0) {
			t.Errorf("%+v", f)
		}
	}
	if len(got[2].Events) != 4 || len(got[3].Events) != 150 {
		t.Errorf("%d and %d events", len(got[2].Events), len(got[3].Events))
	}
	if st := got[3].Ranks[3]; st.Epoch != 1 || st.Step != 49 || st.Stage != "finish" || st.PID != all[3].cmd.Process.Pid || st.Seconds["sample"] <= 0 {
		t.Errorf("the last rank was at %+v", st)
	}
	if got[3].Peak <= 0 {
		t.Error("no memory was measured")
	}
	if want := "a run of 5 workers under torchrun, which started 4 ranks"; !strings.Contains(got[4].Err, want) {
		t.Errorf("%q does not contain %q", got[4].Err, want)
	}
	if len(got[5].Events) != 4*300 {
		t.Errorf("%d events of 1200", len(got[5].Events))
	}
}

// Rank 0 measures the silence of the other ranks from the moment when all ranks have met.
func TestLateRank(t *testing.T) {
	testneed.Raced(t, "it waits for a rank that is late")
	t.Parallel()
	all := startAsRanks(t, 3, []testJob{{Kind: "train", Steps: 50, Rank: -1, Silent: 2 * time.Second}}, func(rank int) []string {
		if rank < 2 {
			return nil
		}
		return []string{envLate + "=3s"} // longer than Silent
	})
	status, got := waitRanks(t, all), results(t, all)
	if !reflect.DeepEqual(status, []int{0, 0, 0}) || len(got) != 1 || got[0].Err != "" || len(got[0].Events) != 50 {
		t.Errorf("the ranks ended with %v: %+v", status, got)
	}
}

// collect runs a job with workers that the program starts itself and returns their events.
func collect(t *testing.T, world int, job testJob) (events []string) {
	t.Helper()
	g, err := Start(context.Background(), Spec{World: world, Job: job, OnEvent: func(_ int, data json.RawMessage) { events = append(events, string(data)) }})
	if err == nil {
		err = g.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// The error of a failed rank names it with its host, step and stage, and the failure ends all
// ranks.
func TestFailuresOfRanks(t *testing.T) {
	testneed.Raced(t, "it waits for ranks to be given up")
	host, _ := os.Hostname()
	for _, c := range []struct {
		what  string
		rank  int
		want  string
		again bool // whether another job can run after the failure
	}{
		{"panic", 2, "index out of range", true},
		{"panic", 0, "index out of range", true},
		{"error", 1, "the model has no layers", true},
		{"break", 1, "every rank must make the same collective calls", true},
		{"kill", 3, "ended without a word", false},
		{"exit 7", 1, "ended without a word", false},
		{"stop", 2, "it is silent", false},
		{"hang", 1, "it has stalled", false},
		{"hang", 0, "it has stalled", false},
	} {
		t.Run(fmt.Sprint(c.what, " of rank ", c.rank), func(t *testing.T) {
			t.Parallel()
			job := testJob{Kind: "at step: " + c.what, Steps: 300, Step: 105, Rank: c.rank, Stall: time.Minute}
			switch c.what {
			case "stop":
				job.Silent = 2 * time.Second
			case "hang":
				job.Stall = time.Second
			}
			// On a loaded machine a rank may start a job more than a second after the others.
			all := startAsRanks(t, 4, []testJob{job, {Kind: "divide", Steps: 20, Stall: time.Minute}}, nil)
			if c.what == "stop" {
				t.Cleanup(func() { _ = all[c.rank].cmd.Process.Signal(syscall.SIGCONT) })
				awaitLine(t, all, func(line string) bool { return strings.HasPrefix(line, "{") }) // the result of the first job
				_ = all[c.rank].cmd.Process.Signal(syscall.SIGCONT)
			}
			status := waitRanks(t, all)
			got := results(t, all)
			if len(got) != 2 {
				t.Fatalf("%d results: %s", len(got), all[0].stderr.String())
			}
			if !strings.Contains(got[0].Err, c.want) {
				t.Errorf("the error is %q, want %q", got[0].Err, c.want)
			}
			if c.what != "break" {
				where := fmt.Sprintf("rank %d (pid %d on %s) failed at epoch ", c.rank, all[c.rank].cmd.Process.Pid, host)
				if c.again || c.what == "hang" { // a rank reports its position every 0.1 s, so that of a vanished rank may be older
					where += "1, step 5, stage sample"
				}
				if !strings.Contains(got[0].Err, where) {
					t.Errorf("the error is %q, want %q", got[0].Err, where)
				}
			}
			// The next job needs the stopped rank, which may continue in time.
			if again := got[1].Err == ""; again != c.again && c.what != "stop" {
				t.Errorf("the next run: %q", got[1].Err)
			}
			t.Log(got[0].Err, status)
		})
	}
}

// A signal at any rank interrupts the run on all ranks, and their exit status tells that the run
// can be resumed.
func TestSignalsAtRanks(t *testing.T) {
	for _, c := range []struct {
		rank int
		sig  syscall.Signal
	}{{0, syscall.SIGINT}, {0, syscall.SIGTERM}, {2, syscall.SIGTERM}, {3, syscall.SIGINT}} {
		t.Run(fmt.Sprint(c.sig, " at rank ", c.rank), func(t *testing.T) {
			t.Parallel()
			all := startAsRanks(t, 4, []testJob{{Kind: "announce", Steps: 1e6}}, nil)
			awaitRunning(t, all)
			if err := all[c.rank].cmd.Process.Signal(c.sig); err != nil {
				t.Fatal(err)
			}
			if status := waitRanks(t, all); !reflect.DeepEqual(status, []int{75, 75, 75, 75}) {
				t.Errorf("the ranks ended with %v", status)
			}
			if got := results(t, all); len(got) != 1 || !strings.Contains(got[0].Err, "the run was interrupted") || len(got[0].Forced) > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// awaitRunning waits until rank 0 has heard from every rank that its job runs.
func awaitRunning(t *testing.T, all []*rank) {
	t.Helper()
	heard := map[string]bool{}
	for len(heard) < len(all) {
		select {
		case line, ok := <-all[0].lines:
			if !ok {
				t.Fatalf("rank 0 ended after the ranks %v reported that they run: %s %s", heard, all[0].stdout.String(), all[0].stderr.String())
			}
			if strings.HasPrefix(line, "running ") {
				heard[line] = true
			}
		case <-time.After(time.Minute):
			t.Fatalf("only the ranks %v have reported to rank 0 that they run: %s", heard, all[0].stderr.String())
		}
	}
}

// If rank 0 vanishes, the other ranks end by themselves and their errors name rank 0.
func TestRankZeroVanishes(t *testing.T) {
	testneed.Raced(t, "it waits for rank 0 to be given up")
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			all := startAsRanks(t, 3, []testJob{{Kind: "announce", Steps: 1e6, Silent: 2 * time.Second}}, nil)
			awaitRunning(t, all)
			if err := all[0].cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			want := regexp.MustCompile(`because rank 0 \(\S+\) vanished at .*stage \S+: the connection`)
			if sig == syscall.SIGSTOP {
				want = regexp.MustCompile(`because rank 0 \(\S+\) is silent at .*stage \S+: it has given no sign of life for 2s;`)
			}
			status := waitRanks(t, all[1:])
			for i, r := range all[1:] {
				if text := r.stderr.String(); status[i] != ExitLost || !want.MatchString(text) {
					t.Errorf("rank %d ended with %d: %s", i+1, status[i], text)
				}
			}
			if sig == syscall.SIGKILL {
				waitRanks(t, all[:1])
				return
			}
			// When rank 0 continues, its error names rank 0 itself and not the ranks that have
			// left.
			if err := all[0].cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			waitRanks(t, all[:1])
			if got := results(t, all[:1]); len(got) != 1 || !regexp.MustCompile(`^multigpu: rank 0 \(pid \d+ on \S+\) failed at .*stage \S+: it stood still for \d`).MatchString(got[0].Err) {
				t.Errorf("%+v", got)
			}
		})
	}
}
