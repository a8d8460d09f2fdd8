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

// edgeFile is a file of edges, and the SHA-256 of its content.
type edgeFile struct{ Path, Sum string }

func newEdgeFile(path string) (*edgeFile, error) {
	if path == "" {
		return nil, nil
	}
	f, err := atomicfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, fmt.Errorf("links: reading %s: %w", path, err)
	}
	return &edgeFile{runfile.Absolute(path), hex.EncodeToString(h.Sum(nil))}, nil
}

// read reads the edges, by the ids of the dataset's nodes if it has them; none if f is nil.
func (f *edgeFile) read(ds *gnb.Dataset) (Edges, error) {
	if f == nil {
		return Edges{}, nil
	}
	now, err := newEdgeFile(f.Path)
	switch {
	case err != nil:
		return Edges{}, err
	case now.Sum != f.Sum:
		return Edges{}, fmt.Errorf("links: %s has changed since the run began; put the file back, or start a new run", f.Path)
	}
	ids, err := ds.IDs()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Edges{}, fmt.Errorf("links: the ids of the nodes of %s: %w", ds.Name(), err)
	}
	e, err := pairs.NewNames(ids).Edges(f.Path)
	if err == nil && e.Len() == 0 {
		err = fmt.Errorf("links: %s has no edges; write one on each line, or leave the file out", f.Path)
	}
	return e, err
}

// splitBy sets how the edges are split.
func (a *trainArgs) splitBy(ds *gnb.Dataset, o Options) (err error) {
	given := o.ValEdges != "" || o.TestEdges != ""
	by := o.SplitBy
	switch {
	case by == "" && given:
		by = "given"
	case by == "" && o.Times != nil:
		by = "time"
	case by == "":
		by = "random"
	}
	switch {
	case by != "random" && by != "time" && by != "given":
		return fmt.Errorf("links: SplitBy is %q; it is random, time or given", by)
	case by != "given" && given:
		return fmt.Errorf("links: SplitBy is %s, but ValEdges or TestEdges give the edges of the parts; leave them out, or choose given", by)
	case by != "time" && o.Times != nil:
		return fmt.Errorf("links: SplitBy is %s, but there are Times; leave them out, or choose time", by)
	case by == "given" && !given:
		return errors.New("links: a split by given edges needs the files ValEdges or TestEdges")
	case o.Times != nil && len(o.Times) != 2:
		return fmt.Errorf("links: Times has %d numbers; it has the time from which on edges are for validation, and that for the test", len(o.Times))
	}
	if by != "random" {
		a.SplitBy = by
	}
	if a.Times = o.Times; by == "time" && a.Times == nil {
		if ds.Graph == nil {
			return fmt.Errorf("links: a split by time of %s needs the Times from which on edges are for validation and the test, because no machine has the times of all edges; give them", ds.Name())
		}
		val, test, err := pairs.TimesFor(ds.Graph, a.Split)
		if err != nil {
			return err
		}
		a.Times = []int64{val, test}
	}
	if a.ValEdges, err = newEdgeFile(o.ValEdges); err != nil {
		return err
	}
	a.TestEdges, err = newEdgeFile(o.TestEdges)
	return err
}

// split splits the edges of a worker's dataset.
func (a trainArgs) split(w *gnb.Worker) (*Split, error) {
	switch a.SplitBy {
	case "time":
		return TimeSplitOf(w, a.Times[0], a.Times[1], a.Split)
	case "given":
		val, err := a.ValEdges.read(w.Dataset())
		if err != nil {
			return nil, err
		}
		test, err := a.TestEdges.read(w.Dataset())
		if err != nil {
			return nil, err
		}
		return GivenSplitOf(w, val, test, a.Split)
	}
	return RandomSplitOf(w, a.Split)
}
