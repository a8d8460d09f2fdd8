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

var (
	handler atomic.Pointer[func(*Process) error]
	entered atomic.Bool

	// worker is decided when the process starts: what a worker starts itself is
	// none, since entering clears the variable.
	worker = envknob.Worker.Get() != "" && argRank() >= 0
)

// Handle makes h what workers run. It is called once, from an init function:
// when this process is a worker it registers the flag "gnb.worker", whose
// parsing calls h and ends the process, so that every package-level declaration
// exists and no statement of main has run. The exit status is 0, or 1 where h
// failed; 3 says that the launcher is gone.
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

// EnterIfWorker enters the handler where this process is a worker that has not
// yet, and then never returns. A program that does not call flag.Parse calls it
// first in main.
func EnterIfWorker() {
	if worker {
		enter(argRank())
	}
}

// InWorker says whether this process was started as a worker.
func InWorker() bool { return worker }

// enter runs the handler and ends the process, once: a handler that parses
// flags itself meets the flag again.
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

// argRank is the rank in the first argument, where the launcher puts it, or -1.
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
