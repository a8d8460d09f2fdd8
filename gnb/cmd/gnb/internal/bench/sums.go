package bench

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/mpi"
)

// sumSeconds makes sums of gradients over ranks, each rank a goroutine of this process. It returns the seconds of each of steps
// sums, as rank 0 sees them, over "shm" (one machine) or "tcp" (a machine for each rank).
func sumSeconds(transport string, ranks, elements, warmup, steps int) (_ []float64, err error) {
	open := openSharedRanks
	if transport == "tcp" {
		open = openTCPRanks
	}
	comms, files, err := open(ranks)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	each := make([][]float64, ranks)
	errs := make([]error, ranks)
	var wg sync.WaitGroup
	for rank, c := range comms {
		wg.Go(func() {
			if each[rank], errs[rank] = reduceRank(c, elements, warmup, steps); errs[rank] != nil {
				c.Abort(errs[rank].Error())
			}
		})
	}
	wg.Wait()
	for _, c := range comms {
		errs = append(errs, c.Close())
	}
	return each[0], errors.Join(errs...)
}

// sumSecondsMPI makes the sums among the ranks of mpirun, of which this process is one. It returns the seconds of each sum as this
// rank sees them.
func sumSecondsMPI(elements, warmup, steps int) (rank, world int, each []float64, err error) {
	c, end, err := mpi.Connect()
	if err != nil {
		return 0, 0, nil, err
	}
	rank, world = c.Rank(), c.Size()
	if each, err = reduceRank(c, elements, warmup, steps); err != nil {
		return 0, 0, nil, err
	}
	return rank, world, each, errors.Join(c.Close(), end())
}

// maxTCPRanks bounds the connections of one process: one for each pair of ranks.
const maxTCPRanks = 32

// openSharedRanks makes the ranks of one machine, and the files that they need until they are closed.
func openSharedRanks(ranks int) (comms []collective.Comm, files io.Closer, err error) {
	shared, err := collective.NewShared(ranks)
	if err != nil {
		return nil, nil, err
	}
	for rank := range ranks {
		c, err := collective.Open(shared.Control, shared.Data, rank, ranks)
		if err != nil {
			return nil, nil, errors.Join(err, shared.Close())
		}
		comms = append(comms, c)
	}
	return comms, shared, nil
}

// openTCPRanks makes machines of one rank each, joined over the loopback interface, and the listener
// that joined them.
func openTCPRanks(ranks int) ([]collective.Comm, io.Closer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("opening a port for the ranks: %w", err)
	}
	conns := make([][]net.Conn, ranks)
	for a := range conns {
		conns[a] = make([]net.Conn, ranks)
		for b := range a {
			if conns[a][b], err = net.Dial("tcp", l.Addr().String()); err != nil {
				return nil, nil, fmt.Errorf("connecting the ranks: %w", err)
			}
			if conns[b][a], err = l.Accept(); err != nil {
				return nil, nil, fmt.Errorf("connecting the ranks: %w", err)
			}
		}
	}
	first := make([]int, ranks)
	for r := range first {
		first[r] = r
	}
	var comms []collective.Comm
	for r := range ranks {
		c, err := collective.NewMachines(collective.Machines{Rank: r, World: ranks, First: first, Local: collective.NewSingle(), Conns: conns[r]})
		if err != nil {
			return nil, nil, err
		}
		comms = append(comms, c)
	}
	return comms, l, nil
}

// reduceRank is one rank of the sums; it returns the seconds of each.
func reduceRank(comm collective.Comm, elements, warmup, steps int) (each []float64, err error) {
	site := collective.Site{Kind: "bench"}
	red, err := comm.NewReducer(site, elements, 1)
	if err != nil {
		return nil, err
	}
	defer red.Release()
	for i := range warmup + steps {
		if i < 2 { // a reducer may have two sets of slots
			slot := red.Slot(0)
			for k := range slot {
				slot[k] = float32(comm.Rank())
			}
		}
		start := time.Now()
		if _, err := red.Reduce(site); err != nil {
			return nil, err
		}
		if i >= warmup {
			each = append(each, time.Since(start).Seconds())
		}
	}
	return each, nil
}
