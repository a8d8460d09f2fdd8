package inspect_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/inspect"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// shop has users and items, a type without nodes, and many relations of users to themselves.
func shop(t *testing.T) *gnb.Dataset {
	t.Helper()
	s := &graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "user", Count: 2}, {Name: "item <new>", Count: 3}, {Name: "brand", Count: 0}},
		Relations: []graphops.Relation{{Src: "user", Name: "likes", Dst: "item <new>"}, {Src: "item <new>", Name: "rev_likes", Dst: "user"}, {Src: "brand", Name: "makes", Dst: "item <new>"}},
	}
	for _, name := range strings.Fields("knows follows blocks trusts") {
		s.Relations = append(s.Relations, graphops.Relation{Src: "user", Name: name, Dst: "user"})
	}
	g, err := graphops.FromEdgesWith(5, []int32{0, 1, 1, 0, 3}, []int32{2, 3, 4, 1, 0}, graphops.EdgeData{Types: []uint16{0, 0, 0, 3, 1}}, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(s, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &gnb.Dataset{
		Graph: g, Labels: []int32{-1, -1, 0, 1, 1}, Meta: dataset.Metadata{Name: "a shop & more", NumClasses: 2},
		NodeFeatures: []dataset.NodeFeatures{{Dense: &dataset.Matrix{Rows: 2, Cols: 1, F32: []float32{1, 2}}}, {}, {}},
	}
}

// A schema is drawn as text with each type's relations below it, and as a picture with each type and relation.
func TestSchema(t *testing.T) {
	got, err := inspect.TypesOf(shop(t))
	if err != nil {
		t.Fatal(err)
	}
	want := `  user  (2 nodes, 1 feature)
  ├─ knows ─▶ user         1 edge
  ├─ follows ─▶ user       0 edges
  ├─ blocks ─▶ user        0 edges
  ├─ trusts ─▶ user        0 edges
  └─ likes ─▶ item <new>   3 edges
  item <new>  (3 nodes, 2 classes)
  └─ rev_likes ─▶ user     1 edge
  brand  (0 nodes)
  └─ makes ─▶ item <new>   0 edges
`
	if got.String() != want {
		t.Errorf("the text is\n%swant\n%s", got.String(), want)
	}
	svg := got.SVG()
	texts, arrows := map[string]int{}, 0
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the SVG is no XML: %v", err)
		}
		switch x := token.(type) {
		case xml.CharData:
			texts[strings.TrimSpace(string(x))]++
		case xml.StartElement:
			for _, a := range x.Attr {
				if a.Name.Local == "marker-end" {
					arrows++
				}
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s has %s = %q", x.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
	for _, want := range []string{"user", "item <new>", "brand", "likes 3", "rev_likes 1", "makes 0", "knows 1", "3 nodes, 2 classes", "a shop & more: types of nodes, and relations between them"} {
		if texts[want] == 0 {
			t.Errorf("the drawing has no text %q:\n%s", want, svg)
		}
	}
	if arrows != 4 { // user to user has four relations
		t.Errorf("the drawing has %d arrows, want 4", arrows)
	}
	if _, err := inspect.Schema(shop(t)); err != nil { // outside a notebook it draws nothing
		t.Error(err)
	}
}

// Datasets without types have a sentence.
func TestSchemaMisuse(t *testing.T) {
	for name, ds := range map[string]*gnb.Dataset{"there is no dataset": nil, "have no types to draw": {Graph: &graphops.Graph{Indptr: []int64{0}}, Meta: dataset.Metadata{Name: "plain"}}} {
		if _, err := inspect.Schema(ds); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error is %v, want %q", err, name)
		}
	}
}
