package links

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// InferOptions configure [Infer], [Score] and [Recommend].
type InferOptions struct {
	// InferOptions are the options of gnb.Infer: workers, threads, device, and which weights.
	gnb.InferOptions
	// Decoder is the name of the decoder of a run whose program made it itself; "" means the run's.
	Decoder string
	// Relation is the relation of a dataset with types whose edges are scored; "" means that of a run of
	// [Train]. Recommend needs it for a run of another program.
	Relation string
	// Training computes embeddings with the message edges of the run's split alone, as the run's own
	// evaluation does, instead of all edges of the dataset. It needs a run of [Train] and its dataset.
	Training bool
}

// RecommendOptions configure [Recommend].
type RecommendOptions struct {
	InferOptions
	// ExcludeKnown recommends no node to which the node has an edge (of the relation): an edge of the dataset
	// or, with Training, a training edge of the run.
	ExcludeKnown bool
	// Candidates are the nodes that can be recommended, ascending and each once; nil means all nodes, of a
	// relation those of the type that it leads to.
	Candidates []int32
}

// Scores is the result of [Score].
type Scores struct {
	// Values are the scores of the pairs, in their order: logits, the higher the more likely an edge.
	Values  []float32
	Seconds float64 // to compute embeddings and scores, without the start of the workers
	Weights string  // the file that the weights were read from
}

// Recommendations is the result of [Recommend].
type Recommendations struct {
	// Nodes are those to which is recommended. Top has a row for each.
	Nodes []int32
	Top
	Seconds float64
	Weights string
}

// Score computes the scores of pairs of nodes, Src[i] → Dst[i], by the network of a run of [Train], or of
// a program that made it by [New]: embeddings of all nodes with all their neighbours, and the decoder's
// score of each pair. The workers divide the nodes and the pairs. It uses the weights of the best epoch
// if the run has them, else the final ones.
//
// It returns an error for a pair of nodes that the dataset does not have, for a dataset that does not
// fit the network, for a run that does not predict links, and, as gnb.Infer does, for embeddings that
// are not finite. The scores do not depend on workers. Cost: an evaluation with all neighbours, and a
// decoder's score for each pair.
func Score(ctx context.Context, run *runs.Run, ds *gnb.Dataset, e Edges, o InferOptions) (Scores, error) {
	if err := checkInfer(ctx, run, ds, "Score"); err != nil {
		return Scores{}, err
	}
	if err := checkPairs(e, ds); err != nil {
		return Scores{}, err
	}
	of, err := o.relation(run, ds)
	if err != nil {
		return Scores{}, err
	}
	if of != nil {
		if err := of.Check(e); err != nil {
			return Scores{}, fmt.Errorf("links: Score: %w", err)
		}
	}
	a := inferArgs{Task: "score", A: packIDs(e.Src), B: packIDs(e.Dst)}
	r, raw, err := infer(ctx, run, ds, a, o)
	if err != nil {
		return Scores{}, err
	}
	s := Scores{Values: make([]float32, e.Len()), Seconds: r.Value("seconds"), Weights: r.weights}
	return s, binary.Read(bytes.NewReader(raw), binary.LittleEndian, s.Values)
}

// Recommend returns the k best destinations of an edge from each of the given nodes (nil means all
// nodes, or all sources of the relation), by the network of a run, as [Score] scores them: an exact ranking of all candidates, of equal
// scores the smaller id first; see [pairs.TopK]. A node is not recommended to itself. The workers divide
// the nodes, and compute scores in blocks: memory is that of the result, never nodes × nodes.
//
// It returns the errors of [Score], and one if k is above the number of candidates. A node with fewer
// than k candidates that are left gets fewer (see [pairs.Top.Of]). The result does not depend on
// workers. Cost: len(nodes)·candidates scores.
func Recommend(ctx context.Context, run *runs.Run, ds *gnb.Dataset, nodes []int32, k int, o RecommendOptions) (Recommendations, error) {
	if err := checkInfer(ctx, run, ds, "Recommend"); err != nil {
		return Recommendations{}, err
	}
	of, err := o.relation(run, ds)
	if err != nil {
		return Recommendations{}, err
	}
	if of == nil && ds.Schema() != nil {
		return Recommendations{}, fmt.Errorf("links: %s has types, so Recommend needs the Relation whose destinations to recommend: one of %s", ds.Name(), ds.Schema().RelationNames())
	}
	if nodes == nil {
		if of != nil {
			nodes = of.Sources()
		} else {
			for v := range ds.Nodes() {
				nodes = append(nodes, int32(v))
			}
		}
	}
	if of != nil {
		if o.Candidates == nil {
			o.Candidates = of.Destinations()
		}
		if err := of.CheckEnds(nodes, o.Candidates); err != nil {
			return Recommendations{}, fmt.Errorf("links: Recommend: %w", err)
		}
	}
	top := TopOptions{K: k, Candidates: o.Candidates}
	if err := top.Check(nodes, ds.Nodes()); err != nil {
		return Recommendations{}, err
	}
	a := inferArgs{Task: "recommend", A: packIDs(nodes), K: k, ExcludeKnown: o.ExcludeKnown}
	if of != nil {
		a.Relation = of.String()
	}
	if o.Candidates != nil {
		a.B, a.Some = packIDs(o.Candidates), true
	}
	r, raw, err := infer(ctx, run, ds, a, o.InferOptions)
	if err != nil {
		return Recommendations{}, err
	}
	rec := Recommendations{Nodes: nodes, Top: Top{K: k, IDs: make([]int32, k*len(nodes)), Scores: make([]float32, k*len(nodes))}, Seconds: r.Value("seconds"), Weights: r.weights}
	in := bytes.NewReader(raw)
	if err := binary.Read(in, binary.LittleEndian, rec.IDs); err != nil {
		return rec, err
	}
	return rec, binary.Read(in, binary.LittleEndian, rec.Scores)
}

// Infer computes the embeddings of all nodes by the network of a run, and writes them to a NumPy file:
// float32 [nodes, columns]. Otherwise it is as [Score].
func Infer(ctx context.Context, run *runs.Run, ds *gnb.Dataset, out string, o InferOptions) (gnb.InferResult, error) {
	var none gnb.InferResult
	if err := checkInfer(ctx, run, ds, "Infer"); err != nil {
		return none, err
	}
	if out == "" {
		return none, errors.New("links: Infer needs the name of a .npy file to write")
	}
	write, deliver, err := runfile.Output(runfile.Absolute(out), gnb.ErrInterrupted)
	if err != nil {
		return none, err
	}
	r, _, err := infer(ctx, run, ds, inferArgs{Task: "embed", Out: write}, o)
	if err = deliver(ctx, err); err != nil {
		return none, err
	}
	return gnb.InferResult{Nodes: ds.Nodes(), Seconds: r.Value("seconds"), Value: math.NaN(), Weights: r.weights, Out: runfile.Absolute(out)}, nil
}

// inferArgs is the argument of the program behind Infer, Score and Recommend.
type inferArgs struct {
	Task             string
	Encoder, Decoder string
	Sizes            gnb.ModelConfig
	Weights          string
	Train            *recorded `json:",omitempty"` // whose split has the messages; nil for all edges
	Seed             uint64    `json:",omitempty"` // of that split
	A, B             []byte    // little-endian ids: sources and destinations, or nodes and candidates
	Some             bool      // B has candidates
	K                int
	ExcludeKnown     bool
	Relation         string `json:",omitempty"` // whose destinations are recommended
	Out              string
}

// relation returns the relation whose edges a run's network scores, nil for a dataset without types and if it
// is not known.
func (o InferOptions) relation(run *runs.Run, ds *gnb.Dataset) (*Relation, error) {
	name := o.Relation
	if of, err := recordedIn(run); err == nil && name == "" {
		name = of.Relation
	}
	switch {
	case name == "":
		return nil, nil
	case ds.Schema() == nil:
		return nil, fmt.Errorf("links: the network of run %s scores edges of relation %s, and %s has no types of edges; take the dataset of the run", run.Config.ID, name, ds.Name())
	}
	r, err := pairs.NewRelation(ds.Schema(), name)
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	return r, nil
}

// inferred is a run of that program.
type inferred struct {
	*runs.Run
	weights string
}

// Predicts reports whether the network of a run predicts links, so that [Score] and [Recommend] take the run.
func Predicts(run *runs.Run) bool {
	return run != nil && run.Result.Model != nil && strings.Contains(run.Result.Model.Name, between)
}

func checkInfer(ctx context.Context, run *runs.Run, ds *gnb.Dataset, what string) error {
	if run == nil || ds == nil {
		return fmt.Errorf("links: %s needs a run (runs.Last, runs.Open) and a dataset (gnb.Load)", what)
	}
	if err := getdata.Opened(ctx, ds, true); err != nil {
		return err
	}
	asks, err := feed.CheckTopology("", ds)
	switch {
	case err != nil:
		return err
	case !asks:
		return checkGraph(ds)
	case divided.IsFar(ds):
		return farEdges(ds)
	case ds.Schema() != nil:
		return typedDivided(ds)
	}
	return nil
}

// infer runs the program, and returns what rank 0 wrote.
func infer(ctx context.Context, run *runs.Run, ds *gnb.Dataset, a inferArgs, o InferOptions) (r inferred, raw []byte, err error) {
	if ds, err = feed.AsTrained(ctx, "links", run.Config.ID, run.Config.FeatureNames, ds, o.Quiet, &notice.List{}); err != nil {
		return r, nil, err
	}
	file, info, err := run.WeightsFile(o.Final)
	if err != nil {
		return r, nil, err
	}
	if info = cmp.Or(run.Result.Model, info); info == nil {
		return r, nil, fmt.Errorf("links: run %s has not recorded its network; it is %s", run.Config.ID, run.Result.State)
	}
	encoder, decoder, ok := strings.Cut(info.Name, between)
	if !ok {
		return r, nil, fmt.Errorf("links: run %s has a network %q, which does not predict links; train one by links.Train, or in a program by links.New", run.Config.ID, info.Name)
	}
	if o.Decoder != "" {
		decoder = o.Decoder
	}
	sizes, err := info.Config.On(ds.Schema())
	if err != nil {
		return r, nil, fmt.Errorf("links: run %s and %s: %w", run.Config.ID, ds.Name(), err)
	}
	a.Encoder, a.Decoder, a.Sizes, a.Weights = encoder, decoder, sizes, file
	if _, err := newDecoder(decoder, info.Config.Out); err != nil {
		return r, nil, fmt.Errorf("links: the decoder of run %s is %s, which this program does not declare; declare it by links.DeclareDecoder, and give its name as Decoder: %w", run.Config.ID, decoder, err)
	}
	switch c := run.Config; {
	case info.Config.Embedding && c.Nodes != ds.Nodes():
		return r, nil, fmt.Errorf("links: run %s has learned a row for each of the %d nodes of %s, and %s has %d nodes; take the dataset of the run", c.ID, c.Nodes, c.Dataset, ds.Name(), ds.Nodes())
	case !info.Config.Embedding && ds.FeatureDim() != info.Config.In:
		return r, nil, fmt.Errorf("links: %s has %d features a node, and the network of run %s, of %s, takes %d; take the dataset of the run, or one with its features", ds.Name(), ds.FeatureDim(), c.ID, c.Dataset, info.Config.In)
	case o.Training && (c.Dataset != ds.Name() || c.Nodes != ds.Nodes() || c.Edges != ds.Edges()):
		return r, nil, fmt.Errorf("links: Training asks for the split of run %s, whose dataset is %s with %d nodes and %d edges, and %s has %d and %d; take the dataset of the run, or leave Training out", c.ID, c.Dataset, c.Nodes, c.Edges, ds.Name(), ds.Nodes(), ds.Edges())
	}
	if o.Training {
		t, err := recordedIn(run)
		if err != nil {
			return r, nil, fmt.Errorf("links: Training needs a run of links.Train, whose split is known; leave it out: %w", err)
		}
		t.LaunchOptions = gnb.LaunchOptions{}
		a.Train, a.Seed = &t, run.Config.Seed
	}
	dir := ""
	if a.Out == "" {
		if dir, err = os.MkdirTemp("", "gnb-links-"); err != nil {
			return r, nil, fmt.Errorf("links: %w", err)
		}
		defer os.RemoveAll(dir)
		a.Out = filepath.Join(dir, "result")
	}
	scratch, err := gnb.Launch(ctx, inferProgram, a, gnb.LaunchOptions{
		Data: ds, Scratch: true, Workers: o.Workers, Threads: o.Threads, Device: o.Device, PlaneOptions: gnb.PlaneOptions{Features: o.Features}, Quiet: o.Quiet, Title: a.Task + " " + ds.Name() + " by " + encoder,
	})
	if err != nil {
		return r, nil, err
	}
	if dir != "" {
		if raw, err = os.ReadFile(a.Out); err != nil {
			return r, nil, fmt.Errorf("links: reading the result of the workers: %w", err)
		}
	}
	return inferred{scratch, file}, raw, nil
}

// inferProgram computes embeddings, scores or recommendations, which rank 0 writes.
var inferProgram = gnb.Program("gnb.links.infer", func(w *gnb.Worker, a inferArgs) error {
	ds := w.Dataset()
	on, known, err := a.edges(w)
	if err != nil {
		return err
	}
	if a.Sizes.Embedding {
		w.WithoutFeatures()
	}
	d, err := newDecoder(a.Decoder, a.Sizes.Out)
	if err != nil { // Infer needs the decoder too, because the weights have its parameters
		return err
	}
	net := newNet(w, byName(a.Encoder), d, a.Decoder, a.Sizes)
	w.LoadWeights(net, a.Weights)
	w.Barrier()
	start := time.Now()
	var out []any
	switch a.Task {
	case "embed":
		return w.Outputs(net, nil, func(rows []float32, cols, _ int) error {
			w.Result("seconds", time.Since(start).Seconds())
			if w.Rank() != 0 {
				return nil
			}
			return dataset.WriteNPY(a.Out, ds.Nodes(), cols, rows[:ds.Nodes()*cols])
		})
	case "score":
		scores, err := scorePairs(w, net, on, Edges{Src: unpackIDs(a.A), Dst: unpackIDs(a.B)})
		if err != nil {
			return err
		}
		out = []any{scores}
	default:
		o := TopOptions{K: a.K}
		if a.Some {
			o.Candidates = unpackIDs(a.B)
		}
		if a.ExcludeKnown {
			if a.Relation != "" {
				of, err := pairs.NewRelation(ds.Schema(), a.Relation)
				if err != nil {
					return err
				}
				known = of.Of(known)
			}
			if on.parted != nil {
				o.Known, err = on.parted.destinations(known, false, unpackIDs(a.A))
			} else {
				o.Known = pairs.Destinations(known)
			}
			if err != nil {
				return err
			}
		}
		top, err := topNodes(w, net, on, unpackIDs(a.A), o)
		if err != nil {
			return err
		}
		out = []any{top.IDs, top.Scores}
	}
	w.Result("seconds", time.Since(start).Seconds())
	if w.Rank() != 0 {
		return nil
	}
	var b bytes.Buffer
	for _, x := range out {
		if err := binary.Write(&b, binary.LittleEndian, x); err != nil {
			return err
		}
	}
	return atomicfile.WriteFile(a.Out, b.Bytes(), 0o600)
})

// edges makes the worker compute on the edges of the dataset or, with a split, on its messages. It returns these, and the
// edges that are known. Collective.
func (a inferArgs) edges(w *gnb.Worker) (on messages, known *graphops.Graph, err error) {
	var split *Split
	if a.Train != nil {
		if split, err = a.Train.split(w, a.Seed); err != nil {
			return on, nil, err
		}
	}
	t := w.Owners()
	switch {
	case t == nil && split == nil:
		return messages{graph: w.Dataset().Graph}, w.Dataset().Graph, nil
	case t == nil:
		w.UseGraph(split.Message)
		return messages{graph: split.Message}, split.Training, nil
	}
	var peers pairs.Peers
	if split != nil {
		on.graph, known, peers = split.Message, split.Training, split.Divided.Peers()
	} else {
		if on.graph, peers, err = owned(w, t); err != nil {
			return on, nil, err
		}
		known = on.graph
	}
	if on.in, err = peers.Degrees(on.graph); err != nil {
		return on, nil, err
	}
	on.parted, err = useMessages(w, t, peers, on.graph, on.graph.Indptr, on.in) // positions do not matter to evaluations
	return on, known, err
}

// packIDs encodes ids for the argument of a program, which travels as JSON.
func packIDs(ids []int32) []byte {
	b := make([]byte, 0, 4*len(ids))
	for _, v := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func unpackIDs(b []byte) []int32 {
	ids := make([]int32, len(b)/4)
	for i := range ids {
		ids[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return ids
}
