package links

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// sumOf returns the SHA-256 of a file of edges, "" for no file.
func sumOf(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := atomicfile.Open(path)
	if err != nil {
		return "", fmt.Errorf("links: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("links: reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readEdges reads the edges of a file that had the given sum, by the ids of the dataset's nodes if it has them; none of no
// file.
func readEdges(ds *gnb.Dataset, path, sum string) (Edges, error) {
	if path == "" {
		return Edges{}, nil
	}
	now, err := sumOf(path)
	switch {
	case err != nil:
		return Edges{}, err
	case now != sum:
		return Edges{}, fmt.Errorf("links: %s has changed since the run began; put the file back, or start a new run", path)
	}
	ids, err := ds.IDs()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Edges{}, fmt.Errorf("links: the ids of the nodes of %s: %w", ds.Name(), err)
	}
	e, err := pairs.NewNames(ids).Edges(path)
	if err == nil && e.Len() == 0 {
		err = fmt.Errorf("links: %s has no edges; write one on each line, or leave the file out", path)
	}
	return e, err
}

// splitBy sets how the edges are split.
func (o *recorded) splitBy(ds *gnb.Dataset) (err error) {
	given := o.ValEdges != "" || o.TestEdges != ""
	by := o.SplitBy
	switch {
	case by == "" && given:
		by = "given"
	case by == "" && (o.Times != nil || o.AsOf):
		by = "time"
	case by == "":
		by = "random"
	}
	switch {
	case by != "random" && by != "time" && by != "given":
		return fmt.Errorf("links: SplitBy is %q; it is random, time or given", by)
	case o.AsOf && by != "time":
		return fmt.Errorf("links: SplitBy is %s, but with AsOf an edge sees all earlier edges, also those of validation and test that would be earlier; split by time, or leave AsOf out", by)
	case by != "given" && given:
		return fmt.Errorf("links: SplitBy is %s, but ValEdges or TestEdges give the edges of the parts; leave them out, or choose given", by)
	case by != "time" && o.Times != nil:
		return fmt.Errorf("links: SplitBy is %s, but there are Times; leave them out, or choose time", by)
	case by == "given" && !given:
		return errors.New("links: a split by given edges needs the files ValEdges or TestEdges")
	case o.Times != nil && len(o.Times) != 2:
		return fmt.Errorf("links: Times has %d numbers; it has the time from which on edges are for validation, and that for the test", len(o.Times))
	}
	if o.SplitBy = by; by == "time" && o.Times == nil {
		if ds.Graph == nil {
			return fmt.Errorf("links: a split by time of %s needs the Times from which on edges are for validation and the test, because no machine has the times of all edges; give them", ds.Name())
		}
		val, test, err := pairs.TimesFor(ds.Graph, o.splitOptions(o.Seed))
		if err != nil {
			return err
		}
		o.Times = []int64{val, test}
	}
	if given {
		for _, path := range []*string{&o.ValEdges, &o.TestEdges} {
			if *path != "" {
				*path = runfile.Absolute(*path)
			}
		}
	}
	if o.ValSum, err = sumOf(o.ValEdges); err != nil {
		return err
	}
	o.TestSum, err = sumOf(o.TestEdges)
	return err
}

// split splits the edges of a worker's dataset, as a run with a seed does.
func (o *recorded) split(w *gnb.Worker, seed uint64) (*Split, error) {
	of := o.splitOptions(seed)
	switch o.SplitBy {
	case "time":
		return TimeSplitOf(w, o.Times[0], o.Times[1], of)
	case "given":
		val, err := readEdges(w.Dataset(), o.ValEdges, o.ValSum)
		if err != nil {
			return nil, err
		}
		test, err := readEdges(w.Dataset(), o.TestEdges, o.TestSum)
		if err != nil {
			return nil, err
		}
		return GivenSplitOf(w, val, test, of)
	}
	return RandomSplitOf(w, of)
}
