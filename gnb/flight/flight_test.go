package flight_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	fb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"

	"github.com/graphnb/graphnb/gnb/flight"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
)

func TestMain(m *testing.M) { runtest.Main(m, nil) }

// start serves a dataset until the test ends, and returns the address and a client.
func start(t testing.TB, ds *dataset.Dataset, so serve.Options, o flight.Options) (string, arrowflight.Client) {
	t.Helper()
	s, err := serve.New(t.Context(), ds, so)
	if err != nil {
		t.Fatal(err)
	}
	o.Digest, o.Parts = s.Digest(), s.Parts()
	f, err := flight.New(ds, o)
	if err != nil {
		t.Fatal(err)
	}
	s.Add(f)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		f.Close()
	})
	return l.Addr().String(), arrowflight.NewClientFromConn(conn, nil)
}

// rows are the values of a table, by column.
type rows map[string][]any

// read reads the rows of a ticket, and checks that each message is bounded.
func read(t testing.TB, c arrowflight.Client, ticket any) (rows, *arrow.Schema) {
	t.Helper()
	b, ok := ticket.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(ticket); err != nil {
			t.Fatal(err)
		}
	}
	g, err := c.DoGet(t.Context(), &arrowflight.Ticket{Ticket: b})
	if err != nil {
		t.Fatal(err)
	}
	r, err := arrowflight.NewRecordReader(bounded{t, g})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	all := rows{}
	for r.Next() {
		add(t, all, r.RecordBatch())
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return all, r.Schema()
}

type bounded struct {
	t testing.TB
	g fb.FlightService_DoGetClient
}

func (b bounded) Recv() (*arrowflight.FlightData, error) {
	m, err := b.g.Recv()
	if n := len(m.GetDataBody()); n > 1<<20 {
		b.t.Errorf("a record batch has %d bytes", n)
	}
	return m, err
}

func add(t testing.TB, all rows, b arrow.RecordBatch) {
	for i, f := range b.Schema().Fields() {
		for k := range int(b.NumRows()) {
			all[f.Name] = append(all[f.Name], value(t, b.Column(i), k))
		}
	}
}

func value(t testing.TB, a arrow.Array, k int) any {
	if a.IsNull(k) {
		return nil
	}
	switch a := a.(type) {
	case *array.Int64:
		return int(a.Value(k))
	case *array.Int32:
		return int(a.Value(k))
	case *array.Int8:
		return int(a.Value(k))
	case *array.Float32:
		return a.Value(k)
	case *array.Float16:
		return a.Value(k).Uint16()
	case *array.String:
		return strings.Clone(a.Value(k))
	case *array.Boolean:
		return a.Value(k)
	case array.ListLike:
		from, to := a.ValueOffsets(k)
		list := []any{}
		for i := from; i < to; i++ {
			list = append(list, value(t, a.ListValues(), int(i)))
		}
		return list
	}
	t.Fatalf("a column is %s", a.DataType())
	return nil
}

func anys[T any](x []T, of func(T) any) []any {
	all := []any{}
	for _, v := range x {
		all = append(all, of(v))
	}
	return all
}

// wanted returns what the tables of a dataset must have for some nodes.
func wanted(ds *dataset.Dataset, nodes []int32) (n, e rows) {
	n, e = rows{}, rows{}
	sets := map[string][]string{}
	for _, name := range ds.SplitNames() {
		base, set, ok := strings.Cut(name, "@")
		if ok {
			set = "@" + set
		}
		sets[set] = append(sets[set], base)
	}
	for _, v := range nodes {
		put := func(name string, x any) { n[name] = append(n[name], x) }
		put("id", int(v))
		switch x := ds.Features; {
		case x == nil:
		case x.Half():
			put("features", anys(x.F16[int(v)*x.Cols:int(v+1)*x.Cols], func(h uint16) any { return h }))
		default:
			put("features", anys(x.Row(int(v)), func(h float32) any { return h }))
		}
		if x := ds.SparseFeatures; x != nil {
			cols, values := x.Row(int(v))
			put("feature_indices", anys(cols, func(c int32) any { return int(c) }))
			if values != nil {
				put("feature_values", anys(values, func(h float32) any { return h }))
			}
		}
		switch {
		case ds.MultiLabels != nil:
			put("labels", anys(ds.MultiLabels.Row(int(v)), func(y int8) any { return int(y) }))
		case ds.Labels != nil && ds.Labels[v] < 0:
			put("label", nil)
		case ds.Labels != nil:
			put("label", int(ds.Labels[v]))
		}
		for set, names := range sets {
			if ds.Meta.OverlappingSplits {
				for _, name := range names {
					put(name+"_mask"+set, slices.Contains(ds.Splits[name+set], v))
				}
				continue
			}
			var in any
			for _, name := range names {
				if slices.Contains(ds.Splits[name+set], v) {
					in = name
				}
			}
			put("split"+set, in)
		}
		for i, u := range ds.Graph.InNeighbors(v) {
			e["src"], e["dst"] = append(e["src"], int(u)), append(e["dst"], int(v))
			if w := ds.Graph.EdgeWeights; w != nil {
				e["weight"] = append(e["weight"], w[ds.Graph.Indptr[v]+int64(i)])
			}
			at := int(ds.Graph.Indptr[v]) + i
			switch x := ds.Graph.EdgeFeatures; {
			case x == nil:
			case x.Half():
				e["features"] = append(e["features"], anys(x.F16[at*x.Cols:(at+1)*x.Cols], func(h uint16) any { return h }))
			default:
				e["features"] = append(e["features"], anys(x.F32[at*x.Cols:(at+1)*x.Cols], func(h float32) any { return h }))
			}
			if times := ds.Graph.EdgeTimes; times != nil {
				e["time"] = append(e["time"], int(times[at]))
			}
		}
	}
	return n, e
}

// same compares two tables value by value.
func same(t testing.TB, what string, got, want rows) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s has %d columns, want %d", what, len(got), len(want))
	}
	for name, column := range want {
		if len(got[name]) != len(column) {
			t.Errorf("%s: column %s has %d rows, want %d", what, name, len(got[name]), len(column))
			continue
		}
		for i := range column {
			if !reflect.DeepEqual(got[name][i], column[i]) {
				t.Errorf("%s: column %s, row %d is %v, want %v", what, name, i, got[name][i], column[i])
				break
			}
		}
	}
}

// graph returns a graph of that many nodes.
func graph(t testing.TB, nodes int) *dataset.Dataset {
	t.Helper()
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: nodes, Features: 12, Classes: 4, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	for _, ids := range ds.Splits {
		slices.Sort(ids)
	}
	return ds
}

// kinds are datasets with every kind of column.
func kinds(t testing.TB) map[string]*dataset.Dataset {
	dense := graph(t, 900)
	dense.Labels[5], dense.Labels[899] = -1, -1
	for _, name := range dense.SplitNames() {
		dense.Splits[name+"@1"] = dense.Splits[name][:len(dense.Splits[name])/2]
	}
	half := graph(t, 301)
	var err error
	if half.Features, err = half.Features.Float16(); err != nil {
		t.Fatal(err)
	}
	weights := make([]float32, half.Edges())
	for i := range weights {
		weights[i] = float32(i%13) / 4
	}
	half.Graph = half.Graph.WithEdgeWeights(weights)
	x, times := &graphops.EdgeFeatures{Cols: 3}, make([]int64, half.Edges())
	for i := range times {
		times[i] = int64(i*7919%1009) - 40
		x.F16 = append(x.F16, uint16(i%0x7000), uint16(i*3%0x7000), 0x3c00)
	}
	half.Graph = half.Graph.WithEdgeData(x, times)
	edges := graph(t, 280)
	y := &graphops.EdgeFeatures{Cols: 2}
	for i := range edges.Edges() {
		y.F32 = append(y.F32, float32(i)/8, float32(i%5))
	}
	edges.Graph = edges.Graph.WithEdgeData(y, nil)
	sparse := graph(t, 257)
	sparse.Features = nil
	sparse.SparseFeatures = &dataset.Sparse{Rows: 257, Cols: 40, Indptr: []int64{0}}
	for v := range 257 {
		for c := range v % 5 {
			sparse.SparseFeatures.Indices = append(sparse.SparseFeatures.Indices, int32(7*c+v%3))
			sparse.SparseFeatures.Values = append(sparse.SparseFeatures.Values, float32(v)+float32(c)/8)
		}
		sparse.SparseFeatures.Indptr = append(sparse.SparseFeatures.Indptr, int64(len(sparse.SparseFeatures.Indices)))
	}
	sparse.MultiLabels = &dataset.Multi{Rows: 257, Cols: 3, Data: make([]int8, 3*257)}
	for i := range sparse.MultiLabels.Data {
		sparse.MultiLabels.Data[i] = int8(i%3) - 1
	}
	sparse.Labels = nil
	sparse.Splits["val"] = sparse.Splits["train"][:10]
	sparse.Meta.OverlappingSplits = true
	ones := graph(t, 64)
	ones.Features, ones.Labels, ones.Splits, ones.Meta.NumClasses = nil, nil, map[string][]int32{}, 0
	ones.SparseFeatures = &dataset.Sparse{Rows: 64, Cols: 8, Indptr: make([]int64, 65)}
	return map[string]*dataset.Dataset{"dense": dense, "half, weights": half, "features of edges": edges, "sparse, many labels, overlap": sparse, "little": ones}
}

func allNodes(ds *dataset.Dataset) []int32 {
	all := make([]int32, ds.Nodes())
	for v := range all {
		all[v] = int32(v)
	}
	return all
}

func TestEveryValue(t *testing.T) {
	for name, ds := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			_, c := start(t, ds, serve.Options{}, flight.Options{})
			n, e := wanted(ds, allNodes(ds))
			got, schema := read(t, c, []byte("nodes"))
			same(t, "nodes", got, n)
			if meta := schema.Metadata(); !slices.Contains(meta.Values(), ds.Name()) || meta.FindKey("graphnb.digest") < 0 {
				t.Errorf("the schema says %v", meta)
			}
			got, _ = read(t, c, []byte("edges"))
			same(t, "edges", got, e)
		})
	}
}

func TestSlices(t *testing.T) {
	ds := graph(t, 900)
	_, c := start(t, ds, serve.Options{}, flight.Options{EndpointBytes: 10_000})
	end := int64(17)
	n, e := wanted(ds, allNodes(ds)[5:17])
	got, schema := read(t, c, flight.Ticket{Table: "nodes", From: 5, To: &end, Columns: []string{"label", "id"}})
	same(t, "nodes 5 to 16", got, rows{"id": n["id"], "label": n["label"]})
	if f := schema.Fields(); len(f) != 2 || f[0].Name != "label" || f[1].Type != arrow.PrimitiveTypes.Int64 {
		t.Errorf("the columns are %v", f)
	}
	got, _ = read(t, c, flight.Ticket{Table: "edges", From: 5, To: &end})
	same(t, "edges into 5 to 16", got, e)
	got, schema = read(t, c, flight.Ticket{Table: "edges", From: 900})
	if len(got) != 0 || schema.NumFields() != 2 {
		t.Errorf("an empty range has %v", got)
	}
	n, e = wanted(ds, allNodes(ds))
	for table, want := range map[string]rows{"nodes": n, "edges": e} {
		for _, d := range []*arrowflight.FlightDescriptor{
			{Type: fb.FlightDescriptor_PATH, Path: []string{table}},
			{Type: fb.FlightDescriptor_CMD, Cmd: []byte(`{"table": "` + table + `", "endpoints": 3}`)},
		} {
			info, err := c.GetFlightInfo(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			schema, err := arrowflight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
			if err != nil || schema.NumFields() != len(want) {
				t.Errorf("%s: the schema is %v, %v", table, schema, err)
			}
			if k := len(info.Endpoint); k < 3 || d.Cmd != nil && k > 5 {
				t.Errorf("%s: %d endpoints", d, k)
			}
			all := rows{}
			for _, e := range info.Endpoint {
				part, _ := read(t, c, e.Ticket.Ticket)
				for name, column := range part {
					all[name] = append(all[name], column...)
				}
			}
			same(t, table+" by endpoints", all, want)
			if first := slices.Sorted(keys(want))[0]; info.TotalRecords != int64(len(want[first])) || info.TotalBytes <= 0 {
				t.Errorf("%s has %d rows and %d bytes", table, info.TotalRecords, info.TotalBytes)
			}
			result, err := c.GetSchema(t.Context(), d)
			if err != nil || !slices.Equal(result.Schema, info.Schema) {
				t.Errorf("%s: GetSchema gives %v", table, err)
			}
		}
	}
	g, err := c.ListFlights(t.Context(), &arrowflight.Criteria{})
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for {
		info, err := g.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, info.FlightDescriptor.Path...)
	}
	if !slices.Equal(tables, []string{"nodes", "edges"}) {
		t.Errorf("the flights are %v", tables)
	}
}

func keys(m rows) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestParts(t *testing.T) {
	ds, _, err := kinds(t)["half, weights"].WithoutZeroWeights() // parts leave out edges of weight 0
	if err != nil {
		t.Fatal(err)
	}
	of := make([]int32, ds.Nodes())
	var nodes [3][]int32
	for v := range of {
		of[v] = int32(v * 7 % 3)
		nodes[of[v]] = append(nodes[of[v]], int32(v))
	}
	dir := filepath.Join(t.TempDir(), "parts")
	if err := divided.Write(t.Context(), dir, ds, of, 3, divided.Options{}); err != nil {
		t.Fatal(err)
	}
	parts, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close()
	_, c := start(t, parts, serve.Options{Parts: []int{0, 2}}, flight.Options{EndpointBytes: 500})
	for _, p := range []int{0, 2} {
		n, e := wanted(ds, nodes[p])
		got, _ := read(t, c, flight.Ticket{Table: "nodes", Part: &p})
		same(t, "nodes of a part", got, n)
		got, _ = read(t, c, flight.Ticket{Table: "edges", Part: &p})
		same(t, "edges of a part", got, e)
	}
	n, e := wanted(ds, slices.Concat(nodes[0], nodes[2]))
	for table, want := range map[string]rows{"nodes": n, "edges": e} {
		info, err := c.GetFlightInfo(t.Context(), &arrowflight.FlightDescriptor{Type: fb.FlightDescriptor_PATH, Path: []string{table}})
		if err != nil {
			t.Fatal(err)
		}
		all := rows{}
		for _, e := range info.Endpoint {
			part, _ := read(t, c, e.Ticket.Ticket)
			for name, column := range part {
				all[name] = append(all[name], column...)
			}
		}
		same(t, table+" of two parts", all, want)
	}
}

// put sends record batches as one stream.
func put(ctx context.Context, c arrowflight.Client, path []string, batches ...arrow.RecordBatch) error {
	g, err := c.DoPut(ctx)
	if err != nil {
		return err
	}
	w := arrowflight.NewRecordWriter(g, withSchema(batches[0].Schema()))
	w.SetFlightDescriptor(&arrowflight.FlightDescriptor{Type: fb.FlightDescriptor_PATH, Path: path})
	for _, b := range batches {
		if w.Write(b) != nil {
			break // Recv says why
		}
	}
	_ = w.Close()
	_ = g.CloseSend()
	for {
		if _, err := g.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// act does an action and returns its result.
func act(ctx context.Context, c arrowflight.Client, name, body string) (string, error) {
	g, err := c.DoAction(ctx, &arrowflight.Action{Type: name, Body: []byte(body)})
	if err != nil {
		return "", err
	}
	r, err := g.Recv()
	if err != nil {
		return "", err
	}
	_, err = g.Recv()
	if !errors.Is(err, io.EOF) {
		return "", errors.Join(err, errors.New("there is a second result"))
	}
	return string(r.Body), nil
}

// batches returns the record batches of a table that a client reads.
func batches(t testing.TB, c arrowflight.Client, ticket flight.Ticket) (all []arrow.RecordBatch) {
	t.Helper()
	b, err := json.Marshal(ticket)
	if err != nil {
		t.Fatal(err)
	}
	g, err := c.DoGet(t.Context(), &arrowflight.Ticket{Ticket: b})
	if err != nil {
		t.Fatal(err)
	}
	r, err := arrowflight.NewRecordReader(g)
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		b := r.RecordBatch()
		b.Retain()
		all = append(all, b)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// What is read from a server, sent back in slices in any order by several clients at once, and built, is the dataset.
func TestTakeIn(t *testing.T) {
	for name, ds := range kinds(t) {
		if ds.SparseFeatures != nil && name != "sparse, many labels, overlap" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "in")
			_, c := start(t, ds, serve.Options{}, flight.Options{TakeIn: dir})
			columns := []string(nil)
			if ds.SparseFeatures != nil {
				columns = []string{"id", "labels", "train_mask", "val_mask", "test_mask"}
			}
			var streams sync.WaitGroup
			for _, table := range []string{"nodes", "edges"} {
				for from := int64(0); from < int64(ds.Nodes()); from += 100 {
					to := min(from+100, int64(ds.Nodes()))
					q := flight.Ticket{Table: table, From: from, To: &to}
					if table == "nodes" {
						q.Columns = columns
					}
					b := batches(t, c, q)
					streams.Go(func() {
						if err := put(t.Context(), c, []string{"copy", table}, b...); err != nil {
							t.Error(err)
						}
					})
				}
			}
			streams.Wait()
			list, err := act(t.Context(), c, "list", "")
			if err != nil || !strings.Contains(list, `"name":"copy"`) {
				t.Errorf("the list is %s, %v", list, err)
			}
			stats, err := act(t.Context(), c, "build", `{"name": "copy", "overlapping_splits": `+map[bool]string{true: "true", false: "false"}[ds.Meta.OverlappingSplits]+`}`)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(stats, `"name":"copy"`) {
				t.Errorf("the build says %s", stats)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) != 1 {
				t.Errorf("the directory has %v, %v", left, err)
			}
			built, err := datasets.Load(filepath.Join(dir, "copy"))
			if err != nil {
				t.Fatal(err)
			}
			defer built.Close()
			if err := built.Check(t.Context()); err != nil {
				t.Error(err)
			}
			n1, e1 := wanted(ds, allNodes(ds))
			n2, e2 := wanted(built, allNodes(built))
			delete(n1, "feature_indices")
			delete(n1, "feature_values")
			same(t, "nodes", n2, n1)
			same(t, "edges", e2, e1)
			if built.Meta.Undirected != ds.Meta.Undirected && ds.Graph.EdgeWeights == nil {
				t.Errorf("undirected is %v", built.Meta.Undirected)
			}
			if name == "dense" {
				sameTraining(t, ds, built)
			}
		})
	}
}

// table makes a record batch of columns: int64, float32, float64 or string values, or lists of float32.
func table(t testing.TB, columns ...any) arrow.RecordBatch {
	t.Helper()
	var fields []arrow.Field
	var arrays []arrow.Array
	for i := 0; i < len(columns); i += 2 {
		var b array.Builder
		switch x := columns[i+1].(type) {
		case []int64:
			b = array.NewInt64Builder(memory.DefaultAllocator)
			b.(*array.Int64Builder).AppendValues(x, nil)
		case []uint64:
			b = array.NewUint64Builder(memory.DefaultAllocator)
			b.(*array.Uint64Builder).AppendValues(x, nil)
		case []float32:
			b = array.NewFloat32Builder(memory.DefaultAllocator)
			b.(*array.Float32Builder).AppendValues(x, nil)
		case []float64:
			b = array.NewFloat64Builder(memory.DefaultAllocator)
			b.(*array.Float64Builder).AppendValues(x, nil)
		case []string:
			b = array.NewStringBuilder(memory.DefaultAllocator)
			b.(*array.StringBuilder).AppendValues(x, nil)
		case [][]float32:
			l := array.NewFixedSizeListBuilder(memory.DefaultAllocator, int32(len(x[0])), arrow.PrimitiveTypes.Float32)
			for _, row := range x {
				l.Append(true)
				l.ValueBuilder().(*array.Float32Builder).AppendValues(row, nil)
			}
			b = l
		default:
			t.Fatalf("%T", x)
		}
		a := b.NewArray()
		fields = append(fields, arrow.Field{Name: columns[i].(string), Type: a.DataType(), Nullable: true})
		arrays = append(arrays, a)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, int64(arrays[0].Len()))
}

var nan = float32(math.NaN())

// typed is a dataset of users with dense features, items with sparse ones, shelves, of which there are none, and brands
// without features.
func typed(t testing.TB) *dataset.Dataset {
	t.Helper()
	const users, items, brands = 150, 90, 7
	var src, dst []int32
	var types []uint16
	for u := range users {
		for k := range 1 + u%4 {
			i := users + (u*7+k*13)%items
			src, dst, types = append(src, int32(u), int32(i)), append(dst, int32(i), int32(u)), append(types, 0, 1)
		}
	}
	for i := range items {
		src, dst, types = append(src, int32(users+items+i%brands)), append(dst, int32(users+i)), append(types, 2)
	}
	g, err := graphops.FromEdgesWith(users+items+brands, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(&graphops.Schema{
			Nodes: []graphops.NodeType{{Name: "user", Count: users}, {Name: "item", Count: items}, {Name: "shelf"}, {Name: "brand", Count: brands}},
			Relations: []graphops.Relation{
				{Src: "user", Name: "likes", Dst: "item"},
				{Src: "item", Name: "liked: by", Dst: "user"},
				{Src: "brand", Name: "makes", Dst: "item"},
				{Src: "item", Name: "on", Dst: "shelf"},
			},
		}, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	ds := &dataset.Dataset{
		Graph: g, Splits: map[string][]int32{"train": {0, 3, 149}, "test": {1}},
		NodeFeatures: []dataset.NodeFeatures{{Dense: &dataset.Matrix{Rows: users, Cols: 2}}, {Sparse: &dataset.Sparse{Rows: items, Cols: 9, Indptr: []int64{0}}}, {}, {}},
		Meta:         dataset.Metadata{Name: "typed", NumClasses: 3},
	}
	for u := range users {
		ds.NodeFeatures[0].Dense.F32 = append(ds.NodeFeatures[0].Dense.F32, float32(u)/4, float32(u%5))
	}
	x := ds.NodeFeatures[1].Sparse
	for i := range items {
		for k := range i % 3 {
			x.Indices, x.Values = append(x.Indices, int32(3*k+i%2)), append(x.Values, float32(i)/8)
		}
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
	for v := range g.NumNodes() {
		ds.Labels = append(ds.Labels, int32(v%4)-1)
	}
	return ds
}

// The tables of a dataset with types name them, and give each type a table with features of its own
// width; a divided dataset has features of one width in them.
func TestTypes(t *testing.T) {
	ds := typed(t)
	_, c := start(t, ds, serve.Options{}, flight.Options{EndpointBytes: 2000})
	withTypes := func(ds *dataset.Dataset, nodes []int32) (n, e rows) {
		n, e = wanted(ds, nodes)
		for _, v := range nodes {
			typ := ds.Schema().TypeOf(v)
			n["type"] = append(n["type"], ds.Schema().Nodes[typ].Name)
			for i := ds.Graph.Indptr[v]; i < ds.Graph.Indptr[v+1]; i++ {
				e["relation"] = append(e["relation"], ds.Schema().Relations[ds.Graph.EdgeTypes[i]].String())
			}
		}
		return n, e
	}
	n, e := withTypes(ds, allNodes(ds))
	got, schema := read(t, c, []byte("nodes"))
	same(t, "nodes", got, n)
	if types, _ := schema.Metadata().GetValue("graphnb.types"); types != `["user","item","shelf","brand"]` {
		t.Errorf("the types are %s", types)
	}
	got, schema = read(t, c, []byte("edges"))
	same(t, "edges", got, e)
	if relations, _ := schema.Metadata().GetValue("graphnb.relations"); !strings.HasPrefix(relations, `["user:likes:item","item:liked: by:user"`) {
		t.Errorf("the relations are %s", relations)
	}
	for typ, of := range ds.Schema().Nodes {
		lo, hi := ds.Schema().Range(typ)
		table := func(lo, hi int) rows {
			n, _ := withTypes(ds, allNodes(ds)[lo:hi])
			for v := lo; v < hi; v++ {
				first, _ := ds.Schema().Range(typ)
				switch x := ds.NodeFeatures[typ]; {
				case x.Dense != nil:
					n["features"] = append(n["features"], anys(x.Dense.Row(v-first), func(h float32) any { return h }))
				case x.Sparse != nil:
					cols, values := x.Sparse.Row(v - first)
					n["feature_indices"] = append(n["feature_indices"], anys(cols, func(c int32) any { return int(c) }))
					n["feature_values"] = append(n["feature_values"], anys(values, func(h float32) any { return h }))
				}
			}
			return n
		}
		got, schema := read(t, c, []byte("nodes."+of.Name))
		if of.Count == 0 {
			if len(got) != 0 || schema.NumFields() == 0 {
				t.Errorf("a type without nodes has %d columns of rows and %d columns", len(got), schema.NumFields())
			}
			continue
		}
		same(t, of.Name, got, table(lo, hi))
		// A range that begins before the type or ends after it.
		cut := lo + of.Count/2
		got, _ = read(t, c, map[string]any{"table": "nodes." + of.Name, "from": cut})
		same(t, of.Name+" from the middle", got, table(cut, hi))
		got, _ = read(t, c, map[string]any{"table": "nodes." + of.Name, "to": cut})
		same(t, of.Name+" to the middle", got, table(lo, cut))
		info, err := c.GetFlightInfo(t.Context(), &arrowflight.FlightDescriptor{Type: fb.FlightDescriptor_PATH, Path: []string{"nodes." + of.Name}})
		if err != nil {
			t.Fatal(err)
		}
		all := rows{}
		for _, end := range info.GetEndpoint() {
			some, _ := read(t, c, end.GetTicket().GetTicket())
			for name, column := range some {
				all[name] = append(all[name], column...)
			}
		}
		if typ == 0 && len(info.GetEndpoint()) < 2 || info.GetTotalRecords() != int64(of.Count) {
			t.Errorf("%s has %d endpoints with %d rows", of.Name, len(info.GetEndpoint()), info.GetTotalRecords())
		}
		same(t, of.Name+" by endpoints", all, table(lo, hi))
	}
	for _, name := range []string{"nodes.", "nodes.edges", "edges.user"} {
		if _, err := c.GetFlightInfo(t.Context(), &arrowflight.FlightDescriptor{Type: fb.FlightDescriptor_PATH, Path: []string{name}}); err == nil || !strings.Contains(err.Error(), "the tables are nodes, edges, nodes.user, nodes.item, nodes.shelf and nodes.brand") {
			t.Errorf("%s: %v", name, err)
		}
	}

	dir := filepath.Join(t.TempDir(), "parts")
	of := make([]int32, ds.Nodes())
	for v := range of {
		of[v] = int32(v * 7 % 3)
	}
	if err := divided.Write(t.Context(), dir, ds, of, 3, divided.Options{}); err != nil {
		t.Fatal(err)
	}
	parts, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close()
	_, c = start(t, parts, serve.Options{}, flight.Options{})
	one, err := divided.OneWidth(ds)
	if err != nil {
		t.Fatal(err)
	}
	n, e = withTypes(one, allNodes(ds))
	byID := func(all rows) map[any][]any {
		by := map[any][]any{}
		for i, id := range all["id"] {
			for _, name := range []string{"type", "label", "split", "features", "feature_indices", "feature_values"} {
				if column := all[name]; column != nil {
					by[id] = append(by[id], column[i])
				}
			}
		}
		return by
	}
	got, _ = read(t, c, []byte("nodes"))
	if !reflect.DeepEqual(byID(got), byID(n)) {
		t.Error("the nodes of parts are others")
	}
	got, _ = read(t, c, []byte("nodes.item"))
	if ids := len(got["id"]); ids != 90 || slices.Contains(got["type"], any("user")) {
		t.Errorf("the items of parts are %d rows", ids)
	}
	got, _ = read(t, c, []byte("edges"))
	if len(got["relation"]) != len(e["relation"]) {
		t.Errorf("the edges of parts have %d relations, want %d", len(got["relation"]), len(e["relation"]))
	}
}

// The tables have no columns for splits of edges.
func TestRefusesEdgeSplits(t *testing.T) {
	ds := dataset.Karate()
	ds.EdgeSplits = map[string][]int64{"test": {0}}
	if _, err := flight.New(ds, flight.Options{}); err == nil || !strings.Contains(err.Error(), "karate has splits of edges") {
		t.Errorf("got %v", err)
	}
}
