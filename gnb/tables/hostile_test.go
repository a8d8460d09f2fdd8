package tables

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/graphnb/graphnb/internal/tabular"
)

// Each table is refused with one sentence that says where and why, and nothing is left of the dataset.
func TestHostile(t *testing.T) {
	nodes, edges := customers(60)
	const two = "id,x\n1,1\n2,2\n"
	const join = "source,target\n1,2\n"
	many := func(head string, n int, row func(i int) string) string {
		var s strings.Builder
		s.WriteString(head + "\n")
		for i := range n {
			s.WriteString(row(i) + "\n")
		}
		return s.String()
	}
	for name, c := range map[string]struct {
		nodes, edges string
		o            Options
		want         []string // parts of the sentence
	}{
		"ragged rows": {nodes: "id,x\n1,1\n2\n", want: []string{"nodes.csv", "line 3", "1 columns", "names 2"}},
		"mixed kinds": {nodes: many("id,age", 50, func(i int) string { return fmt.Sprint(i, ",", map[bool]string{true: "old", false: "30"}[i == 17]) }), want: []string{`column "age"`, "49 of its values are numbers", `"old"`, "line 19", "--kinds"}},
		"dates": {nodes: many("id,born", 50, func(i int) string {
			return fmt.Sprint(i, ",", map[bool]string{true: "2023-02-30", false: "2023-02-20"}[i == 17])
		}), want: []string{`column "born"`, "49 of its values are dates", "2023-02-30", "line 19"}},
		"ambiguous dates":   {nodes: many("id,born", 50, func(i int) string { return fmt.Sprintf("%d,0%d/0%d/2020", i, 1+i%9, 1+i/9) }), want: []string{`column "born"`, "day first or the month first", "02/01/2006"[:0] + "2/1/2006"}},
		"a date given":      {nodes: "id,born\n1,soon\n2,later\n", o: Options{Kinds: map[string]Kind{"born": Date}}, want: []string{`column "born"`, `"soon"`, "line 2", "Layouts"}},
		"ids collide":       {nodes: "id,x\n1,1\n2,2\n1,3\n", want: []string{"line 4", `the id "1"`, "row 1"}},
		"an id is missing":  {nodes: "id,x\n1,1\n,2\n", want: []string{"line 3", "the id is missing"}},
		"unknown id":        {edges: "source,target\n1,2\n1,9\n", want: []string{"edges.csv: line 3", `the target "9" is the id of no node`}},
		"no ids":            {nodes: "a,b\n1.5,2\n1.5,2\n", want: []string{"no column is the id", "a, b"}},
		"empty file":        {nodes: " ", want: []string{"nodes.csv"}},
		"no bytes":          {nodes: "\x00empty", want: []string{"nodes.csv is empty"}},
		"only names":        {nodes: "id,x\n", want: []string{"nodes.csv has no rows"}},
		"no edges":          {edges: "source,target\n", want: []string{"edges.csv has no rows"}},
		"names twice":       {nodes: "id,x\n1,1\nid,x\n2,2\n", want: []string{"line 3", "repeats the names of the columns"}},
		"duplicate columns": {nodes: "id,x,X\n1,1,1\n", want: []string{"two columns are named", "x"}},
		"a column unnamed":  {nodes: "id,,y\n1,x,1\n", want: []string{"column 2 has no name"}},
		"not UTF-8":         {nodes: "id,x\n1,caf\xe9\n2,b\n", want: []string{"line 2", "not UTF-8", "iconv"}},
		"names not UTF-8":   {nodes: "id,caf\xe9\n1,2\n", want: []string{"line 1", "not UTF-8"}},
		"one class":         {nodes: "id,label\n1,yes\n2,yes\n", want: []string{`"label"`, `"yes"`, "one class"}},
		"no label":          {nodes: "id,label,x\n1,,1\n2,,1\n", want: []string{"every label", "missing"}},
		"no train":          {nodes: "id,split,x\n1,val,1\n2,test,1\n", want: []string{"no node is in the split train", "--fit all"}},
		"no label, all":     {nodes: "id,label,x\n1,,1\n2,,1\n", o: Options{Fit: "all"}, want: []string{"every label", "missing"}},
		"a number as label": {nodes: many("id,label", 50, func(i int) string { return fmt.Sprintf("%d,%d.5", i, i) }), o: Options{Kinds: map[string]Kind{"label": Label}}, want: []string{`column "label"`, "fractions", "class", "--kinds COLUMN=target"}},
		"too many classes":  {nodes: many("id,label", 10002, func(i int) string { return fmt.Sprintf("%d,a%d", i, i) }), want: []string{"more than 10000 different values"}},
		"a huge cell":       {nodes: "id,x\n1,\"" + strings.Repeat("a", 2<<20) + "\"\n", want: []string{"a record is longer than 1"}},
		"an open quote":     {nodes: "id,x\n1,\"a\n2,b\n", want: []string{"nodes.csv", "quote"}},
		"infinite":          {nodes: "id,x\n1,1\n2,1e300\n", o: Options{Unscaled: true}, want: []string{"line 3", `"x"`, "too large"}},
		"a bad split":       {nodes: "id,split\n1,train\n2,maybe\n", want: []string{"line 3", `"maybe"`, "train, val, test"}},
		"a bad weight":      {edges: "source,target,weight\n1,2,-1\n", want: []string{"line 2", "weight", "not negative"}},
		"no weight":         {edges: "source,target,weight\n1,2,\n", want: []string{"line 2", "the weight is missing"}},
		"unknown column":    {o: Options{Kinds: map[string]Kind{"agee": Number}}, want: []string{`"agee"`, "which no table has", "id, source"}},
		"unknown kind":      {o: Options{Kinds: map[string]Kind{"x": "colour"}}, want: []string{`"colour"`, "number, category"}},
		"two ids":           {nodes: "id,x\n1,1\n", o: Options{Kinds: map[string]Kind{"x": ID, "id": ID}}, want: []string{"two columns are to be of kind id"}},
		"UTF-16":            {nodes: "\xff\xfei\x00d\x00", want: []string{"UTF-16"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			n, e := two, join
			if c.nodes != "" {
				n = c.nodes
			}
			if c.edges != "" {
				e = c.edges
			}
			if n == "\x00empty" {
				n = ""
			}
			write(t, dir, map[string]string{"nodes.csv": n, "edges.csv": e})
			c.o.Quiet = true
			_, err := Read(t.Context(), dir+"/ds", Of(dir+"/nodes.csv", dir+"/edges.csv"), c.o)
			sentence(t, err, c.want...)
			nothingLeft(t, dir)
		})
	}
	dir := t.TempDir()
	whole := dir + "/nodes.parquet"
	writeParquet(t, whole, record(t, nodes))
	writeArrow(t, dir+"/nodes.arrow", record(t, nodes), false)
	writeArrow(t, dir+"/nodes.ipc", record(t, nodes), true)
	write(t, dir, map[string]string{"edges.csv": edges, "mixed/a.csv": "id,x\n1,1\n", "mixed/b.csv": "id,y\n2,1\n", "none/_SUCCESS": ""})
	for _, c := range []struct {
		name, file string
		keep       float64 // share of its bytes
		want       []string
	}{
		{"a Parquet file cut in the middle", "nodes.parquet", .5, []string{"nodes.parquet", "cut off", "again"}},
		{"a Parquet file without its last byte", "nodes.parquet", .9999, []string{"nodes.parquet", "cut off"}},
		{"an Arrow file cut in the middle", "nodes.arrow", .5, []string{"nodes.arrow"}},
		{"an Arrow stream cut in the middle", "nodes.ipc", .5, []string{"nodes.ipc"}},
		{"files with other columns", "mixed", 0, []string{"b.csv", `no column "x"`}},
		{"a folder without files", "none", 0, []string{"without files"}},
		{"no such file", "nowhere.csv", 0, []string{"nowhere.csv", "no such file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, c.file)
			if c.keep > 0 {
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				path = filepath.Join(t.TempDir(), c.file)
				if err := os.WriteFile(path, raw[:int(float64(len(raw))*c.keep)], 0o666); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Read(t.Context(), dir+"/ds", Of(path, dir+"/edges.csv"), Options{Quiet: true})
			sentence(t, err, c.want...)
			nothingLeft(t, dir)
		})
	}
}

// sentence checks that err is one sentence with all the parts.
func sentence(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	s := err.Error()
	if !strings.HasPrefix(s, "tables: ") || strings.Contains(s, "convert:") || strings.Contains(s, "\n") || len(s) > 600 {
		t.Errorf("%q is not one sentence of this package", s)
	}
	for _, p := range parts {
		if !strings.Contains(s, p) {
			t.Errorf("%q does not contain %q", s, p)
		}
	}
}

// A column that predicts the label exactly is named, and others are not.
func TestLeaks(t *testing.T) {
	var nodes strings.Builder
	nodes.WriteString("id,label,state,score,closed,plan,age\n")
	for i := range 60 {
		y := []string{"stays", "leaves"}[i%2]
		fmt.Fprintf(&nodes, "%d,%s,%s%d,%d,%s,%s,%d\n", i, y, y[:2], i/2%3, i%2*1000+i, []string{"", "2024-05-01"}[i%2], []string{"a", "b", "c"}[i%3], i*7%31)
	}
	dir, f := pair(t, nodes.String(), "source,target\n1,2\n")
	var said []string
	if _, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true, Note: func(s string) {
		if strings.Contains(s, "predicts") {
			said = append(said, s)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	want := []string{`column "state" predicts the label "label" exactly (each of its values`, `column "score" predicts the label "label" exactly (its ranges`, `column "closed" predicts the label "label" exactly (it is missing`}
	if len(said) != len(want) {
		t.Fatalf("said %q", said)
	}
	for k, w := range want {
		if !strings.Contains(said[k], w) {
			t.Errorf("said %q, want %q", said[k], w)
		}
	}
}

// 10,000 categories are hashed, and missing labels are unlabelled nodes.
func TestManyCategoriesAndMissingLabels(t *testing.T) {
	var nodes strings.Builder
	nodes.WriteString("id,city,label\n")
	for i := range 20000 {
		fmt.Fprintf(&nodes, "%d,city%d,%s\n", i, i%10000, []string{"", "0", "1"}[i%3])
	}
	dir, f := pair(t, nodes.String(), "source,target\n1,2\n")
	ds := read(t, dir+"/ds", f, Options{})
	r, _ := ReadRecipe(ds.Dir())
	if c := r.Nodes[0].Columns[1]; c.Kind != Category || c.Buckets != 128 || c.Width != 128 {
		t.Errorf("10,000 categories became %+v", c)
	}
	if ds.Labels[0] != -1 || ds.Labels[1] != 0 || ds.Labels[2] != 1 {
		t.Errorf("labels begin with %v", ds.Labels[:3])
	}
}

// Damaged files never panic, and end in a dataset or one sentence.
func FuzzRead(f *testing.F) {
	nodes, edges := customers(8)
	f.Add([]byte(nodes), []byte(edges))
	f.Add([]byte("id;x\n1;\"a\"\n"), []byte("source\ttarget\n1\t1\n"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		dir := t.TempDir()
		write(t, dir, map[string]string{"n": string(a), "e": string(b)})
		ds, err := Read(t.Context(), dir+"/ds", Of(dir+"/n", dir+"/e"), Options{Quiet: true, Fit: "all"})
		if err != nil {
			nothingLeft(t, dir)
			return
		}
		_ = ds.Close()
	})
}

// FuzzParquet damages bytes of a Parquet file and of an Arrow file.
func FuzzParquet(f *testing.F) {
	nodes, edges := customers(12)
	_ = nodes
	f.Add(uint16(10), byte(1), uint16(200), byte(7), true)
	f.Add(uint16(900), byte(255), uint16(3), byte(0), false)
	f.Fuzz(func(t *testing.T, at1 uint16, x1 byte, at2 uint16, x2 byte, pq bool) {
		dir := t.TempDir()
		path := dir + "/n"
		if pq {
			writeParquet(t, path, record(t, nodes))
		} else {
			writeArrow(t, path, record(t, nodes), false)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		raw[int(at1)%len(raw)] ^= x1
		raw[int(at2)%len(raw)] ^= x2
		write(t, dir, map[string]string{"n": string(raw), "e": edges})
		ds, err := Read(t.Context(), dir+"/ds", Of(path, dir+"/e"), Options{Quiet: true, Fit: "all"})
		if err != nil {
			nothingLeft(t, dir)
			return
		}
		_ = ds.Close()
	})
}

// Every seventh byte of a Parquet file and of an Arrow file and stream, damaged in turn, leads to rows or to one sentence: no
// panic, and no memory beyond a multiple of the file's size.
func TestDamagedBytes(t *testing.T) {
	nodes, _ := customers(12)
	dir := t.TempDir()
	writeParquet(t, dir+"/parquet", record(t, nodes))
	writeArrow(t, dir+"/arrow", record(t, nodes), false)
	writeArrow(t, dir+"/stream", record(t, nodes), true)
	const step = 7
	for _, name := range []string{"parquet", "arrow", "stream"} {
		raw, err := os.ReadFile(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		refused, damaged := 0, 0
		for at := 0; at < len(raw); at += step {
			for _, x := range []byte{0x01, 0x80, 0xff} {
				raw[at] ^= x
				write(t, dir, map[string]string{"damaged": string(raw)})
				raw[at] ^= x
				damaged++
				tab, err := openTable(dir+"/damaged", &tabular.Meter{})
				if err == nil {
					err = tab.each(t.Context(), slices.Repeat([]bool{true}, len(tab.names)), func(*batch) error { return nil })
				}
				if err != nil {
					refused++
					if s := err.Error(); !strings.HasPrefix(s, "tables: ") || strings.Contains(s, "\n") || strings.Contains(s, "runtime error") || strings.Contains(s, "panic") || !utf8.ValidString(s) {
						t.Fatalf("%s, byte %d xor %#x: %q is not one sentence", name, at, x, s)
					}
				}
			}
		}
		if refused == 0 {
			t.Errorf("none of %d damaged files %s was refused", damaged, name)
		}
	}
}
