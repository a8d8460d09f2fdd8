// Package flight hands out the nodes and edges of a served graph as Apache Arrow tables, and takes in tables of new
// graphs, over Arrow Flight. Python, DuckDB, Spark and every other program that speaks Arrow Flight read and write
// graphs without code of GraphNB. Package gnb/tables imports Arrow too; no other does.
//
// # Basics
//
//	s, err := serve.New(ctx, ds, o)
//	f, err := flight.New(ds, flight.Options{Digest: s.Digest(), Parts: s.Parts()})
//	s.Add(f)
//	err = s.Serve(ctx, listener) // on the port, and with the certificate, token and limits, of the graph server
//
// # Tables
//
// The table "nodes" has a row per node, in ascending order of id within a part:
//
//	id               int64
//	features         fixed_size_list<float or halffloat>[features], if they are dense
//	feature_indices  list<int32>, if they are sparse: the columns that are not zero
//	feature_values   list<float>, if they are sparse and not all 1
//	label            int32, null where unknown
//	labels           fixed_size_list<int8>[classes] of 0, 1 and -1 (unknown), if a node can have several
//	split            utf8, null for a node in no split; split@1 and so on for further sets of splits
//	NAME_mask        bool, instead of split for the splits of a set of which two have a node in common
//
// The table "edges" has a row per edge, in ascending order of destination and then of source within a part: src int64,
// dst int64, and, if the edges have them, weight float, features fixed_size_list<float or halffloat>[features], and time
// int64. The schema's metadata has the dataset's name, digest and sizes.
//
// A dataset with types has their names in the column type of nodes, after id, and in the column relation of edges, after
// dst, both utf8: "user", and "user:likes:item". The table "nodes.TYPE" has the nodes of one type, with features of its
// own width, which "nodes" leaves out; the metadata names types and relations.
//
// A [Ticket] names rows and columns. A FlightInfo has an endpoint for each range of about [Options.EndpointBytes] of
// each part, so that several readers share the work.
//
// # Tables that are taken in
//
// With [Options.TakeIn], a client sends tables of these forms to the descriptor path [NAME, "nodes" or "edges"], in as
// many streams as it likes, and the action "build" makes the dataset directory NAME of them ([BuildRequest]). A stream
// counts when it has ended without an error, so it can be sent again after one.
//
// # Memory
//
// A request to read holds one record batch of at most 1 MiB, which it copies once out of the mapped files. A stream
// that comes in holds one message. Building holds what [Options.TakeInBytes] bounds; one graph is built at a time.
//
// # Caveats
//
// A split that was taken in has its nodes in ascending order. Sparse features, types, splits of edges and names of
// classes are not taken in.
package flight

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	fb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Options configure a [Server].
type Options struct {
	// Digest is the digest of the dataset; clients find it in the schemas' metadata.
	Digest string
	// Parts are the parts of a divided dataset that the server has.
	Parts []int
	// EndpointBytes is about the size of the rows of one endpoint; 0 means 64 MiB.
	EndpointBytes int64
	// TakeIn is the directory for the datasets that clients build; "" takes in none. It is made if it is missing.
	TakeIn string
	// TakeInBytes bounds the tables that were taken in and are not built yet, in bytes of memory that building takes;
	// 0 means 4 GiB.
	TakeInBytes int64
	// Threads is the number of threads of a build; 0 means GOMAXPROCS.
	Threads int
}

// Server is the service. It implements gnb/serve's Service.
type Server struct {
	flight.BaseFlightServer
	o      Options
	ds     *dataset.Dataset
	parts  []*piece
	count  int // parts of the dataset, 0 if it is not divided
	splits func() []splitColumn
	take   *takeIn // nil: none
}

// New returns the service of a dataset, which must stay open.
func New(ds *dataset.Dataset, o Options) (*Server, error) {
	o.EndpointBytes, o.TakeInBytes = cmp.Or(o.EndpointBytes, 64<<20), cmp.Or(o.TakeInBytes, 4<<30)
	if o.EndpointBytes < 0 || o.TakeInBytes < 0 {
		return nil, fmt.Errorf("flight: the bytes of endpoints and of tables to take in cannot be negative")
	}
	if ds.Graphs != nil || ds.Targets != nil || ds.EdgeAnswers != nil {
		return nil, fmt.Errorf("flight: %s has targets or many graphs, for which the tables have no columns yet", ds.Name())
	}
	if len(ds.EdgeSplits) > 0 {
		return nil, fmt.Errorf("flight: %s has splits of edges, for which the tables have no columns yet", ds.Name())
	}
	s := &Server{o: o, ds: ds}
	s.splits = sync.OnceValue(func() []splitColumn { return splitColumns(ds) })
	if divided.Is(ds) {
		book, err := divided.Of(ds)
		if err != nil {
			return nil, err
		}
		s.count = book.Parts()
		for _, i := range o.Parts {
			p, err := book.Part(i)
			if err != nil {
				return nil, err
			}
			s.parts = append(s.parts, &piece{index: i, own: p.Own, rows: len(p.Own), global: p.Nodes(), graph: p.Graph, x: p.Features, sparse: p.Sparse, y: p.Labels, multi: p.Multi})
		}
	} else {
		one, err := divided.EdgesOneWidth(ds) // a column of lists has one length
		if err != nil {
			return nil, fmt.Errorf("flight: %w", err)
		}
		s.parts = []*piece{{rows: ds.Nodes(), graph: one.Graph, x: ds.Features, sparse: ds.SparseFeatures, y: ds.Labels, multi: ds.MultiLabels}}
	}
	if len(s.parts) == 0 || s.parts[0].graph == nil {
		return nil, fmt.Errorf("flight: no part of %s is here", ds.Name())
	}
	if o.TakeIn != "" {
		var err error
		if s.take, err = newTakeIn(o); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Register adds the service to a server of package gnb/serve.
func (s *Server) Register(r grpc.ServiceRegistrar) { fb.RegisterFlightServiceServer(r, s) }

// Close removes the tables that were taken in and are not built.
func (s *Server) Close() {
	if s.take != nil {
		s.take.close()
	}
}

// Ticket says which rows and columns of which table a request is for, as JSON. It is also the command of a descriptor.
// The name of a table alone stands for the whole table.
type Ticket struct {
	// Table is "nodes", "edges" or, of a dataset with types, "nodes.TYPE".
	Table string `json:"table"`
	// Part chooses a part of a divided dataset; without it, a request is for all parts that the server has.
	Part *int `json:"part,omitempty"`
	// From and To choose the nodes, or the destinations of the edges, with From ≤ id < To; without To, to the last.
	From int64  `json:"from,omitempty"`
	To   *int64 `json:"to,omitempty"`
	// Columns are the columns in their order; without them, all.
	Columns []string `json:"columns,omitempty"`
	// Endpoints is about how many endpoints the FlightInfo of a descriptor has, at most 4096.
	Endpoints int `json:"endpoints,omitempty"`
}

const (
	nodesTable = "nodes"
	edgesTable = "edges"
	// maxTicket is the largest size of a ticket in bytes, and maxEndpoints the largest number of endpoints.
	maxTicket, maxEndpoints = 64 << 10, 4096
)

// request is a checked ticket.
type request struct {
	Ticket
	parts    []*piece
	from, to int32
	columns  []column
	schema   *arrow.Schema
}

// parse reads a ticket or the command of a descriptor.
func (s *Server) parse(text []byte) (*request, error) {
	var t Ticket
	if name := string(text); s.has(name) {
		t.Table = name
	} else if err := decode(text, &t); err != nil {
		return nil, invalid(`a ticket is the name of a table or JSON such as {"table": "nodes", "from": 0, "to": 1000, "columns": ["id", "label"]}: %v`, err)
	}
	return s.check(t)
}

func (s *Server) check(t Ticket) (*request, error) {
	r := &request{Ticket: t, parts: s.parts, to: int32(s.ds.Nodes())}
	if !s.has(t.Table) {
		return nil, status.Errorf(codes.NotFound, "flight: there is no table %.60q; the tables are %s", t.Table, phrase.List(s.tables()))
	}
	if t.Part != nil {
		i := slices.IndexFunc(s.parts, func(p *piece) bool { return p.index == *t.Part })
		if i < 0 {
			return nil, status.Errorf(codes.OutOfRange, "flight: the part %d of %s is not here; this server has %s", *t.Part, s.ds.Name(), s.where())
		}
		r.parts = s.parts[i : i+1]
	}
	to := int64(r.to)
	if t.To != nil {
		to = *t.To
	}
	if t.From < 0 || to > int64(r.to) || t.From > to {
		return nil, status.Errorf(codes.OutOfRange, "flight: the range %d to %d is not one of %s, whose nodes are 0 to %d; a range is FROM ≤ id < TO", t.From, to, s.ds.Name(), r.to-1)
	}
	if t.Endpoints < 0 || t.Endpoints > maxEndpoints {
		return nil, status.Errorf(codes.OutOfRange, "flight: %d endpoints; there can be 1 to %d", t.Endpoints, maxEndpoints)
	}
	r.from, r.to = int32(t.From), int32(to)
	if typ := s.typeOf(t.Table); typ >= 0 {
		r.ofType(s.ds, typ)
	}
	all := s.columns(r)
	if t.Columns == nil {
		r.columns = all
	}
	for k, name := range t.Columns {
		i := slices.IndexFunc(all, func(c column) bool { return c.field.Name == name })
		if i < 0 || slices.Contains(t.Columns[:k], name) {
			names := make([]string, len(all))
			for i, c := range all {
				names[i] = c.field.Name
			}
			return nil, invalid("the table %s has no column %.60q, or the ticket names it twice; its columns are %v", t.Table, name, names)
		}
		r.columns = append(r.columns, all[i])
	}
	if len(r.columns) == 0 {
		return nil, invalid("the ticket names no column; leave columns out for all of them")
	}
	fields := make([]arrow.Field, len(r.columns))
	for i, c := range r.columns {
		fields[i] = c.field
	}
	meta := s.metadata(t.Table)
	r.schema = arrow.NewSchema(fields, &meta)
	return r, nil
}

// tables are the names of the tables.
func (s *Server) tables() []string {
	all := []string{nodesTable, edgesTable}
	if types := s.ds.Schema(); types != nil {
		for _, n := range types.Nodes {
			all = append(all, nodesTable+"."+n.Name)
		}
	}
	return all
}

// has reports whether there is a table of that name.
func (s *Server) has(table string) bool {
	return table == nodesTable || table == edgesTable || s.typeOf(table) >= 0
}

// typeOf returns the type of the nodes of a table, -1 if it has all nodes or is none.
func (s *Server) typeOf(table string) int {
	name, ok := strings.CutPrefix(table, nodesTable+".")
	if types := s.ds.Schema(); ok && types != nil {
		return types.NodeType(name)
	}
	return -1
}

// ofType keeps the nodes of a type, with the features that this type alone has.
func (r *request) ofType(ds *dataset.Dataset, typ int) {
	lo, hi := ds.Schema().Range(typ)
	r.from = min(max(r.from, int32(lo)), int32(hi))
	r.to = max(min(r.to, int32(hi)), r.from)
	if ds.NodeFeatures == nil {
		return
	}
	own := *r.parts[0] // types of a divided dataset have features of one width
	own.x, own.sparse, own.base = ds.NodeFeatures[typ].Dense, ds.NodeFeatures[typ].Sparse, int64(lo)
	r.parts = []*piece{&own}
}

// where names the parts that are here.
func (s *Server) where() string {
	if s.count == 0 {
		return "the whole dataset, which is not divided, as part 0"
	}
	return fmt.Sprintf("the parts %v of %d", s.o.Parts, s.count)
}

// metadata describes the dataset in a table's schema.
func (s *Server) metadata(table string) arrow.Metadata {
	m := map[string]string{
		"graphnb.table": table, "graphnb.dataset": s.ds.Name(), "graphnb.digest": s.o.Digest,
		"graphnb.nodes": strconv.Itoa(s.ds.Nodes()), "graphnb.edges": strconv.FormatInt(s.ds.Edges(), 10),
		"graphnb.features": strconv.Itoa(s.ds.FeatureDim()), "graphnb.edge_features": strconv.Itoa(s.ds.EdgeFeatureDim()), "graphnb.classes": strconv.Itoa(s.ds.Classes()),
		"graphnb.undirected": strconv.FormatBool(s.ds.Meta.Undirected),
	}
	if s.count > 0 {
		m["graphnb.parts"], m["graphnb.parts_here"] = strconv.Itoa(s.count), listed(s.o.Parts)
	}
	if types := s.ds.Schema(); types != nil {
		var nodes, relations []string
		for _, n := range types.Nodes {
			nodes = append(nodes, n.Name)
		}
		for _, r := range types.Relations {
			relations = append(relations, r.String())
		}
		m["graphnb.types"], m["graphnb.relations"] = listed(nodes), listed(relations)
	}
	if names := s.ds.Meta.ClassNames; len(names) > 0 {
		m["graphnb.class_names"] = listed(names)
	}
	keys := slices.Sorted(maps.Keys(m))
	values := make([]string, len(keys))
	for i, k := range keys {
		values[i] = m[k]
	}
	return arrow.NewMetadata(keys, values)
}

// listed returns a list as JSON.
func listed(list any) string {
	b, _ := json.Marshal(list) // a list of numbers or strings always has a form in JSON
	return string(b)
}

// describe reads a descriptor.
func (s *Server) describe(d *flight.FlightDescriptor) (*request, error) {
	switch {
	case d.GetType() == fb.FlightDescriptor_CMD:
		return s.parse(d.GetCmd())
	case d.GetType() == fb.FlightDescriptor_PATH && len(d.GetPath()) == 1:
		return s.check(Ticket{Table: d.GetPath()[0]})
	}
	return nil, invalid("a descriptor to read is the path nodes or edges, or a ticket as its command")
}

// ListFlights lists the tables.
func (s *Server) ListFlights(_ *flight.Criteria, g flight.FlightService_ListFlightsServer) error {
	for _, table := range s.tables() {
		d := &flight.FlightDescriptor{Type: fb.FlightDescriptor_PATH, Path: []string{table}}
		info, err := s.GetFlightInfo(g.Context(), d)
		if err != nil {
			return err
		}
		if err := g.Send(info); err != nil {
			return err
		}
	}
	return nil
}

// GetSchema returns the schema of a table.
func (s *Server) GetSchema(_ context.Context, d *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	r, err := s.describe(d)
	if err != nil {
		return nil, err
	}
	return &flight.SchemaResult{Schema: flight.SerializeSchema(r.schema, memory.DefaultAllocator)}, nil
}

// GetFlightInfo returns the endpoints of a table, or of the rows of one that the descriptor's command chooses.
func (s *Server) GetFlightInfo(_ context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	r, err := s.describe(d)
	if err != nil {
		return nil, err
	}
	info := &flight.FlightInfo{Schema: flight.SerializeSchema(r.schema, memory.DefaultAllocator), FlightDescriptor: d, Ordered: true}
	for _, p := range r.parts {
		records, bytes := r.size(p, r.from, r.to)
		info.TotalRecords += records
		info.TotalBytes += bytes
	}
	each := max(s.o.EndpointBytes, info.TotalBytes/maxEndpoints+1)
	if r.Endpoints > 0 {
		each = info.TotalBytes/int64(r.Endpoints) + 1
	}
	for _, p := range r.parts {
		for from := r.from; from < r.to; {
			to := r.cut(p, from, each)
			t := r.Ticket
			end := int64(to)
			t.From, t.To, t.Endpoints = int64(from), &end, 0
			if s.count > 0 {
				t.Part = &p.index
			}
			ticket, err := json.Marshal(t)
			if err != nil {
				return nil, status.Error(codes.Internal, err.Error())
			}
			info.Endpoint = append(info.Endpoint, &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: ticket}})
			from = to
		}
	}
	if n := proto.Size(info); n > maxInfo {
		return nil, status.Errorf(codes.ResourceExhausted, "flight: the list of %d endpoints has %d bytes; ask for fewer endpoints or columns", len(info.Endpoint), n)
	}
	return info, nil
}

// maxInfo is the largest size of a FlightInfo in bytes, the server's largest message.
const maxInfo = 1 << 20

// decode reads JSON that must have no unknown field and nothing after it.
func decode(text []byte, into any) error {
	if len(text) > maxTicket {
		return fmt.Errorf("it has %d bytes, of at most %d", len(text), maxTicket)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the JSON object")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, "flight: "+format, args...)
}
