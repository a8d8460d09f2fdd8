package cluster

import (
	"fmt"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// Engine is a library that connects the ranks of a launcher on several machines, such as MPI. Package
// [github.com/graphnb/graphnb/multigpu/mpi] has one.
//
// Only one goroutine at a time calls its methods, except Abort, which any may call.
type Engine interface {
	// Name is the library's name and version, such as "Open MPI 4.1.4".
	Name() string

	// Init starts the library, once in a process, and only in ranks that a launcher of MPI has
	// started. It returns the launcher's numbers.
	Init() (rank, world int, err error)

	// Broadcast returns root's b on every rank. Collective. The ranks exchange the address and the
	// token of their rendezvous by it.
	Broadcast(root int, b []byte) ([]byte, error)

	// NewLink returns a link between the first ranks of the machines, by machine, on these ranks, and nil on the
	// others. Collective over all ranks; if they are on several machines, every rank calls it once in each job.
	NewLink(machine int, first bool) (collective.Link, error)

	// Abort ends the processes of all ranks with an exit status, through the launcher.
	Abort(status int)

	// Close ends the library, before the process ends. Collective.
	Close() error
}

var engine Engine

// Register sets the engine of the ranks that Open MPI or MPICH start. Call it from an init
// function, in at most one package of a program.
func Register(e Engine) {
	if engine != nil {
		panic(fmt.Sprintf("cluster: Register is called for %s and for %s; a program has one engine", engine.Name(), e.Name()))
	}
	engine = e
}

// engine is the engine that connects the ranks, nil for this package's own connections.
func (p *Place) engine() Engine {
	if p.Launcher == OpenMPI || p.Launcher == MPICH {
		return engine
	}
	return nil
}

// Engine is the name and version of the registered library that connects the ranks, such as
// "Open MPI 4.1.4", or "" if they use shared memory, as those of one machine do, or network
// connections.
func (p *Place) Engine() string {
	if e := p.engine(); e != nil && !p.OneNode() {
		return e.Name()
	}
	return ""
}
