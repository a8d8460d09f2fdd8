package gnb

import (
	"github.com/graphnb/graphnb/internal/envknob"
)

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
