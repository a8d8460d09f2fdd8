//go:build !linux

package collective

import (
	"errors"
	"os"
)

// MaxRanks bounds the ranks of one machine.
const MaxRanks = 1

var errLinuxOnly = errors.New("collective: several ranks over shared memory need Linux (memfd, futex); elsewhere a run has one rank")

// Files are the files over which ranks exchange data; only Linux has them.
type Files struct{ Control, Data *os.File }

// NewShared needs Linux.
func NewShared(int) (*Files, error) { return nil, errLinuxOnly }

// Open needs Linux.
func Open(_, _ *os.File, _, _ int) (Comm, error) { return nil, errLinuxOnly }

// Abort does nothing, because no rank waits.
func (f *Files) Abort(string) {}

// Waiting is always false, because there is only one rank.
func (f *Files) Waiting(int) (Site, bool) { return Site{}, false }

// Close does nothing.
func (f *Files) Close() error { return nil }
