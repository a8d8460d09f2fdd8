package divided

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
)

// ErrNotNamed is the error of a dataset that names servers of its own accord. A program shows its token to the servers of
// an address, and trusts the certificate that the address names; so an address comes from the user, never from data.
var ErrNotNamed = errors.New("only servers that the user names are asked")

// namedServers are the addresses that this program's user has named.
var namedServers sync.Map

// NameServers says that the user has named the address of servers: in a call, in an option, or to the process that
// started this one.
func NameServers(address string) { namedServers.Store(address, true) }

// CheckServers returns an error that matches [ErrNotNamed] if the parts of a dataset are at servers that the user has not
// named: the dataset then comes from somebody else. A dataset that a program of this user copied from servers that the
// user named ([registry.Served]) is the user's own.
func CheckServers(ds *dataset.Dataset) error {
	if !IsFar(ds) {
		return nil
	}
	address := ds.Meta.Parts.Servers
	if _, ok := namedServers.Load(address); ok || isServed(ds.Dir()) {
		return nil
	}
	hosts, _, _ := strings.Cut(address, "?")
	return fmt.Errorf("divided: the metadata of %s names the servers %q, and %w, because a token and a certificate belong to them; load the address itself (gnb.Load, gnb train grpcs://HOST:PORT) if the servers are yours",
		ds.Dir(), hosts, ErrNotNamed)
}

// isServed reports whether a dataset's directory is one that this user's programs wrote for an address, below a directory
// into which nobody else can write.
func isServed(dir string) bool {
	above, err := registry.Served()
	if err != nil || dir == "" {
		return false
	}
	if above, err = filepath.EvalSymlinks(above); err != nil {
		return false
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil || filepath.Dir(dir) != above {
		return false
	}
	info, err := os.Stat(above)
	return err == nil && info.Mode().Perm()&0o022 == 0
}
