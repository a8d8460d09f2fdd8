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
	// Bytes is what was asked for, with the rows of the cache; from a disk, all that was read, for caches
	// and evaluations too, with the bytes between the rows.
	Bytes int64 `json:"bytes"`
	// GPU is the number of rows that were in the memory of the worker's GPU, and Copied the bytes of the other rows that
	// were copied there, in a run with gnb.TrainOptions.GPUCache.
	GPU    int64 `json:"gpu,omitempty"`
	Copied int64 `json:"copied,omitempty"`
	// Disk is the number of rows read from disk for a batch, in a run whose features are on disk, and
	// Requests the number of requests.
	Disk     int64 `json:"disk,omitempty"`
	Requests int64 `json:"requests,omitempty"`
	// Seconds is the time in which the worker that read longest was reading, and Limit the rate in bytes
	// per second that the disk reached, when the run measured it, with requests of the mean size; 0 if it
	// was not measured.
	Seconds float64 `json:"seconds,omitempty"`
	Limit   float64 `json:"limit,omitempty"`
}

// All is the number of rows that batches read.
func (r FeatureRows) All() int64 { return r.Own + r.Cached + r.Window + r.Remote + r.Disk + r.GPU }

// String lists the shares of the sources: "81 % own, 12 % cached, 3 % in the window, 4 % remote of 52,000 rows; 12 MiB
// received", or "75 % cached, 5 % in the window, 20 % from disk of 52,000 rows; 12 MiB read at 90 MiB/s in requests of
// 4.5 KiB, of 95 MiB/s that the disk reaches". Where rows stay on GPUs, "40 % on GPUs" comes first, and
// "; 30 MiB copied to GPUs" last.
func (r FeatureRows) String() string {
	all := r.All()
	if all == 0 {
		return "no rows"
	}
	type source struct {
		n    int64
		name string
	}
	sources := []source{{r.Own, "own"}, {r.Cached, "cached"}, {r.Window, "in the window"}, {r.Remote, "remote"}}
	if r.Requests > 0 {
		sources = []source{{r.Cached, "cached"}, {r.Window, "in the window"}, {r.Disk, "from disk"}}
	}
	if r.GPU > 0 {
		sources = append([]source{{r.GPU, "on GPUs"}}, sources...)
	}
	var parts []string
	for _, s := range sources {
		parts = append(parts, fmt.Sprintf("%.3g %% %s", 100*float64(s.n)/float64(all), s.name))
	}
	text := fmt.Sprintf("%s of %s; %s ", strings.Join(parts, ", "), phrase.Count(int(all), "row"), phrase.Bytes(r.Bytes))
	switch {
	case r.Requests == 0:
		text += "received"
	case r.Seconds > 0:
		text += fmt.Sprintf("read at %s/s in requests of %s", phrase.Bytes(int64(float64(r.Bytes)/r.Seconds)), phrase.Bytes(r.Bytes/r.Requests))
	}
	if r.Requests > 0 && r.Limit > 0 {
		text += fmt.Sprintf(", of %s/s that the disk reaches", phrase.Bytes(int64(r.Limit)))
	}
	if r.GPU > 0 {
		text += fmt.Sprintf("; %s copied to GPUs", phrase.Bytes(r.Copied))
	}
	return text
}
