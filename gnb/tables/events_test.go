package tables

import (
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
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/testneed"
)

// events writes one table of events, and reads it.
func events(t *testing.T, csv string, bipartite bool, o Options) (*dataset.Dataset, notice.List, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"e.csv": csv})
	var said notice.List
	o.Quiet, o.Notice = true, func(n notice.Notice) { said.Add(n) }
	ds, err := Read(t.Context(), dir+"/ds", Files{Edges: []Edges{{Path: dir + "/e.csv"}}, Events: true, Bipartite: bipartite}, o)
	if err == nil {
		t.Cleanup(func() { ds.Close() })
	} else {
		if _, err := os.Stat(dir + "/ds"); err == nil {
			t.Error("the failed conversion leaves a directory")
		}
	}
	return ds, said, err
}

// streamOf returns the events by the original ids, as "source>target@time".
func streamOf(t *testing.T, ds *dataset.Dataset) (all []string) {
	t.Helper()
	ids, err := ds.IDs()
	if err != nil {
		t.Fatal(err)
	}
	src, dst, _ := ds.Graph.EdgesAt(ds.Events)
	for i, e := range ds.Events {
		all = append(all, fmt.Sprintf("%s>%s@%d", ids[src[i]], ids[dst[i]], ds.Graph.EdgeTimes[e]))
	}
	return all
}

// Rows of a table of events stay events of their own, sorted by time and, within a time, in the order of the rows. Nodes are the ends in
// the order of the rows.
func TestEvents(t *testing.T) {
	ds, said, err := events(t, "src,dst,ts\na,b,1082008561\nc,a,1082008500\na,b,1082008561\nb,a,1082008561\na,b,1082008561\n", false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"c>a@1082008500", "a>b@1082008561", "a>b@1082008561", "b>a@1082008561", "a>b@1082008561"}; !slices.Equal(streamOf(t, ds), want) {
		t.Errorf("the events are %v, want %v", streamOf(t, ds), want)
	}
	if ids, err := ds.IDs(); err != nil || !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Errorf("the nodes are %v, %v", ids, err)
	}
	if ds.Meta.TimeUnit != "s" || ds.Meta.NumEvents != 5 || ds.Edges() != 5 {
		t.Errorf("%+v", ds.Meta)
	}
	all := lines(said)
	for _, want := range []string{
		"events are earlier than one before them in the tables; they are sorted by time, and events of one time keep their order (1 of 5)",
		"events have the ends and the time of another one before them; each stays an event of its own (2 of 5)",
		"the times look like s since 1970, from 2004-04-15 to 2004-04-15",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the notices lack %q: %s", want, all)
		}
	}
	if err := ds.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// The same rows as Parquet, in two files of a folder, and with a table of nodes are the same events.
func TestEventsOfOtherFiles(t *testing.T) {
	csv := "u,i,ts,amount\n3,7,20,1.5\n1,7,10,2.5\n3,1,20,0.5\n3,7,20,1.5\n1,1,30,9\n7,3,40,2\n"
	dir := t.TempDir()
	write(t, dir, map[string]string{"a/events.csv": csv, "b/events/1.csv": csv[:strings.Index(csv, "3,1,20")], "b/events/2.csv": "u,i,ts,amount\n" + csv[strings.Index(csv, "3,1,20"):], "c/events.csv": csv, "c/nodes.csv": "id,x\n1,1\n3,2\n7,3\n9,4\n"})
	if err := os.MkdirAll(dir+"/p", 0o755); err != nil {
		t.Fatal(err)
	}
	writeParquet(t, dir+"/p/events.parquet", record(t, csv))
	var want []string
	var features []float32
	for _, name := range []string{"a", "b", "p", "c"} {
		f, err := Folder(filepath.Join(dir, name))
		if err != nil || !f.Events {
			t.Fatalf("%s: %+v, %v", name, f, err)
		}
		ds := read(t, filepath.Join(dir, name, "ds"), f, Options{})
		got := streamOf(t, ds)
		var x []float32
		for _, e := range ds.Events {
			row := make([]float32, 1)
			ds.Graph.EdgeFeatures.CopyRow(row, e)
			x = append(x, row...)
		}
		if want == nil {
			want, features = got, x
		}
		if !slices.Equal(got, want) || !slices.Equal(x, features) {
			t.Errorf("%s: the events are %v with %v, want %v with %v", name, got, x, want, features)
		}
		if name == "c" && (ds.Nodes() != 4 || ds.FeatureDim() != 1) {
			t.Errorf("with a table of nodes there are %d with %d features", ds.Nodes(), ds.FeatureDim())
		}
		if ds.Meta.TimeUnit != "" {
			t.Errorf("%s: times from 10 to 40 have the unit %q", name, ds.Meta.TimeUnit)
		}
	}
	if !slices.Equal(want, []string{"1>7@10", "3>7@20", "3>1@20", "3>7@20", "1>1@30", "7>3@40"}) {
		t.Errorf("the events are %v", want)
	}
	// Features are fitted to the events until the quantile 0.7 of the times, which is 25: those until 20.
	mean := (2.5 + 1.5 + 0.5 + 1.5) / 4
	deviation := math.Sqrt(((2.5-mean)*(2.5-mean) + (0.5-mean)*(0.5-mean)) / 4)
	if got := float64(features[4]); math.Abs(got-(9-mean)/deviation) > 1e-5 {
		t.Errorf("9 becomes %v, want %v", got, (9-mean)/deviation)
	}
}

// Sources and targets of a bipartite table are nodes of two types, also where ids are equal.
func TestBipartiteEvents(t *testing.T) {
	ds, _, err := events(t, "author,file,ts\n0,0,100\n1,0,200\n0,1,150\n2,5,300\n", true, Options{Reverses: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := streamOf(t, ds), []string{"0>0@100", "0>1@150", "1>0@200", "2>5@300"}; !slices.Equal(got, want) {
		t.Errorf("the events are %v, want %v", got, want)
	}
	if s := ds.Schema(); len(s.Nodes) != 2 || s.Nodes[0].Name != "author" || s.Nodes[0].Count != 3 || s.Nodes[1].Name != "file" || s.Nodes[1].Count != 3 || s.Relations[0].String() != "author:events:file" {
		t.Errorf("the types are %+v", s)
	}
	if ds.Edges() != 8 || len(ds.Events) != 4 {
		t.Errorf("with reverses there are %d edges, and %d events", ds.Edges(), len(ds.Events))
	}
	src, dst, _ := ds.Graph.EdgesAt(ds.Events)
	if !slices.Equal(src, []int32{0, 0, 1, 2}) || !slices.Equal(dst, []int32{3, 4, 3, 5}) {
		t.Errorf("the ends are %v and %v", src, dst)
	}
	// Without saying so, ids are of one kind; that the columns are named otherwise is said.
	one, said, err := events(t, "author,file,ts\n0,0,100\n1,0,200\n0,1,150\n2,5,300\n", false, Options{})
	if err != nil || one.Nodes() != 4 || !strings.Contains(lines(said), `the columns "author" and "file" are read as ids of one kind of nodes; --bipartite reads them as ids of two kinds`) {
		t.Errorf("%v, %s, %v", one, lines(said), err)
	}
	_, said, err = events(t, "source,target,ts\na,x,100\nb,y,200\na,y,150\n", false, Options{})
	if err != nil || !strings.Contains(lines(said), "no id is both a source and a target of events; --bipartite makes two types of nodes of them") {
		t.Errorf("%s, %v", lines(said), err)
	}
}

// A column named label is a number to predict of each event, divided by time; other columns are features; columns that number the
// events, and labels that say nothing, are not read.
func TestEventColumns(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("u,i,ts,state_label,amount,kind,event_id\n")
	for i := range 40 {
		fmt.Fprintf(&csv, "%d,%d,%d,%d,%d.5,%s,%d\n", i%5, i%7, 100+i, i%2, i, []string{"call", "text"}[i%2], 900+i)
	}
	ds, said, err := events(t, csv.String(), false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ds.Meta.EdgeFeatureNames, []string{"amount", "kind=call", "kind=text"}) || !slices.Equal(ds.EdgeAnswers.Meta.TargetNames, []string{"state_label"}) {
		t.Errorf("features %v, targets %v", ds.Meta.EdgeFeatureNames, ds.EdgeAnswers.Meta.TargetNames)
	}
	for split, want := range map[string]int{"train": 28, "val": 6, "test": 6} {
		rows := ds.EdgeAnswers.Splits[split]
		if len(rows) != want {
			t.Errorf("%s has %d events, want %d", split, len(rows), want)
		}
		for _, row := range rows {
			at := ds.Graph.EdgeTimes[ds.EdgeRows[row]] - 100
			if part := map[bool]string{true: "train", false: "test"}[at < 28]; part != split && !(split == "val" && at >= 28 && at < 34) {
				t.Errorf("%s has the event of time %d", split, at)
			}
			if y := ds.EdgeAnswers.Target(row)[0]; y != float32(at%2) {
				t.Errorf("the event at %d has the label %v", at, y)
			}
		}
	}
	if all := lines(said); !strings.Contains(all, `"state_label" is a number to predict of each event, by its name`) || !strings.Contains(all, `"event_id" has another value for each event`) {
		t.Errorf("the notices are %s", all)
	}
	ds, said, err = events(t, "u,i,ts,label\n1,2,5,0\n2,3,6,0\n3,1,7,0\n", false, Options{})
	if err != nil || ds.EdgeAnswers != nil || ds.EdgeFeatureDim() != 0 || !strings.Contains(lines(said), `"label" is a label by its name, and is the same for each event`) {
		t.Errorf("%v, %s, %v", ds, lines(said), err)
	}
	ds, said, err = events(t, "u,i,ts,label\n1,2,5,good\n2,3,6,bad\n3,1,7,good\n", false, Options{})
	if err != nil || ds.EdgeAnswers != nil || ds.EdgeFeatureDim() != 0 || !strings.Contains(lines(said), "a label is no feature") {
		t.Errorf("%v, %s, %v", ds, lines(said), err)
	}
	// With the recipe, other events are encoded alike; the recipe of events is not for edges, and nothing is appended.
	first, _, err := events(t, csv.String(), false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := ReadRecipe(first.Dir())
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := events(t, "u,i,ts,state_label,amount,kind,event_id\n3,9,500,,39.5,text,1\n4,9,400,1,0.5,call,2\n", false, Options{Recipe: r})
	if err != nil {
		t.Fatal(err)
	}
	a, b := make([]float32, 3), make([]float32, 3)
	next.Graph.EdgeFeatures.CopyRow(a, next.Events[1])
	first.Graph.EdgeFeatures.CopyRow(b, first.Events[39])
	if !slices.Equal(a, b) || !slices.Equal(streamOf(t, next), []string{"4>9@400", "3>9@500"}) {
		t.Errorf("with the recipe: %v and %v, %v", a, b, streamOf(t, next))
	}
	if _, err := Append(t.Context(), t.TempDir()+"/more", first, Files{Edges: []Edges{{Path: "x.csv"}}, Events: true}, AppendOptions{Quiet: true}); err == nil || !strings.Contains(err.Error(), "read all events again with the recipe") {
		t.Errorf("Append: %v", err)
	}
	_, f := pair(t, "id\n1\n2\n", "source,target\n1,2\n")
	if _, err := Read(t.Context(), t.TempDir()+"/ds", f, Options{Recipe: r, Quiet: true}); err == nil || !strings.Contains(err.Error(), "read both in the same way") {
		t.Errorf("edges with a recipe of events: %v", err)
	}
}

// Times are whole numbers in one unit, or dates with or without a zone; what is odd about them is said, with a count.
func TestEventTimes(t *testing.T) {
	future := time.Now().Add(48 * time.Hour).Unix()
	for name, c := range map[string]struct {
		times []string
		o     Options
		want  []int64 // by row
		unit  string
		says  string
	}{
		"seconds":               {[]string{"1700000000", "1700000060"}, Options{}, []int64{1700000000, 1700000060}, "s", "the times look like s since 1970, from 2023-11-14 to 2023-11-14"},
		"milliseconds":          {[]string{"1700000000123", "1700000060000"}, Options{}, []int64{1700000000123, 1700000060000}, "ms", "the times look like ms since 1970"},
		"nanoseconds":           {[]string{"1700000000123456789", "1700000060000000000"}, Options{}, []int64{1700000000123456789, 1700000060000000000}, "ns", "the times look like ns"},
		"whole floats":          {[]string{"1700000000.0", "1700000060.0"}, Options{}, []int64{1700000000, 1700000060}, "s", "the times look like s"},
		"no unit":               {[]string{"0", "36"}, Options{}, []int64{0, 36}, "", "the times are numbers from 0 to 36, which are no times since 1970"},
		"a unit is given":       {[]string{"0", "36"}, Options{TimeUnit: "s"}, []int64{0, 36}, "s", ""},
		"mixed, as given":       {[]string{"1700000000", "1700000000123"}, Options{TimeUnit: "ms"}, []int64{1700000000, 1700000000123}, "ms", ""},
		"zero beside seconds":   {[]string{"1700000000", "0"}, Options{}, []int64{1700000000, 0}, "", "times of 0 may be missing ones; no unit is noted (1 of 2)"},
		"before 1970":           {[]string{"-5", "36"}, Options{TimeUnit: "s"}, []int64{-5, 36}, "s", "events are before 1970 (1 of 2)"},
		"negative":              {[]string{"-5", "36"}, Options{}, []int64{-5, 36}, "", "events have negative times (1 of 2)"},
		"in the future":         {[]string{"1700000000", fmt.Sprint(future)}, Options{}, []int64{1700000000, future}, "s", "events are in the future of this machine's clock (1 of 2)"},
		"dates":                 {[]string{"2023-11-14", "2023-11-15"}, Options{}, []int64{1699920000, 1700006400}, "s", "have no zone, and are read as UTC (2)"},
		"times without a zone":  {[]string{"2023-11-14T22:13:20", "2023-11-14T22:14:20"}, Options{}, []int64{1700000000, 1700000060}, "s", "have no zone, and are read as UTC (2)"},
		"zones":                 {[]string{"2023-11-14T22:13:20Z", "2023-11-15T00:14:20+02:00"}, Options{}, []int64{1700000000, 1700000060}, "s", ""},
		"zones as git has them": {[]string{"2023-11-14 22:13:20 +0000", "2023-11-15 00:14:20 +0200"}, Options{}, []int64{1700000000, 1700000060}, "s", ""},
		"dates in milliseconds": {[]string{"2023-11-14T22:13:20.5Z", "2023-11-14T22:13:21Z"}, Options{}, []int64{1700000000500, 1700000001000}, "ms", ""},
	} {
		t.Run(name, func(t *testing.T) {
			csv := "source,target,time\n"
			for i, when := range c.times {
				csv += fmt.Sprintf("a%d,a%d,%s\n", i, i+1, when)
			}
			ds, said, err := events(t, csv, false, c.o)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, s := range []string{"a0>", "a1>"} {
				for _, e := range streamOf(t, ds) {
					if strings.HasPrefix(e, s) {
						var at int64
						if _, err := fmt.Sscan(e[strings.IndexByte(e, '@')+1:], &at); err != nil {
							t.Fatal(err)
						}
						got = append(got, at)
					}
				}
			}
			if all := lines(said); !slices.Equal(got, c.want) || ds.Meta.TimeUnit != c.unit || !strings.Contains(all, c.says) || c.says == "" && strings.Contains(all, "zone") {
				t.Errorf("times %v in %q, want %v in %q; said %s, want %q", got, ds.Meta.TimeUnit, c.want, c.unit, all, c.says)
			}
		})
	}
}

// Times that a file stores as such are in UTC if their type has a zone; if it has none, that is said.
func TestTypedEventTimes(t *testing.T) {
	for name, c := range map[string]struct {
		of   arrow.DataType
		said bool
	}{
		"with a zone":    {&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Berlin"}, false},
		"without a zone": {&arrow.TimestampType{Unit: arrow.Microsecond}, true},
		"days":           {arrow.FixedWidthTypes.Date32, true},
	} {
		fields := []arrow.Field{{Name: "source", Type: arrow.PrimitiveTypes.Int64}, {Name: "target", Type: arrow.PrimitiveTypes.Int64}, {Name: "time", Type: c.of}}
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
		for i := range int64(3) {
			b.Field(0).(*array.Int64Builder).Append(i)
			b.Field(1).(*array.Int64Builder).Append(i + 1)
			text := fmt.Sprintf("2023-11-1%d", 6-i)
			if !c.said {
				text += "T01:00:00+01:00"
			}
			if err := b.Field(2).AppendValueFromString(text); err != nil {
				t.Fatal(err)
			}
		}
		dir := t.TempDir()
		writeParquet(t, dir+"/e.parquet", b.NewRecordBatch())
		b.Release()
		var said notice.List
		ds := read(t, dir+"/ds", Files{Edges: []Edges{{Path: dir + "/e.parquet"}}, Events: true}, Options{Notice: func(n notice.Notice) { said.Add(n) }})
		if ds.Meta.TimeUnit != "s" || !slices.Equal(streamOf(t, ds), []string{"2>3@1699920000", "1>2@1700006400", "0>1@1700092800"}) {
			t.Errorf("%s: %v in %q", name, streamOf(t, ds), ds.Meta.TimeUnit)
		}
		if got := strings.Contains(lines(said), "have no zone, and are read as UTC (3)"); got != c.said {
			t.Errorf("%s: that there is no zone is said: %t; %s", name, got, lines(said))
		}
	}
}

// A table of events that cannot be read is one sentence with the place, the reason and the way out, and leaves nothing.
func TestHostileEvents(t *testing.T) {
	for name, c := range map[string]struct {
		csv       string
		bipartite bool
		o         Options
		want      string
	}{
		"time missing":      {"source,target,time\na,b,1\nb,c,\n", false, Options{}, "line 3: the time is missing"},
		"time NaN":          {"source,target,time\na,b,1\nb,c,NaN\n", false, Options{}, "line 3: the time is missing"},
		"time infinite":     {"source,target,time\na,b,1\nb,c,inf\n", false, Options{}, "line 3: the time is \"inf\"; it is a whole number of 64 bits, or a date"},
		"fraction":          {"source,target,time\na,b,1\nb,c,2.5\n", false, Options{}, "line 3: the time is \"2.5\"; it is a whole number of 64 bits, or a date"},
		"too large":         {"source,target,time\na,b,1\nb,c,99999999999999999999\n", false, Options{}, "line 3: the time is"},
		"mixed units":       {"source,target,time\na,b,1700000000\nb,c,1700000000123\nc,d,1700000060\n", false, Options{}, "the times are in mixed units: 2 look like s since 1970, such as 1700000000, and 1 like ms, such as 1700000000123; write them in one unit, or say in TimeUnit (--time-unit) that all are in one"},
		"dates and numbers": {"source,target,time\na,b,2023-11-14\nb,c,1700000000\nc,d,2023-11-14\n", false, Options{}, "time"},
		"zones here, not there": {
			"source,target,time\na,b,2023-11-14T22:13:20Z\nb,c,2023-11-14T22:13:20\n", false,
			Options{},
			"is in no known layout",
		},
		"no column of times": {"source,target,when\na,b,1\nb,c,2\n", false, Options{}, "no column is the time of the events; name it time, or say which it is, as in Kinds: {\"when\": tables.Time} (--kinds when=time)"},
		"source missing":     {"source,target,time\na,b,1\n,c,2\n", false, Options{}, "line 3: the source is missing; an event has the ids of two nodes: remove the row, or complete it"},
		"target missing":     {"source,target,time\na,b,1\nb,NA,2\nb,,3\n", false, Options{}, "line 4: the target is missing"},
		"only a header":      {"source,target,time\n", false, Options{}, "has no rows below the names of its columns"},
		"one column":         {"time\n1\n", false, Options{}, "no column is the source"},
		"unknown unit":       {"source,target,time\na,b,1\n", false, Options{TimeUnit: "h"}, "TimeUnit (--time-unit) is \"h\"; it is s, ms, us or ns"},
		"features of events of one time": {
			"source,target,time,x\na,b,5,1\nb,c,5,2\nc,a,5,3\n", false,
			Options{},
			"features of events are fitted to the events of training: no event is in the validation",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := events(t, c.csv, c.bipartite, c.o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"both/events.csv": "source,target,time\na,b,1\n", "both/edges.csv": "source,target\na,b\n", "both/nodes.csv": "id\na\nb\n", "n/nodes.csv": "id\na\nb\n", "n/events.csv": "source,target,time\na,z,1\n", "plain.csv": "source,target,weight\n1,2,3\n", "one.csv": "source,target,time\na,b,1\n", "two.csv": "time,to\n1,2\n", "none.csv": "1,2,3\n"})
	if _, err := Folder(dir + "/both"); err == nil || !strings.Contains(err.Error(), "has tables of events and of edges; all rows are events, or none is") {
		t.Errorf("events and edges: %v", err)
	}
	f, err := Folder(dir + "/n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true}); err == nil || !strings.Contains(err.Error(), `the target "z" is the id of no node`) {
		t.Errorf("an unknown node: %v", err)
	}
	f.Bipartite = true
	if _, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true}); err == nil || !strings.Contains(err.Error(), "Bipartite (--bipartite) is for one table of events without tables of nodes") {
		t.Errorf("bipartite with nodes: %v", err)
	}
	for path, want := range map[string]bool{"one.csv": true, "plain.csv": false, "two.csv": false, "none.csv": false, "missing.csv": false, "n": false} {
		if got := IsEvents(filepath.Join(dir, path)); got != want {
			t.Errorf("%s is a table of events: %t", path, got)
		}
	}
}

// CollegeMsg and the history of etcd are read as they are: the numbers of their events, and the ends and times of the first rows.
func TestRealEvents(t *testing.T) {
	path := testneed.RealData(t, "temporal/collegemsg/uci.csv")
	var said notice.List
	ds, err := Read(t.Context(), t.TempDir()+"/uci", Files{Edges: []Edges{{Path: path}}, Events: true}, Options{Quiet: true, Notice: func(n notice.Notice) { said.Add(n) }})
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if ds.Nodes() != 1899 || len(ds.Events) != 59835 || ds.Edges() != 59835 || ds.Meta.TimeUnit != "s" || streamOf(t, ds)[0] != "1>2@1082008561" {
		t.Errorf("%v, %s", ds, lines(said))
	}
	etcd, err := Read(t.Context(), t.TempDir()+"/etcd", Files{Edges: []Edges{{Path: testneed.RealData(t, "temporal/etcd/events.csv")}}, Events: true, Bipartite: true}, Options{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	if s := etcd.Schema(); len(etcd.Events) != 34936 || s.Nodes[0].Count != 506 || s.Nodes[1].Count != 8269 {
		t.Errorf("%v, %+v", etcd, s)
	}
}

// The dataset and its recipe say until which event features are fitted; other events that are encoded by the recipe say so, too.
func TestFitOfEventsIsRecorded(t *testing.T) {
	const csv = "u,i,ts,amount\n1,2,10,4\n2,3,20,2\n3,1,30,6\n1,2,40,8\n2,1,50,10\n"
	for fit, want := range map[string]struct {
		until int64
		first float32 // of the feature
	}{"": {30, 0}, "all": {50, -2 / 2.8284271}, "20": {20, 1}, "29": {29, 1}, "999": {50, -2 / 2.8284271}} {
		ds, _, err := events(t, csv, false, Options{Fit: fit})
		if err != nil {
			t.Fatal(err)
		}
		row := make([]float32, 1)
		ds.Graph.EdgeFeatures.CopyRow(row, ds.Events[0])
		if at := ds.Meta.FeaturesUntil; at == nil || *at != want.until || math.Abs(float64(row[0]-want.first)) > 1e-6 {
			t.Errorf("Fit %q: until %v, 4 becomes %v; want %+v", fit, at, row[0], want)
		}
		again, err := dataset.Open(ds.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if at := again.Meta.FeaturesUntil; at == nil || *at != want.until {
			t.Errorf("Fit %q: the directory says %v", fit, at)
		}
		again.Close()
		r, err := ReadRecipe(ds.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if other, _, err := events(t, "u,i,ts,amount\n1,2,5,4\n", false, Options{Recipe: r}); err != nil || other.Meta.FeaturesUntil == nil || *other.Meta.FeaturesUntil != want.until {
			t.Errorf("by the recipe: %v, %v", other, err)
		}
	}
	if ds, _, err := events(t, "u,i,ts\n1,2,10\n2,3,20\n3,1,30\n1,2,40\n", false, Options{}); err != nil || ds.Meta.FeaturesUntil != nil {
		t.Errorf("events without features are fitted until %v, %v", ds.Meta.FeaturesUntil, err)
	}
	if _, _, err := events(t, csv, false, Options{Fit: "9"}); err == nil || !strings.Contains(err.Error(), "the first one is at 10; give a later time") {
		t.Error(err)
	}
	_, f := pair(t, "id,x\n1,1\n2,2\n", "source,target\n1,2\n")
	if _, err := Read(t.Context(), t.TempDir()+"/ds", f, Options{Fit: "20", Quiet: true}); err == nil || !strings.Contains(err.Error(), "the rows are no events") {
		t.Error(err)
	}
}

// A column that tells the next destination is named where events are read, with the way to leave it out.
func TestTellingColumnOfEvents(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("u,i,ts,next_page,amount\n")
	page := func(i int) int { return i * i % 97 * 31 % 11 }
	for i := range 400 {
		fmt.Fprintf(&csv, "u%d,p%d,%d,page %d,%d.5\n", i%3, page(i), 100+i, page(i+3), i*7%13)
	}
	_, said, err := events(t, csv.String(), false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := lines(said)
	if !strings.Contains(all, `the column "next_page" of events tells the destination of the source's next event`) || !strings.Contains(all, "--kinds next_page=skip leaves it out") || strings.Contains(all, `the column "amount"`) {
		t.Errorf("the notices are %s", all)
	}
}

// Features of nodes that only later events have are fitted, too, and it is said how many these are.
func TestFeaturesOfLaterNodes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"nodes.csv": "id,x\n1,1\n2,2\n3,3\n4,9\n", "events.csv": "u,i,ts\n1,2,10\n2,1,20\n1,2,30\n2,3,40\n3,1,50\n"})
	f, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var said notice.List
	ds, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true, Notice: func(n notice.Notice) { said.Add(n) }})
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if want := "nodes have no event of training, and features of nodes are fitted to them, too: to their means, deviations and categories (2 of 4)"; !strings.Contains(lines(said), want) {
		t.Errorf("the notices are %s", lines(said))
	}
}

// A column of nodes of kind time says from when on they exist, in the unit of the edges' times. What is odd about them is said with a
// count, and what cannot be one time ends in a sentence.
func TestTimesOfNodes(t *testing.T) {
	read := func(t *testing.T, nodes, edges string, o Options) (*dataset.Dataset, string, error) {
		t.Helper()
		dir := t.TempDir()
		write(t, dir, map[string]string{"in/nodes.csv": nodes, "in/edges.csv": edges})
		f, err := Folder(dir + "/in")
		if err != nil {
			t.Fatal(err)
		}
		var said notice.List
		o.Quiet, o.Notice = true, func(n notice.Notice) { said.Add(n) }
		if o.Kinds == nil {
			o.Kinds = map[string]Kind{"joined": Time, "at": Time}
		}
		ds, err := Read(t.Context(), dir+"/ds", f, o)
		if err == nil {
			t.Cleanup(func() { ds.Close() })
		}
		return ds, lines(said), err
	}
	const edges = "source,target,at\na,b,2024-05-03\nb,c,2024-05-01\n"
	ds, said, err := read(t, "id,joined,x\na,2024-05-01,1\nb,2024-05-02,2\nc,1969-12-31,3\n", edges, Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := dataset.Open(ds.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if want := []int64{1714521600, 1714608000, -86400}; !slices.Equal(again.NodeTimes, want) || again.Meta.TimeUnit != "s" || again.FeatureDim() != 1 {
		t.Errorf("the times are %v in %q, with %d features; want %v", again.NodeTimes, again.Meta.TimeUnit, again.FeatureDim(), want)
	}
	if err := again.Check(t.Context()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"edges are earlier than one of their nodes; as of a time, such an edge is known from the later node's time on (1 of 2)",
		"times of nodes are negative, or before 1970 (1 of 3)", `the times of the column "joined" have no zone, and are read as UTC (3)`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the notices lack %q: %s", want, said)
		}
	}
	if _, err := Append(t.Context(), t.TempDir()+"/more", ds, Files{Edges: []Edges{{Path: "x.csv"}}}, AppendOptions{Quiet: true}); err == nil || !strings.Contains(err.Error(), "has times of nodes, to which nothing is appended so far") {
		t.Errorf("Append: %v", err)
	}
	plain := "source,target,at\na,b,1714521600\n"
	for name, c := range map[string]struct {
		nodes, edges, fails string
		o                   Options
	}{
		"missing":           {nodes: "id,joined\na,2024-05-01\nb,\n", edges: "source,target,at\na,b,2024-05-03\n", fails: "the time is missing; skip the column, or give each row one"},
		"NaN":               {nodes: "id,joined\na,5.0\nb,nan.0\n", edges: "source,target,at\na,b,7\n", fails: `"nan.0"`},
		"a fraction":        {nodes: "id,joined\na,5.5\nb,6\n", edges: "source,target,at\na,b,7\n", fails: "the time is"},
		"dates and numbers": {nodes: "id,joined\na,2024-05-01\nb,2024-05-02\n", edges: plain, fails: "the times of edges are in plain numbers and those of nodes in s; say one unit for all"},
		"other units":       {nodes: "id,joined\na,1714521600000\nb,1714521600001\n", edges: plain, fails: "the times are in mixed units: those of nodes look like ms since 1970, such as 1714521600000, and others like s"},
		"units by word":     {nodes: "id,joined\na,1714521600000\nb,1714521600001\n", edges: plain, o: Options{TimeUnit: "ms"}},
		"two columns":       {nodes: "id,joined,left\na,1,2\nb,1,2\n", edges: plain, o: Options{Kinds: map[string]Kind{"joined": Time, "left": Time, "at": Time}}, fails: "two columns are to be of kind time, and a table has one"},
		"no times of edges": {nodes: "id,joined\na,5\nb,-6\n", edges: "source,target\na,b\n", o: Options{Kinds: map[string]Kind{"joined": Time}}},
	} {
		ds, _, err := read(t, c.nodes, c.edges, c.o)
		switch {
		case c.fails == "" && (err != nil || len(ds.NodeTimes) != 2):
			t.Errorf("%s: %v, %v", name, ds, err)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, want %s", name, err, c.fails)
		}
	}
	// A type without times exists always.
	dir := t.TempDir()
	write(t, dir, map[string]string{"nodes.user.csv": "id,joined\n1,10\n2,20\n", "nodes.item.csv": "id,price\n1,5\n2,6\n", "events.user.buys.item.csv": "source,target,time\n1,2,15\n2,1,15\n1,1,30\n2,2,40\n"})
	f, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all notice.List
	typed, err := Read(t.Context(), dir+"/ds", f, Options{Kinds: map[string]Kind{"joined": Time}, Quiet: true, Notice: func(n notice.Notice) { all.Add(n) }})
	if err != nil {
		t.Fatal(err)
	}
	defer typed.Close()
	if !slices.Equal(typed.NodeTimes, []int64{math.MinInt64, math.MinInt64, 10, 20}) || !strings.Contains(lines(all), "nodes are of types without a column of times, and exist always (2 of 4)") || !strings.Contains(lines(all), "earlier than one of their nodes; as of a time, such an edge is known from the later node's time on (1 of 4)") {
		t.Errorf("the times are %v; %s", typed.NodeTimes, lines(all))
	}
}
