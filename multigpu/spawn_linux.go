package multigpu

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/graphnb/graphnb/internal/envknob"

	"golang.org/x/sys/unix"
)

// Descriptors of a worker, after stdin, stdout and stderr.
const (
	fdLife = iota + 3
	fdEvents
	fdStatus
	fdControl
	fdData
	fdFiles // the first of Spec.Files
)

// spawner starts processes from one thread that never ends: the kernel sends
// Pdeathsig when the thread that started a child ends, and the runtime ends
// threads as it likes.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go spawnForever(work)
	return work
})

func spawnForever(work <-chan func()) {
	runtime.LockOSThread()
	for f := range work {
		f()
	}
}

// child is a worker process, on the launcher's side.
type child struct {
	rank, pid      int
	proc           *os.Process
	events         *os.File // this end of the socket pair
	stdout, stderr *os.File // reading ends
	tail           tail
	readers        sync.WaitGroup
	stderrDone     chan struct{}
	state          *os.ProcessState // set before it is sent to exits
	exited         bool             // supervisor's view
	watch          watch
}

// inherited holds what every worker of a run receives.
type inherited struct {
	null, life, status, control, data *os.File
	files                             []*os.File
	env                               []string
}

// spawn starts one worker. Every descriptor that it makes is close-on-exec, so that no other worker
// inherits it: otherwise the end of a pipe or socket would go unnoticed while a sibling holds its
// other side.
func spawn(rank int, in inherited) (_ *child, err error) {
	c := &child{rank: rank, stderrDone: make(chan struct{})}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close() // our copy of the child's end
		}
		if err != nil {
			c.closeFiles()
			err = fmt.Errorf("multigpu: starting the worker of rank %d: %w", rank, err)
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirEvents := os.NewFile(uintptr(pair[1]), "events")
	theirs = append(theirs, theirEvents)
	if err := unix.SetNonblock(pair[0], true); err != nil { // so that the runtime polls it
		return nil, fmt.Errorf("%w (and %w)", err, unix.Close(pair[0]))
	}
	c.events = os.NewFile(uintptr(pair[0]), "events")
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			theirs = append(theirs, w)
		}
		return r, w, err
	}
	var out, errOut *os.File
	if c.stdout, out, err = pipe(); err != nil {
		return nil, err
	}
	if c.stderr, errOut, err = pipe(); err != nil {
		return nil, err
	}
	files := append([]*os.File{in.null, out, errOut, in.life, theirEvents, in.status, in.control, in.data}, in.files...)
	args := os.Args[1:]
	if argRank() >= 0 {
		args = args[1:] // this launcher is itself a worker
	}
	argv := append([]string{os.Args[0], "-" + flagName + "=" + strconv.Itoa(rank)}, args...)
	c.proc, err = os.StartProcess("/proc/self/exe", argv, &os.ProcAttr{
		Env: in.env, Files: files,
		// Set in the child before exec; the child then checks that its parent is still the process
		// that forked it.
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return nil, err
	}
	c.pid = c.proc.Pid
	return c, nil
}

func (c *child) closeFiles() {
	for _, f := range []*os.File{c.events, c.stdout, c.stderr} {
		if f != nil {
			_ = f.Close() // only read from
		}
	}
}

// environment returns a worker's environment: the launcher's, without the variables meant only for
// the cell's process (only one process may write to GoNB's pipe), plus the run's variables.
func environment(s Spec, group string, threads int) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case envknob.Worker.Name, envknob.RunID.Name, envknob.Group.Name, "GOMAXPROCS":
			return true
		case "GOMEMLIMIT":
			return s.MemLimit > 0
		}
		return strings.HasPrefix(name, "GONB_")
	})
	env = append(env, envknob.Worker.Name+"=1", envknob.RunID.Name+"="+s.RunID, envknob.Group.Name+"="+group,
		"GOMAXPROCS="+strconv.Itoa(threads))
	if s.MemLimit > 0 {
		env = append(env, "GOMEMLIMIT="+strconv.FormatInt(s.MemLimit, 10))
	}
	return env
}

// threadsFor is a worker's share of cpus.
func threadsFor(s Spec, cpus int) int {
	if s.Threads > 0 {
		return s.Threads
	}
	return max(1, cpus/s.World)
}
