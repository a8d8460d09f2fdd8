package dataset

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Digests identify a dataset's content: two datasets with equal digests have the same arrays, bit
// for bit, whether in a directory or in memory, and regardless of their names. Each digest is 64
// hexadecimal digits.
//
// The digest of an array covers its element type, its shape and the SHA-256 of each mebibyte of its
// elements; threads compute it in parallel, and it does not depend on their number. Labels and
// splits count as int32, even if a file stores them as int64.
type Digests struct {
	Structure string `json:"structure"` // of indptr, indices, edge weights, features and times
	Features  string `json:"features"`  // of the features, dense or sparse, float32 or float16
	Labels    string `json:"labels"`    // of the labels, the number of classes and the metric
	Splits    string `json:"splits"`    // of every split: its name and its ids in their order
	Whole     string `json:"whole"`     // of the four above
}

// Differences returns the parts in which two datasets differ: some of "structure", "features",
// "labels" and "splits", in this order, or none.
func (a Digests) Differences(b Digests) []string {
	var parts []string
	for _, p := range []struct{ name, a, b string }{
		{"structure", a.Structure, b.Structure},
		{"features", a.Features, b.Features},
		{"labels", a.Labels, b.Labels},
		{"splits", a.Splits, b.Splits},
	} {
		if p.a != p.b {
			parts = append(parts, p.name)
		}
	}
	return parts
}

// Digest returns the Whole of [Dataset.Digests].
func (d *Dataset) Digest(ctx context.Context) (string, error) {
	all, err := d.Digests(ctx, nil)
	return all.Whole, err
}

// Digests returns the digests of the dataset's current content: the splits that a view
// ([Dataset.WithSplitSet]) shows, and arrays that the caller has replaced. report, if not nil, is
// called from time to time, from this goroutine, with the number of bytes read and the total.
//
// Writing a dataset records the sums of its files in metadata.json. A recorded sum is valid as long
// as the file's size and modification time are unchanged; such files are not read. That of a changed
// file is compared with the record, and a difference is a [*DigestError]. The sum of any
// other mapped file is computed once and stored under [registry.Home] (never in the dataset's
// directory), under the same condition. Sums of arrays in memory are computed each time, but only
// once for an unchanged dataset with a memory file ([Dataset.Share]). Computing costs one pass at
// the speed of SHA-256 on all threads (0.7 GB/s measured on two busy cores) or of the disk.
//
// Those of a divided dataset ([Parts]) are the undivided one's, which its metadata records; files
// that are on this machine, also those of parts, are compared with their recorded sums.
//
// It returns an error if a file was changed since the dataset was opened, if ctx ends, or if
// reading a file fails.
func (d *Dataset) Digests(ctx context.Context, report func(done, total int64)) (Digests, error) {
	if err := d.checkShape(); err != nil {
		return Digests{}, fmt.Errorf("dataset: %w", err)
	}
	if err := d.checkDrawn(); err != nil {
		return Digests{}, err
	}
	if !littleEndian() {
		return Digests{}, fmt.Errorf("dataset: %s: digests need little-endian arrays, but this machine is big-endian", d.Name())
	}
	if d.Meta.Parts != nil {
		var all Digests
		err := mapped.Guard(func() (err error) {
			all, err = d.dividedDigests(ctx, report)
			return err
		})
		return all, err
	}
	compute := func() (all Digests, err error) {
		err = mapped.Guard(func() error {
			sums, err := d.sums(ctx, report)
			if err == nil {
				all = d.digestsOf(sums)
			}
			return err
		})
		return all, err
	}
	if all, shared, err := d.sharedDigests(compute); shared || err != nil {
		return all, err
	}
	return compute()
}

// sums returns the sums of the arrays, by section name.
func (d *Dataset) sums(ctx context.Context, report func(done, total int64)) (map[string]string, error) {
	arrays := d.arrays()
	sums := make(map[string]string, len(arrays))
	r := &reading{ctx: ctx, report: report}
	var left []array
	for _, a := range arrays {
		if sum, ok, err := d.known.sum(a); err != nil {
			return nil, err
		} else if ok {
			sums[a.section] = sum
			continue
		}
		left = append(left, a)
		r.total += int64(len(a.body))
	}
	for _, a := range left {
		sum, err := sumOf(a, 0, r.next)
		if err != nil {
			return nil, err
		}
		sums[a.section] = sum
	}
	if err := r.next(0); err != nil {
		return nil, err
	}
	for _, a := range arrays {
		f, recorded := d.recorded(a)
		if recorded && f.Sum != sums[a.section] {
			return nil, d.differs(a.section, sums[a.section], f.Sum)
		}
	}
	return sums, d.known.learn(left, sums)
}

// recorded returns the recorded sum of an array that is still the one of its file, if metadata.json vouches for it.
func (d *Dataset) recorded(a array) (f fileSum, ok bool) {
	if !d.HasDigests() {
		return f, false
	}
	k := d.root().known
	loaded, opened := k.loaded[a.section]
	if !opened || !sameMemory(loaded, a.body) || !k.narrows(a) {
		return f, false
	}
	f, ok = k.inMeta[a.section]
	return f, ok
}

// digestsOf returns the digests of arrays with the given sums.
func (d *Dataset) digestsOf(sums map[string]string) Digests {
	part := func(lines ...string) string {
		sum := sha256.Sum256([]byte("graphnb dataset 1\n" + strings.Join(lines, "\n") + "\n"))
		return hex.EncodeToString(sum[:])
	}
	of := func(sections ...string) (lines []string) {
		for _, s := range sections {
			if sum := sums[s]; sum != "" {
				lines = append(lines, s+" "+sum)
			}
		}
		return lines
	}
	structure := []string{indptrFile, indicesFile, weightsFile, edgeFeaturesFile, edgeTimesFile, edgeTypesFile}
	if g := d.Graph; g != nil && g.EdgeFeatures != nil {
		for r := range g.EdgeFeatures.ByRelation {
			structure = append(structure, edgeFeaturesOf(r))
		}
	}
	for _, a := range d.furtherArrays() {
		structure = append(structure, a.section)
	}
	structure = append(structure, graphOffsetsFile, eventsFile, nodeTimesFile)
	var splits []string
	for _, name := range d.SplitNames() {
		splits = append(splits, splitFile(name))
	}
	for _, name := range d.edgeSplitNames() {
		splits = append(splits, edgeSplitFile(name))
	}
	features := []string{featuresFile, featuresIndptrFile, featuresIndicesFile, featuresValuesFile}
	for _, a := range d.typeArrays() {
		features = append(features, a.section)
	}
	answers := []string{labelsFile, targetsFile}
	if g := d.Graphs; g != nil {
		for _, file := range features[:4] {
			features = append(features, ofGraphs(file))
		}
		answers = append(answers, ofGraphs(labelsFile), ofGraphs(targetsFile))
		for _, name := range g.SplitNames() {
			splits = append(splits, ofGraphs(splitFile(name)))
		}
	}
	if a := d.EdgeAnswers; a != nil {
		answers = append(answers, edgeRowsFile, ofEdges(targetsFile))
		for _, name := range a.SplitNames() {
			splits = append(splits, ofEdges(splitFile(name)))
		}
	}
	head, labels := []string{"structure"}, []string{"labels", fmt.Sprintf("%d classes, %s", d.Classes(), cmp.Or(d.Meta.Metric, MetricAccuracy))}
	if s := d.Schema(); s != nil {
		head = append(head, d.typesDigest())
		for t := range s.Nodes {
			labels = append(labels, fmt.Sprintf("%d classes of type %d", d.ClassesOf(t), t))
		}
	}
	if g := d.Graphs; g != nil {
		labels = append(labels, fmt.Sprintf("%d classes of graphs, %s", g.Classes(), cmp.Or(g.Meta.Metric, MetricAccuracy)))
	}
	all := Digests{
		Structure: part(append(head, of(structure...)...)...),
		Features:  part(append([]string{"features", fmt.Sprintf("%d columns", d.FeatureDim())}, of(features...)...)...),
		Labels:    part(append(labels, of(answers...)...)...),
		Splits:    part(append([]string{"splits"}, of(splits...)...)...),
	}
	all.Whole = part("whole", all.Structure, all.Features, all.Labels, all.Splits)
	return all
}

// array is one array of a dataset: the section that stores it and its elements'
// memory.
type array struct {
	section string
	dtype   npy.Type
	shape   []int
	body    []byte
}

// arrays returns the arrays of d in the order in which they are written.
func (d *Dataset) arrays() []array {
	var parts []array
	if g := d.Graph; g != nil {
		parts = append(parts,
			array{indptrFile, npyInt64, []int{len(g.Indptr)}, rawBytes(g.Indptr)},
			array{indicesFile, npyInt32, []int{len(g.Indices)}, rawBytes(g.Indices)})
		if w := g.EdgeWeights; w != nil {
			parts = append(parts, array{weightsFile, npyFloat32, []int{len(w)}, rawBytes(w)})
		}
		if x := g.EdgeFeatures; x != nil {
			parts = append(parts, edgeFeatureArrays(x)...)
		}
		if t := g.EdgeTimes; t != nil {
			parts = append(parts, array{edgeTimesFile, npyInt64, []int{len(t)}, rawBytes(t)})
		}
		if t := g.EdgeTypes; t != nil {
			parts = append(parts, array{edgeTypesFile, npyUint16, []int{len(t)}, rawBytes(t)})
		}
	}
	parts = append(parts, d.furtherArrays()...)
	parts = append(append(parts, sparseArrays(d.SparseFeatures, "")...), matrixArrays(d.Features, "")...)
	parts = append(parts, d.typeArrays()...)
	if d.Labels != nil {
		parts = append(parts, array{labelsFile, npyInt32, []int{len(d.Labels)}, rawBytes(d.Labels)})
	}
	if d.MultiLabels != nil {
		parts = append(parts, array{labelsFile, npyInt8, []int{d.MultiLabels.Rows, d.MultiLabels.Cols}, rawBytes(d.MultiLabels.Data)})
	}
	if d.Targets != nil {
		parts = append(parts, array{targetsFile, npyFloat32, []int{d.Targets.Rows, d.Targets.Cols}, rawBytes(d.Targets.F32)})
	}
	if d.GraphOffsets != nil {
		parts = append(parts, array{graphOffsetsFile, npyInt64, []int{len(d.GraphOffsets)}, rawBytes(d.GraphOffsets)})
	}
	if d.Graphs != nil {
		for _, a := range d.Graphs.arrays() {
			a.section = ofGraphs(a.section)
			parts = append(parts, a)
		}
	}
	if d.EdgeAnswers != nil {
		parts = append(parts, array{edgeRowsFile, npyInt64, []int{len(d.EdgeRows)}, rawBytes(d.EdgeRows)})
		for _, a := range d.EdgeAnswers.arrays() {
			a.section = ofEdges(a.section)
			parts = append(parts, a)
		}
	}
	if d.Events != nil {
		parts = append(parts, array{eventsFile, npyInt64, []int{len(d.Events)}, rawBytes(d.Events)})
	}
	if d.NodeTimes != nil {
		parts = append(parts, array{nodeTimesFile, npyInt64, []int{len(d.NodeTimes)}, rawBytes(d.NodeTimes)})
	}
	for _, name := range d.SplitNames() {
		parts = append(parts, array{splitFile(name), npyInt32, []int{len(d.Splits[name])}, rawBytes(d.Splits[name])})
	}
	for _, name := range d.edgeSplitNames() {
		parts = append(parts, array{edgeSplitFile(name), npyInt64, []int{len(d.EdgeSplits[name])}, rawBytes(d.EdgeSplits[name])})
	}
	return parts
}

// sparseArrays returns the arrays of the sparse features of a node type, or of all nodes.
func sparseArrays(s *Sparse, name string) []array {
	if s == nil {
		return nil
	}
	parts := []array{
		{ofType(featuresIndptrFile, name), npyInt64, []int{len(s.Indptr)}, rawBytes(s.Indptr)},
		{ofType(featuresIndicesFile, name), npyInt32, []int{len(s.Indices)}, rawBytes(s.Indices)},
	}
	if s.Values != nil {
		parts = append(parts, array{ofType(featuresValuesFile, name), npyFloat32, []int{len(s.Values)}, rawBytes(s.Values)})
	}
	return parts
}

// matrixArrays returns the array of the dense features of a node type, or of all nodes.
func matrixArrays(m *Matrix, name string) []array {
	if m == nil {
		return nil
	}
	a := array{ofType(featuresFile, name), npyFloat32, []int{m.Rows, m.Cols}, rawBytes(m.F32)}
	if m.Half() {
		a.dtype, a.body = npyFloat16, rawBytes(m.F16)
	}
	return []array{a}
}

const (
	sumLeaf = 1 << 20  // bytes per leaf; part of the digest's definition
	sumStep = 64 << 20 // a multiple of sumLeaf: the bytes between two checks of the context
)

// summer computes the sum of an array.
type summer struct {
	h       hash.Hash
	threads int // 0: GOMAXPROCS
	leaves  [sumStep / sumLeaf][sha256.Size]byte
}

func newSummer(t npy.Type, shape []int) *summer {
	s := &summer{h: sha256.New()}
	fmt.Fprintf(s.h, "graphnb array 1\n%s %s\n", t.Descr(), npy.ShapeString(shape))
	return s
}

// add processes the next elements: a number of leaves, at most sumStep bytes, or fewer at the end.
func (s *summer) add(part []byte) {
	parallel.For(s.threads, len(part), sumLeaf, func(lo, hi int) {
		s.leaves[lo/sumLeaf] = sha256.Sum256(part[lo:hi])
	})
	for i := range parallel.Chunks(len(part), sumLeaf) {
		s.h.Write(s.leaves[i][:])
	}
}

func (s *summer) end() string { return hex.EncodeToString(s.h.Sum(nil)) }
