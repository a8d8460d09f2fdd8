package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

// FormatVersion is the version of the dataset format that this package writes
// and reads.
const FormatVersion = 1

// Names of the sections, which are the file names in a directory.
const (
	MetadataFile = "metadata.json"
	indptrFile   = "indptr.npy"
	indicesFile  = "indices.npy"
	weightsFile  = "weights.npy"

	edgeFeaturesFile = "edge_features.npy"
	edgeTimesFile    = "edge_times.npy"
	edgeTypesFile    = "edge_types.npy"

	featuresFile = "features.npy"

	featuresIndptrFile  = "features_indptr.npy"
	featuresIndicesFile = "features_indices.npy"
	featuresValuesFile  = "features_values.npy"

	labelsFile  = "labels.npy"
	targetsFile = "targets.npy"

	graphOffsetsFile = "graph_offsets.npy"

	edgeRowsFile = "edge_rows.npy"

	eventsFile = "events.npy"

	nodeTimesFile = "node_times.npy"
)

// ofGraphs returns the file of the graphs of a dataset that is file for nodes.
func ofGraphs(file string) string { return "graph_" + file }

// ofEdges returns the file of the answers of edges that is file for nodes.
func ofEdges(file string) string { return "edge_answer_" + file }

// splitPrefix begins the name of a split's section.
const splitPrefix = "split_"

func edgeSplitFile(name string) string { return "edge_split_" + name + ".npy" }

// ofType returns the file of one node type's features; "" stands for all nodes.
func ofType(file, name string) string {
	if name == "" {
		return file
	}
	return strings.TrimSuffix(file, ".npy") + "." + name + ".npy"
}

func splitFile(name string) string { return splitPrefix + name + ".npy" }

// A split's name becomes part of a file name. The number after an @ is that of its set.
var splitName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(@[1-9][0-9]{0,4})?$`)

// maxMetadata bounds metadata.json, which has a few hundred bytes plus about as many per file.
const maxMetadata = 16 << 20

// section is one named part of a stored dataset.
type section struct {
	name  string
	head  []byte
	body  []byte
	dtype npy.Type // element type of the array
	shape []int
	half  *Matrix    // if not nil, the body is written as float16 from this
	rows  *Matrix    // if not nil, the body is the rows that this selects
	drawn *Matrix    // if not nil, the body is this, which is drawn
	lost  *rounding  // what half has changed so far
	edges *edgesFrom // if not nil, what the edges of these nodes have in body
}

// narrow makes the section write the features as float16.
func (s *section) narrow(m *Matrix) {
	s.dtype, s.half, s.drawn, s.body, s.lost = npyFloat16, m, nil, nil, &rounding{}
	s.head = npy.EncodeHeader(npyFloat16, s.shape...)
}

// piece returns n bytes of the body, starting at byte at.
func (s *section) piece(at, n int) ([]byte, error) {
	switch {
	case s.rows != nil:
		return s.rows.bytesOfRows(at, n), nil
	case s.edges != nil:
		return s.edges.bytes(s.body, s.bytesEach(), at, n, s.name == indicesFile), nil
	case s.drawn != nil:
		x := s.drawn.floats(at/4, n/4)
		if i := firstBad(len(x), 1<<16, func(i int) bool { return !finite(x[i]) }); i >= 0 {
			return nil, fmt.Errorf("%s: row %d, column %d is %v; features must be finite", s.name, (at/4+i)/s.drawn.Cols, (at/4+i)%s.drawn.Cols, x[i])
		}
		return rawBytes(x), nil
	case s.half == nil:
		return s.body[at : at+n], nil
	}
	part := make([]uint16, n/2)
	err := s.half.toHalf(part, at/2, s.lost)
	return rawBytes(part), err
}

// bytesEach returns the size of what one row of the array has.
func (s *section) bytesEach() int {
	n := s.dtype.Size
	for _, cols := range s.shape[1:] {
		n *= cols
	}
	return n
}

// bodySize returns the body's size in bytes.
func (s *section) bodySize() int {
	switch {
	case s.rows != nil, s.edges != nil, s.drawn != nil, s.half != nil:
		return s.shape[0] * s.bytesEach()
	}
	return len(s.body)
}

func (s *section) size() int64 { return int64(len(s.head) + s.bodySize()) }

// sections returns the parts of d in the order in which they are written. The metadata is separate
// because it is written last: a directory whose writing was interrupted then has none.
func (d *Dataset) sections() (parts []section, meta Metadata, err error) {
	if !littleEndian() {
		return nil, meta, errors.New("this machine is big-endian, and the files are little-endian")
	}
	if err := d.checkShape(); err != nil {
		return nil, meta, err
	}
	meta = d.Meta
	d.describe(&meta)
	for _, a := range d.arrays() {
		if a.section == featuresFile && d.Features.of != nil {
			parts = append(parts, section{name: a.section, head: npy.EncodeHeader(a.dtype, a.shape...), rows: d.Features, dtype: a.dtype, shape: a.shape})
			continue
		}
		s := section{name: a.section, head: npy.EncodeHeader(a.dtype, a.shape...), body: a.body, dtype: a.dtype, shape: a.shape}
		if m := d.matrixOf(a.section); m != nil && m.draw != nil {
			s.drawn = m
		}
		parts = append(parts, s)
	}
	return parts, meta, nil
}

// Describe sets the metadata that the arrays determine: the format's version, sizes, names of splits,
// and what the features and labels are. A program that fills in a Dataset's fields calls it at the
// end; [Write] describes by itself.
func (d *Dataset) Describe() {
	d.describe(&d.Meta)
	if d.Graphs != nil {
		d.Graphs.Meta = *d.Meta.Graphs
	}
	if d.EdgeAnswers != nil {
		d.EdgeAnswers.Meta = *d.Meta.EdgeAnswers
	}
}

func (d *Dataset) describe(m *Metadata) {
	m.FormatVersion = FormatVersion
	m.NumNodes, m.NumEdges, m.FeatureDim = d.Nodes(), d.Edges(), d.FeatureDim()
	m.Splits = d.SplitNames()
	m.FeatureNames, m.EdgeFeatureNames = namesOf(m.FeatureNames, m.FeatureDim), namesOf(m.EdgeFeatureNames, d.EdgeFeatureDim())
	m.TargetDim = d.TargetDim()
	d.describeTypes(m)
	d.describeGraphs(m)
	d.describeEdges(m)
	if !m.eventsElsewhere() {
		m.NumEvents = int64(len(d.Events))
	}
	m.NodeTimes = d.NodeTimes != nil
	m.Arrays = slices.Sorted(maps.Keys(d.Arrays))
	m.dropQuestions(d.Arrays)
	if d.Graph != nil {
		m.Weighted, m.EdgeFeatureDim, m.EdgeTimes = d.Graph.EdgeWeights != nil, d.EdgeFeatureDim(), d.HasEdgeTimes()
		if m.Parts == nil {
			m.EdgeFeatureDims = d.Graph.EdgeFeatures.RelationWidths()
		}
	}
	if m.Parts != nil {
		return // the parts have the rest
	}
	if d.MultiLabels != nil || d.Labels != nil || m.NumClasses == 0 {
		m.Unlabelled = false
	}
	m.MultiLabel = d.MultiLabels != nil || m.Unlabelled && m.MultiLabel
	if d.MultiLabels != nil {
		m.NumClasses = d.MultiLabels.Cols
	}
	switch {
	case d.SparseFeatures == nil:
		m.FeatureFormat = ""
	case d.SparseFeatures.Values == nil:
		m.FeatureFormat = FormatCSROnes
	default:
		m.FeatureFormat = FormatCSR
	}
}

// checkShape returns an error if sizes or settings contradict each other. It reads no values.
func (d *Dataset) checkShape() error {
	bare := d.Meta.Parts != nil && d.Meta.Parts.NoTopology
	if !bare && (d.Graph == nil || len(d.Graph.Indptr) == 0) {
		return fmt.Errorf("%s has no graph", d.Meta.Name)
	}
	nodes := d.Nodes()
	switch {
	case d.Meta.Name == "":
		return errors.New("the dataset has no name: set Meta.Name")
	case nodes > math.MaxInt32:
		return fmt.Errorf("%d nodes, but node ids are int32", nodes)
	}
	if err := d.checkRows(d.rows(), "nodes"); err != nil {
		return err
	}
	switch {
	case d.Graph != nil && d.Graph.EdgeWeights != nil && int64(len(d.Graph.EdgeWeights)) != d.Edges():
		return fmt.Errorf("%d weights for %d edges", len(d.Graph.EdgeWeights), d.Edges())
	case d.Meta.Parts != nil && (d.Features != nil || d.SparseFeatures != nil || d.Labels != nil || d.Targets != nil):
		return errors.New("a dataset divided into parts has its features, labels and targets in the parts")
	}
	if err := d.checkGraphsShape(); err != nil {
		return err
	}
	if err := d.checkEdgeShape(); err != nil {
		return err
	}
	if err := d.checkEdgeAnswersShape(); err != nil {
		return err
	}
	if err := d.checkEventsShape(); err != nil {
		return err
	}
	if err := d.checkNodeTimesShape(); err != nil {
		return err
	}
	if err := d.checkTypesShape(); err != nil {
		return err
	}
	if err := d.Meta.checkParts(); err != nil {
		return err
	}
	return nil
}

// checkRows is the part of checkShape that is about what each of n nodes, or graphs, has: features, labels, targets, splits.
func (d *Dataset) checkRows(n int, what string) error {
	x, sparse, multi := d.Features, d.SparseFeatures, d.MultiLabels
	switch {
	case x != nil && x.Rows != n:
		return fmt.Errorf("%d rows of features for %d %s", x.Rows, n, what)
	case x != nil && x.Cols <= 0:
		return fmt.Errorf("features of %d columns: set Features to nil instead", x.Cols)
	case x != nil && x.F32 != nil && x.F16 != nil:
		return errors.New("there are features in both Features.F32 and Features.F16: set one of them to nil")
	case x != nil && !x.elsewhere() && max(len(x.F32), len(x.F16)) != x.Rows*x.Cols:
		return fmt.Errorf("%d feature values for [%d, %d]", max(len(x.F32), len(x.F16)), x.Rows, x.Cols)
	case x != nil && sparse != nil:
		return errors.New("there are features in both Features and SparseFeatures: set one of them to nil")
	case sparse != nil && sparse.Rows != n:
		return fmt.Errorf("%d rows of sparse features for %d %s", sparse.Rows, n, what)
	case sparse != nil && sparse.Cols <= 0:
		return fmt.Errorf("sparse features of %d columns: set SparseFeatures to nil instead", sparse.Cols)
	case d.Labels != nil && multi != nil:
		return errors.New("there are labels in both Labels and MultiLabels: set one of them to nil")
	case multi != nil && multi.Rows != n:
		return fmt.Errorf("%d rows of targets for %d %s", multi.Rows, n, what)
	case multi != nil && (multi.Cols <= 0 || multi.Cols > math.MaxInt32 || len(multi.Data) != multi.Rows*multi.Cols):
		return fmt.Errorf("%d targets for [%d, %d]", len(multi.Data), multi.Rows, multi.Cols)
	case multi != nil:
	case d.Labels != nil && len(d.Labels) != n:
		return fmt.Errorf("%d labels for %d %s", len(d.Labels), n, what)
	case d.Labels != nil && d.Meta.NumClasses <= 0:
		return errors.New("there are labels, but Meta.NumClasses is 0")
	case d.Labels == nil && d.Meta.NumClasses != 0 && d.Meta.Parts == nil && !d.Meta.Unlabelled:
		return fmt.Errorf("Meta.NumClasses is %d, but there are no labels", d.Meta.NumClasses)
	}
	if sparse != nil {
		var bad *SparseError
		if err := sparse.CheckShape(); errors.As(err, &bad) {
			return fmt.Errorf("the sparse features: %s: %s", bad.Array, bad.Why)
		}
	}
	if err := d.checkTargetsShape(n, what); err != nil {
		return err
	}
	if err := checkWords(&d.Meta, d.TargetDim()); err != nil {
		return err
	}
	return checkSplitNames(d.SplitNames())
}

// checkSizes checks what metadata says of the features, labels and targets of nodes or graphs.
func (m *Metadata) checkSizes() error {
	switch {
	case m.FeatureDim < 0:
		return fmt.Errorf("feature_dim is %d", m.FeatureDim)
	case m.NumClasses < 0 || m.NumClasses > math.MaxInt32:
		return fmt.Errorf("num_classes is %d; it must lie in [0, %d]", m.NumClasses, math.MaxInt32)
	case len(m.FeatureNames) > 0 && len(m.FeatureNames) != m.FeatureDim:
		return fmt.Errorf("feature_names has %d names for %d features", len(m.FeatureNames), m.FeatureDim)
	case m.FeatureFormat != "" && m.FeatureFormat != FormatCSR && m.FeatureFormat != FormatCSROnes:
		return fmt.Errorf("feature_format is %q; it must be %q, %q or absent", m.FeatureFormat, FormatCSR, FormatCSROnes)
	case m.FeatureFormat != "" && m.FeatureDim == 0:
		return fmt.Errorf("feature_format is %q, but feature_dim is 0", m.FeatureFormat)
	case m.FeatureDim > math.MaxInt32:
		return fmt.Errorf("feature_dim is %d; columns are int32", m.FeatureDim)
	case m.MultiLabel && m.NumClasses == 0:
		return errors.New("multi_label is true, but num_classes is 0")
	case m.TargetDim < 0 || m.TargetDim > math.MaxInt32:
		return fmt.Errorf("target_dim is %d; it must lie in [0, %d]", m.TargetDim, math.MaxInt32)
	}
	return checkWords(m, m.TargetDim)
}

// checkWords checks the text fields of the metadata.
func checkWords(m *Metadata, targets int) error {
	if m.Metric != "" && !slices.Contains(Metrics, m.Metric) {
		return fmt.Errorf("metric is %q; it must be one of %s", m.Metric, strings.Join(Metrics, ", "))
	}
	if n := len(m.ClassNames); n > 0 && n != m.NumClasses {
		return fmt.Errorf("class_names has %d names for %d classes", n, m.NumClasses)
	}
	if n := len(m.TargetNames); n > 0 && n != targets {
		return fmt.Errorf("target_names has %d names for %d targets", n, targets)
	}
	return nil
}

func checkSplitNames(names []string) error {
	for i, name := range names {
		if !splitName.MatchString(name) {
			return fmt.Errorf("the split name %q: it must have at most 64 letters, digits, _ and -, because it is part of a file name; @ and the number of a split set may follow", name)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("the split %q is listed twice", name)
		}
	}
	return nil
}

// source provides the sections of a stored dataset.
type source interface {
	// open returns a section's bytes and its name for errors; the error for a missing section
	// matches fs.ErrNotExist. The bytes begin at a multiple of 64.
	open(name string) (data []byte, label string, err error)
}

// load assembles a dataset from its sections and compares their sizes.
func load(src source) (*Dataset, error) {
	if !littleEndian() {
		return nil, errors.New("dataset: this machine is big-endian, and the files are little-endian")
	}
	d := &Dataset{Graph: &graphops.Graph{}, Splits: map[string][]int32{}}
	if err := d.loadMeta(src); err != nil {
		return nil, err
	}
	if err := d.loadGraph(src); err != nil {
		return nil, err
	}
	for _, part := range []func(source) error{d.loadWeights, d.loadEdgeData, d.loadTypes, d.loadFeatures, d.loadLabels, d.loadTargets, d.loadSplits, d.loadEdgeSplits, d.loadArrays, d.loadGraphs, d.loadEdgeAnswers, d.loadEvents, d.loadNodeTimes} {
		if err := part(src); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// loadSplits loads the splits of nodes, or of graphs.
func (d *Dataset) loadSplits(src source) (err error) {
	for _, name := range d.Meta.Splits {
		a, label, err := openNPY(src, splitFile(name), "splits", name)
		if err != nil {
			return err
		}
		if len(a.shape) != 1 {
			return readError(label, "its shape is %s; a split is a list of node ids", npy.ShapeString(a.shape))
		}
		if err := a.expect(label, []npy.Type{npyInt32, npyInt64}, a.shape[0]); err != nil {
			return err
		}
		if a.shape[0] > d.Meta.NumNodes {
			return readError(label, "it lists %d nodes, of %d", a.shape[0], d.Meta.NumNodes)
		}
		if d.Splits[name], err = d.int32s(&a, label, splitFile(name)); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dataset) loadMeta(src source) error {
	text, label, err := src.open(MetadataFile)
	if errors.Is(err, fs.ErrNotExist) {
		return readError(label, "it does not exist, so %s is not a dataset directory (or writing it was interrupted)", filepath.Dir(label))
	}
	if err != nil {
		return err
	}
	if len(text) > maxMetadata {
		return readError(label, "it has %d bytes; metadata has at most %d", len(text), maxMetadata)
	}
	var stored storedMetadata
	if err := json.Unmarshal(text, &stored); err != nil {
		return readError(label, "it is not the JSON object expected: %w", err)
	}
	d.Meta = stored.Metadata
	m := &d.Meta
	d.known = &known{keepFrom: keepSumsFrom, quiet: quietFor, here: map[string]string{}, wide: map[string][]int64{}}
	if r := stored.Digests; r != nil && r.Algorithm == sumAlgorithm {
		d.known.inMeta, d.known.others, d.known.checkedInMeta = r.Files, r.Others, r.Checked
		if r.Digests != nil {
			d.known.whole = r.Digests.Whole
		}
	}
	if m.FormatVersion != FormatVersion {
		return readError(label, "format_version is %d; this version of GraphNB reads %d", m.FormatVersion, FormatVersion)
	}
	if src, ok := src.(*directory); ok && !src.lax {
		if why := stored.verifyText(text); why != "" {
			return &DigestError{Path: label, Why: why, Part: m.Part != nil || m.Parts != nil}
		}
		d.known.signed = stored.signed()
	}
	switch {
	case m.Name == "":
		return readError(label, "name is missing")
	case m.NumNodes < 0 || m.NumNodes > math.MaxInt32:
		return readError(label, "num_nodes is %d; node ids are int32, so it must lie in [0, %d]", m.NumNodes, math.MaxInt32)
	case m.NumEdges < 0:
		return readError(label, "num_edges is %d", m.NumEdges)
	case m.EdgeFeatureDim < 0 || m.EdgeFeatureDim > math.MaxInt32:
		return readError(label, "edge_feature_dim is %d; it must lie in [0, %d]", m.EdgeFeatureDim, math.MaxInt32)
	case len(m.EdgeFeatureNames) > 0 && len(m.EdgeFeatureNames) != m.EdgeFeatureDim:
		return readError(label, "edge_feature_names has %d names for %d features of an edge", len(m.EdgeFeatureNames), m.EdgeFeatureDim)
	}
	if err := m.checkSizes(); err != nil {
		return readError(label, "%w", err)
	}
	if err := m.checkParts(); err != nil {
		return readError(label, "%w", err)
	}
	if err := checkSplitNames(m.Splits); err != nil {
		return readError(label, "%w", err)
	}
	if err := m.checkTypes(); err != nil {
		return readError(label, "%w", err)
	}
	if g := m.Graphs; g != nil {
		if err := g.checkGraphs(); err != nil {
			return readError(label, "graphs: %w", err)
		}
	}
	if err := m.checkEventsMeta(); err != nil {
		return readError(label, "%w", err)
	}
	if a := m.EdgeAnswers; a != nil {
		if err := a.checkEdgeAnswersMeta(); err != nil {
			return readError(label, "edge_answers: %w", err)
		}
	}
	return nil
}

func (d *Dataset) loadGraph(src source) error {
	m := &d.Meta
	if m.Parts != nil && m.Parts.NoTopology {
		d.Graph = nil
		return nil
	}
	a, label, err := openNPY(src, indptrFile, "", nil)
	if err != nil {
		return err
	}
	if err := a.expect(label, []npy.Type{npyInt64}, m.NumNodes+1); err != nil {
		return err
	}
	indptr := view[int64](a.data)
	if first, last := indptr[0], indptr[m.NumNodes]; first != 0 || last != m.NumEdges {
		return readError(label, "it runs from %d to %d; num_edges in metadata.json is %d, so it must run from 0 to %d", first, last, m.NumEdges, m.NumEdges)
	}
	a, label, err = openNPY(src, indicesFile, "", nil)
	if err != nil {
		return err
	}
	if int64(int(m.NumEdges)) != m.NumEdges {
		return readError(label, "%d edges are more than this machine can address", m.NumEdges)
	}
	if err := a.expect(label, []npy.Type{npyInt32}, int(m.NumEdges)); err != nil {
		return err
	}
	d.Graph.Indptr, d.Graph.Indices = indptr, view[int32](a.data)
	return nil
}

func (d *Dataset) loadWeights(src source) error {
	if !d.Meta.Weighted || d.Graph == nil {
		return nil
	}
	a, label, err := openNPY(src, weightsFile, "weighted", true)
	if err != nil {
		return err
	}
	if err := a.expect(label, []npy.Type{npyFloat32}, len(d.Graph.Indices)); err != nil {
		return err
	}
	d.Graph = d.Graph.WithEdgeWeights(view[float32](a.data))
	return nil
}

func (d *Dataset) loadFeatures(src source) error {
	m := &d.Meta
	if m.FeatureDim == 0 || m.Parts != nil {
		return nil
	}
	var err error
	if m.FeatureFormat != "" {
		d.SparseFeatures, err = loadSparse(src, "", d.rows(), m.FeatureDim, m.FeatureFormat)
	} else {
		d.Features, err = loadMatrix(src, "", d.rows(), m.FeatureDim)
	}
	return err
}

// loadMatrix loads the dense features of a node type, or of all nodes.
func loadMatrix(src source, name string, rows, cols int) (*Matrix, error) {
	a, label, err := openNPY(src, ofType(featuresFile, name), "feature_dim", cols)
	if err != nil {
		return nil, err
	}
	if err := a.expect(label, []npy.Type{npyFloat32, npyFloat16}, rows, cols); err != nil {
		return nil, err
	}
	m := &Matrix{Rows: rows, Cols: cols}
	if a.dtype == npyFloat16 {
		m.F16 = view[uint16](a.data)
	} else {
		m.F32 = view[float32](a.data)
	}
	return m, nil
}

// loadSparse loads the sparse features of a node type, or of all nodes.
func loadSparse(src source, name string, rows, cols int, format string) (*Sparse, error) {
	s := &Sparse{Rows: rows, Cols: cols}
	a, indptrLabel, err := openNPY(src, ofType(featuresIndptrFile, name), "feature_format", format)
	if err != nil {
		return nil, err
	}
	if err := a.expect(indptrLabel, []npy.Type{npyInt64}, s.Rows+1); err != nil {
		return nil, err
	}
	s.Indptr = view[int64](a.data)
	a, label, err := openNPY(src, ofType(featuresIndicesFile, name), "feature_format", format)
	if err != nil {
		return nil, err
	}
	if len(a.shape) != 1 {
		return nil, readError(label, "its shape is %s; it must be a list of columns", npy.ShapeString(a.shape))
	}
	elements := a.shape[0]
	if err := a.expect(label, []npy.Type{npyInt32}, elements); err != nil {
		return nil, err
	}
	s.Indices = view[int32](a.data)
	if first, last := s.Indptr[0], s.Indptr[s.Rows]; first != 0 || last != int64(elements) {
		return nil, readError(indptrLabel, "it runs from %d to %d, but %s lists %d elements", first, last, ofType(featuresIndicesFile, name), elements)
	}
	if format == FormatCSR {
		if a, label, err = openNPY(src, ofType(featuresValuesFile, name), "feature_format", format); err != nil {
			return nil, err
		}
		if err := a.expect(label, []npy.Type{npyFloat32}, elements); err != nil {
			return nil, err
		}
		s.Values = view[float32](a.data)
	}
	return s, nil
}

func (d *Dataset) loadLabels(src source) error {
	m := &d.Meta
	if m.NumClasses == 0 || m.Parts != nil || m.Unlabelled {
		return nil
	}
	a, label, err := openNPY(src, labelsFile, "num_classes", m.NumClasses)
	if err != nil {
		return err
	}
	if m.MultiLabel {
		if err := a.expect(label, []npy.Type{npyInt8}, d.rows(), m.NumClasses); err != nil {
			return err
		}
		d.MultiLabels = &Multi{Rows: d.rows(), Cols: m.NumClasses, Data: view[int8](a.data)}
		return nil
	}
	if err := a.expect(label, []npy.Type{npyInt32, npyInt64}, d.rows()); err != nil {
		return err
	}
	d.Labels, err = d.int32s(&a, label, labelsFile)
	return err
}

// openNPY opens a section that the metadata promises by key = value; key is empty for a section
// that every dataset has.
func openNPY(src source, name, key string, value any) (npyArray, string, error) {
	data, label, err := src.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if key == "" {
			return npyArray{}, label, readError(label, "it does not exist, but every dataset needs it")
		}
		return npyArray{}, label, readError(label, "it does not exist, although %s in metadata.json requires it (%v)", key, value)
	}
	if err != nil {
		return npyArray{}, label, err
	}
	a, err := parseNPY(data)
	if err != nil {
		return a, label, readError(label, "%w", err)
	}
	return a, label, nil
}

// expect compares an array's type and shape with the metadata.
func (a *npyArray) expect(label string, types []npy.Type, shape ...int) error {
	if !slices.Contains(types, a.dtype) {
		return readError(label, "its elements are %v; they must be %v", a.dtype, types[0])
	}
	if !slices.Equal(a.shape, shape) {
		return readError(label, "its shape is %s; by metadata.json it must be %s", npy.ShapeString(a.shape), npy.ShapeString(shape))
	}
	return nil
}

// int32s returns the array of a section as int32: the file's own memory or, for int64, a copy.
func (d *Dataset) int32s(a *npyArray, label, name string) ([]int32, error) {
	if a.dtype == npyInt32 {
		return view[int32](a.data), nil
	}
	wide := view[int64](a.data)
	d.known.wide[name] = wide
	narrow := make([]int32, len(wide))
	for i, x := range wide {
		if x != int64(int32(x)) {
			return nil, readError(label, "entry %d is %d, which is out of int32's range", i, x)
		}
		narrow[i] = int32(x)
	}
	return narrow, nil
}

func readError(label, format string, args ...any) error {
	return fmt.Errorf("dataset: reading %s: "+format, append([]any{label}, args...)...)
}
