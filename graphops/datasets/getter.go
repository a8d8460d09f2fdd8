package datasets

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
)

// GetOptions are the options of a registered getter.
type GetOptions struct {
	// Progress is called with the progress of a stage, in bytes or, while a graph is built, in
	// arbitrary units; total is 0 if unknown.
	Progress func(stage, file string, done, total int64)
	// Note is called with a sentence for the user.
	Note func(text string)
}

// GetterFunc downloads a published dataset and converts it into e.Dir().
type GetterFunc func(ctx context.Context, e registry.Entry, o GetOptions) error

var registered atomic.Pointer[GetterFunc]

// RegisterGetter sets the function with which this program gets published datasets. Package
// gnb/published calls it from an init function.
func RegisterGetter(g GetterFunc) { registered.Store(&g) }

// RegisteredGetter returns the function registered last, or nil.
func RegisteredGetter() GetterFunc {
	if g := registered.Load(); g != nil {
		return *g
	}
	return nil
}

// RemoteFunc gets a dataset from the servers of an address.
type RemoteFunc func(ctx context.Context, address string, o LoadOptions) (*dataset.Dataset, error)

var remote atomic.Pointer[RemoteFunc]

// RegisterRemote sets the function with which this program gets datasets from servers. Package
// gnb/remote calls it from an init function.
func RegisterRemote(f RemoteFunc) { remote.Store(&f) }

// IsRemote reports whether a dataset's name is the address of servers: it begins with grpc:// or
// grpcs://.
func IsRemote(spec string) bool {
	return strings.HasPrefix(spec, "grpc://") || strings.HasPrefix(spec, "grpcs://")
}

func loadRemote(ctx context.Context, address string, o LoadOptions) (*dataset.Dataset, error) {
	f := remote.Load()
	if f == nil {
		return nil, fmt.Errorf("dataset: %s is the address of graph servers, which this program cannot reach; add\n\timport _ \"github.com/graphnb/graphnb/gnb/remote\"", address)
	}
	return (*f)(ctx, address, o)
}
