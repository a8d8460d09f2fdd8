package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/internal/mapped"
)

// CheckOnceOptions configure [Dataset.CheckOnce]. The zero value is a good default.
type CheckOnceOptions struct {
	// Always is the largest size in bytes of a dataset that is checked every time; 0 means 256 MiB,
	// which takes a tenth of a second, and -1 means never.
	Always int64
	// Verify reads everything, and compares all files with their recorded digests, also those that
	// are unchanged by their times.
	Verify bool
	// Report is called from time to time, from the calling goroutine, with the number of bytes read
	// and the total.
	Report func(done, total int64)
}

// checkAlways is the default of CheckOnceOptions.Always.
const checkAlways = 256 << 20

// CheckOnce is [Dataset.Check] before a run. It reads a large directory completely only once. The
// successful check is recorded with the directory's sums, in metadata.json by [Write] or otherwise
// under [registry.Home], and is valid as long as the sums are ([Dataset.Digests]). Later calls read
// only indptr, labels and splits, and report nothing. Datasets in memory are checked every time.
//
// Cost: one pass at the speed of memory or of the disk, and another to compute the sums if the
// directory has none; later calls read about 16 bytes per node.
func (d *Dataset) CheckOnce(ctx context.Context, o CheckOnceOptions) error {
	if o.Always == 0 {
		o.Always = checkAlways
	}
	if d.root().known.hasPassed() && d.Stored() && o.Always >= 0 {
		return d.checkParts(ctx, nil, 0)
	}
	if o.Verify && d.HasDigests() {
		return d.CheckWith(ctx, o.Report)
	}
	if d.Graph == nil && d.Meta.Parts == nil || d.Bytes() <= o.Always {
		return d.CheckWith(ctx, o.Report)
	}
	if d.whole != nil && d.sharesArraysWith(d.whole) {
		if err := d.whole.CheckOnce(ctx, o); err != nil {
			return err
		}
		return d.checkParts(ctx, nil, 0, d.checkSplits, d.checkGraphAnswers)
	}
	if !d.filesAlone() {
		return d.CheckWith(ctx, o.Report)
	}
	if mark, err := d.knownMark(ctx); err != nil {
		return err
	} else if mark != "" && d.known.wasChecked(mark) {
		return d.checkParts(ctx, nil, 0, d.checkIndptr, d.checkLabels, d.checkSplits, d.checkGraphAnswers, d.checkEdgeAnswers, d.verifySmall)
	}
	if err := d.CheckWith(ctx, o.Report); err != nil {
		return err
	}
	return mapped.Guard(func() error {
		sums, err := d.sums(ctx, o.Report)
		if err == nil {
			d.known.keepChecked(d.mark(sums))
		}
		return err
	})
}

// sharesArraysWith reports whether all arrays but the splits are those of other.
func (d *Dataset) sharesArraysWith(other *Dataset) bool {
	a, b := *d, *other
	a.Splits, b.Splits = nil, nil
	if a.Graphs != nil && b.Graphs != nil {
		g, h := *a.Graphs, *b.Graphs
		g.Splits, h.Splits = nil, nil
		a.Graphs, b.Graphs = &g, &h
	}
	if a.EdgeAnswers != nil && b.EdgeAnswers != nil {
		g, h := *a.EdgeAnswers, *b.EdgeAnswers
		g.Splits, h.Splits = nil, nil
		a.EdgeAnswers, b.EdgeAnswers = &g, &h
	}
	return slices.EqualFunc(a.arrays(), b.arrays(), func(x, y array) bool {
		return x.section == y.section && sameMemory(x.body, y.body)
	}) && a.Meta.NumClasses == b.Meta.NumClasses && a.Meta.Undirected == b.Meta.Undirected
}

// filesAlone reports whether the large arrays are those of the files.
func (d *Dataset) filesAlone() bool {
	return d.known != nil && !slices.ContainsFunc(d.arrays(), func(a array) bool {
		small := a.section == labelsFile || strings.HasPrefix(a.section, splitPrefix) || strings.HasPrefix(a.section, ofGraphs("")) || strings.HasPrefix(a.section, ofEdges("")) || a.section == edgeRowsFile || len(a.body) == 0
		return !small && !d.known.opened(a)
	})
}

// knownMark returns the dataset's mark, or "" if a file's sum is unknown.
func (d *Dataset) knownMark(ctx context.Context) (string, error) {
	for _, a := range d.arrays() {
		if !d.known.opened(a) {
			continue // small, and in memory
		}
		if _, ok, err := d.known.sum(a); err != nil || !ok {
			return "", err
		}
	}
	sums, err := d.sums(ctx, nil)
	if err != nil {
		return "", err
	}
	return d.mark(sums), nil
}

// mark returns a text that identifies the checks of this version, content with the given sums, and
// the claims about it in the metadata. A recorded mark means that this content passed these checks.
func (d *Dataset) mark(sums map[string]string) string {
	all := d.digestsOf(sums)
	if d.Schema() != nil { // the labels' check depends on the classes of types
		all.Structure += all.Labels
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "graphnb checked 1\n%s\n%s\n%s\n%s\n%d %t %t\n",
		all.Structure, all.Features, all.Splits, sums[labelsFile]+sums[targetsFile], d.Classes(), d.Meta.Undirected, d.Meta.OverlappingSplits))
	return hex.EncodeToString(sum[:])
}

// checkIndptr is the part of checkGraph that reads no edges.
func (d *Dataset) checkIndptr(r *reading) error {
	if d.Graph == nil {
		return nil
	}
	p := d.Graph.Indptr
	for lo := 0; lo < len(p)-1; lo += 16 * checkStep {
		hi := min(lo+16*checkStep, len(p)-1)
		if err := r.next(8 * int64(hi-lo)); err != nil {
			return err
		}
		for i := lo; i < hi; i++ {
			if p[i+1] < p[i] {
				return d.wrong(indptrFile, "entry %d: it falls from %d to %d", i+1, p[i], p[i+1])
			}
		}
	}
	return nil
}

// maxChecked is the maximum number of marks recorded per directory. More than one is useful if its
// metadata is edited and then restored.
const maxChecked = 16

// wasChecked reports whether content with the mark has passed the checks.
func (k *known) wasChecked(mark string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
	return k.checkedInMeta == mark || slices.Contains(k.keptChecked, mark)
}

// Verified reports whether this process has compared all files with their recorded digests.
func (d *Dataset) Verified() bool { return d.HasDigests() && d.root().known.hasPassed() }

// hasPassed reports whether all of the files have passed every check in this process.
func (k *known) hasPassed() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.passed
}

func (k *known) keepPassed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.passed = true
}

// keepChecked records that content with the mark has passed the checks, in the metadata or where
// its sums are recorded.
func (k *known) keepChecked(mark string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
	if slices.Contains(k.keptChecked, mark) {
		return
	}
	k.keptChecked = append(k.keptChecked, mark)
	k.keptChecked = k.keptChecked[max(0, len(k.keptChecked)-maxChecked):]
	k.writeKept()
}
