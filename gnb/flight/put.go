package flight

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/flight"
	fb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errNoTakeIn is the status of a server that takes in no tables.
var errNoTakeIn = status.Error(codes.FailedPrecondition, "flight: this server takes in no tables; start it with --take-in DIR")

// verified reads messages, and remembers the error that ended the stream.
type verified struct {
	g   flight.FlightService_DoPutServer
	err error
}

func (v *verified) Recv() (*flight.FlightData, error) {
	m, err := v.g.Recv()
	if err == nil {
		if e := verify(m); e != nil {
			err = invalid("%v", e)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		v.err = err
	}
	return m, err
}

// DoPut takes in a stream of rows of nodes or edges of a graph to build.
func (s *Server) DoPut(g flight.FlightService_DoPutServer) (err error) {
	if s.take == nil {
		return errNoTakeIn
	}
	in := &verified{g: g}
	r, err := flight.NewRecordReader(in)
	if err != nil {
		return cmp.Or(in.err, invalid("the stream does not begin with a schema: %v", sane(err)))
	}
	defer r.Release()
	d := r.LatestFlightDescriptor()
	if d.GetType() != fb.FlightDescriptor_PATH || len(d.GetPath()) != 2 || d.GetPath()[1] != nodesTable && d.GetPath()[1] != edgesTable {
		return invalid(`the descriptor of a table to take in is a path of two words: the dataset's name, and nodes or edges`)
	}
	name, table := d.GetPath()[0], d.GetPath()[1]
	l, err := layoutOf(table, r.Schema())
	if err != nil {
		return invalid("%s of %.120q: %v", table, name, err)
	}
	to, err := s.take.begin(name, l, r.Schema())
	if err != nil {
		return err
	}
	err = func() error {
		for r.Next() {
			if err := to.add(r.RecordBatch()); err != nil {
				return err
			}
		}
		if in.err != nil {
			return in.err
		}
		if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
			return invalid("%s of %s: %v", table, name, sane(err))
		}
		return nil
	}()
	if err := to.end(err); err != nil {
		return err
	}
	done, err := json.Marshal(map[string]int64{"rows": to.rows})
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return g.Send(&flight.PutResult{AppMetadata: done})
}

// actions are the actions with their descriptions.
var actions = []*flight.ActionType{
	{Type: "build", Description: `makes a dataset of the tables taken in: {"name": NAME, "undirected": false, "overlapping_splits": false, "feature_type": "f16"}; all but the name may be left out`},
	{Type: "discard", Description: `removes the tables taken in under a name: {"name": NAME}`},
	{Type: "list", Description: "lists the tables that were taken in and are not built"},
}

// ListActions lists the actions.
func (s *Server) ListActions(_ *flight.Empty, g flight.FlightService_ListActionsServer) error {
	if s.take == nil {
		return nil
	}
	for _, a := range actions {
		if err := g.Send(a); err != nil {
			return err
		}
	}
	return nil
}

// DoAction builds or discards what was taken in, or lists it.
func (s *Server) DoAction(a *flight.Action, g flight.FlightService_DoActionServer) error {
	i := slices.IndexFunc(actions, func(t *flight.ActionType) bool { return t.Type == a.GetType() })
	switch {
	case i < 0:
		return status.Errorf(codes.Unimplemented, "flight: there is no action %.60q; the actions are build, discard and list", a.GetType())
	case s.take == nil:
		return errNoTakeIn
	}
	var q BuildRequest
	if a.GetType() != "list" {
		if err := decode(a.GetBody(), &q); err != nil {
			return invalid(`the body of %s is JSON such as {"name": NAME}: %v`, a.GetType(), err)
		}
	}
	var result any
	var err error
	switch a.GetType() {
	case "build":
		result, err = s.take.build(g.Context(), q)
	case "discard":
		var u *upload
		if u, err = s.take.hold(q.Name); err == nil {
			s.take.mu.Lock()
			s.take.remove(u)
			s.take.mu.Unlock()
			result = q
		}
	default:
		result = s.take.list()
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return g.Send(&flight.Result{Body: text})
}

// waiting describes the tables of one name.
type waiting struct {
	Name  string           `json:"name"`
	Rows  map[string]int64 `json:"rows"`
	Bytes int64            `json:"bytes"`
	Open  int              `json:"open"` // streams that have not ended
}

// list describes what was taken in, by name.
func (t *takeIn) list() []waiting {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := []waiting{}
	for _, u := range t.uploads {
		w := waiting{Name: u.name, Rows: map[string]int64{}, Open: u.open}
		for name, table := range u.tables {
			w.Rows[name] = table.rows
			w.Bytes += table.cost
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
