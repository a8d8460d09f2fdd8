// Package published has [gnb.Load] get published datasets in the program itself: it
// links what downloads, verifies and converts them. Import it for that alone:
//
//	import _ "github.com/graphnb/graphnb/gnb/published"
//
// Package gnb does without it, since it is some 70 packages more, net/http among them,
// and a notebook's cells link often; there, and in programs without this import, the
// command gnb does the work, beside the program or on PATH.
package published

import (
	"context"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/graphops/dataset/registry/get"
)

func init() { dataset.RegisterGetter(bring) }

func bring(ctx context.Context, e registry.Entry, o dataset.GetOptions) error {
	_, err := get.Get(ctx, e, get.Options{
		Note: o.Note,
		Progress: func(p get.Progress) {
			if o.Progress != nil {
				o.Progress(p.Stage, p.File, p.Done, p.Total)
			}
		},
	})
	return err
}
