package gnb

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/progress"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Load opens a dataset: the directory of one, a generator such as "karate" or
// "planted?nodes=100000&classes=8", or a published one by name, such as "cora",
// which the first time is downloaded, verified and converted: by the program itself
// where it imports package gnb/published, else by the command gnb, which is looked for
// beside the program and on PATH. Opening a directory
// maps its files; nothing is copied, and workers share the pages.
func Load(ctx context.Context, spec string) (*Dataset, error) {
	multigpuEnter()
	o := dataset.LoadOptions{Get: getdata.Get}
	if name, _, _ := strings.Cut(spec, "?"); slices.ContainsFunc(dataset.Generators(), func(g dataset.Generator) bool { return g.Name == name }) {
		bar := progress.Begin("generating "+spec, 0, progress.Options{Unit: "%", After: time.Second})
		defer bar.Done()
		o.Progress = bar.Set
	}
	return dataset.LoadWith(ctx, spec, o)
}
