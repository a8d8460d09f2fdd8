package tables

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// An Encoder gives rows in memory the bits that Append gives rows of files, finds ids also from several goroutines, and
// says which values have no features of their own.
func TestEncoderIsAsAppend(t *testing.T) {
	nodes, edges := customers(90)
	n1, e1, n2, e2 := cut(nodes, edges, 70)
	dir, f := pair(t, n1, e1)
	ds := read(t, dir+"/ds", f, Options{Name: "same"})
	_, f = pair(t, n2, e2)
	more, err := Append(t.Context(), dir+"/more", ds, f, AppendOptions{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	e, err := NewEncoder(ds)
	if err != nil {
		t.Fatal(err)
	}
	rowsOf := func(text string, drop ...Kind) (ids []string, rows []map[string]string) {
		lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		head := lines[0]
		for _, line := range lines[1:] {
			row := map[string]string{}
			for i, value := range line {
				kind := Skip
				for _, c := range e.Recipe().Nodes[0].Columns {
					if c.Name == head[i] {
						kind = c.Kind
					}
				}
				switch {
				case kind == ID:
					ids = append(ids, value)
				case !slices.Contains(drop, kind):
					row[strings.ToUpper(head[i])] = value // names are compared in lower case
				}
			}
			rows = append(rows, row)
		}
		return ids, rows
	}
	ids, rows := rowsOf(n2, Label, Split, Skip)
	got, err := e.Nodes(t.Context(), "", ids, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		if a, b := rowOf(got, i), rowOf(dataset.NodeFeatures{Dense: more.Features, Sparse: more.SparseFeatures}, 70+i); !slices.Equal(a, b) {
			t.Fatalf("row %d is %v, and appended it is %v", i, a, b)
		}
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for v := range 70 {
				if at, err := e.Find("", fmt.Sprintf("c%d", v)); err != nil || at != v {
					t.Errorf("c%d is node %d, %v", v, at, err)
				}
			}
		})
	}
	group.Wait()
	if at, err := e.Find("", "c70"); err != nil || at != -1 || e.Near("", "C7") != "c7" {
		t.Errorf("an unknown id is node %d (%v), and C7 looks like %q", at, err, e.Near("", "C7"))
	}
	if id, err := e.ID("", 69); err != nil || id != "c69" {
		t.Errorf("node 69 is %q, %v", id, err)
	}
	if _, err := e.ID("", 70); err == nil {
		t.Error("there is no node 70")
	}
	if _, err := e.Find("user", "c1"); err == nil || !strings.Contains(err.Error(), "no nodes of type") {
		t.Errorf("an unknown type: %v", err)
	}
	var said notice.List
	for _, c := range e.Recipe().Nodes[0].Columns {
		name := strings.ToUpper(c.Name)
		if _, ok := rows[0][name]; ok && c.Kind == Category && c.Buckets == 0 {
			rows[0][name] = "never seen"
		}
		if _, ok := rows[1][name]; ok && c.Kind == Number {
			rows[1][name] = ""
		}
	}
	if _, err := e.Nodes(t.Context(), "", ids, rows, said.Add); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(said); !strings.Contains(text, "new nodes: row 1: \"never seen\" is no category") || !strings.Contains(text, "is missing, so it is taken as the mean (") {
		t.Errorf("it says %s", text)
	}
	if _, err := e.Edges(t.Context(), nil, []string{"c1"}, []string{"nobody"}, []map[string]string{{"weight": "1"}}, nil, nil); err == nil || !strings.Contains(err.Error(), "new edges: row 1: the target") {
		t.Errorf("an edge to nobody: %v", err)
	}
	if _, err := NewEncoder(&dataset.Dataset{}); err == nil {
		t.Error("a dataset in memory has no recipe")
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := dataset.Write(plain, ds); err != nil {
		t.Fatal(err)
	}
	other, err := dataset.Open(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := NewEncoder(other); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dataset without a recipe: %v", err)
	}
}

// rowOf is a row of features, dense.
func rowOf(x dataset.NodeFeatures, i int) []float32 {
	if x.Dense != nil {
		return x.Dense.Row(i)
	}
	row := make([]float32, x.Sparse.Cols)
	columns, values := x.Sparse.Row(i)
	for k, c := range columns {
		row[c] = values[k]
	}
	return row
}
