//go:build mpi

package mpi

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/collective/commtest"
)

// TestMain runs this process as a rank if the variable MPITEST names a task; mpi_test.go starts
// such ranks.
func TestMain(m *testing.M) {
	what := os.Getenv("MPITEST")
	if what == "" {
		os.Exit(m.Run())
	}
	if err := rankMain(what); err != nil {
		fmt.Printf("failed: %v\n", err)
		os.Exit(1)
	}
}

func rankMain(what string) error {
	e := &engine{}
	rank, world, err := e.Init()
	if err != nil {
		return err
	}
	if err := faults(); err != nil {
		return err
	}
	do := map[string]func(*engine, int) error{
		"conformance": conformance, "pieces": pieces, "large": large, "abort": end, "panic": end, "kill": end, "speed": speed,
	}[what]
	if do == nil {
		return fmt.Errorf("MPITEST is %q", what)
	}
	if err := do(e, world); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d, process %d, %s, %d bytes\n", rank, world, os.Getpid(), e.Name(), e.sent)
	return nil
}

// faults checks that Go's own handling of faults works while MPI is loaded.
func faults() (err error) {
	defer func() {
		if recover() == nil {
			err = errors.New("a nil pointer did not panic")
		}
	}()
	var p *int
	*p++
	return nil
}

func conformance(e *engine, world int) error {
	for root := range world {
		want := bytes.Repeat([]byte{byte(root + 1)}, 5000*root)
		var mine []byte
		if e.rank == root {
			mine = want
		}
		if got, err := e.Broadcast(root, mine); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("a broadcast from %d gave %d bytes, %v", root, len(got), err)
		}
	}
	// A job may number the ranks in another order: here in reverse.
	c, err := e.NewComm(world - 1 - e.rank)
	if err != nil {
		return err
	}
	if c.Rank() != world-1-e.rank || c.Size() != world {
		return fmt.Errorf("rank %d of %d, want %d of %d", c.Rank(), c.Size(), world-1-e.rank, world)
	}
	if err := errors.Join(commtest.Exercise(c), c.Close()); err != nil {
		return err
	}
	if err := e.mismatch(world); err != nil {
		return err
	}
	digest, err := e.digest(world)
	if err != nil {
		return err
	}
	fmt.Printf("digest %x\n", digest)
	if world <= 3 { // the machines then have six ranks in total
		if err := e.machines(commtest.Exercise); err != nil {
			return err
		}
		if err := e.machines(commtest.Aborted); err != nil {
			return err
		}
	}
	// An aborted Comm leaves messages behind, which block no other Comm.
	if c, err = e.NewComm(e.rank); err != nil {
		return err
	}
	if err := errors.Join(commtest.Aborted(c), c.Close()); err != nil {
		return err
	}
	return e.base.Barrier(collective.Site{Kind: "after an abort"})
}

// machines simulates a run in which each process is a machine with one to three ranks, each a
// goroutine. The first ranks of the machines exchange data through MPI.
func (e *engine) machines(f func(collective.Comm) error) error {
	m := collective.Machines{}
	for machine := range e.world {
		m.First = append(m.First, m.World)
		m.World += 1 + machine%3
	}
	l, err := e.NewLink(e.rank, true)
	if err != nil {
		return err
	}
	count := 1 + e.rank%3
	files, err := collective.NewShared(count)
	if err != nil {
		return err
	}
	defer files.Close()
	ended := make(chan error, count)
	for local := range count {
		go func() {
			m := m
			m.Rank = m.First[e.rank] + local
			if local == 0 {
				m.Link = l
			}
			var err error
			if count == 1 {
				m.Local = collective.NewSingle()
			} else if m.Local, err = collective.Open(files.Control, files.Data, local, count); err != nil {
				ended <- err
				return
			}
			c, err := collective.NewMachines(m)
			if err == nil {
				err = f(c)
			}
			if err == nil {
				err = c.Close()
			}
			ended <- err
		}()
	}
	for range count {
		err = errors.Join(err, <-ended)
	}
	return err
}

// mismatch lets the last rank call another collective than the others and checks that every rank
// gets the error. The engine's next Comm works again.
func (e *engine) mismatch(world int) error {
	if world == 1 {
		return nil
	}
	c, err := e.NewComm(e.rank)
	if err != nil {
		return err
	}
	if e.rank == world-1 {
		err = c.Barrier(collective.Site{Kind: "finish", Epoch: -1, Step: -1})
	} else {
		err = c.SumInt64(collective.Site{Kind: "step", Epoch: 1, Step: 7, At: "loop.go:12"}, []int64{1, 2})
	}
	m, ok := errors.AsType[*collective.Mismatch](err)
	if !ok || m.RankA != 0 || m.RankB != world-1 || m.A.At != "loop.go:12" || m.B.Kind != "finish" {
		return fmt.Errorf("rank %d got %w, want a mismatch", e.rank, err)
	}
	return c.Close()
}

// pieces runs the suite with messages that are split into many pieces.
func pieces(e *engine, _ int) error {
	pieceBytes = 1000
	c, err := e.NewComm(e.rank)
	if err != nil {
		return err
	}
	return errors.Join(commtest.Exercise(c), c.Close())
}

// end ends rank 1 in the way that MPITEST names while the other ranks wait for it.
func end(e *engine, _ int) error {
	c, err := e.NewComm(e.rank)
	if err != nil {
		return err
	}
	if e.rank == 1 {
		switch os.Getenv("MPITEST") {
		case "abort":
			e.Abort(3)
		case "panic":
			panic("rank 1 is broken")
		case "kill":
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	return c.Barrier(collective.Site{Kind: "step"})
}

// digest returns the digest of sums of 840 slots, a multiple of every number of ranks up to 8.
func (e *engine) digest(world int) ([]byte, error) {
	const slots, n = 840, 1013
	c, err := e.NewComm(e.rank)
	if err != nil {
		return nil, err
	}
	r, err := c.NewReducer(collective.Site{Kind: "digest"}, n, slots/world)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	for step := range 3 {
		for v := range slots / world {
			slot := r.Slot(v)
			for i := range slot {
				k := e.rank*(slots/world) + v
				slot[i] = float32(k*2654435761%1000003+i*step) / float32(1+(k+i)%97)
			}
		}
		sum, err := r.Reduce(collective.Site{Kind: "digest", Step: step})
		if err != nil {
			return nil, err
		}
		for _, x := range sum {
			fmt.Fprintf(h, "%x ", x)
		}
	}
	return h.Sum(nil), c.Close()
}

// speed prints the times of sums as bench/allreduce.c does: the median and the minimum of 30 sums,
// each timed by its slowest rank.
func speed(e *engine, world int) error {
	c, err := e.NewComm(e.rank)
	if err != nil {
		return err
	}
	at := collective.Site{Kind: "speed"}
	for _, size := range []int{900_000, 20_000_000} {
		r, err := c.NewReducer(at, size/4, 1)
		if err != nil {
			return err
		}
		slot := r.Slot(0)
		for i := range slot {
			slot[i] = float32(i + e.rank)
		}
		var times []int64
		for round := range 35 {
			if err := c.Barrier(at); err != nil {
				return err
			}
			start := time.Now()
			if _, err := r.Reduce(at); err != nil {
				return err
			}
			took := make([]int64, world)
			took[e.rank] = int64(time.Since(start))
			if err := c.SumInt64(at, took); err != nil {
				return err
			}
			if round >= 5 {
				times = append(times, slices.Max(took))
			}
		}
		slices.Sort(times)
		if e.rank == 0 {
			fmt.Printf("%d bytes: median %.3f ms, least %.3f ms\n", size, float64(times[15])/1e6, float64(times[0])/1e6)
		}
	}
	return c.Close()
}

// large sums and publishes more than 2^31 bytes in one message.
func large(e *engine, world int) error {
	c, err := e.NewComm(e.rank)
	if err != nil {
		return err
	}
	const rows, cols = 3 << 15, 3 << 12 // elements of 4 bytes: 4.5 GiB in total
	m, err := c.NewMatrix(collective.Site{Kind: "large"}, rows, cols)
	if err != nil {
		return err
	}
	lo, hi := 0, 0
	if e.rank == 0 {
		hi = rows
	}
	data := m.Data()
	for i := lo * cols; i < hi*cols; i += 4093 {
		data[i] = float32(i%7919) + 1
	}
	if err := m.Publish(collective.Site{Kind: "large", Step: 1}, lo, hi); err != nil {
		return err
	}
	for i := 0; i < rows*cols; i += 4093 {
		if data[i] != float32(i%7919)+1 {
			return fmt.Errorf("element %d is %v", i, data[i])
		}
	}
	return c.Close()
}

func TestNameOf(t *testing.T) {
	for text, want := range map[string]string{
		"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4": "Open MPI 4.1.4",
		"MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7": "MPICH 4.0.2",
		"Intel(R) MPI Library 2021.9 for Linux* OS\n":            "Intel(R) MPI Library 2021.9 for Linux* OS",
	} {
		if got := nameOf(text); got != want {
			t.Errorf("%q: %q, want %q", strings.SplitN(text, "\n", 2)[0], got, want)
		}
	}
}
