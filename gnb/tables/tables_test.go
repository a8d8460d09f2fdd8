package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// customers is a table of n customers; edges join each with the next and the one seven further.
func customers(n int) (nodes, edges string) {
	var s, e strings.Builder
	s.WriteString("id,plan,spent,joined,note,label\n")
	e.WriteString("source,target,weight\n")
	plans := []string{"basic", "gold", "family"}
	notes := []string{"called twice about the slow line", "happy with the price, would come again", "asks for a cheaper plan every month", ""}
	for i := range n {
		spent := fmt.Sprintf("%.2f", 10+float64(i*37%101)/3)
		if i%11 == 5 {
			spent = "NA"
		}
		fmt.Fprintf(&s, "c%d,%s,%s,%s,%q,%s\n", i, plans[i*5%7%3], spent, time.Date(2023, 1, 1+i*13%700, 0, 0, 0, 0, time.UTC).Format("2006-01-02"),
			notes[i*3%4]+fmt.Sprint(" ", i%29), []string{"yes", "no"}[(i*i+i/3)%2])
		fmt.Fprintf(&e, "c%d,c%d,%d\n", i, (i+1)%n, 1+i%3)
		fmt.Fprintf(&e, "c%d,c%d,%d\n", i, (i+7)%n, 1+i%5)
	}
	return s.String(), e.String()
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// pair writes two CSV tables and returns them as files.
func pair(t *testing.T, nodes, edges string) (string, Files) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"nodes.csv": nodes, "edges.csv": edges})
	return dir, Of(filepath.Join(dir, "nodes.csv"), filepath.Join(dir, "edges.csv"))
}

func read(t *testing.T, dir string, f Files, o Options) *dataset.Dataset {
	t.Helper()
	o.Quiet = true
	ds, err := Read(t.Context(), dir, f, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

func TestKinds(t *testing.T) {
	nodes, edges := customers(60)
	_, f := pair(t, nodes, edges)
	r, err := Look(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Kind{}
	for _, c := range slices.Concat(r.Nodes[0].Columns, r.Edges[0].Columns) {
		got[c.Name] = c.Kind
	}
	want := map[string]Kind{"id": ID, "plan": Category, "spent": Number, "joined": Date, "note": Text, "label": Label, "source": Source, "target": Target, "weight": Weight}
	for name, kind := range want {
		if got[name] != kind {
			t.Errorf("column %s is %s, want %s\n%s", name, got[name], kind, r)
		}
	}
	r, err = Look(t.Context(), f, Options{Kinds: map[string]Kind{"Plan": Skip, "nodes.note": Category}})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Nodes[0].Columns; c[1].Kind != Skip || c[4].Kind != Category {
		t.Errorf("corrections were not followed:\n%s", r)
	}
}

// Features are those that the package's documentation gives, computed here by its formulas.
func TestFeatures(t *testing.T) {
	dir, f := pair(t, "id,split,age,plan,when,postcode\n"+
		"a,train,10,x,2024-01-01,01234\n"+
		"b,train,20,y,2024-01-03,01234\n"+
		"7,train,,x,2024-01-08,99999\n"+
		"c,val,40,z,2025-07-02,10000\n"+
		"d,,30,,,\n", "source,target\na,b\nb,7\n7,c\nc,a\nd,a\n")
	ds := read(t, dir+"/ds", f, Options{})
	r, err := ReadRecipe(ds.Dir())
	if err != nil {
		t.Fatal(err)
	}
	names := r.Nodes[0].Features()
	want := []string{"age", "age missing", "plan=x", "plan=y", "when age", "when year sin", "when year cos", "when week sin", "when week cos", "postcode=01234", "postcode=99999"}
	if !slices.Equal(names, want) {
		t.Fatalf("features are %q, want %q", names, want)
	}
	if ds.Features == nil || ds.Features.Cols != len(want) {
		t.Fatalf("features are %+v", ds.Features)
	}
	dev := math.Sqrt((3*3 + 1*1 + 4*4) / 3.0) // ages of 7, 5 and 0 days have the mean 4
	rows := [][]float64{
		0: {-1, 0, 1, 0, (7 - 4.0) / dev, 0, 1, math.Sin(2 * math.Pi / 7), math.Cos(2 * math.Pi / 7), 1, 0},
		2: {0, 1, 1, 0, (0 - 4.0) / dev, math.Sin(2 * math.Pi * 7 / 365.25), math.Cos(2 * math.Pi * 7 / 365.25), math.Sin(2 * math.Pi / 7), math.Cos(2 * math.Pi / 7), 0, 1},
		4: {3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	}
	for v, row := range rows {
		for k, x := range row {
			if got := ds.Features.Row(v)[k]; math.Abs(float64(got)-x) > 1e-6 { // one rounding to float32
				t.Errorf("node %d, %s: %v, want %v", v, names[k], got, x)
			}
		}
	}
	ids, err := ds.IDs()
	if err != nil || !slices.Equal(ids, []string{"a", "b", "7", "c", "d"}) {
		t.Errorf("ids are %q, %v", ids, err)
	}
	if train, _ := ds.Split("train"); !slices.Equal(train, []int32{0, 1, 2}) {
		t.Errorf("train is %v", train)
	}
}

// A text's row is (1+ln count)·idf over its buckets, of norm 1; a category of many values sets two columns.
func TestHashed(t *testing.T) {
	var nodes strings.Builder
	nodes.WriteString("id,city,review\n")
	for i := range 200 {
		fmt.Fprintf(&nodes, "%d,city%d,the room was good good %d\n", i, i%100, i%7)
	}
	dir, f := pair(t, nodes.String(), "source,target\n0,1\n1,2\n")
	ds := read(t, dir+"/ds", f, Options{Words: 64, Hashed: 32, Kinds: map[string]Kind{"city": Category, "review": Text}})
	s := ds.SparseFeatures
	if s == nil || s.Cols != 96 {
		t.Fatalf("features are %v, want 96 sparse columns", ds)
	}
	cols, values := s.Row(0)
	if cols[0] > 31 || values[0] != 1 {
		t.Errorf("the city has columns %v, values %v", cols, values)
	}
	norm := 0.0
	for k, c := range cols {
		if c >= 32 {
			norm += float64(values[k]) * float64(values[k])
		}
	}
	if math.Abs(norm-1) > 1e-6 {
		t.Errorf("a text's row has norm² %v", norm)
	}
	r, _ := ReadRecipe(ds.Dir())
	c := r.Nodes[0].column(Text)
	for bucket, idf := range c.IDF {
		df := 0
		for i := range 200 {
			if slices.ContainsFunc(count(fmt.Sprintf("the room was good good %d", i%7), 64, nil), func(w wordCount) bool { return int(w.bucket) == bucket }) {
				df++
			}
		}
		if want := math.Log(201/float64(1+df)) + 1; idf != want {
			t.Errorf("idf of bucket %d, in %d of 200 texts, is %v, want %v", bucket, df, idf, want)
		}
	}
	if got := count("Good, good; GOOD!", 64, nil); len(got) != 1 || got[0].n != 3 {
		t.Errorf("words are counted as %v", got)
	}
}

// columns makes an Arrow record of the CSV text of customers.
func record(t *testing.T, csv string) arrow.RecordBatch {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(csv), "\n")
	head := strings.Split(lines[0], ",")
	fields := make([]arrow.Field, len(head))
	for i, name := range head {
		fields[i] = arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
		switch name {
		case "spent":
			fields[i].Type = arrow.PrimitiveTypes.Float64
		case "joined":
			fields[i].Type = arrow.FixedWidthTypes.Date32
		case "weight":
			fields[i].Type = arrow.PrimitiveTypes.Int32
		case "plan":
			fields[i].Type = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
		}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, line := range lines[1:] {
		rest := line
		for i := range fields {
			var cell string
			if strings.HasPrefix(rest, `"`) {
				end := strings.Index(rest[1:], `"`) + 1
				cell, rest = rest[1:end], strings.TrimPrefix(rest[end+1:], ",")
			} else {
				cell, rest, _ = strings.Cut(rest, ",")
			}
			if cell == "NA" || cell == "" {
				b.Field(i).AppendNull()
				continue
			}
			switch f := b.Field(i).(type) {
			case *array.BinaryDictionaryBuilder:
				if err := f.AppendString(cell); err != nil {
					t.Fatal(err)
				}
			default:
				if err := f.AppendValueFromString(cell); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return b.NewRecordBatch()
}

func writeParquet(t *testing.T, path string, rec arrow.RecordBatch) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(rec.Schema(), f, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy)), pqarrow.DefaultWriterProps())
	if err == nil {
		err = w.Write(rec)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writeArrow(t *testing.T, path string, rec arrow.RecordBatch, stream bool) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var w interface {
		Write(arrow.RecordBatch) error
		Close() error
	}
	if stream {
		w = ipc.NewWriter(f, ipc.WithSchema(rec.Schema()))
	} else if w, err = ipc.NewFileWriter(f, ipc.WithSchema(rec.Schema())); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// arrays are the sums of all arrays of a dataset, and its ids.
func arrays(t *testing.T, ds *dataset.Dataset) string {
	t.Helper()
	d, err := ds.Digests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := ds.IDs()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(string(raw), ids)
}

// The same table is the same dataset, bit for bit, in each format and in folders as DuckDB and Spark write them.
func TestFormatsAgree(t *testing.T) {
	nodes, edges := customers(60)
	dir, f := pair(t, nodes, edges)
	want := arrays(t, read(t, dir+"/ds", f, Options{Name: "same"}))
	lines := strings.SplitAfter(nodes, "\n")
	head, half := lines[0], len(lines)/2
	first, second := strings.Join(lines[1:half], ""), strings.Join(lines[half:], "")

	writeParquet(t, dir+"/parquet/nodes.parquet", record(t, nodes))
	writeParquet(t, dir+"/parquet/edges.parquet", record(t, edges))
	write(t, dir, map[string]string{
		"arrow/x": "", "stream/x": "", "spark/nodes/_SUCCESS": "", "spark/nodes/.part.crc": "x", "spark/nodes/part-00002.csv": "", "hive/x": "",
		"spark/nodes/part-00001-b.csv": head + second, "spark/nodes/part-00000-a.csv": head + first, "spark/edges.csv": edges,
	})
	writeArrow(t, dir+"/arrow/nodes.arrow", record(t, nodes), false)
	writeArrow(t, dir+"/arrow/edges.feather", record(t, edges), false)
	writeArrow(t, dir+"/stream/nodes.ipc", record(t, nodes), true)
	writeArrow(t, dir+"/stream/edges.ipc", record(t, edges), true)
	writeParquet(t, dir+"/duckdb/nodes/data_0.parquet", record(t, head+first))
	writeParquet(t, dir+"/duckdb/nodes/data_1.parquet", record(t, head+second))
	writeParquet(t, dir+"/duckdb/edges/data_0.parquet", record(t, edges))
	for _, name := range []string{"parquet", "arrow", "stream", "spark", "duckdb"} {
		t.Run(name, func(t *testing.T) {
			f, err := Folder(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := arrays(t, read(t, filepath.Join(dir, name+"-ds"), f, Options{Name: "same"})); got != want {
				t.Errorf("%s gives another dataset than CSV", name)
			}
		})
	}
}

// Folders named key=value are columns.
func TestHive(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"nodes/country=de/city=K%C3%B6ln/part-0.csv":           "id,label\n1,0\n2,1\n",
		"nodes/country=fr/city=" + noPartition + "/part-0.csv": "id,label\n3,0\n4,1\n",
		"edges.csv": "source,target\n1,2\n3,4\n",
	})
	f, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	ds := read(t, dir+"/ds", f, Options{Fit: "all"})
	r, _ := ReadRecipe(ds.Dir())
	if got, want := r.Nodes[0].Features(), []string{"country=de", "country=fr", "city=Köln", "city missing"}; !slices.Equal(got, want) {
		t.Errorf("features are %q, want %q", got, want)
	}
}

func TestRecipeIsChecked(t *testing.T) {
	nodes, edges := customers(40)
	dir, f := pair(t, nodes, edges)
	ds := read(t, dir+"/ds", f, Options{})
	path := filepath.Join(ds.Dir(), RecipeFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"edited":        {`"kind": "number"`, `"kind": "text"`, "checksum"},
		"newer":         {`"version": 2`, `"version": 3`, "its version is 3"},
		"older":         {`"version": 2`, `"version": 1`, "read the tables again"},
		"unknown field": {`"version": 2,`, `"version": 2, "more": 1,`, "unknown field"},
		"cut":           {string(raw[len(raw)/2:]), "", "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(string(raw), c.old, c.new, 1)
			if changed == string(raw) {
				t.Fatal("nothing was changed")
			}
			if err := os.WriteFile(path, []byte(changed), 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadRecipe(ds.Dir()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// Random splits depend on seed and id alone.
func TestSplitsAreDrawn(t *testing.T) {
	n := [3]int{}
	for i := range 10000 {
		n[drawSplit(1, key{num: int64(i)})]++
	}
	for k, want := range []int{6000, 2000, 2000} {
		if d := n[k] - want; d < -200 || d > 200 { // four standard deviations
			t.Errorf("%d of 10,000 nodes are in %s", n[k], splitNames[k])
		}
	}
}

func TestIndex(t *testing.T) {
	x := &index{}
	for i := range 3000 {
		k, _ := keyOfText([]string{fmt.Sprint(i), fmt.Sprint("n", i), fmt.Sprintf("%05d", i)}[i%3])
		if v, ok := x.add(k); !ok || int(v) != i {
			t.Fatalf("id %s is node %d, %v", k, v, ok)
		}
	}
	for _, c := range []struct {
		id   string
		want int32
	}{{"0", 0}, {"n1", 1}, {"00002", 2}, {"2", -1}, {"n2", -1}, {"2999", -1}, {"02999", 2999}, {"-1", -1}} {
		k, _ := keyOfText(c.id)
		if got := x.find(k); got != c.want {
			t.Errorf("%s is node %d, want %d", c.id, got, c.want)
		}
	}
	if v, ok := x.add(key{num: 3}); ok || v != 3 {
		t.Errorf("3 was added twice: %d, %v", v, ok)
	}
}

// An interrupted Read leaves nothing.
func TestCancelled(t *testing.T) {
	nodes, edges := customers(40)
	dir, f := pair(t, nodes, edges)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, dir+"/ds", f, Options{Quiet: true}); err == nil {
		t.Error("a cancelled Read succeeded")
	}
	nothingLeft(t, dir)
}

func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "ds" || strings.HasPrefix(e.Name(), ".ds") || strings.HasPrefix(e.Name(), "ds.") {
			t.Errorf("%s was left", e.Name())
		}
	}
}
