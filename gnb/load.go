package gnb

import (
	"context"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/envknob"
)

// Load opens a dataset: a dataset's directory, a generator such as "karate" or
// "planted?nodes=100000&classes=8", or the name of a published dataset, such as "cora". A
// published dataset is downloaded, verified and converted at its first use: by the program itself
// if it imports package gnb/published, else by the command gnb, which Load searches next to the
// program and on PATH. With the address of servers ("grpc://HOST:PORT"), for which
// the program imports package gnb/remote, workers ask these for edges and features. Opening a
// directory maps its files; nothing is copied, and workers share the pages.
func Load(ctx context.Context, spec string) (*Dataset, error) {
	entry.Enter()
	o, done := getdata.LoadOptions(spec)
	defer done()
	return datasets.LoadWith(ctx, spec, o)
}

// Small returns the name of the dataset to use: name, or, if the environment variable GNB_SMALL is
// set and not 0, small, a replacement on which a laptop trains in seconds. With it one notebook
// runs on the real dataset and, as a test, on the small one:
//
//	var reddit = gnb.Small("reddit", "planted?nodes=6000&classes=41&features=602")
func Small(name, small string) string {
	if envknob.Small.On() {
		return small
	}
	return name
}
