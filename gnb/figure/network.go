package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Network is a drawing of a small graph: nodes with their names, and arrows whose widths are the sizes of their weights. Nodes are on
// circles around those at hop 0 or, if all are at hop 0, as far from each other as edges say.
type Network struct {
	Title string
	Nodes []NetworkNode
	Edges []NetworkEdge
	// Groups are the names of the groups of edges, which have a colour each; edges with weights below 0 are dashed. Nil means one
	// group, whose colours tell weights above 0 from those below.
	Groups []string
	Note   string // below the drawing
}

// NetworkNode is a node of a [Network].
type NetworkNode struct {
	Name   string
	Hop    int     // from the nodes in the middle, which are at 0
	Weight float64 // its sign is the colour, and its size the size
}

// NetworkEdge is an edge of a [Network].
type NetworkEdge struct {
	Src, Dst int // indices of Nodes
	Weight   float64
	Group    int // an index of Groups
}

// mostNodes is the largest number of nodes that can be told apart, and mostEdges that of edges.
const (
	mostNodes = 120
	mostEdges = 1000
)

func (n *Network) check() error {
	switch {
	case len(n.Nodes) > mostNodes || len(n.Edges) > mostEdges:
		return fmt.Errorf("Network: there are %s and %s; at most %d and %d can be told apart, so leave some out", phrase.Count(len(n.Nodes), "node"), phrase.Count(len(n.Edges), "edge"), mostNodes, mostEdges)
	case slices.ContainsFunc(n.Nodes, func(v NetworkNode) bool { return v.Hop < 0 || v.Hop > mostNodes }):
		return fmt.Errorf("Network: a node has a negative hop or one above %d", mostNodes)
	}
	for i, e := range n.Edges {
		if e.Src < 0 || e.Dst < 0 || e.Src >= len(n.Nodes) || e.Dst >= len(n.Nodes) {
			return fmt.Errorf("Network: edge %d joins the nodes %d and %d, and there are %d", i, e.Src, e.Dst, len(n.Nodes))
		}
		if n.Groups != nil && (e.Group < 0 || e.Group >= len(n.Groups)) {
			return fmt.Errorf("Network: edge %d is of group %d, and there are %d", i, e.Group, len(n.Groups))
		}
	}
	return nil
}

func (n *Network) words() string {
	text := fmt.Sprintf("%s: %s, %s", n.Title, phrase.Count(len(n.Nodes), "node"), phrase.Count(len(n.Edges), "edge"))
	if n.Note != "" {
		text += "; " + n.Note
	}
	return text
}

func (n *Network) copied() drawing {
	c := *n
	c.Nodes, c.Edges, c.Groups = slices.Clone(n.Nodes), slices.Clone(n.Edges), slices.Clone(n.Groups)
	return &c
}

// largest is the largest size of some weights, 0 if none is finite.
func largest[T any](all []T, weight func(T) float64) (most float64) {
	for _, x := range all {
		if w := math.Abs(weight(x)); chart.Finite(w) {
			most = max(most, w)
		}
	}
	return most
}

// share is the size of a weight in the largest one.
func share(weight, most float64) float64 {
	if most == 0 || !chart.Finite(weight) {
		return 0
	}
	return math.Abs(weight) / most
}

func signColor(w float64) color.NRGBA {
	if w < 0 {
		return chart.Orange
	}
	return chart.Blue
}

func (n *Network) paint(p *chart.Painter, c draw.Canvas) {
	c = titled(p, c, n.Title)
	small := p.Text(7.5, p.Ink())
	if n.Note != "" {
		c.FillText(small, vg.Point{X: c.Min.X + 4, Y: c.Min.Y + 3}, p.Fit(small, phrase.CleanLine(n.Note), c.Max.X-c.Min.X-8))
		c.Min.Y += 12
	}
	if len(n.Nodes) == 0 {
		p.Empty(c, "no nodes")
		return
	}
	n.legend(p, &c)
	label := p.Text(6.5, p.Ink())
	label.YAlign = draw.YCenter
	wide := vg.Length(0)
	names := make([]string, len(n.Nodes))
	for i, v := range n.Nodes {
		names[i] = p.Fit(label, phrase.CleanLine(v.Name), (c.Max.X-c.Min.X)/4)
		wide = max(wide, label.Width(names[i]))
	}
	// Names of outer nodes stand outside.
	mid := c.Center()
	rx, ry := (c.Max.X-c.Min.X)/2-wide-8, (c.Max.Y-c.Min.Y)/2-9
	if rx <= 0 || ry <= 0 {
		return
	}
	hops, joins := make([]int, len(n.Nodes)), make([][2]int, len(n.Edges))
	for i, v := range n.Nodes {
		hops[i] = v.Hop
	}
	for i, e := range n.Edges {
		joins[i] = [2]int{e.Src, e.Dst}
	}
	whole := slices.Max(hops) == 0 && len(hops) > 2
	at := chart.Circles(hops, joins)
	if whole {
		at = chart.Springs(len(hops), joins)
	}
	for i := range at {
		at[i] = vg.Point{X: mid.X + rx*at[i].X, Y: mid.Y + ry*at[i].Y}
	}
	radius := make([]vg.Length, len(at))
	most := largest(n.Nodes, func(v NetworkNode) float64 { return v.Weight })
	for i, v := range n.Nodes {
		if radius[i] = vg.Points(2 + 3.2*math.Sqrt(share(v.Weight, most))); v.Hop == 0 && !whole {
			radius[i] = max(radius[i], vg.Points(4.2))
		}
	}
	box, marks := c.Rectangle, n.edges(c, at, radius)
	for i, v := range n.Nodes {
		ink := signColor(v.Weight)
		if share(v.Weight, most) == 0 {
			ink = chart.Grey
		}
		c.DrawGlyph(draw.GlyphStyle{Color: ink, Radius: radius[i], Shape: draw.CircleGlyph{}}, at[i])
		if v.Hop == 0 && !whole {
			c.DrawGlyph(draw.GlyphStyle{Color: p.Ink(), Radius: radius[i] + 1.6, Shape: draw.RingGlyph{}}, at[i])
		}
		style, to := label, vg.Point{X: at[i].X + radius[i] + 2, Y: at[i].Y}
		switch {
		case v.Hop == 0 && !whole && len(at) > 1:
			style.XAlign, to = draw.XCenter, vg.Point{X: at[i].X, Y: at[i].Y - radius[i] - 6}
		case at[i].X < mid.X-1:
			style.XAlign, to.X = draw.XRight, at[i].X-radius[i]-2
		}
		c.FillText(style, to, names[i])
		r := radius[i] + 1
		text := phrase.CleanLine(v.Name)
		if most > 0 {
			text += fmt.Sprintf("\n%.4g", v.Weight)
		}
		marks = append(marks, chart.Mark{Text: text, Color: ink, Bar: true, At: []vg.Point{{X: at[i].X - r, Y: at[i].Y - r}, {X: at[i].X + r, Y: at[i].Y + r}}})
	}
	p.Marks(phrase.CleanLine(n.Title), box, box, marks)
}

// edges draws the edges, the faintest first, and returns what the pointer shows of them.
func (n *Network) edges(c draw.Canvas, at []vg.Point, radius []vg.Length) (marks []chart.Mark) {
	most := largest(n.Edges, func(e NetworkEdge) float64 { return e.Weight })
	both := map[[2]int]bool{}
	for _, e := range n.Edges {
		both[[2]int{e.Src, e.Dst}] = true
	}
	order := make([]int, len(n.Edges))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := share(n.Edges[a].Weight, most), share(n.Edges[b].Weight, most)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	for _, i := range order {
		e := n.Edges[i]
		part := share(e.Weight, most)
		ink := signColor(e.Weight)
		line := draw.LineStyle{Width: vg.Points(0.5 + 2.6*part)}
		if n.Groups != nil {
			if ink = hues[e.Group%len(hues)]; e.Weight < 0 {
				line.Dashes = []vg.Length{3, 2}
			}
		}
		line.Color = chart.Alpha(ink, uint8(0x48+0x98*part))
		from, to := at[e.Src], at[e.Dst]
		dx, dy := to.X-from.X, to.Y-from.Y
		length := vg.Length(math.Hypot(float64(dx), float64(dy)))
		gap := radius[e.Src] + radius[e.Dst] + 2
		if length <= gap {
			continue
		}
		ux, uy := dx/length, dy/length
		if both[[2]int{e.Dst, e.Src}] { // beside each other
			from.X, from.Y, to.X, to.Y = from.X-1.7*uy, from.Y+1.7*ux, to.X-1.7*uy, to.Y+1.7*ux
		}
		from.X, from.Y = from.X+ux*(radius[e.Src]+1), from.Y+uy*(radius[e.Src]+1)
		to.X, to.Y = to.X-ux*(radius[e.Dst]+1), to.Y-uy*(radius[e.Dst]+1)
		head := min(line.Width*1.1+2.4, length-gap)
		neck := vg.Point{X: to.X - ux*head, Y: to.Y - uy*head}
		c.StrokeLine2(line, from.X, from.Y, neck.X, neck.Y)
		half := head * 0.45
		c.FillPolygon(line.Color, []vg.Point{to, {X: neck.X - uy*half, Y: neck.Y + ux*half}, {X: neck.X + uy*half, Y: neck.Y - ux*half}})
		text := fmt.Sprintf("%s → %s\n%.4g", phrase.CleanLine(n.Nodes[e.Src].Name), phrase.CleanLine(n.Nodes[e.Dst].Name), e.Weight)
		if n.Groups != nil {
			text += "\n" + phrase.CleanLine(n.Groups[e.Group])
		}
		marks = append(marks, chart.Mark{Text: text, Color: ink, At: []vg.Point{from, to}})
	}
	return marks
}

// legend writes what the colours of edges mean at the top, and takes its room from c.
func (n *Network) legend(p *chart.Painter, c *draw.Canvas) {
	type key struct {
		name string
		ink  color.NRGBA
		dash bool
	}
	var keys []key
	below := slices.ContainsFunc(n.Edges, func(e NetworkEdge) bool { return e.Weight < 0 })
	if n.Groups != nil {
		used := map[int]bool{}
		for _, e := range n.Edges {
			used[e.Group] = true
		}
		for g, name := range n.Groups {
			if used[g] {
				keys = append(keys, key{phrase.CleanLine(name), hues[g%len(hues)], false})
			}
		}
		if below {
			keys = append(keys, key{"below 0", chart.Grey, true})
		}
	} else if below {
		keys = []key{{"above 0", chart.Blue, false}, {"below 0", chart.Orange, false}}
	}
	if len(keys) == 0 {
		return
	}
	style := p.Text(7, p.Ink())
	style.YAlign = draw.YCenter
	at := vg.Point{X: c.Min.X + 4, Y: c.Max.Y - 5}
	for i, k := range keys {
		text := p.Fit(style, k.name, (c.Max.X-c.Min.X)/2)
		if wide := 14 + style.Width(text); at.X+wide > c.Max.X && at.X > c.Min.X+4 {
			if at.X, at.Y = c.Min.X+4, at.Y-10; at.Y < c.Max.Y-26 {
				c.FillText(style, at, fmt.Sprintf("and %d more", len(keys)-i))
				break
			}
		}
		line := draw.LineStyle{Color: k.ink, Width: vg.Points(1.8)}
		if k.dash {
			line.Dashes = []vg.Length{3, 2}
		}
		c.StrokeLine2(line, at.X, at.Y, at.X+10, at.Y)
		c.FillText(style, vg.Point{X: at.X + 13, Y: at.Y}, text)
		at.X += 22 + style.Width(text)
	}
	c.Max.Y = at.Y - 8
}
