package multigpu

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// exitAlone is the exit status of a worker whose launcher is gone.
const exitAlone = 3

// hello is the first line that a worker reads.
type hello struct {
	World int             `json:"world"`
	RunID string          `json:"run_id"`
	Files []string        `json:"files"`
	Job   json.RawMessage `json:"job"`
}

func init() {
	if worker {
		ignoreInterrupts()
		closeOnExec()
	}
}

// closeOnExec keeps processes started by the program, or by its init functions, from inheriting the
// run's descriptors: such a process would hide the end of this one.
func closeOnExec() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// ignoreInterrupts ignores signals that a terminal sends to the whole process group; the launcher
// handles them. Writing to a launcher that has ended must return an error instead of ending this
// process by SIGPIPE.
func ignoreInterrupts() { signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE) }

// enterWorker runs the worker and ends the process.
func enterWorker(rank int) {
	_ = os.Unsetenv(envknob.Worker.Name) // fails only for invalid names
	go func() {
		// The launcher holds the other end and writes nothing.
		_, _ = io.Copy(io.Discard, os.NewFile(fdLife, "life"))
		os.Exit(exitAlone)
	}()
	if err := work(rank); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
	os.Exit(0)
}

// work runs the handler. It returns an error only if it could not join the run; the handler's
// result is stored in the status page.
func work(rank int) error {
	fail := func(what string, err error) error {
		return fmt.Errorf("multigpu: rank %d: %s: %w", rank, what, err)
	}
	events := os.NewFile(fdEvents, "events")
	var h hello
	line, err := bufio.NewReader(events).ReadBytes('\n')
	if err != nil {
		return fail("reading the job", err)
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return fail("reading the job", err)
	}
	if rank < 0 || rank >= h.World {
		return fail("joining the run", fmt.Errorf("it has %d workers", h.World))
	}
	page, err := mapStatus(os.NewFile(fdStatus, "status"), h.World)
	if err != nil {
		return fail("joining the run", err)
	}
	comm, err := collective.Open(os.NewFile(fdControl, "control"), os.NewFile(fdData, "data"), rank, h.World)
	if err != nil {
		return fail("joining the run", err)
	}
	p := &Process{
		Rank: rank, World: h.World, LocalRank: rank, LocalWorld: h.World, Machines: 1, Threads: runtime.GOMAXPROCS(0), RunID: h.RunID, Comm: comm,
		job: h.Job, page: page, mine: page.rank(rank),
		emit: func(lines []byte) error {
			_, err := events.Write(lines)
			return err
		},
	}
	for i, name := range h.Files {
		p.files = append(p.files, os.NewFile(uintptr(fdFiles+i), name))
	}
	p.SetPosition(-1, -1)
	p.clock = startClock(p.mine)
	p.mine.setState(stateEntered)
	go func() {
		for {
			p.clock.beat()
			time.Sleep(heartbeat)
		}
	}()
	words := p.run(registered())
	p.clock.times()
	if words == nil {
		p.mine.setState(stateDone)
		return nil
	}
	p.mine.say(words.encode())
	os.Exit(exitFailed)
	return nil
}

// mapStatus maps the page for the life of the process.
func mapStatus(f *os.File, world int) (*statusPage, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, pageSize(world), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping the status page: %w", err)
	}
	return &statusPage{mem: mem}, nil
}
