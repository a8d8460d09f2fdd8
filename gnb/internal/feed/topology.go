package feed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Topology describes a graph whose edges are divided among the ranks.
type Topology struct {
	Edges    graphops.EdgeShape // what each edge has
	Part     []int32            // the part of each node
	OwnerOf  []int              // the rank of each part
	Rows     sample.Rows        // of the nodes of this rank's parts
	InDegree []int32            // of each node
}

// TopologyOf describes the parts of a divided dataset that belong to a rank: part p of P belongs to
// rank p·world/P.
func TopologyOf(b *divided.Book, rank, world int) (Topology, error) {
	rows, err := b.Rows(b.PartsOf(rank, world))
	if err != nil {
		return Topology{}, fmt.Errorf("gnb: rank %d needs the edges of its parts: %w", rank, err)
	}
	return Topology{Edges: rows.Edges(), Part: b.Of(), OwnerOf: b.Ranks(world), Rows: rows, InDegree: b.InDegrees()}, nil
}

// CheckTopology returns whether a run samples at the owners of edges, by the option Topology.
func CheckTopology(topology string, ds *dataset.Dataset) (asks bool, err error) {
	switch {
	case topology != "" && topology != "replicated" && topology != "divided":
		return false, fmt.Errorf(`gnb: Topology is %q; it is "replicated" or "divided"`, topology)
	case ds == nil:
		return false, nil
	case topology == "divided" && !divided.Is(ds):
		return false, fmt.Errorf(`gnb: Topology is "divided", but %s is not divided into parts; divide it with gnb partition --out`, ds.Name())
	case ds.Graph == nil && !divided.Is(ds):
		return false, errors.New("gnb: " + ds.WhyNoGraph())
	case ds.Graph == nil && topology == "replicated" && divided.IsFar(ds):
		return false, fmt.Errorf(`gnb: Topology is "replicated", but the edges of %s are at its servers; load %s`, ds.Name(), ds.Meta.Parts.WithCopy("topology"))
	case ds.Graph == nil && topology == "replicated":
		return false, fmt.Errorf(`gnb: Topology is "replicated", but %s was divided without its topology; leave Topology out, or divide it again with the topology`, ds.Name())
	}
	return ds.Graph == nil || topology == "divided", nil
}

// WithTopology says how a run gets all edges of a divided dataset onto each machine.
func WithTopology(ds *dataset.Dataset) string {
	switch {
	case ds.Graph != nil:
		return `leave Topology "divided" out`
	case divided.IsFar(ds):
		return "load " + ds.Meta.Parts.WithCopy("topology")
	}
	return "divide the dataset with its topology (gnb partition without --no-topology)"
}

// Divided returns a sampler for this rank's share of each batch: at each hop the ranks ask each
// other for the edges of the nodes that they reach. The dataset is divided. Collective.
func (t *Team) Divided(c sample.Config) (sample.Batcher, error) {
	if divided.IsFar(t.o.Data) {
		return t.far(c)
	}
	topology, err := t.Topology()
	if err != nil {
		return nil, err
	}
	return t.divided(c, topology)
}

// ownRows are edges of this rank's nodes, and the in-degrees of all nodes.
type ownRows struct {
	rows     sample.Rows
	inDegree []int32
}

// UseRows makes this rank answer for other edges of its nodes than those of its parts. inDegrees are those of all nodes.
// All ranks call it, before the first sampler and before Degrees.
func (t *Team) UseRows(rows sample.Rows, inDegrees []int32) {
	t.rows, t.within = &ownRows{rows, inDegrees}, nil
}

// Topology describes the edges that this rank answers for: those of its parts, or of UseRows.
func (t *Team) Topology() (Topology, error) {
	book, err := divided.Of(t.o.Data)
	if err != nil {
		return Topology{}, err
	}
	topology, err := TopologyOf(book, t.o.Comm.Rank(), t.o.Comm.Size())
	if own := t.rows; own != nil {
		topology.Rows, topology.InDegree, topology.Edges = own.rows, own.inDegree, own.rows.Edges()
	}
	return topology, err
}

// RowsHere returns the edges that this rank can look at: those that it answers for, or none of a dataset at servers.
func (t *Team) RowsHere() (sample.Rows, error) {
	if divided.IsFar(t.o.Data) {
		return noRows{t.o.Data.EdgeShape()}, nil
	}
	topology, err := t.Topology()
	return topology.Rows, err
}

// noRows are the rows of a graph that is elsewhere.
type noRows struct{ shape graphops.EdgeShape }

func (noRows) Row(int32) (r sample.Row, ok bool) { return r, false }
func (noRows) Find([]int32, []sample.Place) int  { return 0 }
func (noRows) Arrays() []sample.RowArray         { return nil }
func (n noRows) Edges() graphops.EdgeShape       { return n.shape }

var _ sample.Rows = noRows{}

// DegreesOf returns the degrees of other edges of a divided graph, as those of UseRows. Collective.
func (t *Team) DegreesOf(rows sample.Rows, inDegrees []int32) (graphops.Degrees, error) {
	topology, err := t.Topology()
	if err != nil {
		return nil, err
	}
	topology.Rows, topology.InDegree, topology.Edges = rows, inDegrees, rows.Edges()
	return topology.degrees(t.o.Comm, t.o.Site("degrees of a divided graph"))
}

// Exchange sends send[r] to rank r and returns what every rank has sent to this one. Beside is set for calls in the
// goroutine that samples a loop's batches with the other ranks: there a rank that has left the loop is found, by
// [sample.ErrLeft]. No message may have four bytes. The kind is that of a call that is not beside. Collective.
func (t *Team) Exchange(kind string, beside bool, send [][]byte) ([][]byte, error) {
	if !beside {
		return t.o.Comm.AllToAll(t.o.Site(kind), send)
	}
	if err := t.besides(); err != nil {
		return nil, t.fail(err)
	}
	got, err := t.beside.AllToAll(ahead(samplingDivided), send) // at the place where another rank may leave
	if err != nil {
		return nil, t.fail(err)
	}
	for r, b := range got {
		if r == t.beside.Rank() {
			continue
		}
		if slices.Equal(b, leavingHops) {
			return nil, fmt.Errorf("gnb: rank %d has %w; all ranks must leave it at the same step", r, sample.ErrLeft)
		}
		t.moved.Add(int64(len(b)))
	}
	return got, nil
}

func (t *Team) divided(c sample.Config, topology Topology) (sample.Batcher, error) {
	if err := t.besides(); err != nil {
		return nil, err
	}
	site := ahead(samplingDivided)
	if err := t.makeDegrees(topology, site); err != nil {
		return nil, err
	}
	world := t.beside.Size()
	x := &hopExchange{
		t: t, site: site, answerer: sample.NewAnswerer(topology.Rows, sample.AnswererOptions{Picker: c.Picker, Threads: c.Threads, NodeTimes: c.AsOf.NodeTimes}),
		send: make([][]byte, world), replies: make([]sample.HopReply, world),
	}
	s, err := sample.NewDivided(sample.Division{
		Nodes: len(topology.Part), Edges: topology.Edges, Owners: world, Part: topology.Part, OwnerOf: topology.OwnerOf,
		Degrees: t.degrees, Ask: x.ask,
	}, c)
	if err != nil {
		return nil, err
	}
	return &dividedSampler{s, x}, nil
}

func (t *Team) makeDegrees(topology Topology, site collective.Site) (err error) {
	if t.degrees == nil {
		t.degrees, err = topology.degrees(t.beside, site)
	}
	return err
}

// Degrees returns the degrees of the whole graph, which no rank has if it is divided without its
// topology. Collective in that case, unless servers have them.
func (t *Team) Degrees() (graphops.Degrees, error) {
	if g := t.o.Data.Graph; g != nil && t.rows == nil {
		return g, nil
	}
	if divided.IsFar(t.o.Data) {
		return t.farDegrees()
	}
	if t.degrees == nil {
		if err := t.besides(); err != nil {
			return nil, err
		}
		topology, err := t.Topology()
		if err != nil {
			return nil, err
		}
		if err := t.makeDegrees(topology, t.o.Site("degrees of a divided graph")); err != nil {
			return nil, err
		}
	}
	return t.degrees, nil
}

// dividedSampler is a sampler of this rank's share of batches, and its way to the other ranks.
type dividedSampler struct {
	*sample.Divided
	x *hopExchange
}

func (s *dividedSampler) Leave() error { return s.x.leave() }

// Sample implements [sample.Batcher].
func (s *dividedSampler) Sample(epoch, step int, seeds sample.Seeds) (*sample.Batch, error) {
	b, err := s.Divided.Sample(epoch, step, seeds)
	return b, s.x.t.fail(err)
}

// hopExchange sends a hop's requests to their owners, answers those of the other ranks, and
// receives the replies. All ranks do this at the same time, once for each hop of each batch.
type hopExchange struct {
	t        *Team
	site     collective.Site
	answerer *sample.Answerer
	send     [][]byte
	request  sample.HopRequest
	reply    sample.HopReply
	replies  []sample.HopReply
}

// samplingDivided is the place of all that the ranks exchange beside the program while they sample a divided graph: one of
// them may leave the loop in place of each.
const samplingDivided = "sampling a divided graph"

// leavingHops is the message of a rank that leaves a loop; a request is longer.
var leavingHops = []byte("left")

func (x *hopExchange) leave() error {
	for r := range x.send {
		x.send[r] = append(x.send[r][:0], leavingHops...)
	}
	_, err := x.t.beside.AllToAll(x.site, x.send)
	return err
}

func (x *hopExchange) ask(requests []sample.HopRequest) ([]sample.HopReply, error) {
	me := x.t.beside.Rank()
	own := &requests[me]
	for r := range x.send {
		x.send[r] = x.send[r][:0]
		if r != me {
			x.send[r] = requests[r].Append(x.send[r])
		}
	}
	got, err := x.exchange()
	if err != nil {
		return nil, err
	}
	for r := range x.send {
		x.send[r] = x.send[r][:0]
		if r == me {
			continue
		}
		if slices.Equal(got[r], leavingHops) {
			return nil, fmt.Errorf("gnb: rank %d has %w before step %d; all ranks must leave it at the same step", r, sample.ErrLeft, own.Step)
		}
		q := &x.request
		if err := q.Decode(got[r]); err != nil {
			return nil, fmt.Errorf("gnb: a message of rank %d: %w", r, err)
		}
		if q.Epoch != own.Epoch || q.Step != own.Step || q.Hop != own.Hop || q.Seed != own.Seed || q.Purpose != own.Purpose || q.Picker != own.Picker || q.Fanout != own.Fanout {
			return nil, fmt.Errorf("gnb: rank %d samples hop %d of epoch %d, step %d, and rank %d another batch; all ranks must sample the same batches with the same sampler", me, own.Hop, own.Epoch, own.Step, r)
		}
		if err := x.answerer.Answer(q, &x.reply); err != nil {
			return nil, fmt.Errorf("gnb: answering rank %d: %w", r, err)
		}
		x.send[r] = x.reply.Append(x.send[r])
	}
	if err := x.answerer.Answer(own, &x.replies[me]); err != nil {
		return nil, err
	}
	if got, err = x.exchange(); err != nil {
		return nil, err
	}
	for r := range x.replies {
		if r == me {
			continue
		}
		if err := x.replies[r].Decode(got[r]); err != nil {
			return nil, fmt.Errorf("gnb: a message of rank %d: %w", r, err)
		}
	}
	return x.replies, nil
}

// exchange sends x.send and counts what it receives.
func (x *hopExchange) exchange() ([][]byte, error) {
	got, err := x.t.beside.AllToAll(x.site, x.send)
	for r, b := range got {
		if r != x.t.beside.Rank() {
			x.t.moved.Add(int64(len(b)))
		}
	}
	return got, err
}

// degrees gathers the degrees of all nodes, each from the rank that has its edges: 4 bytes for each
// node, 8 with weights. Collective.
func (t *Topology) degrees(c collective.Comm, site collective.Site) (*graphops.DegreeTable, error) {
	site.Kind = "degrees of a divided graph"
	nodes := len(t.Part)
	d := &graphops.DegreeTable{In: t.InDegree, Looped: make([]float32, nodes)}
	if t.Edges.Weighted {
		d.Loops = make([]float32, nodes)
	}
	var mine []byte
	put := func(x float32) { mine = binary.LittleEndian.AppendUint32(mine, math.Float32bits(x)) }
	each := func(rank int, f func(v int32)) {
		for v, p := range t.Part {
			if t.OwnerOf[p] == rank {
				f(int32(v))
			}
		}
	}
	missing := int32(-1)
	each(c.Rank(), func(v int32) {
		row, ok := t.Rows.Row(v)
		if !ok {
			missing = v
			return
		}
		looped, loop := row.LoopedDegree(v)
		put(looped)
		if t.Edges.Weighted {
			put(loop)
		}
	})
	if missing >= 0 {
		return nil, fmt.Errorf("gnb: rank %d does not have the in-edges of node %d, which belongs to it", c.Rank(), missing)
	}
	all, err := c.AllGather(site, mine)
	if err != nil {
		return nil, err
	}
	for r, b := range all {
		short := false
		take := func() float32 {
			if len(b) < 4 {
				short = true
				return 0
			}
			x := math.Float32frombits(binary.LittleEndian.Uint32(b))
			b = b[4:]
			return x
		}
		each(r, func(v int32) {
			d.Looped[v] = take()
			if t.Edges.Weighted {
				d.Loops[v] = take()
			}
		})
		if short || len(b) > 0 {
			return nil, fmt.Errorf("gnb: rank %d has the degrees of another number of nodes; all ranks must have the same division", r)
		}
	}
	return d, nil
}
