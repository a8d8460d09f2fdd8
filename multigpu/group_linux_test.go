package multigpu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// raceDetector reports whether the test was built with -race: the race detector's runtime prints
// another message when memory runs out.
var raceDetector bool

// before records the process's resources. The returned function lists what has been added since:
// descriptors (which include sockets, pipes and memory files), processes of the run, and files in
// the temporary directory.
func before(t *testing.T) (left func(runID string) []string) {
	t.Helper()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	old := descriptors()
	return func(runID string) (out []string) {
		for _, d := range descriptors() {
			_, what, _ := strings.Cut(d, " ")
			if !slices.Contains(old, d) && !strings.Contains(what, "/proc/") && !strings.Contains(what, "pidfd") {
				out = append(out, "descriptor "+d)
			}
		}
		for _, pid := range processesOf(runID) {
			out = append(out, fmt.Sprintf("process %d", pid))
		}
		files, _ := filepath.Glob(tmp + "/*")
		return append(out, files...)
	}
}

// processesOf returns the processes whose environment has a run's id.
func processesOf(runID string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(env, []byte("GNB_RUN_ID="+runID+"\x00")) && procState(pid) != 'Z' {
			pids = append(pids, pid)
		}
	}
	return pids
}

// record collects the events and lines that the callbacks get.
type record struct {
	mu     sync.Mutex
	events [][]json.RawMessage
	lines  map[string][]string
}

func (r *record) attach(s Spec) Spec {
	r.events, r.lines = make([][]json.RawMessage, s.World), map[string][]string{}
	s.OnEvent = func(rank int, data json.RawMessage) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events[rank] = append(r.events[rank], data)
	}
	s.OnOutput = func(rank int, stream, line string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		key := fmt.Sprint(rank, " ", stream)
		r.lines[key] = append(r.lines[key], line)
	}
	return s
}

func (r *record) count(rank int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events[rank])
}

// run runs a group to its end and checks that it leaves no descriptor, process or file behind.
func run(t *testing.T, s Spec, job testJob) (*record, error) {
	t.Helper()
	left := before(t)
	rec := &record{}
	s.Job = job
	s.RunID = randomID()
	g, err := Start(t.Context(), rec.attach(s))
	if err != nil {
		t.Fatal(err)
	}
	err = g.Wait()
	if l := left(s.RunID); len(l) > 0 {
		t.Errorf("left behind: %q", l)
	}
	return rec, err
}

// concurrently calls play n times in parallel, each time with another run id, and checks that the
// runs leave nothing behind.
func concurrently(t *testing.T, n int, play func(i int, id string)) {
	t.Helper()
	left := before(t)
	ids := make([]string, n)
	var wg sync.WaitGroup
	for i := range ids {
		ids[i] = randomID()
		wg.Go(func() { play(i, ids[i]) })
	}
	wg.Wait()
	for _, id := range ids {
		if l := left(id); len(l) > 0 {
			t.Errorf("left behind: %q", l)
		}
	}
}

func TestEveryCollectiveBetweenProcesses(t *testing.T) {
	testneed.Raced(t, "it starts many workers")
	for _, world := range []int{1, 2, 3, 4} {
		t.Run(fmt.Sprint(world), func(t *testing.T) {
			if testneed.UnderRace() && world != 4 {
				t.Skip("4 ranks have every exchange")
			}
			if _, err := run(t, Spec{World: world}, testJob{Kind: "exercise"}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Every division of 8 into workers × virtual ranks gives the same bits after 200 steps.
func TestDivisionsOfEightAreBitEqual(t *testing.T) {
	var want string
	for _, world := range []int{1, 2, 4, 8} {
		rec, err := run(t, Spec{World: world}, testJob{Kind: "divide", Steps: 200})
		if err != nil {
			t.Fatal(err)
		}
		for rank := range world {
			got := string(rec.events[rank][0])
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("rank %d of %d differs from one worker", rank, world)
			}
		}
	}
}

func TestWorkersGetWhatTheyNeed(t *testing.T) {
	t.Setenv("GONB_PIPE", "/nowhere")
	t.Setenv("GNB_TEST_KEPT", "yes")
	f, err := os.Create(filepath.Join(t.TempDir(), "shared"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("over a descriptor"); err != nil {
		t.Fatal(err)
	}
	ours := descriptors()
	rec, err := run(t, Spec{World: 2, Files: []*os.File{f}, MemLimit: 1 << 30}, testJob{Kind: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		var h helloFacts
		if err := json.Unmarshal(rec.events[rank][0], &h); err != nil {
			t.Fatal(err)
		}
		if h.Rank != rank || h.World != 2 || !h.Worker || h.MemLimit != 1<<30 {
			t.Errorf("rank %d: %+v", rank, h)
		}
		if want := max(1, runtime.GOMAXPROCS(0)/2); h.Procs != want {
			t.Errorf("rank %d: GOMAXPROCS %d, want %d", rank, h.Procs, want)
		}
		if len(h.Files) != 1 || h.Files[0] != f.Name() || h.Contents[0] != "over a descriptor" {
			t.Errorf("rank %d: files %q hold %q", rank, h.Files, h.Contents)
		}
		env := strings.Join(h.Env, "\n")
		if strings.Contains(env, "GONB_") || strings.Contains(env, "GNB_WORKER") || !strings.Contains(env, "GNB_TEST_KEPT=yes") || !strings.Contains(env, "GNB_RUN_ID="+h.RunID) {
			t.Errorf("rank %d: environment %q", rank, h.Env)
		}
		// A worker has stdin, two pipes for its output, the life pipe, its own socket, three memory
		// files and the test's file, and no end of another worker's pipe or socket.
		var pipes, sockets, memory int
		for _, d := range h.Descriptors {
			if slices.Contains(ours, d) {
				continue // this process inherited it and passes it on
			}
			switch {
			case strings.Contains(d, "pipe:"):
				pipes++
			case strings.Contains(d, "socket:"):
				sockets++
			case strings.Contains(d, "memfd:"):
				memory++
			}
		}
		if pipes != 3 || sockets != 1 || memory != 3 {
			t.Errorf("rank %d holds the descriptors %q", rank, h.Descriptors)
		}
	}
}

func TestEnterIfWorker(t *testing.T) {
	t.Setenv(envEnter, "1")
	rec, err := run(t, Spec{World: 2}, testJob{Kind: "hello"})
	if err != nil || rec.count(0) != 1 || rec.count(1) != 1 {
		t.Errorf("%d and %d events, %v", rec.count(0), rec.count(1), err)
	}
}

func TestThreadsAreAShare(t *testing.T) {
	for _, tc := range []struct{ threads, world, cpus, want int }{
		{0, 1, 8, 8}, {0, 3, 8, 2}, {0, 8, 8, 1}, {0, 16, 8, 1}, {5, 16, 8, 5},
	} {
		if got := threadsFor(Spec{World: tc.world, Threads: tc.threads}, tc.cpus); got != tc.want {
			t.Errorf("%d workers on %d processors with Threads %d: %d threads per worker, want %d", tc.world, tc.cpus, tc.threads, got, tc.want)
		}
	}
}

func TestEventsArriveWholeAndInOrder(t *testing.T) {
	const n = 5000
	rec, err := run(t, Spec{World: 2}, testJob{Kind: "events", Steps: n})
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		if len(rec.events[rank]) != n {
			t.Fatalf("rank %d: %d events, want %d", rank, len(rec.events[rank]), n)
		}
		for i, data := range rec.events[rank] {
			var e struct {
				Rank, I int
				Text    string
			}
			if err := json.Unmarshal(data, &e); err != nil || e.Rank != rank || e.I != i || e.Text != strings.Repeat("é\n", i%50) {
				t.Fatalf("rank %d: event %d is %s (%v)", rank, i, data, err)
			}
		}
	}
}

func TestOutputByLine(t *testing.T) {
	rec, err := run(t, Spec{World: 2}, testJob{Kind: "print", Steps: 100})
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		lines := rec.lines[fmt.Sprint(rank, " stdout")]
		if len(lines) != 100 || lines[99] != fmt.Sprintf("rank %d line 99", rank) {
			t.Errorf("rank %d printed %d lines", rank, len(lines))
		}
		errs := rec.lines[fmt.Sprint(rank, " stderr")]
		if len(errs) != 3 || len(errs[0]) != maxLine || errs[1] != "xxxxx" || errs[2] != "no end" {
			t.Errorf("rank %d: stderr arrived in %d lines", rank, len(errs))
		}
	}
}

// A callback that blocks does not block a worker's prints. Lines that are dropped are counted, and
// the reason of the worker's end is kept.
func TestSlowOutput(t *testing.T) {
	const n = 60_000
	var got []string
	release := make(chan struct{})
	g, err := Start(t.Context(), Spec{World: 1, Job: testJob{Kind: "print and die", Steps: n}, OnOutput: func(_ int, _, line string) {
		<-release
		got = append(got, line)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for procState(g.Status()[0].PID) != 0 { // the worker prints all its lines while the callback blocks
		time.Sleep(5 * time.Millisecond)
	}
	close(release)
	err = g.Wait()
	we, ok := errors.AsType[*WorkerError](err)
	if !ok || !strings.HasPrefix(we.Reason, "it ended with status 9") || we.Stderr[len(we.Stderr)-1] != fmt.Sprintf("line %d", n-1) {
		t.Fatalf("got %+v", err)
	}
	lost := 0
	for _, line := range got {
		if rest, ok := strings.CutPrefix(line, "… "); ok {
			k, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			lost += k - 1 // the note itself is one of the lines received
		}
	}
	if len(got)+lost != n || lost == 0 {
		t.Errorf("%d lines arrived and %d are reported as lost, of %d", len(got), lost, n)
	}
}

func TestStagesAddUp(t *testing.T) {
	rec, err := run(t, Spec{World: 1}, testJob{Kind: "stages"})
	if err != nil {
		t.Fatal(err)
	}
	var sum time.Duration
	if err := json.Unmarshal(rec.events[0][0], &sum); err != nil {
		t.Fatal(err)
	}
	if sum < 100*time.Millisecond {
		t.Errorf("20 stages of 3 ms and 20 of 2 ms add up to %v", sum)
	}
}

func TestStatus(t *testing.T) {
	rec := &record{}
	g, err := Start(t.Context(), rec.attach(Spec{World: 2, Job: testJob{Kind: "at step: hang", Rank: 1, Step: 205, Steps: 1000}}))
	if err != nil {
		t.Fatal(err)
	}
	st := g.Status()
	// Rank 1 hangs before the sum of this step; until it has begun the step, rank 0 may wait in the sum of the last one.
	for rec.count(0) < 205 || !st[0].Waiting || st[0].Step != 5 || st[1].Step != 5 {
		time.Sleep(time.Millisecond)
		st = g.Status()
	}
	for rank, want := range []Status{{Stage: "reduce", Waiting: true}, {Stage: "sample"}} {
		s := st[rank]
		if s.Rank != rank || s.Epoch != 2 || s.Step != 5 || s.Stage != want.Stage || s.Waiting != want.Waiting || procState(s.PID) == 0 {
			t.Errorf("rank %d: %+v", rank, s)
		}
		if s.Seconds["sample"] <= 0 || s.Seconds["reduce"] <= 0 {
			t.Errorf("rank %d: seconds %v", rank, s.Seconds)
		}
	}
	if now, peak := g.MemoryPss(), g.PeakPss(); now < 1<<20 || peak < now {
		t.Errorf("memory %d, peak %d", now, peak)
	}
	g.Kill()
	err = g.Wait()
	if i, ok := errors.AsType[*Interrupted](err); !ok || len(i.Forced) != 2 || i.Epoch != 2 || i.Step != 5 {
		t.Errorf("got %v", err)
	}
	if s := g.Status()[1]; s.Stage != "sample" || s.Step != 5 {
		t.Errorf("after the end: %+v", s)
	}
}

// Each kind of failure of one worker is named in the error and ends the whole run.
func TestFailuresAreNamed(t *testing.T) {
	testneed.Raced(t, "it waits for silent workers")
	type failure struct {
		kind   string
		reason string
		more   func(*WorkerError) bool
	}
	cases := []failure{
		{"panic", "panic: runtime error: index out of range [4]", func(e *WorkerError) bool {
			return strings.Contains(e.Stack, "multigpu.misbehave") && slices.Contains(e.Stderr, "a last line")
		}},
		{"panic elsewhere", "panic: in a goroutine of the program", func(e *WorkerError) bool {
			return strings.Contains(e.Stack, "multigpu.misbehave")
		}},
		{"error", "the model has no layers", func(e *WorkerError) bool { return e.Err != nil && e.Err.Error() == e.Reason }},
		{"goexit", "runtime.Goexit", nil},
		{"exit 0", "status 0 before its program returned", nil},
		{"exit 7", "it ended with status 7", func(e *WorkerError) bool { return slices.Contains(e.Stderr, "about to leave") }},
		{"exit 7 after words", "it ended with status 7", func(e *WorkerError) bool { return e.Stack == "" }},
		{"SEGV", "it was ended by the signal SIGSEGV (segmentation violation), which another process sent", nil},
		{"BUS", "it was ended by the signal SIGBUS (bus error), which another process sent", nil},
		{"ABRT", "it was ended by the signal SIGABRT (abort), which another process sent", nil},
		{"QUIT", "it was ended by the signal SIGQUIT (quit), which another process sent", func(e *WorkerError) bool { return strings.Contains(e.Stack, "multigpu.misbehave") }},
		{"ILL", "it was ended by the signal SIGILL (illegal instruction)", nil},
		{"FPE", "it was ended by the signal SIGFPE (floating-point exception)", nil},
		{"memory", "it ran out of memory; use a smaller model", func(e *WorkerError) bool { return strings.Contains(e.Reason, "or fewer workers") }},
		{"kill", "it was killed by signal 9 (killed)", nil},
		{"stop", "stopped it", nil},
		{"break", "rank 0 is at step (loop.go:12, epoch 0, step 30), rank 1 at finish (the end of the program)", func(e *WorkerError) bool {
			m, ok := errors.AsType[*collective.Mismatch](e)
			return ok && m.A.At == "loop.go:12" && m.RankB == 1
		}},
		{"hang", "it has stalled", nil},
	}
	if testing.Short() {
		cases = slices.DeleteFunc(cases, func(tc failure) bool { return tc.kind == "stop" || tc.kind == "hang" })
	}
	if raceDetector {
		cases = slices.DeleteFunc(cases, func(tc failure) bool { return tc.kind == "memory" })
	}
	concurrently(t, len(cases), func(i int, id string) {
		tc := cases[i]
		var shown []string
		s := Spec{
			World: 3, RunID: id, Job: testJob{Kind: "at step: " + tc.kind, Rank: 1, Step: 30, Steps: 100_000},
			OnOutput: func(_ int, _, line string) { shown = append(shown, line) },
		}
		defer func() {
			// Of the Go runtime's output about a failure only the error is shown; the program's own
			// output is shown in full.
			text := strings.Join(shown, "\n")
			if trace := strings.Contains(text, "goroutine ") || strings.Contains(text, "PC="); trace != (tc.kind == "exit 7 after words") {
				t.Errorf("%s: shown was\n%s", tc.kind, text)
			}
		}()
		if tc.kind == "hang" {
			s.Stall = time.Second
		}
		if tc.kind != "stop" {
			s.Silent = time.Minute // a worker on a loaded machine may be silent for seconds
		}
		g, err := Start(t.Context(), s)
		if err != nil {
			t.Errorf("%s: %v", tc.kind, err)
			return
		}
		err = g.Wait()
		e, ok := errors.AsType[*WorkerError](err)
		if !ok {
			t.Errorf("%s: got %v", tc.kind, err)
			return
		}
		late := tc.kind == "stop" && e.Step == 31 // the kernel may stop a process a moment after the signal
		if e.Epoch != 0 || e.Step != 30 && !late || e.PID == 0 || !strings.Contains(e.Reason, tc.reason) {
			t.Errorf("%s: got %+v", tc.kind, e)
		}
		if tc.kind != "break" && (e.Rank != 1 || e.Stage != "sample") {
			t.Errorf("%s: the error names rank %d in stage %s: %v", tc.kind, e.Rank, e.Stage, e)
		}
		if tc.more != nil && !tc.more(e) {
			t.Errorf("%s: got %+v", tc.kind, e)
		}
		cause := CauseProgram
		switch tc.kind {
		case "error", "goexit", "break":
			cause = CauseError
		case "SEGV", "BUS", "ABRT", "QUIT", "ILL", "FPE", "memory", "kill", "stop": // failures caused from outside the program
			cause = CauseLost
		case "hang":
			cause = CauseStalled
		}
		if e.Cause != cause {
			t.Errorf("%s: cause %d, want %d", tc.kind, e.Cause, cause)
		}
		if strings.Contains(e.Error(), "\n") {
			t.Errorf("%s: the error has several lines: %v", tc.kind, e)
		}
	})
}

// Lines that only look like output of the Go runtime are shown if the program continues.
func TestHeldLinesAreShown(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for what is held back")
	}
	lines := make(chan string, 10)
	g, err := Start(t.Context(), Spec{
		World: 1, Job: testJob{Kind: "at step: words", Rank: 0, Step: 0, Steps: 1},
		OnOutput: func(_ int, _, line string) { lines <- line },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"runtime: all is well", "as I said"} {
		select {
		case got := <-lines:
			if got != want {
				t.Errorf("the line shown is %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the line %q is not shown", want)
		}
	}
	g.Kill()
	_ = g.Wait() // it returns the error of the kill
}

// An interrupted run ends in three seconds at the latest, unless it is writing its checkpoint.
func TestInterrupt(t *testing.T) {
	type end struct {
		kind   string
		steps  int
		forced int
	}
	ends := []end{{"train", 1 << 30, 0}, {"deaf", 0, 2}, {"very deaf", 0, 2}, {"save", 5, 0}}
	if testing.Short() {
		ends = ends[:1]
	}
	concurrently(t, len(ends), func(i int, id string) {
		tc := ends[i]
		cause := errors.New("the user pressed stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		g, err := Start(ctx, Spec{World: 2, RunID: id, Job: testJob{Kind: tc.kind, Rank: -1, Steps: tc.steps}})
		if err != nil {
			t.Errorf("%s: %v", tc.kind, err)
			cancel(nil)
			return
		}
		for g.page.rank(0).state() != stateEntered || g.page.rank(1).state() != stateEntered {
			time.Sleep(time.Millisecond)
		}
		cancel(cause)
		err = g.Wait()
		e, ok := errors.AsType[*Interrupted](err)
		if !ok || len(e.Forced) != tc.forced || !errors.Is(err, cause) || e.Err != nil {
			t.Errorf("%s: got %v", tc.kind, err)
		}
	})
}

// A worker's child process that outlives the worker and holds its output is ended with the run, so
// that the run ends. The child inherits no other descriptor of the run.
func TestProcessesOfWorkersAreEnded(t *testing.T) {
	rec, err := run(t, Spec{World: 2}, testJob{Kind: "start a process"})
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		var p startedProcess
		if err := json.Unmarshal(rec.events[rank][0], &p); err != nil {
			t.Fatal(err)
		}
		if st := procState(p.PID); st != 0 && st != 'Z' {
			t.Errorf("process %d of rank %d is in state %c", p.PID, rank, st)
		}
		for _, d := range p.Descriptors {
			n, what, _ := strings.Cut(d, " ")
			if len(n) == 1 && n > "2" && !strings.HasPrefix(what, "/etc/") && !strings.HasPrefix(what, "/usr/") { // descriptors above 2 may be files that the child opened itself
				t.Errorf("the child inherited descriptor %s, %s", n, what)
			}
		}
	}
}

func TestStartRefuses(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		spec Spec
	}{
		"no workers":         {t.Context(), Spec{}},
		"several in process": {t.Context(), Spec{World: 2, InProcess: true}},
		"a job without JSON": {t.Context(), Spec{World: 1, Job: func() {}}},
		"a nil file":         {t.Context(), Spec{World: 1, Files: []*os.File{nil}}},
		"negative threads":   {t.Context(), Spec{World: 1, Threads: -1}},
		"too many":           {t.Context(), Spec{World: collective.MaxRanks + 1}},
		"cancelled":          {cancelled, Spec{World: 1}},
	} {
		if _, err := Start(tc.ctx, tc.spec); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	closed, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	left := before(t)
	id := randomID()
	if _, err := Start(t.Context(), Spec{World: 2, RunID: id, Files: []*os.File{closed}}); err == nil {
		t.Error("starting with a closed file gave no error")
	}
	if l := left(id); len(l) > 0 {
		t.Errorf("left behind: %q", l)
	}
}

// A pause of the whole run (a frozen container, Ctrl-Z) is not taken for the silence of a worker,
// even if the launcher continues before its workers do.
func TestOwnPauseBlamesNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	id := randomID()
	cmd, out := startLauncher(t, Spec{World: 2, RunID: id, Silent: time.Second}, testJob{Kind: "train", Rank: -1, Steps: 500})
	waitFor(t, out, `{"step":20}`)
	workers := processesOf(id)
	if len(workers) != 2 {
		t.Errorf("processes %v have the run's id", workers)
	}
	send := func(sig syscall.Signal, pids ...int) {
		for _, pid := range pids {
			if err := syscall.Kill(pid, sig); err != nil {
				t.Errorf("process %d: %v", pid, err)
			}
		}
	}
	send(syscall.SIGSTOP, workers...)
	time.Sleep(400 * time.Millisecond) // the launcher notices that its workers are late
	send(syscall.SIGSTOP, cmd.Process.Pid)
	time.Sleep(1500 * time.Millisecond)
	send(syscall.SIGCONT, cmd.Process.Pid)
	time.Sleep(300 * time.Millisecond)
	send(syscall.SIGCONT, workers...)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the run failed: %v\n%s", err, out.String())
	}
}

// GNB_IN_PROCESS makes a run of one worker compute in this process, and changes nothing for two workers.
func TestInProcessByEnvironment(t *testing.T) {
	t.Setenv(envknob.InProcess.Name, "1")
	for world, here := range map[int]bool{1: true, 2: false} {
		g, err := Start(t.Context(), Spec{World: world, Job: testJob{Kind: "train", Rank: -1, Steps: 3}})
		if err != nil {
			t.Fatal(err)
		}
		if pid := g.Status()[0].PID; (pid == os.Getpid()) != here {
			t.Errorf("%d workers: the first has the process %d; this one is %d", world, pid, os.Getpid())
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestInProcess(t *testing.T) {
	rec := &record{}
	g, err := Start(t.Context(), rec.attach(Spec{World: 1, InProcess: true, Job: testJob{Kind: "train", Rank: -1, Steps: 50}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if rec.count(0) != 50 {
		t.Errorf("%d events", rec.count(0))
	}
	for kind, want := range map[string]string{"panic": "index out of range", "error": "no layers", "goexit": "Goexit"} {
		g, err := Start(t.Context(), Spec{World: 1, InProcess: true, Job: testJob{Kind: "at step: " + kind, Step: 3, Steps: 50}})
		if err != nil {
			t.Fatal(err)
		}
		e, ok := errors.AsType[*WorkerError](g.Wait())
		if !ok || !strings.Contains(e.Reason, want) || e.Step != 3 || e.Stage != "sample" {
			t.Errorf("%s: got %v", kind, e)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	g, err = Start(ctx, Spec{World: 1, InProcess: true, Job: testJob{Kind: "train", Rank: -1, Steps: 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
