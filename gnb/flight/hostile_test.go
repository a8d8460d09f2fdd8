package flight_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	fb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/flight"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/testneed"
)

func withSchema(s *arrow.Schema) ipc.Option { return ipc.WithSchema(s) }

// sameTraining compares the weights of training on two datasets.
func sameTraining(t *testing.T, a, b *dataset.Dataset) {
	t.Helper()
	var weights [2][]byte
	for i, ds := range []*dataset.Dataset{a, b} {
		o := gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 1, Batch: 64}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 3}}, LaunchOptions: gnb.LaunchOptions{Threads: 1, Seed: 3, Quiet: true, Device: "cpu", RunDir: filepath.Join(t.TempDir(), "run")}}
		run, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
		if err != nil {
			t.Fatal(err)
		}
		if weights[i], err = os.ReadFile(filepath.Join(run.Dir, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	if string(weights[0]) != string(weights[1]) || len(weights[0]) == 0 {
		t.Error("the weights have different bits")
	}
}

func check(t *testing.T, name string, err error, code codes.Code, want string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), want) {
		t.Errorf("%s: %v, want %v with %q", name, err, code, want)
	}
}

func TestHostileTickets(t *testing.T) {
	_, c := start(t, graph(t, 50), serve.Options{}, flight.Options{})
	for text, want := range map[string]struct {
		code codes.Code
		want string
	}{
		``: {codes.InvalidArgument, "a ticket is"},

		`{"table": "nodes"} {}`:                                 {codes.InvalidArgument, "there is more"},
		`{"table": "nodes", "where": "id = 1"}`:                 {codes.InvalidArgument, "unknown field"},
		`{"table": "../../etc/passwd"}`:                         {codes.NotFound, "no table"},
		`{"table": "nodes", "to": 51}`:                          {codes.OutOfRange, "the range 0 to 51"},
		`{"table": "nodes", "from": -1}`:                        {codes.OutOfRange, "the range -1"},
		`{"table": "nodes", "from": 9223372036854775807}`:       {codes.OutOfRange, "the range"},
		`{"table": "nodes", "from": 9223372036854775808}`:       {codes.InvalidArgument, "cannot unmarshal"},
		`{"table": "edges", "from": 7, "to": 6}`:                {codes.OutOfRange, "the range 7 to 6"},
		`{"table": "edges", "part": 1}`:                         {codes.OutOfRange, "the part 1"},
		`{"table": "nodes", "columns": ["salary"]}`:             {codes.InvalidArgument, `no column "salary"`},
		`{"table": "nodes", "columns": ["id", "id"]}`:           {codes.InvalidArgument, "twice"},
		`{"table": "nodes", "columns": []}`:                     {codes.InvalidArgument, "names no column"},
		`{"table": "nodes", "endpoints": 1000000}`:              {codes.OutOfRange, "1000000 endpoints"},
		`{"table": "` + strings.Repeat("x", 100<<10) + `"}`:     {codes.InvalidArgument, "of at most 65536"},
		strings.Repeat("[", 60<<10):                             {codes.InvalidArgument, "a ticket is"},
		`{"table": "nodes", "columns": ["` + "\xff\xfe" + `"]}`: {codes.InvalidArgument, "no column"},
	} {
		g, err := c.DoGet(t.Context(), &arrowflight.Ticket{Ticket: []byte(text)})
		if err == nil {
			_, err = g.Recv()
		}
		check(t, "DoGet of "+text[:min(80, len(text))], err, want.code, want.want)
		_, err = c.GetFlightInfo(t.Context(), &arrowflight.FlightDescriptor{Type: fb.FlightDescriptor_CMD, Cmd: []byte(text)})
		check(t, "GetFlightInfo of "+text[:min(80, len(text))], err, want.code, want.want)
	}
	for _, path := range [][]string{nil, {"nodes", "x"}} {
		_, err := c.GetSchema(t.Context(), &arrowflight.FlightDescriptor{Type: fb.FlightDescriptor_PATH, Path: path})
		check(t, "GetSchema", err, codes.InvalidArgument, "a descriptor to read")
	}
	check(t, "DoPut", put(t.Context(), c, []string{"x", "nodes"}, table(t, "id", []int64{0})), codes.FailedPrecondition, "start it with --take-in DIR")
	_, err := act(t.Context(), c, "build", "{}")
	check(t, "build", err, codes.FailedPrecondition, "start it with --take-in DIR")
}

func TestToken(t *testing.T) {
	_, c := start(t, graph(t, 50), serve.Options{Token: "secret"}, flight.Options{TakeIn: t.TempDir()})
	d := &arrowflight.FlightDescriptor{Type: fb.FlightDescriptor_PATH, Path: []string{"nodes"}}
	for name, f := range map[string]func(ctx context.Context) error{
		"GetFlightInfo": func(ctx context.Context) error { _, err := c.GetFlightInfo(ctx, d); return err },
		"DoGet": func(ctx context.Context) error {
			g, err := c.DoGet(ctx, &arrowflight.Ticket{Ticket: []byte("nodes")})
			if err == nil {
				_, err = g.Recv()
			}
			return err
		},
		"DoPut": func(ctx context.Context) error {
			return put(ctx, c, []string{"x", "nodes"}, table(t, "id", []int64{0}))
		},
		"action": func(ctx context.Context) error { _, err := act(ctx, c, "list", ""); return err },
	} {
		check(t, name, f(t.Context()), codes.Unauthenticated, "no token")
		check(t, name, f(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer no")), codes.Unauthenticated, "not this server's")
		if err := f(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer secret")); err != nil {
			t.Errorf("%s with the token: %v", name, err)
		}
	}
}

func TestHostileTables(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "exists"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, c := start(t, graph(t, 50), serve.Options{}, flight.Options{TakeIn: dir, TakeInBytes: 100_000})
	ids := table(t, "id", []int64{0, 1, 2})
	for name, x := range map[string]struct {
		path  []string
		batch arrow.RecordBatch
		code  codes.Code
		want  string
	}{
		"parent":           {[]string{"../x", "nodes"}, ids, codes.InvalidArgument, "a name has at most 100 letters"},
		"root":             {[]string{"/etc", "nodes"}, ids, codes.InvalidArgument, "a name has"},
		"dots":             {[]string{"a..b", "nodes"}, ids, codes.InvalidArgument, "a name has"},
		"hidden":           {[]string{".x", "nodes"}, ids, codes.InvalidArgument, "a name has"},
		"no name":          {[]string{"", "nodes"}, ids, codes.InvalidArgument, "a name has"},
		"exists":           {[]string{"exists", "nodes"}, ids, codes.AlreadyExists, "there is a dataset exists"},
		"short path":       {[]string{"nodes"}, ids, codes.InvalidArgument, "a path of two words"},
		"a table":          {[]string{"x", "people"}, ids, codes.InvalidArgument, "a path of two words"},
		"no id":            {[]string{"x", "nodes"}, table(t, "label", []int64{1}), codes.InvalidArgument, `no column "id"`},
		"a column":         {[]string{"x", "nodes"}, table(t, "id", []int64{1}, "salary", []int64{1}), codes.InvalidArgument, `the column "salary" is none of nodes`},
		"twice":            {[]string{"x", "nodes"}, table(t, "id", []int64{1}, "id", []int64{1}), codes.InvalidArgument, `two columns are named "id"`},
		"words":            {[]string{"x", "nodes"}, table(t, "id", []string{"a"}), codes.InvalidArgument, "it must be an integer"},
		"negative":         {[]string{"x", "nodes"}, table(t, "id", []int64{-1}), codes.InvalidArgument, "ids are not negative"},
		"large id":         {[]string{"x", "nodes"}, table(t, "id", []int64{1 << 40}), codes.InvalidArgument, "1099511627776"},
		"no list":          {[]string{"x", "nodes"}, table(t, "id", []int64{1}, "features", []float32{1}), codes.InvalidArgument, "a fixed_size_list"},
		"label":            {[]string{"x", "nodes"}, table(t, "id", []int64{1}, "label", []int64{1 << 40}), codes.InvalidArgument, "the label of node 1"},
		"largest label":    {[]string{"x", "nodes"}, table(t, "id", []int64{1}, "label", []uint64{1<<64 - 1}), codes.InvalidArgument, "integers are below 2^63"},
		"tiny weight":      {[]string{"x", "edges"}, table(t, "src", []int64{1}, "dst", []int64{1}, "weight", []float64{1e-50}), codes.InvalidArgument, "0 in float32"},
		"split":            {[]string{"x", "nodes"}, table(t, "id", []int64{1}, "split", []string{"holdout"}), codes.InvalidArgument, `a split is "holdout"`},
		"half edges":       {[]string{"x", "edges"}, table(t, "src", []int64{1}), codes.InvalidArgument, `"src" and "dst"`},
		"edge time":        {[]string{"x", "edges"}, table(t, "src", []int64{1}, "dst", []int64{1}, "time", []float64{2.5}), codes.InvalidArgument, "it must be an integer"},
		"no list of edges": {[]string{"x", "edges"}, table(t, "src", []int64{1}, "dst", []int64{1}, "features", []float64{2}), codes.InvalidArgument, "fixed_size_list"},
		"labels of edges":  {[]string{"x", "edges"}, table(t, "src", []int64{1}, "dst", []int64{1}, "labels", []int64{2}), codes.InvalidArgument, "src, dst, weight, features and time"},
		"edge weight":      {[]string{"x", "edges"}, table(t, "src", []int64{1}, "dst", []int64{1}, "weight", []string{"much"}), codes.InvalidArgument, "halffloat, float or double"},
		"too large":        {[]string{"x", "nodes"}, table(t, "id", make([]int64, 10_000)), codes.ResourceExhausted, "100000 bytes"},
		"too long":         {[]string{"x", "nodes"}, table(t, "id", make([]int64, 1<<20)), codes.ResourceExhausted, "received message larger than max"},
	} {
		check(t, name, put(t.Context(), c, x.path, x.batch), x.code, x.want)
	}
	if list, err := act(t.Context(), c, "list", ""); err != nil || list != "[]" {
		t.Errorf("after refused streams the list is %s, %v", list, err)
	}
	for name, body := range map[string]string{"build": `{"name": "../x"}`, "discard": `{"name": "x"}`, "fly": ``} {
		_, err := act(t.Context(), c, name, body)
		check(t, name, err, map[string]codes.Code{"build": codes.InvalidArgument, "discard": codes.NotFound, "fly": codes.Unimplemented}[name], "")
	}
	edges := table(t, "src", []int64{0, 1, 2}, "dst", []int64{1, 2, 0})
	for i, x := range []struct {
		tables map[string]arrow.RecordBatch
		code   codes.Code
		want   string
	}{
		{map[string]arrow.RecordBatch{"nodes": ids}, codes.FailedPrecondition, "no edges"},
		{map[string]arrow.RecordBatch{"edges": edges}, codes.FailedPrecondition, "no nodes"},
		{map[string]arrow.RecordBatch{"nodes": table(t, "id", []int64{0, 1}), "edges": edges}, codes.InvalidArgument, "names the node 2"},
		{map[string]arrow.RecordBatch{"nodes": table(t, "id", []int64{0, 1, 1}), "edges": edges}, codes.InvalidArgument, "two rows"},
		{map[string]arrow.RecordBatch{"nodes": table(t, "id", []int64{0, 1, 7}), "edges": edges}, codes.InvalidArgument, "the id 7 is out of range"},
		{map[string]arrow.RecordBatch{"nodes": table(t, "id", []int64{0, 1, 2}, "label", []int64{0, 1, 5_000_000}), "edges": edges}, codes.InvalidArgument, "classes are 0 to"},
		{map[string]arrow.RecordBatch{"nodes": table(t, "id", []int64{0, 1, 2}, "features", [][]float32{{1}, {nan}, {2}}), "edges": edges}, codes.InvalidArgument, "features must be finite"},
		{map[string]arrow.RecordBatch{"nodes": ids, "edges": table(t, "src", []int64{0}, "dst", []int64{1}, "weight", []float64{-1})}, codes.InvalidArgument, "not negative"},
		{map[string]arrow.RecordBatch{"nodes": ids, "edges": table(t, "src", []int64{0}, "dst", []int64{1}, "features", [][]float32{{1, nan}})}, codes.InvalidArgument, "NaN"},
	} {
		name := fmt.Sprint("bad", i)
		for table, b := range x.tables {
			if err := put(t.Context(), c, []string{name, table}, b); err != nil {
				t.Fatal(err)
			}
		}
		_, err := act(t.Context(), c, "build", `{"name": "`+name+`"}`)
		check(t, name, err, x.code, x.want)
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s exists after an error", name)
		}
		if _, err := act(t.Context(), c, "discard", `{"name": "`+name+`"}`); err != nil {
			t.Error(err)
		}
	}
	check(t, "other columns", func() error {
		if err := put(t.Context(), c, []string{"y", "nodes"}, ids); err != nil {
			return err
		}
		return put(t.Context(), c, []string{"y", "nodes"}, table(t, "id", []int64{3}, "label", []int64{3}))
	}(), codes.InvalidArgument, "all streams need the same columns")
	for i := range 15 {
		if err := put(t.Context(), c, []string{fmt.Sprint("many", i), "nodes"}, ids); err != nil {
			t.Fatal(err)
		}
	}
	check(t, "many names", put(t.Context(), c, []string{"z", "nodes"}, ids), codes.ResourceExhausted, "16 datasets wait")
}

// A stream that is cut off leaves nothing, and can be sent again.
func TestCancelledPut(t *testing.T) {
	dir := t.TempDir()
	_, c := start(t, graph(t, 50), serve.Options{}, flight.Options{TakeIn: dir})
	ctx, cancel := context.WithCancel(t.Context())
	g, err := c.DoPut(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b := table(t, "id", []int64{0, 1})
	w := arrowflight.NewRecordWriter(g, withSchema(b.Schema()))
	w.SetFlightDescriptor(&arrowflight.FlightDescriptor{Type: fb.FlightDescriptor_PATH, Path: []string{"x", "nodes"}})
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	open := func() string {
		list, err := act(t.Context(), c, "list", "")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for !strings.Contains(open(), `"open":1`) {
		time.Sleep(time.Millisecond)
	}
	_, err = act(t.Context(), c, "build", `{"name": "x"}`)
	check(t, "a build of an open stream", err, codes.FailedPrecondition, "1 streams")
	cancel()
	for open() != "[]" {
		time.Sleep(time.Millisecond)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the directory has %v, %v", left, err)
	}
}

// Readers that read nothing do not fill the server's memory, and are ended.
func TestSlowReaders(t *testing.T) {
	testneed.NotShort(t, "it waits for slow readers")
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 20_000, Features: 512, Degree: 2})
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := start(t, ds, serve.Options{SlowAfter: 400 * time.Millisecond}, flight.Options{})
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var readers []fb.FlightService_DoGetClient
	for range 24 {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		g, err := arrowflight.NewClientFromConn(conn, nil).DoGet(t.Context(), &arrowflight.Ticket{Ticket: []byte("nodes")})
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, g)
	}
	most := uint64(0)
	for range 10 {
		time.Sleep(20 * time.Millisecond)
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapAlloc)
	}
	if grown := int64(most) - int64(before.HeapAlloc); grown > 24*6<<20 {
		t.Errorf("24 readers of a table of 40 MiB took %d MiB", grown>>20)
	}
	time.Sleep(time.Second)
	for _, g := range readers {
		for err = nil; err == nil; _, err = g.Recv() {
		}
		check(t, "a slow reader", err, codes.DeadlineExceeded, "slow clients")
	}
}

// recorder keeps copies of the messages that a writer sends.
type recorder struct{ all []*arrowflight.FlightData }

func (r *recorder) Send(m *arrowflight.FlightData) error {
	r.all = append(r.all, &arrowflight.FlightData{
		FlightDescriptor: m.FlightDescriptor, DataHeader: append([]byte(nil), m.DataHeader...), DataBody: append([]byte(nil), m.DataBody...),
	})
	return nil
}

// Messages with changed bytes get an answer with a status that blames the client, or are taken in; the server neither
// ends nor allocates much.
func TestDamagedMessages(t *testing.T) {
	_, c := start(t, graph(t, 50), serve.Options{}, flight.Options{TakeIn: t.TempDir()})
	seed := make([]byte, 32)
	if _, err := rand.Read(seed); err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %x", seed)
	r := mathrand.New(mathrand.NewChaCha8([32]byte(seed)))
	b := table(t, "id", []int64{0, 1, 2}, "features", [][]float32{{1, 2}, {3, 4}, {5, 6}}, "split", []string{"train", "", "test"}, "label", []int64{1, 2, 0})
	for i := range 1500 {
		var out recorder
		w := arrowflight.NewRecordWriter(&out, withSchema(b.Schema()))
		w.SetFlightDescriptor(&arrowflight.FlightDescriptor{Type: fb.FlightDescriptor_PATH, Path: []string{"x", "nodes"}})
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		m := out.all[r.IntN(2)]
		for range 1 + r.IntN(3) {
			switch at := r.IntN(len(m.DataHeader)); r.IntN(4) {
			case 0:
				m.DataHeader[at] = byte(r.Uint32())
			case 1:
				m.DataHeader[at] ^= 1 << r.IntN(8)
			case 2:
				copy(m.DataHeader[at:], []byte{0xff, 0xff, 0xff, 0x7f})
			default:
				if len(m.DataBody) > 0 {
					copy(m.DataBody[r.IntN(len(m.DataBody)):], []byte{0xff, 0xff, 0xff, 0x7f})
				}
			}
		}
		if i%50 == 0 {
			m.DataHeader = m.DataHeader[:r.IntN(len(m.DataHeader))]
		}
		g, err := c.DoPut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.all {
			if g.Send(m) != nil {
				break
			}
		}
		_ = g.CloseSend()
		_, err = g.Recv()
		if s := status.Convert(err).Message(); strings.Contains(s, "runtime error") || strings.Contains(s, "panic") {
			t.Fatalf("message %d ends in the text of a runtime error: %s", i, s)
		}
		switch status.Code(err) {
		case codes.OK, codes.InvalidArgument:
		default:
			t.Fatalf("message %d: %v", i, err)
		}
		if i%100 == 0 {
			_, _ = act(t.Context(), c, "discard", `{"name": "x"}`)
		}
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	if now.Sys > 1<<30 {
		t.Errorf("the process has %d MiB", now.Sys>>20)
	}
}

// A compressed record batch, of which a few bytes can become many, is refused.
func TestCompressed(t *testing.T) {
	_, c := start(t, graph(t, 50), serve.Options{}, flight.Options{TakeIn: t.TempDir()})
	b := table(t, "id", make([]int64, 1000))
	g, err := c.DoPut(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := arrowflight.NewRecordWriter(g, withSchema(b.Schema()), ipc.WithZstd())
	w.SetFlightDescriptor(&arrowflight.FlightDescriptor{Type: fb.FlightDescriptor_PATH, Path: []string{"x", "nodes"}})
	_ = w.Write(b)
	_ = g.CloseSend()
	_, err = g.Recv()
	check(t, "a compressed batch", err, codes.InvalidArgument, "without compression")
}

// Whole numbers that float32 cannot hold are counted in the answer of a build and in the dataset.
func TestLostDigits(t *testing.T) {
	dir := t.TempDir()
	_, c := start(t, graph(t, 50), serve.Options{}, flight.Options{TakeIn: dir})
	for name, b := range map[string]arrow.RecordBatch{
		"nodes": table(t, "id", []int64{0, 1}),
		"edges": table(t, "src", []int64{0, 1}, "dst", []int64{1, 0}, "weight", []float64{16777217, 16777216}),
	} {
		if err := put(t.Context(), c, []string{"x", name}, b); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := act(t.Context(), c, "build", `{"name": "x"}`)
	if err != nil || !strings.Contains(answer, "another number in float32") {
		t.Errorf("the answer is %s (%v)", answer, err)
	}
	ds, err := dataset.Open(filepath.Join(dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if n := ds.Meta.Notices; len(n) != 1 || n[0].Count != 1 {
		t.Errorf("the notices are %v", n)
	}
}
