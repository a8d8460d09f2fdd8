package dataset

import (
	"context"
	"sync/atomic"

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
