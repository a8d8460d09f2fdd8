package multigpu

import (
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/graphnb/graphnb/internal/envknob"
)

const flagName = "gnb.worker"

// exitFailed is the exit status of a worker that fails.
const exitFailed = 1

var (
	handler atomic.Pointer[func(*Process) error]
	entered atomic.Bool

	// worker reports whether this process is a worker. Entering a worker clears the variable, so
	// processes that it starts are not workers.
	worker = envknob.Worker.Get() != "" && argRank() >= 0
)

// Handle sets the function that workers run. Call it once, from an init function. If this process
// is a worker, Handle registers the flag "gnb.worker"; parsing this flag calls h and ends the
// process. At that time every package-level declaration exists and no statement of main has run.
// The exit status is 0, 1 if h failed, or 3 if the launcher has ended.
func Handle(h func(p *Process) error) {
	if !handler.CompareAndSwap(nil, &h) {
		panic("multigpu: Handle is called twice; a program has one handler")
	}
	if !worker {
		return
	}
	flag.Func(flagName, "the rank of this worker process (set by its launcher)", func(s string) error {
		rank, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("multigpu: rank %q is not a number", s)
		}
		enter(rank)
		return nil
	})
}

// EnterIfWorker enters the handler, and never returns, if this process is a worker that has not
// entered it yet, or a rank above 0 of a launcher (see [Launcher]), which then runs one job after
// another until rank 0 ends. On rank 0 of a launcher it begins to wait for the others and returns. A
// program that does not call flag.Parse must call it first in main.
func EnterIfWorker() {
	if worker {
		enter(argRank())
		return
	}
	enterRank()
}

// InWorker reports whether this process was started as a worker, or serves rank 0 of a launcher.
func InWorker() bool { return worker || following.Load() }

// enter runs the handler and ends the process. It works only once, because a handler that parses
// flags parses the worker flag again.
func enter(rank int) {
	if entered.Swap(true) {
		return
	}
	enterWorker(rank)
}

func registered() func(*Process) error {
	if h := handler.Load(); h != nil {
		return *h
	}
	return nil
}

// argRank returns the rank in the first argument, which the launcher sets, or -1.
func argRank() int {
	if len(os.Args) < 2 {
		return -1
	}
	s, ok := strings.CutPrefix(os.Args[1], "-"+flagName+"=")
	if !ok {
		return -1
	}
	rank, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return rank
}

func randomID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	return hex.EncodeToString(b[:])
}
