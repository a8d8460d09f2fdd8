package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

// Parts describes a dataset divided into parts: a directory with the splits and, unless NoTopology
// is set, the graph, and one directory per part ([PartDir]) with the features and labels of the
// part's own nodes. Package divided writes and reads it.
type Parts struct {
	Count int `json:"count"`
	// Servers is the address of the graph servers that have the parts, grpc://HOST:PORT; empty if the
	// parts are directories.
	Servers string `json:"servers,omitempty"`
	// NoTopology says that the directory has no graph; each part has the in-edges of its own nodes.
	NoTopology bool `json:"no_topology,omitempty"`
	// FeatureType is the element type of dense features: "f32" or "f16"; empty if there are none.
	FeatureType     string `json:"feature_type,omitempty"`
	EdgeFeatureType string `json:"edge_feature_type,omitempty"` // of the features of edges
	// Division identifies the division: the dataset, and the part of each node. It is empty if an older
	// version wrote the directory.
	Division string `json:"division,omitempty"`
	// Of are the digests of the undivided dataset.
	Of Digests `json:"of"`
	// Sums are the digests of the parts.
	Sums []string `json:"sums"`
}

// PartOf describes one part of a divided dataset: its first Own nodes are the part's own.
type PartOf struct {
	Index    int    `json:"index"`
	Own      int    `json:"own"`
	Division string `json:"division,omitempty"` // that of the directory above
}

// WhyNoGraph says why Graph is nil, and what gives the dataset one.
func (d *Dataset) WhyNoGraph() string {
	p := d.Meta.Parts
	switch {
	case p == nil:
		return fmt.Sprintf("dataset %q has no Graph; make one with graphops.FromEdges", d.Name())
	case p.Servers != "":
		return fmt.Sprintf("the edges of %s are at its servers; load %s", d.Name(), p.WithCopy("all"))
	}
	return fmt.Sprintf("%s was divided without its topology; divide it again with the topology", d.Name())
}

// WithCopy returns the servers' address from which a program copies "topology" or "all".
func (p *Parts) WithCopy(what string) string {
	if strings.Contains(p.Servers, "?") {
		return p.Servers + "&copy=" + what
	}
	return p.Servers + "?copy=" + what
}

// Array is a further array of a divided dataset or of a part, such as the global ids of a part's
// nodes. One of the two is set.
type Array struct {
	I32 []int32
	I64 []int64
}

// ErrOtherPart is the error for a part that does not belong where it is: another one of the division, or one of
// another division or other data.
var ErrOtherPart = errors.New("another part belongs here")

// PartDir returns the directory of a part below that of the divided dataset.
func PartDir(dir string, part int) string { return filepath.Join(dir, fmt.Sprintf("part-%04d", part)) }

// PartBytes returns the number of a divided dataset's parts whose directories are here, and the size of their files.
func (d *Dataset) PartBytes() (parts int, bytes int64) {
	if d.Meta.Parts == nil || d.dir == "" {
		return 0, 0
	}
	for part := range d.Meta.Parts.Count {
		files, err := os.ReadDir(PartDir(d.dir, part))
		if err != nil {
			continue // on another machine
		}
		parts++
		for _, f := range files {
			if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			}
		}
	}
	return parts, bytes
}

// rows is the number of rows of features and labels: one per node or, in a part, per own node.
func (d *Dataset) rows() int {
	if p := d.Meta.Part; p != nil {
		return p.Own
	}
	return d.Nodes()
}

// OpenPart maps the directory of one part, which [Open] refuses because its node ids are local.
func OpenPart(dir string) (*Dataset, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	if d.Meta.Part == nil {
		_ = d.Close()
		return nil, fmt.Errorf("dataset: %s is not a part of a divided dataset; open it as a dataset", dir)
	}
	return d, nil
}

// checkParts checks the metadata of a divided dataset or of a part.
func (m *Metadata) checkParts() error {
	if p := m.Parts; p != nil {
		switch {
		case p.Count < 1 || p.Count > m.NumNodes && p.Count > 1:
			return fmt.Errorf("parts.count is %d for %d nodes", p.Count, m.NumNodes)
		case len(p.Sums) != p.Count:
			return fmt.Errorf("parts.sums has %d entries for %d parts", len(p.Sums), p.Count)
		case (p.FeatureType != "f32" && p.FeatureType != "f16") != (m.FeatureDim == 0 || m.FeatureFormat != ""):
			return fmt.Errorf("parts.feature_type is %q for %d features", p.FeatureType, m.FeatureDim)
		case (p.EdgeFeatureType != "f32" && p.EdgeFeatureType != "f16") != (m.EdgeFeatureDim == 0):
			return fmt.Errorf("parts.edge_feature_type is %q for %d features of edges", p.EdgeFeatureType, m.EdgeFeatureDim)
		case m.Part != nil:
			return errors.New(`it has both "parts" and "part"`)
		}
	}
	if p := m.Part; p != nil && (p.Index < 0 || p.Own < 0 || p.Own > m.NumNodes) {
		return fmt.Errorf("part.index is %d and part.own %d for %d nodes", p.Index, p.Own, m.NumNodes)
	}
	for _, name := range m.Arrays {
		if !splitName.MatchString(name) {
			return fmt.Errorf("the array name %q: it must have at most 64 letters, digits, _ and -, because it is part of a file name", name)
		}
	}
	return nil
}

// loadArrays loads the further arrays that the metadata lists.
func (d *Dataset) loadArrays(src source) error {
	for _, name := range d.Meta.Arrays {
		a, label, err := openNPY(src, name+".npy", "arrays", name)
		if err != nil {
			return err
		}
		if len(a.shape) != 1 {
			return readError(label, "its shape is %s; it must be a list", npy.ShapeString(a.shape))
		}
		if err := a.expect(label, []npy.Type{npyInt32, npyInt64}, a.shape[0]); err != nil {
			return err
		}
		if d.Arrays == nil {
			d.Arrays = map[string]Array{}
		}
		if a.dtype == npyInt64 {
			d.Arrays[name] = Array{I64: view[int64](a.data)}
		} else {
			d.Arrays[name] = Array{I32: view[int32](a.data)}
		}
	}
	return nil
}

// furtherArrays returns the arrays of d.Arrays by name.
func (d *Dataset) furtherArrays() (list []array) {
	for _, name := range slices.Sorted(maps.Keys(d.Arrays)) {
		a := d.Arrays[name]
		if a.I64 != nil {
			list = append(list, array{name + ".npy", npyInt64, []int{len(a.I64)}, rawBytes(a.I64)})
		} else {
			list = append(list, array{name + ".npy", npyInt32, []int{len(a.I32)}, rawBytes(a.I32)})
		}
	}
	return list
}

// dividedDigests returns the digests of the undivided dataset, after comparing every file that is
// here with its sum: those of the directory and of the parts on this machine.
func (d *Dataset) dividedDigests(ctx context.Context, report func(done, total int64)) (Digests, error) {
	sums, err := d.sums(ctx, report)
	if err != nil {
		return Digests{}, err
	}
	if err := d.compareSums(sums); err != nil {
		return Digests{}, err
	}
	for i, want := range d.Meta.Parts.Sums {
		dir := PartDir(d.dir, i)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // another machine has it
		}
		err := func() error {
			p, err := OpenPart(dir)
			if err != nil {
				return err
			}
			defer p.Close()
			sums, err := p.sums(ctx, nil)
			if err != nil {
				return err
			}
			if err := p.compareSums(sums); err != nil {
				return err
			}
			if got := p.digestsOf(sums).Whole; got != want {
				return fmt.Errorf("dataset: %s is not part %d of this division: %w: its content has the digest %.16s, and the division's metadata.json says %.16s; copy the part that was written with it", dir, i, ErrOtherPart, got, want)
			}
			return nil
		}()
		if err != nil {
			return Digests{}, err
		}
	}
	return d.Meta.Parts.Of, nil
}

// compareSums compares the sums of files with those recorded when they were written.
func (d *Dataset) compareSums(sums map[string]string) error {
	whole := d
	for whole.whole != nil {
		whole = whole.whole
	}
	for _, a := range whole.arrays() {
		want, got := whole.known.inMeta[a.section].Sum, sums[a.section]
		switch {
		case want == "":
			return d.wrong(MetadataFile, "it has no sum of %s; divide the dataset again", a.section)
		case got != "" && got != want:
			return d.differs(a.section, got, want)
		}
	}
	return nil
}

// selectRows returns d with the rows of features and labels that rows lists, to be written by WriteWith.
// Dense features stay where they are, and are read row by row.
func (d *Dataset) selectRows(rows []int32) *Dataset {
	s := *d
	if d.SparseFeatures != nil {
		s.SparseFeatures = &Sparse{}
		d.SparseFeatures.Gather(rows, s.SparseFeatures, 0)
	}
	if d.Labels != nil {
		s.Labels = make([]int32, len(rows))
		for i, v := range rows {
			s.Labels[i] = d.Labels[v]
		}
	}
	if m := d.MultiLabels; m != nil {
		s.MultiLabels = &Multi{Rows: len(rows), Cols: m.Cols, Data: make([]int8, 0, len(rows)*m.Cols)}
		for _, v := range rows {
			s.MultiLabels.Data = append(s.MultiLabels.Data, m.Row(int(v))...)
		}
	}
	if d.Targets != nil {
		s.Targets = d.Targets.selected(rows)
	}
	if m := d.Features; m != nil {
		s.Features = &Matrix{Rows: len(rows), Cols: m.Cols, of: m, rows: rows}
	}
	return &s
}

// bytesOfRows returns n bytes, starting at byte at, of the rows that m selects.
func (m *Matrix) bytesOfRows(at, n int) []byte {
	size := 4
	if m.of.Half() {
		size = 2
	}
	stride := m.Cols * size
	body := make([]byte, 0, n+2*stride)
	first := at / stride
	for i := first; i*stride < at+n; i++ {
		lo := int(m.rows[i]) * m.Cols
		if m.of.Half() {
			body = append(body, rawBytes(m.of.F16[lo:lo+m.Cols])...)
		} else {
			body = append(body, rawBytes(m.of.F32[lo:lo+m.Cols])...)
		}
	}
	return body[at-first*stride:][:n:n]
}
