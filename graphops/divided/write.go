package divided

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
)

// Options configure [Write]. The zero value is a good default.
type Options struct {
	// NoTopology leaves the graph out of the directory: each part has the in-edges of its own nodes,
	// and no machine the whole graph.
	NoTopology bool
	// Progress is called from time to time, from the calling goroutine, with the share that is done.
	Progress func(share float64)
	// More writes further files into the directory before it becomes visible.
	More func(dir string) error
}

// Write divides ds into a directory of parts: of is the part of each node, from 0 to parts-1. The
// directory appears complete or not at all. Nothing is left when ctx ends.
//
// Events stay those of the whole dataset: their list is beside the parts, with positions in the whole graph.
//
// It checks the dataset first ([dataset.Dataset.CheckOnce]). Memory: some dozen bytes per node, and the sparse features of one
// part at a time. Dense features, and edges with all that they have, pass in pieces of 16 MiB, however large a part is.
func Write(ctx context.Context, dir string, ds *dataset.Dataset, of []int32, parts int, o Options) error {
	fail := func(err error) error { return fmt.Errorf("divided: writing %s: %w", dir, err) }
	switch {
	case ds == nil || ds.Graph == nil:
		return fail(errors.New("there is no dataset with a graph"))
	case Is(ds):
		return fail(fmt.Errorf("%s is divided already; divide the undivided dataset", ds.Name()))
	case ds.Graphs != nil:
		return fail(fmt.Errorf("%s has %d graphs, which are not divided; train on the whole dataset, of which each worker takes whole graphs", ds.Name(), ds.NumGraphs()))
	case ds.Targets != nil:
		return fail(fmt.Errorf("%s has targets of nodes, which parts do not hold yet; train on the whole dataset", ds.Name()))
	case ds.NodeTimes != nil:
		return fail(fmt.Errorf("%s has times of nodes, which parts do not hold yet; train on the whole dataset, or convert it without the column", ds.Name()))
	case ds.EdgeAnswers != nil:
		return fail(fmt.Errorf("%s has targets of edges, which parts do not hold yet; train on the whole dataset", ds.Name()))
	case len(ds.Meta.Questions) > 0:
		return fail(fmt.Errorf("%s has answers about nodes over time, which parts do not hold yet; train on the whole dataset, or convert it without them (Questions, --questions)", ds.Name()))
	case len(ds.EdgeSplits) > 0:
		return fail(fmt.Errorf("%s has splits of edges, which parts do not hold yet; train on the whole dataset", ds.Name()))
	case parts < 1 || len(of) != ds.Nodes():
		return fail(fmt.Errorf("%d parts and the parts of %d nodes, for %d nodes", parts, len(of), ds.Nodes()))
	}
	if err := ds.CheckZeroEvents("parts"); err != nil {
		return fail(err)
	}
	from := ds
	ds, _, err := ds.WithoutZeroWeights()
	if err != nil {
		return fail(err)
	}
	if err := ds.CheckOnce(ctx, dataset.CheckOnceOptions{}); err != nil {
		return fail(err)
	}
	digests, err := ds.Digests(ctx, nil)
	if err != nil {
		return fail(err)
	}
	err = mapped.Guard(func() error {
		w := writer{ctx: ctx, of: of, o: o, from: from}
		described := *ds // with what the types have
		described.Describe()
		one, err := Whole(ds)
		if err != nil {
			return err
		}
		whole := *one
		whole.Meta, w.ds = described.Meta, &whole
		w.types, w.relations = described.Meta.NodeTypes, described.Meta.Relations
		if err := w.number(parts); err != nil {
			return err
		}
		return atomicfile.BuildDir(dir, func(tmp string) error { return w.write(tmp, digests) })
	})
	if err != nil {
		return fail(err)
	}
	return nil
}

type writer struct {
	ctx context.Context
	ds  *dataset.Dataset // all nodes have features of one width
	o   Options

	from *dataset.Dataset // whose files of names are kept

	types     []dataset.NodeType // with the features of the dataset's types
	relations []graphops.Relation
	of        []int32
	rows      []int32   // the row of each node among the own nodes of its part
	own       [][]int32 // per part
	division  string    // identity
	done      int64     // bytes
	total     int64
}

// number lists each part's own nodes.
func (w *writer) number(parts int) error {
	w.own, w.rows = make([][]int32, parts), make([]int32, len(w.of))
	for v, p := range w.of {
		if p < 0 || int(p) >= parts {
			return fmt.Errorf("node %d is in part %d; the parts are 0 to %d", v, p, parts-1)
		}
		w.rows[v] = int32(len(w.own[p]))
		w.own[p] = append(w.own[p], int32(v))
	}
	w.total = w.ds.Bytes()
	if !w.o.NoTopology {
		w.total += 4 * w.ds.Edges()
	}
	return nil
}

func (w *writer) write(dir string, digests dataset.Digests) error {
	w.division = divisionOf(digests.Whole, w.of, len(w.own), w.o.NoTopology)
	info := &dataset.Parts{Count: len(w.own), NoTopology: w.o.NoTopology, Division: w.division, Of: digests}
	if x := w.ds.Features; x != nil {
		if info.FeatureType = "f32"; x.Half() {
			info.FeatureType = "f16"
		}
	}
	if x := w.ds.Graph.EdgeFeatures; x != nil {
		if info.EdgeFeatureType = "f32"; x.Half() {
			info.EdgeFeatureType = "f16"
		}
	}
	local := make([]int32, len(w.of)) // of the halo nodes of the part being written, plus 1
	for i := range w.own {
		sum, err := w.part(dir, i, local)
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		info.Sums = append(info.Sums, sum)
	}
	if err := w.names(dir); err != nil {
		return err
	}
	if w.o.More != nil {
		if err := w.o.More(dir); err != nil {
			return err
		}
	}
	top := &dataset.Dataset{
		Graph: w.ds.Graph, Splits: w.ds.Splits, Events: w.ds.Events, Meta: w.ds.Meta,
		Arrays: map[string]dataset.Array{
			arrayParts: {I32: w.of}, arrayRows: {I32: w.rows},
			arrayInDegrees: {I32: w.ds.Graph.InDegrees()}, arrayOutDegrees: {I32: w.ds.Graph.OutDegrees()},
		},
	}
	m := &top.Meta
	m.Parts, m.FeatureDim, m.NumClasses, m.MultiLabel = info, w.ds.FeatureDim(), w.ds.Classes(), w.ds.MultiLabels != nil
	m.FeatureFormat = formatOf(w.ds)
	edges := w.ds.EdgeShape()
	m.Weighted, m.EdgeFeatureDim, m.EdgeTimes = edges.Weighted, edges.FeatureCols, edges.Times
	m.NodeTypes, m.Relations = w.types, w.relations
	m.NumNodes, m.NumEdges = w.ds.Nodes(), w.ds.Edges()
	if w.o.NoTopology {
		top.Graph = nil
	}
	return dataset.WriteWith(w.ctx, dir, top, dataset.WriteOptions{Checked: true, Inside: true, Progress: w.progress()})
}

// names copies the original ids of the nodes, if the dataset has them.
func (w *writer) names(dir string) error {
	types := []graphops.NodeType{{}}
	if s := w.from.Schema(); s != nil {
		types = s.Nodes
	}
	for _, t := range types {
		file := dataset.NamesFile(t.Name)
		in, err := w.from.OpenFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		out, err := os.Create(filepath.Join(dir, file))
		if err == nil {
			_, err = io.Copy(out, in)
			err = errors.Join(err, out.Close())
		}
		if err = errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("copying %s: %w", file, err)
		}
	}
	return nil
}

// divisionOf identifies the division of a dataset with the digest whole.
func divisionOf(whole string, of []int32, parts int, noTopology bool) string {
	h := sha256.New()
	fmt.Fprintf(h, "graphnb division 1\n%s %d %t\n", whole, parts, noTopology)
	raw := make([]byte, 0, 1<<16)
	for chunk := range slices.Chunk(of, 1<<14) {
		raw = raw[:0]
		for _, p := range chunk {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(p))
		}
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// progress returns a function that reports the progress of one directory's writing as part of all.
func (w *writer) progress() func(done, total int64) {
	before := w.done
	return func(done, total int64) {
		w.done = before + done
		if w.o.Progress != nil {
			w.o.Progress(min(1, float64(w.done)/float64(max(1, w.total))))
		}
	}
}

// formatOf returns the format of the features.
func formatOf(ds *dataset.Dataset) string {
	switch s := ds.SparseFeatures; {
	case s == nil:
		return ""
	case s.Values == nil:
		return dataset.FormatCSROnes
	}
	return dataset.FormatCSR
}

// part writes part i, and returns its digest.
func (w *writer) part(dir string, i int, local []int32) (sum string, err error) {
	own, g := w.own[i], w.ds.Graph
	var halo []int32
	edges := int64(0)
	for _, v := range own {
		edges += int64(g.InDegree(v))
		for _, u := range g.InNeighbors(v) {
			if int(w.of[u]) != i && local[u] == 0 {
				local[u] = 1
				halo = append(halo, u)
			}
		}
	}
	slices.Sort(halo)
	for k, u := range halo {
		local[u] = int32(len(own)+k) + 1
	}
	n := len(own) + len(halo)
	indptr, first := make([]int64, 1, n+1), make([]int64, 0, len(own))
	for _, v := range own {
		first = append(first, g.Indptr[v])
		indptr = append(indptr, indptr[len(indptr)-1]+int64(g.InDegree(v)))
	}
	for range halo {
		indptr = append(indptr, edges)
	}
	part := lengthOf(g, edges)
	part.Indptr = indptr
	number := func(u int32) int32 {
		if int(w.of[u]) != i {
			return local[u] - 1
		}
		return w.rows[u]
	}
	ds := &dataset.Dataset{
		Graph: part, Features: w.ds.Features, SparseFeatures: w.ds.SparseFeatures, Labels: w.ds.Labels, MultiLabels: w.ds.MultiLabels,
		Splits: map[string][]int32{}, Meta: w.ds.Meta,
		Arrays: map[string]dataset.Array{arrayNodes: {I32: slices.Concat(own, halo, []int32{})}, arrayFirstEdge: {I64: first}},
	}
	ds.Meta.NodeTypes, ds.Meta.Relations, ds.Meta.NumEvents = nil, nil, 0
	ds.Meta.Part, ds.Meta.Undirected, ds.Meta.KnownAccuracies = &dataset.PartOf{Index: i, Own: len(own), Division: w.division}, false, nil
	if own == nil {
		own = []int32{}
	}
	o := dataset.WriteOptions{Checked: true, Rows: own, Edges: g, Number: number, Progress: w.progress()}
	at := dataset.PartDir(dir, i)
	if err := dataset.WriteWith(w.ctx, at, ds, o); err != nil {
		return "", err
	}
	for _, u := range halo {
		local[u] = 0
	}
	written, err := dataset.OpenPart(at)
	if err != nil {
		return "", err
	}
	defer written.Close()
	return written.Digest(w.ctx)
}

// lengthOf returns a graph of this number of edges that have what those of g have. Its arrays have that length alone: their
// content is that of other edges.
func lengthOf(g *graphops.Graph, edges int64) *graphops.Graph {
	all := g.EdgeData()
	data := graphops.EdgeData{Weights: upTo(all.Weights, edges), Times: upTo(all.Times, edges), Types: upTo(all.Types, edges)}
	if x := all.Features; x != nil {
		data.Features = &graphops.EdgeFeatures{Cols: x.Cols, F32: upTo(x.F32, edges*int64(x.Cols)), F16: upTo(x.F16, edges*int64(x.Cols))}
	}
	part := &graphops.Graph{Indices: upTo(g.Indices, edges)}
	return part.WithEdges(data)
}

// upTo returns the first n elements of x; nil stays nil.
func upTo[T any](x []T, n int64) []T {
	if x == nil {
		return nil
	}
	return x[:n:n]
}
