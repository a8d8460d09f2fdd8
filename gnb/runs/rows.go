package runs

import (
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/internal/phrase"
)

// FeatureRows counts the rows of features that batches read, by where they came from, in a run whose
// workers do not have all rows.
type FeatureRows struct {
	Own    int64 `json:"own"`    // in the worker's own files
	Cached int64 `json:"cached"` // in its static cache
	Window int64 `json:"window"` // asked for by an earlier batch, and still there
	Remote int64 `json:"remote"` // asked for, from other workers or machines
	// Bytes is what was asked for, with the rows of the cache.
	Bytes int64 `json:"bytes"`
}

func (r *FeatureRows) add(o FeatureRows) {
	r.Own += o.Own
	r.Cached += o.Cached
	r.Window += o.Window
	r.Remote += o.Remote
	r.Bytes += o.Bytes
}

// String lists the shares of the sources: "81 % own, 12 % cached, 3 % in the window, 4 % remote; 12 MiB received".
func (r FeatureRows) String() string {
	all := r.Own + r.Cached + r.Window + r.Remote
	if all == 0 {
		return "no rows"
	}
	var parts []string
	for _, p := range []struct {
		n    int64
		name string
	}{{r.Own, "own"}, {r.Cached, "cached"}, {r.Window, "in the window"}, {r.Remote, "remote"}} {
		parts = append(parts, fmt.Sprintf("%.3g %% %s", 100*float64(p.n)/float64(all), p.name))
	}
	return fmt.Sprintf("%s of %s; %s received", strings.Join(parts, ", "), phrase.Count(int(all), "row"), phrase.Bytes(r.Bytes))
}

// rowsOf adds the rows of ranks to earlier ones; it is nil if there are none.
func rowsOf(earlier FeatureRows, ranks []rank) *FeatureRows {
	for i := range ranks {
		earlier.add(ranks[i].now.rows)
	}
	if earlier == (FeatureRows{}) {
		return nil
	}
	return &earlier
}
