package tables

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Encoder encodes rows in memory by the recipe of a dataset, as [Append] encodes rows of files: with the same bits. It also
// finds nodes by their original ids. It is safe for concurrent use.
type Encoder struct {
	r       *Recipe
	ds      *dataset.Dataset
	missing *columns.Missing
	ids     []typeIDs
}

// typeIDs are the ids of the nodes of a type, which the first look reads.
type typeIDs struct {
	once sync.Once
	idx  *index
	err  error
}

// NewEncoder returns the encoder of the recipe in a dataset's directory, or among its files (dataset.OpenFS). The error for a
// dataset that was not made of tables wraps [fs.ErrNotExist]. It reads the recipe alone; the first call that needs the ids of a type reads them, about 24 bytes and
// the id's text for each node.
func NewEncoder(ds *dataset.Dataset) (*Encoder, error) {
	if ds == nil {
		return nil, fault("an encoder needs a dataset that was opened from the directory that tables.Read wrote")
	}
	r, err := recipeOf(ds)
	if err != nil {
		return nil, err
	}
	if r.Graphs != nil {
		return nil, fault("%s has many graphs, to which nothing is appended; read the tables of new graphs with the recipe of this dataset (tables.Read with Options.Recipe, or gnb data convert --recipe)", ds.Name())
	}
	return &Encoder{r: r, ds: ds, missing: r.missing(), ids: make([]typeIDs, len(r.Nodes))}, nil
}

// Recipe returns the recipe, which is read-only.
func (e *Encoder) Recipe() *Recipe { return e.r }

// index returns the ids of a node type, "" without types.
func (e *Encoder) index(typ string) (*index, error) {
	t := e.r.nodeTable(typ)
	if t < 0 {
		return nil, fault("there are no nodes of type %s; the types are %s", shown(typ), e.r.typeNames())
	}
	x := &e.ids[t]
	x.once.Do(func() {
		n := &nodes{t: &e.r.Nodes[t], idx: &index{}}
		x.err = n.readIDs(e.ds)
		x.idx = n.idx
	})
	return x.idx, x.err
}

// Find returns the number, within its type, of the node with an id, or -1. typ is "" without types.
func (e *Encoder) Find(typ, id string) (int, error) {
	x, err := e.index(typ)
	if err != nil {
		return -1, err
	}
	k, ok := keyOfText(id)
	if !ok {
		return -1, nil
	}
	return int(x.find(k)), nil
}

// Near returns the id of a node that differs from a text only in case, in invisible characters, or in how characters are
// composed; "" if there is none. It reads all ids of the type.
func (e *Encoder) Near(typ, id string) string {
	x, err := e.index(typ)
	k, ok := keyOfText(id)
	if err != nil || !ok {
		return ""
	}
	return x.near(k)
}

// ID returns the id of a node by its number within its type.
func (e *Encoder) ID(typ string, number int) (string, error) {
	x, err := e.index(typ)
	if err != nil {
		return "", err
	}
	if number < 0 || number >= x.n {
		return "", fault("there is no node %d of type %s", number, shown(typ))
	}
	return x.key(int32(number)).String(), nil
}

// Nodes encodes new nodes of a type: rows[i] has the values of node ids[i] by the columns' names. A row has all columns that
// become features, "" where the value is missing, and no column that the recipe does not have; labels, splits and skipped
// columns are not read. The result is [len(rows), the type's features], without Dense and Sparse if there are none. say is called for values
// that the recipe has no features for and for missing ones; it may be nil.
//
// An error names the row, "new nodes: row 1" being the first.
func (e *Encoder) Nodes(ctx context.Context, typ string, ids []string, rows []map[string]string, say notice.Func) (dataset.NodeFeatures, error) {
	t := e.r.nodeTable(typ)
	if t < 0 {
		return dataset.NodeFeatures{}, fault("there are no nodes of type %s; the types are %s", shown(typ), e.r.typeNames())
	}
	where := "new nodes"
	if typ != "" {
		where += " of type " + typ
	}
	of := &e.r.Nodes[t]
	tab, err := e.table(where, of, rows, func(c *Column, i int) (string, bool) { return ids[i], c.Kind == ID })
	if err != nil {
		return dataset.NodeFeatures{}, err
	}
	n := &nodes{t: of, missing: e.missing, seed: e.r.Seed, idx: &index{}, rows: len(rows)}
	for i, id := range ids {
		k, ok := keyOfText(id)
		if !ok {
			return dataset.NodeFeatures{}, fault("%s: the id is missing; each node has an id of its own", tab.rows.at(i))
		}
		if _, ok := n.idx.add(k); !ok {
			return dataset.NodeFeatures{}, fault("%s: the id %s is there twice", tab.rows.at(i), shown(id))
		}
	}
	if err := n.encode(ctx, tab, false); err != nil {
		return dataset.NodeFeatures{}, err
	}
	e.tell(of, tab, say)
	return n.matrix(), nil
}

// NewEdges are edges of one table that [Encoder.Edges] has encoded.
type NewEdges struct {
	// Src and Dst are the numbers of the ends within their types; the new nodes of a type follow those of the dataset.
	Src, Dst []int32
	Weights  []float32 // nil if the table has no weights
	Times    []int64   // nil if it has no times
	// X [edges, Width] are features, of all tables in turn: those of the others are zeros.
	X     []float32
	Width int
}

// Edges encodes new edges of a relation, nil without types: rows[i] has the values of the edge src[i] → dst[i] by the columns' names, as
// in [Encoder.Nodes]. added are the ids of the new nodes by type.
func (e *Encoder) Edges(ctx context.Context, rel *graphops.Relation, src, dst []string, rows []map[string]string, added map[string][]string, say notice.Func) (*NewEdges, error) {
	k := slices.IndexFunc(e.r.Edges, func(t Table) bool { return (t.Relation == nil) == (rel == nil) && (rel == nil || *t.Relation == *rel) })
	where, srcType, dstType := "new edges", "", ""
	if rel != nil {
		where, srcType, dstType = "new edges "+rel.String(), rel.Src, rel.Dst
	}
	if k < 0 {
		return nil, fault("no table of the recipe has %s", where)
	}
	of := &e.r.Edges[k]
	tab, err := e.table(where, of, rows, func(c *Column, i int) (string, bool) {
		if c.Kind == Source {
			return src[i], true
		}
		return dst[i], c.Kind == Target
	})
	if err != nil {
		return nil, err
	}
	x := &edges{t: of, missing: e.missing}
	if x.src, err = e.with(srcType, added); err != nil {
		return nil, err
	}
	if x.dst, err = e.with(dstType, added); err != nil {
		return nil, err
	}
	r := &NewEdges{Width: e.r.edgeWidth()}
	if err := x.read(ctx, tab, r.Width); err != nil {
		return nil, err
	}
	e.tell(of, tab, say)
	r.Src, r.Dst, r.Weights, r.Times, r.X = x.from, x.to, x.weights, x.times, x.x
	return r, nil
}

// table makes a table of rows in memory. own gives the value of a column that is not among those of rows.
func (e *Encoder) table(where string, t *Table, rows []map[string]string, own func(c *Column, i int) (string, bool)) (*table, error) {
	tab := &table{path: where, rows: &batch{n: len(rows), file: where, first: 1}}
	low := make([]map[string]string, len(rows))
	for i, row := range rows {
		low[i] = map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(row)) {
			c := strings.ToLower(strings.TrimSpace(name))
			if !slices.ContainsFunc(t.Columns, func(k Column) bool { return k.Name == c }) {
				return nil, fault("%s: the recipe has no column %s; its columns are %s", tab.rows.at(i), shown(name), t.columnNames())
			}
			if !utf8.ValidString(row[name]) {
				return nil, fault("%s: the column %s is not UTF-8 text", tab.rows.at(i), shown(name))
			}
			low[i][c] = row[name]
		}
	}
	for k := range t.Columns {
		c := &t.Columns[k]
		v := vec{class: text}
		for i := range rows {
			value, ok := own(c, i)
			if !ok {
				if !c.Kind.feature() && c.Kind != Weight && c.Kind != Time {
					break
				}
				if value, ok = low[i][c.Name]; !ok {
					return nil, fault("%s: there is no column %s, which the recipe reads as %s; give it, empty where the value is missing", tab.rows.at(i), shown(c.Name), c.Kind)
				}
			}
			v.s = append(v.s, value)
		}
		if len(v.s) == len(rows) {
			tab.names, tab.rows.cols = append(tab.names, c.Name), append(tab.rows.cols, v)
		}
	}
	return tab, nil
}

// columnNames lists the columns that are read of new rows.
func (t *Table) columnNames() string {
	var all []string
	for _, c := range t.Columns {
		if c.Kind != Skip {
			all = append(all, c.Name)
		}
	}
	return strings.Join(all, ", ")
}

// tell says which values have no feature of their own.
func (e *Encoder) tell(t *Table, tab *table, say notice.Func) {
	if say == nil {
		return
	}
	for k, name := range tab.names {
		c := &t.Columns[slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })]
		if !c.Kind.feature() {
			continue
		}
		lacking := int64(0)
		for i := range tab.rows.n {
			v := &tab.rows.cols[k]
			if isMissing(v, i, e.missing) {
				lacking++
				continue
			}
			if c.Kind == Category && c.Buckets == 0 {
				if _, ok := slices.BinarySearch(c.Values, v.value(i)); !ok {
					say.Add(notice.Notice{Kind: notice.Unrepresentable, Where: tab.rows.at(i), What: fmt.Sprintf("%s is no category of the column %s in the tables that the recipe was fitted to, so its features are zeros", shown(v.value(i)), shown(name))})
				}
			}
		}
		if lacking > 0 {
			into := "its features are zeros"
			if c.Kind == Number || c.Kind == Date {
				into = "it is taken as the mean"
			}
			say.Add(notice.Notice{Kind: notice.Told, Where: tab.path, What: fmt.Sprintf("the column %s is missing, so %s", shown(name), into), Count: lacking, Of: int64(tab.rows.n)})
		}
	}
}

// with returns a finder of the nodes of a type, with new ones.
func (e *Encoder) with(typ string, added map[string][]string) (finder, error) {
	idx, err := e.index(typ)
	if err != nil {
		return nil, err
	}
	f := &withNew{idx, map[key]int32{}}
	for i, id := range added[typ] {
		k, ok := keyOfText(id)
		if !ok {
			return nil, fault("new nodes: row %d: the id is missing; each node has an id of its own", i+1)
		}
		if at := idx.find(k); at >= 0 {
			return nil, fault("new nodes: row %d: the id %s is that of a node of the dataset already", i+1, shown(id))
		}
		if _, ok := f.added[k]; ok {
			return nil, fault("new nodes: row %d: the id %s is there twice", i+1, shown(id))
		}
		f.added[k] = int32(idx.n + i)
	}
	return f, nil
}

// withNew is an index with new nodes behind it. It writes to nothing.
type withNew struct {
	*index
	added map[key]int32
}

func (f *withNew) find(k key) int32 {
	if at := f.index.find(k); at >= 0 {
		return at
	}
	if at, ok := f.added[k]; ok {
		return at
	}
	return -1
}

// warm does nothing: the index is shared, and its warm counts what it reads.
func (f *withNew) warm(*vec, int, int) {}
