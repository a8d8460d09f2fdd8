package gnb

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/progress"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/envknob"
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

// Small is the name of the dataset to use: name, or, where the environment has
// GNB_SMALL set (and not to 0), small, a stand-in that a laptop trains on in
// seconds. It is how one notebook serves for the real thing and for a test of
// itself, with no other difference:
//
//	var reddit = gnb.Small("reddit", "planted?nodes=6000&classes=41&features=602")
func Small(name, small string) string {
	if envknob.Small.On() {
		return small
	}
	return name
}
