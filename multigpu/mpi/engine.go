//go:build mpi

package mpi

// #include "messages.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/graphnb/graphnb/multigpu/cluster"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// initLimit bounds the wait for the other ranks in MPI_Init, which a rank that ends before it leaves
// waiting.
const initLimit = 3 * time.Minute

func init() { cluster.Register(&engine{}) }

// engine is MPI, the one of this process.
type engine struct {
	thread      thread
	calls       sync.Mutex   // held in all calls of MPI but the first
	running     atomic.Int32 // links in Run
	crowded     bool         // there are more ranks than processors
	comm        C.MPI_Comm
	rank, world int
	tags        int // the largest tag
	comms       int // made so far, equal on all ranks
	base        collective.Comm
	pinned      []*runtime.Pinner // memory of messages that were left behind
	sent        int64             // bytes of messages
}

// Library is the name and version of the MPI library that this program was built for, such as
// "Open MPI 4.1.4", or "" without the tag mpi.
func Library() string { return library() }

var library = sync.OnceValue(func() string {
	text := make([]byte, C.MPI_MAX_LIBRARY_VERSION_STRING)
	var n C.int
	if C.MPI_Get_library_version((*C.char)(unsafe.Pointer(&text[0])), &n) != C.MPI_SUCCESS {
		return "MPI"
	}
	return nameOf(string(text[:n]))
})

// nameOf shortens the description that an MPI library gives of itself.
func nameOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line, _, _ = strings.Cut(line, ",")
	line = strings.ReplaceAll(line, " v", " ")
	line = strings.ReplaceAll(line, " Version:", "")
	return strings.Join(strings.Fields(line), " ")
}

// Connect starts MPI in this process, which mpirun has started, and returns a Comm of all its ranks; end
// ends MPI. It is for measurements: a run connects by itself. Without the tag mpi it is an error.
func Connect() (c collective.Comm, end func() error, err error) {
	e := &engine{}
	rank, _, err := e.Init()
	if err != nil {
		return nil, nil, err
	}
	if c, err = e.NewComm(rank); err != nil {
		return nil, nil, err
	}
	return c, e.Close, nil
}

func (e *engine) Name() string { return library() }

func (e *engine) Init() (rank, world int, err error) {
	if e.thread != nil {
		return 0, 0, errors.New("mpi: Init is called twice")
	}
	e.thread = newThread()
	started := make(chan error, 1)
	go e.thread.do(func() { started <- e.start() })
	select {
	case err = <-started:
	case <-time.After(initLimit):
		err = fmt.Errorf("mpi: starting %s: MPI_Init_thread has not returned within %v: other ranks have not started, or have ended before it", e.Name(), initLimit)
	}
	if err == nil {
		err = e.launched()
	}
	if err != nil {
		return 0, 0, err
	}
	ranks := make([]int, e.world)
	for r := range ranks {
		ranks[r] = r
	}
	e.base = collective.NewLinked(e.newLink(e.rank, ranks, 0))
	return e.rank, e.world, nil
}

// start runs on MPI's thread.
func (e *engine) start() error {
	var provided, r, w, tags, local C.int
	for _, call := range []struct {
		name string
		f    func() C.int
	}{
		{"MPI_Init_thread", func() C.int { return C.gnb_init(&provided) }},
		{"MPI_Comm_rank", func() C.int { return C.MPI_Comm_rank(C.gnb_world(), &r) }},
		{"MPI_Comm_size", func() C.int { return C.MPI_Comm_size(C.gnb_world(), &w) }},
		{"MPI_Comm_dup", func() C.int { return C.gnb_dup(&e.comm, &tags) }},
		{"MPI_Comm_split_type", func() C.int { return C.gnb_local(&local) }},
	} {
		if rc := call.f(); rc != C.MPI_SUCCESS {
			return fmt.Errorf("mpi: starting %s: %s: %s", e.Name(), call.name, errorText(rc))
		}
	}
	if provided < C.gnb_serialized() {
		return fmt.Errorf("mpi: %s was built without support for threads (MPI_THREAD_SERIALIZED), which a program in Go needs", e.Name())
	}
	e.rank, e.world, e.tags = int(r), int(w), int(tags)
	e.crowded = local > C.gnb_processors()
	return nil
}

// launched checks that the launcher's library is this one: the ranks of another library's mpirun
// each believe that they are alone.
func (e *engine) launched() error {
	for name, launcher := range map[string]string{"OMPI_COMM_WORLD_SIZE": "Open MPI's mpirun", "PMI_SIZE": "MPICH's mpirun, or another one of its kind,"} {
		world := os.Getenv(name)
		if n, err := strconv.Atoi(world); err == nil && n > 1 && e.world == 1 {
			return fmt.Errorf("mpi: %s started %d ranks (%s), but this program was built for %s, which does not see them; start it with the mpirun of %s, or build it with the mpicc of that launcher",
				launcher, n, name, e.Name(), e.Name())
		}
	}
	return nil
}

func (e *engine) Broadcast(root int, b []byte) ([]byte, error) {
	if root < 0 || root >= e.world {
		return nil, fmt.Errorf("mpi: a broadcast: root %d is not a rank of a job of %d", root, e.world)
	}
	if e.rank != root {
		b = nil
	}
	all, err := e.base.AllGather(collective.Site{Kind: "broadcast of MPI's ranks", Epoch: -1, Step: root}, b)
	if err != nil {
		return nil, err
	}
	return all[root], nil
}

// NewComm returns a Comm of all ranks, between which everything travels through MPI, in which this one has the given rank.
// Collective.
func (e *engine) NewComm(rank int) (collective.Comm, error) {
	l, err := e.newJob(rank, e.world)
	if err != nil {
		return nil, err
	}
	return collective.NewLinked(l), nil
}

func (e *engine) NewLink(machine int, first bool) (collective.Link, error) {
	if !first {
		machine = -1
	}
	l, err := e.newJob(machine, -1)
	if l == nil || err != nil {
		return nil, err
	}
	return l, nil
}

// newJob returns the link of those ranks that give it a number from 0, of count numbers; -1 is as many as there are. On a rank
// that gives -1 the link is nil. Collective over all ranks.
func (e *engine) newJob(number, count int) (*link, error) {
	all, err := e.base.AllGather(collective.Site{Kind: "new link", Epoch: -1, Step: e.comms}, []byte(strconv.Itoa(number)))
	if err != nil {
		return nil, err
	}
	e.comms++
	byNumber := map[int]int{}
	for r, text := range all {
		n, err := strconv.Atoi(string(text))
		if err != nil {
			return nil, fmt.Errorf("mpi: a new link: rank %d asks for the number %q", r, text)
		}
		if n < 0 {
			continue
		}
		if other, ok := byNumber[n]; ok {
			return nil, fmt.Errorf("mpi: a new link: ranks %d and %d both ask for number %d", other, r, n)
		}
		byNumber[n] = r
	}
	if count < 0 {
		count = len(byNumber)
	}
	ranks := make([]int, count)
	for n := range ranks {
		r, ok := byNumber[n]
		if !ok {
			return nil, fmt.Errorf("mpi: a new link of %d ranks: no rank asks for number %d", count, n)
		}
		ranks[n] = r
	}
	if tag := 2*e.comms + 1; tag > e.tags {
		return nil, fmt.Errorf("mpi: %s numbers messages up to %d, enough for %d jobs of a process; start the program again", e.Name(), e.tags, e.comms-1)
	}
	if number < 0 {
		return nil, nil
	}
	return e.newLink(number, ranks, 2*e.comms), nil
}

// Abort waits a moment for MPI, which may hang in a call, and then ends this process alone: the
// launcher ends the others.
func (e *engine) Abort(status int) {
	if e.thread != nil {
		aborting := make(chan struct{})
		go func() {
			e.thread.do(func() {
				e.calls.Lock()
				defer e.calls.Unlock()
				C.MPI_Abort(C.gnb_world(), C.int(status))
			})
			close(aborting)
		}()
		select {
		case <-aborting:
		case <-time.After(2 * time.Second):
		}
	}
	os.Exit(status)
}

// finalizeLimit bounds the end of MPI, which may wait for messages that Abort has left behind, or for
// a rank that has ended.
const finalizeLimit = 3 * time.Second

// settleTime lets the last messages of all ranks of MPICH leave before MPI_Finalize. In MPICH 4.0
// over UCX's TCP, MPI_Finalize hangs in half of the programs that call it at once, C programs too;
// in 1 of 12 after a barrier and 10 ms, and in none of 60 after 50 ms or more.
const settleTime = 100 * time.Millisecond

func (e *engine) Close() error {
	if e.thread == nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() {
		var err error
		if e.base != nil {
			if e.world > 1 && strings.HasPrefix(library(), "MPICH") && e.base.Barrier(collective.Site{Kind: "end of MPI", Epoch: -1, Step: -1}) == nil {
				time.Sleep(settleTime)
			}
			err = e.base.Close()
		}
		e.thread.do(func() {
			e.calls.Lock()
			defer e.calls.Unlock()
			if rc := C.MPI_Finalize(); rc != C.MPI_SUCCESS {
				err = errors.Join(err, fmt.Errorf("mpi: ending %s: MPI_Finalize: %s", e.Name(), errorText(rc)))
			}
		})
		e.thread.stop()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(finalizeLimit):
		return fmt.Errorf("mpi: ending %s: MPI_Finalize has not returned within %v, because another rank has ended or messages were left behind", e.Name(), finalizeLimit)
	}
}

func errorText(rc C.int) string {
	text := make([]byte, C.MPI_MAX_ERROR_STRING)
	var n C.int
	if C.MPI_Error_string(rc, (*C.char)(unsafe.Pointer(&text[0])), &n) != C.MPI_SUCCESS {
		return fmt.Sprintf("error %d", int(rc))
	}
	return strings.TrimSpace(string(text[:n]))
}
