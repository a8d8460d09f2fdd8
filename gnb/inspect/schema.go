package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Types describes the types of a dataset's nodes and the relations of its edges: see [Schema].
type Types struct {
	Dataset   string     `json:"dataset"`
	Nodes     []TypeOf   `json:"nodes"`
	Relations []Relation `json:"relations"`
}

// TypeOf is a type of nodes.
type TypeOf struct {
	Name     string `json:"name"`
	Count    int    `json:"count"`
	Features int    `json:"features"` // columns, 0 for none
	Classes  int    `json:"classes"`  // 0 for no labels
}

// Relation is a relation between two types, which are indices into Types.Nodes.
type Relation struct {
	Src   int    `json:"src"`
	Name  string `json:"name"`
	Dst   int    `json:"dst"`
	Edges int64  `json:"edges"`
}

// Schema describes the types of a dataset, and draws them in a cell: types as boxes, and relations as arrows with their
// numbers of edges. Print the result for the same as text. The edge types of ds must be valid (Dataset.Check). It returns an
// error for a dataset without types, and for one in parts without its topology, whose edges cannot be counted.
func Schema(ds *gnb.Dataset) (Types, error) {
	t, err := TypesOf(ds)
	if err == nil {
		err = t.show()
	}
	return t, err
}

// show shows the drawing in the current cell, with the text for viewers without pictures; outside a notebook it does
// nothing.
func (t Types) show() error {
	if err := screen.ShowSVG(t.SVG(), t.String(), screen.Options{}); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	return nil
}

// TypesOf is [Schema] without the drawing in a cell.
func TypesOf(ds *gnb.Dataset) (Types, error) {
	switch {
	case ds == nil:
		return Types{}, fmt.Errorf("inspect: there is no dataset")
	case ds.Schema() == nil:
		return Types{}, fmt.Errorf("inspect: the nodes and edges of %s have no types to draw; inspect.Batch draws a batch of it", ds.Name())
	case ds.Graph == nil:
		return Types{}, fmt.Errorf("inspect: %s; its edges cannot be counted by relation", ds.WhyNoGraph())
	}
	s := ds.Schema()
	t := Types{Dataset: ds.Name(), Nodes: typesOf(ds)}
	edges := ds.Graph.RelationEdges()
	for i, r := range s.Relations {
		src, dst := s.Ends(i)
		t.Relations = append(t.Relations, Relation{src, r.Name, dst, edges[i]})
	}
	return t, nil
}

// typesOf returns the types of a dataset's nodes, nil if they have none.
func typesOf(ds *gnb.Dataset) (types []TypeOf) {
	if ds == nil || ds.Schema() == nil {
		return nil
	}
	for i, n := range ds.Schema().Nodes {
		features := ds.FeatureDim()
		if ds.NodeFeatures != nil {
			features = ds.NodeFeatures[i].Cols()
		}
		types = append(types, TypeOf{n.Name, n.Count, features, ds.ClassesOf(i)})
	}
	return types
}

// describe returns the line below a type's name.
func (n TypeOf) describe() string {
	text := phrase.Count(n.Count, "node")
	if n.Features > 0 {
		text += ", " + phrase.Count(n.Features, "feature")
	}
	switch {
	case n.Classes == 1:
		text += ", 1 class"
	case n.Classes > 1:
		text += fmt.Sprintf(", %d classes", n.Classes)
	}
	return text
}

// mostOfOne is the number of relations from one type that are written, those with the most edges.
const mostOfOne = 40

// from returns the relations from type src, those to each type together: by destination, then in their order.
func (t Types) from(src int) (list []Relation, more int) {
	for _, r := range t.Relations {
		if r.Src == src {
			list = append(list, r)
		}
	}
	if more = len(list) - mostOfOne; more > 0 {
		slices.SortStableFunc(list, func(a, b Relation) int { return cmp.Compare(b.Edges, a.Edges) })
		list = list[:mostOfOne]
	}
	slices.SortStableFunc(list, func(a, b Relation) int { return a.Dst - b.Dst })
	return list, max(0, more)
}

// String draws the types as text: each type, and below it an arrow for each of its relations.
func (t Types) String() string {
	var s strings.Builder
	width, counts := 0, 0
	for _, r := range t.Relations {
		width = max(width, len([]rune(r.Name))+len([]rune(t.Nodes[r.Dst].Name)))
		counts = max(counts, len(fmt.Sprint(r.Edges)))
	}
	width = min(width, 60)
	for i, n := range t.Nodes {
		fmt.Fprintf(&s, "  %s  (%s)\n", n.Name, n.describe())
		list, more := t.from(i)
		for k, r := range list {
			branch := "├"
			if k == len(list)-1 && more == 0 {
				branch = "└"
			}
			arrow := fmt.Sprintf("%s─ %s ─▶ %s", branch, r.Name, t.Nodes[r.Dst].Name)
			pad := max(0, width+8-len([]rune(arrow)))
			fmt.Fprintf(&s, "  %s%s  %*d %s\n", arrow, strings.Repeat(" ", pad), counts, r.Edges, map[bool]string{true: "edge", false: "edges"}[r.Edges == 1])
		}
		if more > 0 {
			fmt.Fprintf(&s, "  └─ and %s with fewer edges\n", phrase.Count(more, "relation"))
		}
	}
	return s.String()
}

// Sizes of the drawing, in pixels.
const (
	boxHeight = 40
	margin    = 30
	letter    = 6.6  // width of a letter of the labels
	mostLines = 4    // relations that an arrow names
	bent      = 0.16 // distance of an arrow from the line between its ends, in their distance
)

// arrow is the relations from one type to another.
type arrow struct {
	src, dst int
	lines    []string
}

// arrows groups the relations by their ends. Those with the most edges come first on an arrow.
func (t Types) arrows() (all []arrow) {
	groups := map[[2]int][]Relation{}
	var order [][2]int
	for _, r := range t.Relations {
		key := [2]int{r.Src, r.Dst}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], r)
	}
	for _, key := range order {
		list := groups[key]
		slices.SortStableFunc(list, func(a, b Relation) int { return cmp.Compare(b.Edges, a.Edges) })
		a := arrow{src: key[0], dst: key[1]}
		for i, r := range list {
			if i == mostLines-1 && len(list) > mostLines {
				a.lines = append(a.lines, fmt.Sprintf("and %d more", len(list)-i))
				break
			}
			a.lines = append(a.lines, fmt.Sprintf("%s %d", r.Name, r.Edges))
		}
		all = append(all, a)
	}
	return all
}

type point struct{ x, y float64 }

// ink is the colour of arrows and of text outside of boxes: its contrast is the same to a white page as to a dark one (#111).
const ink = "#75787c"

func size(x float64) string { return fmt.Sprintf("%.0f", x) }

// SVG draws the types as a picture in SVG: boxes on a circle, and an arrow from type to type with the names and numbers
// of edges of its relations.
func (t Types) SVG() string {
	widths, widest := make([]float64, len(t.Nodes)), 0.0
	for i, n := range t.Nodes {
		widths[i] = 24 + letter*float64(max(len([]rune(n.Name))+1, len([]rune(n.describe()))))
		widest = max(widest, widths[i])
	}
	arrows := t.arrows()
	label := 0.0
	for _, a := range arrows {
		for _, line := range a.lines {
			label = max(label, letter*float64(len([]rune(line))))
		}
	}
	n := len(t.Nodes)
	rx, ry := 0.0, 0.0
	if n > 1 {
		rx = max(widest/2+label/2+30, float64(n)*widest/5)
		ry = max(110, float64(n)*28)
	}
	if n == 2 { // the boxes are side by side, and only the bent arrows need height
		ry = 2*bent*rx + 13*mostLines/2
	}
	loop := 24.0 + 14*mostLines
	w, h := 2*(rx+widest/2+margin), 2*(ry+boxHeight/2+margin)+loop
	w = max(w, label+2*margin, 7.5*float64(len([]rune(t.Dataset)))+2*margin)
	mid := point{w / 2, loop + (h-loop)/2}
	at := make([]point, n)
	for i := range at {
		angle := math.Pi + 2*math.Pi*float64(i)/float64(n)
		at[i] = point{mid.x + rx*math.Cos(angle), mid.y + ry*math.Sin(angle)}
	}
	both := map[[2]int]bool{}
	for _, a := range arrows {
		both[[2]int{a.src, a.dst}] = true
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" font-family="sans-serif" font-size="12">`+"\n", w, h, w, h)
	fmt.Fprintf(&s, "<title>%s</title>\n", phrase.HTML(t.Dataset+": types of nodes, and relations between them"))
	s.WriteString(`<defs><marker id="gnb-head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="` + ink + `"/></marker></defs>` + "\n")
	var paths, gaps, labels strings.Builder
	for _, a := range arrows {
		path, where := t.path(a, at, widths, both[[2]int{a.dst, a.src}])
		fmt.Fprintf(&paths, `<path d="%s" fill="none" stroke="%s" marker-end="url(#gnb-head)"/>`+"\n", path, ink)
		for i, line := range a.lines {
			y := where.y + 13*(float64(i)-float64(len(a.lines)-1)/2)
			// The arrow is interrupted behind the text. The picture has no page, so that it fits light and dark themes.
			wide := letter * float64(len([]rune(line)))
			fmt.Fprintf(&gaps, `<rect x="%.1f" y="%.1f" width="%.1f" height="14" fill="#000000"/>`+"\n", where.x-wide/2, y-10.5, wide)
			fmt.Fprintf(&labels, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s">%s</text>`+"\n", where.x, y, ink, phrase.HTML(line))
		}
	}
	fmt.Fprintf(&s, `<mask id="gnb-gaps" maskUnits="userSpaceOnUse" x="0" y="0" width="%[1]s" height="%[2]s"><rect width="%[1]s" height="%[2]s" fill="#ffffff"/>`+"\n", size(w), size(h))
	s.WriteString(gaps.String() + "</mask>\n" + `<g mask="url(#gnb-gaps)">` + "\n" + paths.String() + "</g>\n" + labels.String())
	for i, x := range t.Nodes {
		fmt.Fprintf(&s, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="8" fill="#e8f0fb" stroke="#3b6fb6"/>`+"\n", at[i].x-widths[i]/2, at[i].y-boxHeight/2, widths[i], boxHeight)
		fmt.Fprintf(&s, `<text x="%.1f" y="%.1f" text-anchor="middle" font-weight="bold" fill="#1a1a1a">%s</text>`+"\n", at[i].x, at[i].y-3, phrase.HTML(x.Name))
		fmt.Fprintf(&s, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#333333">%s</text>`+"\n", at[i].x, at[i].y+13, phrase.HTML(x.describe()))
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// path returns an arrow's path and the place of its labels. An arrow with one in the other direction is bent to its side.
func (t Types) path(a arrow, at []point, widths []float64, other bool) (path string, labels point) {
	from, to := at[a.src], at[a.dst]
	if a.src == a.dst {
		x, y, r := from.x, from.y-boxHeight/2, 14.0
		path = fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x-r, y, x-2*r, y-2.4*r, x+2*r, y-2.4*r, x+r, y)
		return path, point{x, y - 2*r - 4 - 6.5*float64(len(a.lines)-1)}
	}
	dx, dy := to.x-from.x, to.y-from.y
	length := math.Hypot(dx, dy)
	bend := 0.0
	if other {
		bend = bent
	}
	ctrl := point{(from.x+to.x)/2 - 2*bend*dy, (from.y+to.y)/2 + 2*bend*dx}
	start, end := border(from, ctrl, widths[a.src]), border(to, ctrl, widths[a.dst])
	if length == 0 {
		start, end = from, to
	}
	path = fmt.Sprintf("M%.1f %.1fQ%.1f %.1f %.1f %.1f", start.x, start.y, ctrl.x, ctrl.y, end.x, end.y)
	return path, point{(start.x + 2*ctrl.x + end.x) / 4, (start.y+2*ctrl.y+end.y)/4 + 4}
}

// border returns the point where the line from a box's middle to another point leaves the box.
func border(mid, to point, width float64) point {
	dx, dy := to.x-mid.x, to.y-mid.y
	if dx == 0 && dy == 0 {
		return mid
	}
	scale := min(width/2/max(math.Abs(dx), 1e-9), boxHeight/2/max(math.Abs(dy), 1e-9))
	return point{mid.x + dx*scale, mid.y + dy*scale}
}
