package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Nodes is the number of nodes of the dataset.
func (c *Client) Nodes() int { return c.hello.Metadata.NumNodes }

// Parts is the number of parts into which the servers divide the nodes.
func (c *Client) Parts() int { return len(c.holders) }

// RowBytes is the size of a node's features and LabelBytes that of its labels, 0 if there are none.
func (c *Client) RowBytes() int { return c.hello.RowBytes }

// LabelBytes is the size of a node's labels: 4 for an int32, or one int8 per class.
func (c *Client) LabelBytes() int { return c.hello.LabelBytes }

// Rows writes the features of nodes to dst [len(nodes)·RowBytes], in their order and in the stored
// type: float32 or float16, little-endian. Nodes are asked for at their servers at the same time.
func (c *Client) Rows(ctx context.Context, nodes []int32, dst []byte) error {
	return c.gather(ctx, bulk.Features, c.hello.RowBytes, nodes, dst)
}

// Scatter is Rows with the memory to(i) [RowBytes] for the features of nodes[i]. Several goroutines call to, once for
// each i and attempt.
func (c *Client) Scatter(ctx context.Context, nodes []int32, to func(i int) []byte) error {
	return c.scatter(ctx, bulk.Features, c.hello.RowBytes, nodes, to)
}

// Labels writes the labels of nodes to dst [len(nodes)·LabelBytes].
func (c *Client) Labels(ctx context.Context, nodes []int32, dst []byte) error {
	return c.gather(ctx, bulk.Labels, c.hello.LabelBytes, nodes, dst)
}

func (c *Client) gather(ctx context.Context, what bulk.What, size int, nodes []int32, dst []byte) error {
	if len(dst) != len(nodes)*size {
		return fmt.Errorf("remote: the %s of %d nodes have %d bytes, and there is room for %d", what, len(nodes), len(nodes)*size, len(dst))
	}
	return c.scatter(ctx, what, size, nodes, func(i int) []byte { return dst[i*size : (i+1)*size] })
}

func (c *Client) scatter(ctx context.Context, what bulk.What, size int, nodes []int32, to func(i int) []byte) error {
	if size == 0 {
		return fmt.Errorf("remote: %s has no %s", c.hello.Metadata.Name, what)
	}
	places, err := c.byPartOf(ctx, nodes)
	if err != nil {
		return err
	}
	most := max(1, min(c.hello.Limits.Nodes, c.hello.Limits.Bytes/size))
	var calls together
	for p, at := range places {
		for len(at) > 0 {
			n := min(most, len(at))
			here := at[:n]
			at = at[n:]
			calls.start(ctx, func(ctx context.Context) error { return c.rows(ctx, what, size, p, nodes, here, to) })
		}
	}
	return calls.wait()
}

// byPartOf returns the places in nodes of those of each part.
func (c *Client) byPartOf(ctx context.Context, nodes []int32) ([][]int, error) {
	parts, err := c.partOf(ctx)
	if err != nil {
		return nil, err
	}
	places := make([][]int, len(c.holders))
	for i, v := range nodes {
		if uint(v) >= uint(len(parts)) {
			return nil, fmt.Errorf("remote: node %d does not exist; %s has the nodes 0 to %d", v, c.hello.Metadata.Name, len(parts)-1)
		}
		places[parts[v]] = append(places[parts[v]], i)
	}
	return places, nil
}

// rows gets the rows of nodes[i], for i in places, which are in one part.
func (c *Client) rows(ctx context.Context, what bulk.What, size, part int, nodes []int32, places []int, to func(i int) []byte) error {
	q := bulk.RowsRequest{What: what, Nodes: make([]int32, len(places))}
	for i, at := range places {
		q.Nodes[i] = nodes[at]
	}
	var (
		row   []byte // the last that has begun to come
		rest  []byte // of it
		begun int
		wrong error // of the first row that no server of a sound dataset sends
	)
	err := c.do(ctx, request{
		method: bulk.RowsMethod, body: q.Append(nil), what: fmt.Sprintf("the %s of %d nodes", what, len(places)), part: part, at: c.preferred(part),
		begin: func() { rest, begun, wrong = nil, 0, nil },
		take: func(b []byte) error {
			for len(b) > 0 {
				if len(rest) == 0 {
					if begun == len(places) {
						return errors.New("the answer is longer than what was asked for")
					}
					row = to(places[begun])
					rest = row
					begun++
				}
				n := copy(rest, b)
				if rest, b = rest[n:], b[n:]; len(rest) == 0 && wrong == nil { // the cache still has it
					wrong = c.checkRow(what, part, q.Nodes[begun-1], row)
				}
			}
			return nil
		},
	})
	if err == nil && (begun < len(places) || len(rest) > 0) {
		err = fmt.Errorf("remote: the %s of %d nodes have %d bytes, and %d came", what, len(places), len(places)*size, begun*size-len(rest))
	}
	if err == nil {
		err = wrong
	}
	return err
}

// checkRow refuses features that are not finite, and labels of classes that do not exist.
func (c *Client) checkRow(what bulk.What, part int, node int32, row []byte) error {
	from := c.servers[c.owner[part]].address
	if what == bulk.Features {
		if err := checkFinite(row, c.hello.Half); err != nil {
			at, _ := errors.AsType[notFinite](err)
			return fmt.Errorf("remote: the servers of part %d (%s) sent features of node %d that are not finite (column %d); their dataset is damaged or they are not to be trusted", part, from, node, int(at))
		}
		return nil
	}
	m := &c.hello.Metadata
	if m.MultiLabel {
		for k, x := range row {
			if int8(x) < -1 || int8(x) > 1 {
				return fmt.Errorf("remote: the servers of part %d (%s) sent %d as label %d of node %d; it is 0, 1 or -1", part, from, int8(x), k, node)
			}
		}
		return nil
	}
	if y := int32(binary.LittleEndian.Uint32(row)); y < -1 || int(y) >= m.NumClasses {
		return fmt.Errorf("remote: the servers of part %d (%s) sent the label %d of node %d; the classes are 0 to %d", part, from, y, node, m.NumClasses-1)
	}
	return nil
}

// preferred returns the servers of a part, its owner first.
func (c *Client) preferred(part int) []int {
	list := []int{c.owner[part]}
	for _, s := range c.holders[part] {
		if s != c.owner[part] {
			list = append(list, s)
		}
	}
	return list
}

// together runs calls at the same time, at most inFlight of them.
type together struct {
	once  sync.Once
	group sync.WaitGroup
	slots chan struct{}
	mu    sync.Mutex
	err   error
	end   context.CancelFunc
	ctx   context.Context
}

// inFlight is the largest number of requests of one call that are on their way.
const inFlight = 8

// start runs f in a goroutine. Its context ends when another call has failed.
func (t *together) start(ctx context.Context, f func(ctx context.Context) error) {
	t.once.Do(func() {
		t.slots = make(chan struct{}, inFlight)
		t.ctx, t.end = context.WithCancel(ctx)
	})
	t.slots <- struct{}{}
	t.group.Go(func() {
		defer func() { <-t.slots }()
		if err := f(t.ctx); err != nil {
			t.mu.Lock()
			if t.err == nil {
				t.err = err
			}
			t.mu.Unlock()
			t.end()
		}
	})
}

// wait returns the first error.
func (t *together) wait() error {
	t.group.Wait()
	if t.end != nil {
		t.end()
	}
	return t.err
}

// array gets the bytes of an array of all nodes or edges. report tells how much has come.
func (c *Client) array(ctx context.Context, name string, report func(n int)) ([]byte, error) {
	return c.arrayAt(ctx, name, c.anywhere, report)
}

// arrayAt gets an array from one of the servers at, which have it.
func (c *Client) arrayAt(ctx context.Context, name string, at []int, report func(n int)) ([]byte, error) {
	size, ok := c.sizes[name]
	if !ok {
		return nil, fmt.Errorf("remote: no server of %s has the array %s", c.hello.Metadata.Name, name)
	}
	var b []byte
	err := c.do(ctx, request{
		method: bulk.ArrayMethod, body: []byte(name), what: "the array " + name, part: -1, at: at,
		begin: func() { b = make([]byte, 0, min(size, 1<<30)) },
		take: func(data []byte) error {
			if int64(len(b)+len(data)) > size {
				return errors.New("the array is longer than announced")
			}
			b = append(b, data...)
			if report != nil {
				report(len(data))
			}
			return nil
		},
	})
	if err == nil && int64(len(b)) != size {
		err = fmt.Errorf("remote: the array %s has %d bytes, and %d were announced", name, len(b), size)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// byPart gets an array whose pieces the servers of each part have.
func (c *Client) byPart(ctx context.Context, name string, of []int32) ([]float32, error) {
	pieces := make([][]float32, len(c.holders))
	for p := range pieces {
		b, err := c.arrayAt(ctx, bulk.OfPart(name, p), c.preferred(p), nil)
		if err != nil {
			return nil, err
		}
		pieces[p] = view[float32](b)
	}
	all, next := make([]float32, len(of)), make([]int, len(pieces))
	for v, p := range of {
		if next[p] >= len(pieces[p]) {
			return nil, fmt.Errorf("remote: the array %s of part %d is too short", name, p)
		}
		all[v] = pieces[p][next[p]]
		next[p]++
	}
	return all, nil
}

// Events returns the list of events: the positions of their edges, in the order of events; nil if the edges are no events.
func (c *Client) Events(ctx context.Context) ([]int64, error) {
	if c.hello.Metadata.NumEvents == 0 {
		return nil, nil
	}
	b, err := c.array(ctx, bulk.EventsArray, nil)
	if err != nil {
		return nil, err
	}
	return c.checkEvents(view[int64](b))
}

// checkEvents refuses a list of another number of events, or of edges that do not exist.
func (c *Client) checkEvents(at []int64) ([]int64, error) {
	m := &c.hello.Metadata
	if int64(len(at)) != m.NumEvents {
		return nil, fmt.Errorf("remote: %d events are listed, and %s has %d", len(at), m.Name, m.NumEvents)
	}
	for i, e := range at {
		if e < 0 || e >= m.NumEdges {
			return nil, fmt.Errorf("remote: event %d is edge %d, but the edges are 0 to %d", i, e, m.NumEdges-1)
		}
	}
	return at, nil
}

// ints gets an array of one int32 for each node.
func (c *Client) ints(ctx context.Context, name string) ([]int32, error) {
	b, err := c.array(ctx, name, nil)
	if err == nil && len(b) != 4*c.Nodes() {
		err = fmt.Errorf("remote: the array %s has %d bytes for %d nodes", name, len(b), c.Nodes())
	}
	if err != nil {
		return nil, err
	}
	return view[int32](b), nil
}

// partOf returns the part of each node.
func (c *Client) partOf(ctx context.Context) ([]int32, error) {
	if of := c.parts.Load(); of != nil {
		return *of, nil
	}
	c.partsMu.Lock()
	defer c.partsMu.Unlock()
	if of := c.parts.Load(); of != nil {
		return *of, nil
	}
	of, err := c.ints(ctx, bulk.PartsArray)
	if err == nil {
		of, err = c.checkParts(of)
	}
	if err != nil {
		return nil, err
	}
	c.parts.Store(&of)
	return of, nil
}

// checkParts refuses an array of parts that do not exist.
func (c *Client) checkParts(of []int32) ([]int32, error) {
	if len(of) != c.Nodes() {
		return nil, fmt.Errorf("remote: there are parts of %d nodes, and %s has %d nodes", len(of), c.hello.Metadata.Name, c.Nodes())
	}
	for v, p := range of {
		if uint(p) >= uint(len(c.holders)) {
			return nil, fmt.Errorf("remote: node %d is in part %d, but the parts are 0 to %d", v, p, len(c.holders)-1)
		}
	}
	return of, nil
}

// degreeTable gets the degrees of all nodes, once.
func (c *Client) degreeTable(ctx context.Context, of []int32) (*graphops.DegreeTable, error) {
	c.degreesMu.Lock()
	defer c.degreesMu.Unlock()
	if c.degrees != nil {
		return c.degrees, nil
	}
	d := &graphops.DegreeTable{}
	var err error
	if d.In, err = c.ints(ctx, bulk.InDegreesArray); err != nil {
		return nil, err
	}
	if d.Looped, err = c.byPart(ctx, bulk.LoopedArray, of); err != nil {
		return nil, err
	}
	if c.hello.Edges.Weighted {
		if d.Loops, err = c.byPart(ctx, bulk.LoopsArray, of); err != nil {
			return nil, err
		}
	}
	c.degrees = d
	return d, nil
}

// Division describes the served graph to a [sample.NewDivided] sampler, which then samples at the
// servers, one request to each at a hop: the owners are the servers. ctx bounds the requests of all
// batches. Each sampler needs a division of its own; samplers with their own can sample at the same
// time. Cost of the first one: a request for the degrees of all nodes, 8 bytes each, 12 with weights.
func (c *Client) Division(ctx context.Context) (sample.Division, error) {
	of, err := c.partOf(ctx)
	if err != nil {
		return sample.Division{}, err
	}
	degrees, err := c.degreeTable(ctx, of)
	if err != nil {
		return sample.Division{}, err
	}
	replies := make([]sample.HopReply, len(c.servers))
	return sample.Division{
		Nodes: c.Nodes(), Edges: c.hello.Edges, Owners: len(c.servers), Part: of, OwnerOf: c.owner, Degrees: degrees,
		Ask: func(requests []sample.HopRequest) ([]sample.HopReply, error) {
			var calls together
			for o := range requests {
				switch q := &requests[o]; {
				case len(q.Nodes) == 0:
				case q.Picker == sample.UniformPicker && q.Fanout == 0 && len(q.Trees) == 0: // no edges, so there is nothing to ask
					r := &replies[o]
					*r = sample.HopReply{Counts: make([]int32, len(q.Nodes)), First: make([]int64, len(q.Nodes)), Edges: r.Edges}
					r.Edges.SetLen(c.hello.Edges, 0)
				default:
					calls.start(ctx, func(ctx context.Context) error { return c.hop(ctx, o, q, degrees.In, &replies[o]) })
				}
			}
			return replies, calls.wait()
		},
	}, nil
}

// hop asks a server for a hop, in as many requests as its limits need.
func (c *Client) hop(ctx context.Context, owner int, q *sample.HopRequest, in []int32, r *sample.HopReply) error {
	*r = sample.HopReply{Counts: r.Counts[:0], First: r.First[:0], Sources: r.Sources[:0], Offsets: r.Offsets[:0], Edges: r.Edges, Hidden: r.Hidden[:0]}
	r.Edges.SetLen(c.hello.Edges, 0)
	at := c.able(owner)
	atOnce := c.hello.Limits.Nodes // a server takes requests of 4 bytes for each, and about 1 kB
	if len(q.Trees) > 0 {
		atOnce = max(1, atOnce/5) // a node has its tree, and its tree a seed and a time
	}
	for from := 0; from < len(q.Nodes); {
		nodes := q.Nodes[from:]
		n, edges := 0, 0
		for n < len(nodes) && n < atOnce {
			k := int(in[nodes[n]])
			if q.Fanout >= 0 {
				k = min(k, q.Fanout)
			}
			if edges += k; edges > c.hello.Limits.Edges && n > 0 {
				break
			}
			n++
		}
		part := q.Part(from, from+n)
		from += n
		most := 1<<10 + 16*n + edges*(8+c.hello.Edges.Bytes())
		var b []byte
		var one sample.HopReply
		err := c.do(ctx, request{
			method: bulk.SampleMethod, body: part.Append(nil), part: -1, at: at,
			what:  fmt.Sprintf("the edges of %d nodes at hop %d of epoch %d, step %d", n, q.Hop, q.Epoch, q.Step),
			begin: func() { b = b[:0] },
			take: func(data []byte) error {
				if len(b)+len(data) > most {
					return fmt.Errorf("the answer is longer than %d bytes, the most for what was asked for", most)
				}
				b = append(b, data...)
				return nil
			},
		})
		if err != nil {
			return err
		}
		if err := one.Decode(b); err != nil {
			return fmt.Errorf("remote: %s: %w", c.servers[owner].address, err)
		}
		if !one.Edges.Has(c.hello.Edges, len(one.Sources)) {
			return fmt.Errorf("remote: %s sent edges with %v each, and those of %s have %v", c.servers[owner].address, one.Edges.Shape(), c.hello.Metadata.Name, c.hello.Edges)
		}
		for _, w := range one.Edges.Weights {
			if !(w >= 0 && w <= math.MaxFloat32) {
				return fmt.Errorf("remote: %s sent the edge weight %v; a weight is a finite number of at least 0", c.servers[owner].address, w)
			}
		}
		for _, t := range one.Edges.Types {
			if n := len(c.hello.Metadata.Relations); n > 0 && int(t) >= n {
				return fmt.Errorf("remote: %s sent an edge of type %d; the types are 0 to %d", c.servers[owner].address, t, n-1)
			}
		}
		if x := one.Edges.Features; x != nil {
			if e, col := x.FirstNotFinite(0, x.Rows()); e >= 0 {
				return fmt.Errorf("remote: %s sent features of an edge from node %d that are not finite (column %d); its dataset is damaged or it is not to be trusted", c.servers[owner].address, one.Sources[e], col)
			}
		}
		r.Counts, r.First = append(r.Counts, one.Counts...), append(r.First, one.First...)
		r.Sources, r.Offsets = append(r.Sources, one.Sources...), append(r.Offsets, one.Offsets...)
		r.Edges.Append(one.Edges)
		r.Hidden = append(r.Hidden, one.Hidden...)
	}
	return nil
}

// able returns the servers that have all parts of an owner, the owner first.
func (c *Client) able(owner int) []int {
	count := make([]int, len(c.servers))
	need := 0
	for p, o := range c.owner {
		if o != owner {
			continue
		}
		need++
		for _, s := range c.holders[p] {
			count[s]++
		}
	}
	list := []int{owner}
	for s, n := range count {
		if s != owner && n == need {
			list = append(list, s)
		}
	}
	return list
}
