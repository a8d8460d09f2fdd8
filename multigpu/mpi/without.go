//go:build !mpi

package mpi

import (
	"errors"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// Library is the name and version of the MPI library that this program was built for, such as
// "Open MPI 4.1.4", or "" without the tag mpi.
func Library() string { return "" }

// Connect starts MPI in this process, which mpirun has started, and returns a Comm of all its ranks; end
// ends MPI. It is for measurements: a run connects by itself. Without the tag mpi it is an error.
func Connect() (c collective.Comm, end func() error, err error) {
	return nil, nil, errors.New(`mpi: this program is built without MPI; build it with ". scripts/mpi-env.sh && go build -tags mpi" in GraphNB's sources, with your library's mpicc on PATH`)
}
