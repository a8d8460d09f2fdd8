package dataset

import (
	"context"
	"sync/atomic"

	"github.com/graphnb/graphnb/graphops/dataset/registry"
)

// GetOptions are what a registered getter is told.
type GetOptions struct {
	// Progress is told how far a stage is, in bytes or, while a graph is built, in work
	// of no unit; total is 0 where it is not known.
	Progress func(stage, file string, done, total int64)
	// Note is told in a sentence what the user may want to know.
	Note func(text string)
}

// GetterFunc brings a published dataset into e.Dir().
type GetterFunc func(ctx context.Context, e registry.Entry, o GetOptions) error

var registered atomic.Pointer[GetterFunc]

// RegisterGetter says what gets published datasets in this program. Package
// gnb/published calls it when it is imported.
func RegisterGetter(g GetterFunc) { registered.Store(&g) }

// RegisteredGetter is what was registered last, or nil.
func RegisteredGetter() GetterFunc {
	if g := registered.Load(); g != nil {
		return *g
	}
	return nil
}
