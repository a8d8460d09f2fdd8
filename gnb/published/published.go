// Package published lets [gnb.Load] download, verify and convert published datasets in the program
// itself. Import it for this effect only:
//
//	import _ "github.com/graphnb/graphnb/gnb/published"
//
// Package gnb does not import it, because it adds about 70 packages, net/http among them, and a
// notebook's cells link often. In programs without this import, gnb.Load runs the command gnb,
// which must be in the program's directory or on PATH.
package published

import (
	"context"

	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/graphops/dataset/registry/get"
	"github.com/graphnb/graphnb/graphops/datasets"
)

func init() { datasets.RegisterGetter(bring) }

func bring(ctx context.Context, e registry.Entry, o datasets.GetOptions) error {
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
