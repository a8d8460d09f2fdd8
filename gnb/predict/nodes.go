package predict

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Nodes answers for nodes of the dataset by their ids: those of the tables that the dataset was made of, else their numbers
// from 0. In a dataset with types an id that several types have, or that looks like it, is written TYPE:ID. Row i of the answers is that of ids[i].
//
// An unknown id is an error of kind [ErrUnknownNode], a neighbourhood that is too large a [*LimitError].
func (p *Predictor) Nodes(ctx context.Context, ids ...string) (a *Answers, err error) {
	err = p.call(func(st *state) (err error) {
		places := make([]int32, len(ids))
		for i, id := range ids {
			typ, number, err := st.find(id)
			if err != nil {
				return err
			}
			places[i] = int32(p.first[typ] + number)
		}
		a, err = p.answer(ctx, st, st.over, places, ids)
		return err
	})
	return a, err
}

// Numbered answers for nodes of the dataset by their numbers, without a look at ids.
func (p *Predictor) Numbered(ctx context.Context, nodes ...int32) (a *Answers, err error) {
	places, ids := make([]int32, len(nodes)), make([]string, len(nodes))
	for i, v := range nodes {
		if v < 0 || int(v) >= p.ds.Nodes() {
			return nil, unknown("node %d: %s has the nodes 0 to %d", v, p.ds.Name(), p.ds.Nodes()-1)
		}
		places[i], ids[i] = p.place(v), strconv.Itoa(int(v))
	}
	err = p.call(func(st *state) (err error) {
		a, err = p.answer(ctx, st, st.over, places, ids)
		return err
	})
	return a, err
}

// answer computes the rows of places and makes answers of them.
func (p *Predictor) answer(ctx context.Context, st *state, o *overlay, places []int32, ids []string) (*Answers, error) {
	a := &Answers{Kind: p.kind, IDs: ids, Columns: p.columns, Rows: &dataset.Matrix{Rows: len(places), Cols: p.cols, F32: make([]float32, len(places)*p.cols)}}
	if err := p.outputsOf(ctx, st, o, places, a.Rows.F32); err != nil {
		return nil, err
	}
	if p.numbers != nil && p.kind == Numbers {
		for i := range places {
			row := a.Rows.Row(i)
			p.numbers.Undo(row, row)
		}
	}
	if p.schema != nil && (p.kind == Classes || p.kind == Labels) {
		for _, at := range places {
			typ, _ := p.typeOf(at)
			a.classes = append(a.classes, p.classNames(typ))
		}
	}
	return a, nil
}

// find returns the type of a node of the dataset by its id, and its number within the type.
func (s *state) find(id string) (typ, number int, err error) {
	p := s.p
	if p.schema == nil {
		number, err = s.within(0, id)
		return 0, number, err
	}
	if v, err := strconv.Atoi(id); p.tables == nil && err == nil && v >= 0 && v < p.ds.Nodes() { // it counts the nodes of all types
		typ, number = p.typeOf(p.place(int32(v)))
		return typ, number, nil
	}
	found := -1
	for t := range p.types() {
		at, err := s.lookup(t, id)
		if err != nil {
			return 0, 0, err
		}
		if at >= 0 && found >= 0 {
			return 0, 0, bad("the id %q is that of a node of type %s and of one of type %s; write %s or %s", id, p.typeName(found), p.typeName(t), typed(p.typeName(found), id), typed(p.typeName(t), id))
		}
		if at >= 0 {
			found, number = t, at
		}
	}
	if found >= 0 {
		return found, number, nil
	}
	if name, rest, ok := strings.Cut(id, ":"); ok {
		if typ = p.schema.NodeType(name); typ >= 0 {
			number, err = s.within(typ, rest)
			return typ, number, err
		}
	}
	return 0, 0, unknown("%q is the id of no node of %s, whose types of nodes are %s", id, p.in.Name(), p.typeNames())
}

// lookup returns the number of a node within its type, -1 if no node has the id.
func (p *Predictor) lookup(typ int, id string) (int, error) {
	if p.tables != nil {
		return p.tables.Find(p.typeName(typ), id)
	}
	if v, err := strconv.Atoi(id); err == nil && v >= 0 && v < p.count(typ) && strconv.Itoa(v) == id {
		return v, nil
	}
	return -1, nil
}

// nearIDs is the largest number of ids among which an error looks for one that is written in another way: it reads all.
const nearIDs = 1 << 17

// within returns the number of a node within its type, or an error if no node has the id.
func (p *Predictor) within(typ int, id string) (int, error) {
	at, err := p.lookup(typ, id)
	if err != nil || at >= 0 {
		return at, err
	}
	of := p.in.Name()
	if name := p.typeName(typ); name != "" {
		of = "type " + name + " in " + of
	}
	if p.tables == nil {
		return 0, unknown("%q is no node of %s, whose nodes are the numbers 0 to %d", id, of, p.count(typ)-1)
	}
	near := ""
	if p.count(typ) <= nearIDs {
		near = p.tables.Near(p.typeName(typ), id)
	}
	if near != "" {
		return 0, unknown("%+q is the id of no node of %s, but %+q is, which differs only in case, in invisible characters, or in how characters are composed (Unicode NFC and NFD)", id, of, near)
	}
	return 0, unknown("%q is the id of no node of %s", id, of)
}

// shown is what an error calls the node at a place.
func (p *Predictor) shown(o *overlay, place int32) string {
	typ, number := p.typeOf(place)
	if number >= p.count(typ) {
		return o.added(place).id
	}
	return typed(p.typeName(typ), p.idAt(o, place))
}

// idAt is the id of the node at a place, within its type.
func (p *Predictor) idAt(o *overlay, place int32) string {
	typ, number := p.typeOf(place)
	if number >= p.count(typ) {
		return o.added(place).id
	}
	if p.tables != nil {
		if name, err := p.tables.ID(p.typeName(typ), number); err == nil {
			return name
		}
	}
	return strconv.Itoa(number)
}

// Answers are the answers of one call: row i is that of node IDs[i].
type Answers struct {
	Kind Kind
	IDs  []string
	// Columns are the names of the columns of Rows: classes, labels or targets; nil for embeddings and other outputs. A network with
	// one output for two classes has one column of Rows, the logit of the second.
	Columns []string
	// Rows [len(IDs), columns] are logits of classes and of labels, numbers in the unit of the targets, or embeddings.
	Rows *dataset.Matrix
	// Notices say what the recipe made of values of new rows: unknown categories, missing values.
	Notices notice.List

	classes [][]string // by row, of a dataset with types
}

// names are the names of the classes of row i.
func (a *Answers) names(i int) []string {
	if a.classes != nil {
		return a.classes[i]
	}
	return a.Columns
}

// String shows a line for each node, of the first 20.
func (a *Answers) String() string {
	var s strings.Builder
	for i, id := range a.IDs {
		if i == 20 {
			fmt.Fprintf(&s, "and %d more\n", len(a.IDs)-i)
			break
		}
		fmt.Fprintf(&s, "%s  %s\n", id, a.Line(i))
	}
	for _, n := range a.Notices {
		fmt.Fprintln(&s, n)
	}
	return strings.TrimSuffix(s.String(), "\n")
}
