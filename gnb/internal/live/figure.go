package live

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/color"
	"image/png"
	"math"
	"sort"
	"strings"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The figure's size in points; a point is 4/3 of a browser's pixels.
const (
	figWidth   = 660
	figHeight  = 195
	headHeight = 20 // more, where the figure carries its own title
	noteHeight = 13 // and a reason
	pngDPI     = 192
)

// The colours are those of Okabe and Ito (2008), told apart by colour-blind
// readers, less the ones too light for a white page.
//
// A live panel has no background of its own, so that any theme shines through: its
// ink is a grey of equal contrast (4.4 : 1) to a white page and to a dark one (#111).
// A saved picture is seen in places whose background nobody knows, at sizes that
// make small text paler. It has a white page of its own, and text in pageInk (8.6 : 1).
var (
	ink     = color.NRGBA{0x78, 0x7a, 0x7e, 0xff}
	pageInk = color.NRGBA{0x4a, 0x4c, 0x50, 0xff}
	paper   = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	gridInk = color.NRGBA{0x80, 0x80, 0x80, 0x3c}
	baseInk = color.NRGBA{0x80, 0x80, 0x80, 0x90}
	blue    = color.NRGBA{0x20, 0x80, 0xc8, 0xff} // theirs, lightened for dark pages
	orange  = color.NRGBA{0xd5, 0x5e, 0x00, 0xff}
	green   = color.NRGBA{0x00, 0x9e, 0x73, 0xff}
	purple  = color.NRGBA{0xcc, 0x79, 0xa7, 0xff}
	amber   = color.NRGBA{0xe6, 0x9f, 0x00, 0xff}
	sky     = color.NRGBA{0x56, 0xb4, 0xe9, 0xff}
	plum    = color.NRGBA{0x9e, 0x4a, 0x7c, 0xff} // this and the next are not theirs
	olive   = color.NRGBA{0x99, 0x99, 0x33, 0xff}
	grey    = color.NRGBA{0x80, 0x80, 0x80, 0xff}
)

func alpha(c color.NRGBA, a uint8) color.NRGBA { c.A = a; return c }

// stateColor is the colour of a state's dot. What goes on has one colour: runs
// that evaluate every second would flicker.
func stateColor(state string) color.NRGBA {
	switch state {
	case Done:
		return green
	case Failed:
		return orange
	case Interrupted:
		return amber
	}
	return blue
}

// painter draws figures. It keeps what lasts from frame to frame; one goroutine
// uses it.
type painter struct {
	loss        curve
	left, right chart // of the loss and of metrics
	onPage      bool  // the picture is drawn on a page of its own
}

// ink is the colour of text.
func (p *painter) ink() color.NRGBA {
	if p.onPage {
		return pageInk
	}
	return ink
}

// word is a colour for text that belongs to a curve of colour c: darker on a page.
func (p *painter) word(c color.NRGBA) color.NRGBA {
	switch {
	case !p.onPage:
		return c
	case c == ink:
		return pageInk
	}
	dark := func(v uint8) uint8 { return uint8(int(v) * 7 / 10) }
	return color.NRGBA{dark(c.R), dark(c.G), dark(c.B), c.A}
}

func (p *painter) text(size float64, c color.Color) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)},
		Handler: fonts(),
	}
}

func (p *painter) bold(size float64, c color.Color) text.Style {
	t := p.text(size, c)
	t.Font.Weight = stdfont.WeightBold
	return t
}

// chart is a drawing that goes beside others.
type chart struct {
	key   string
	svg   []byte
	src   string  // the same in base64
	share float64 // of the width
}

// SVGs are the charts of s as SVG documents, from left to right, valid until the next
// call. Each is drawn anew when what it shows has changed: metrics do so once in an
// epoch, and a frame between two steps costs nothing.
func (p *painter) SVGs(s *Snapshot) ([]chart, error) {
	if p.loss.take(s.Loss) {
		p.left.key = ""
	}
	share := 1.0
	if hasMetrics(s) {
		share = lossShare
	}
	height := vg.Length(chartHeight(s))
	key := fmt.Sprint(s.final(), height, s.Epochs, s.Steps)
	if err := p.left.draw(fmt.Sprint(share, key), share, height, func(c draw.Canvas) { p.lossChart(c, s) }); err != nil || share == 1 {
		return []chart{p.left}, err
	}
	err := p.right.draw(key+metricsKey(s), 1-share, height, func(c draw.Canvas) { p.metricChart(c, s) })
	return []chart{p.left, p.right}, err
}

// draw paints the chart, unless key says that it would be the same.
func (k *chart) draw(key string, share float64, height vg.Length, paint func(c draw.Canvas)) error {
	if key == k.key {
		return nil
	}
	*k = chart{share: share}
	c := newSVG(figWidth*vg.Length(share), height)
	dc := draw.New(c)
	if share < 1 { // and not up to its neighbour
		if share == lossShare {
			dc.Max.X -= chartGap
		} else {
			dc.Min.X += chartGap
		}
	}
	paint(dc)
	svg, err := svgText(c)
	if err != nil {
		return err
	}
	k.key, k.svg, k.src = key, svg, base64.StdEncoding.EncodeToString(svg)
	return nil
}

// svgCanvas is an SVG canvas that notes how wide each text is in the font that the
// drawing was laid out for.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

func newSVG(width, height vg.Length) *svgCanvas {
	return &svgCanvas{Canvas: vgsvg.New(width, height)}
}

func (c *svgCanvas) FillString(f font.Face, at vg.Point, text string) {
	c.widths = append(c.widths, f.Width(text))
	c.Canvas.FillString(f, at, text)
}

// svgText is a drawing as text. The browser's machine may lack the font, so each text
// carries its width, into which the browser fits it in whatever font it has.
func svgText(c *svgCanvas) ([]byte, error) {
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("live: writing the figure: %w", err)
	}
	parts := bytes.Split(b.Bytes(), []byte("<text "))
	if len(parts) != len(c.widths)+1 {
		return nil, fmt.Errorf("live: writing the figure: %d texts were drawn and %d written", len(c.widths), len(parts)-1)
	}
	svg := make([]byte, 0, b.Len()+48*len(c.widths))
	for i, part := range parts {
		if i > 0 {
			svg = fmt.Appendf(svg, `<text textLength="%.4g" lengthAdjust="spacingAndGlyphs" `, max(c.widths[i-1].Points(), 0.1))
		}
		svg = append(svg, part...)
	}
	for _, r := range [][2]string{
		{"font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;"},
		{"font-variant:none;", ""},
		{"font-variant:normal;", ""},
		{"font-weight:normal;", ""},
		{"font-style:normal;", ""},
	} {
		svg = bytes.ReplaceAll(svg, []byte(r[0]), []byte(r[1]))
	}
	return svg, nil
}

// metricsKey names the metrics that are drawn.
func metricsKey(s *Snapshot) string {
	var b strings.Builder
	b.WriteString(s.metric())
	for _, m := range s.Metrics {
		p, _ := lastOf(m.Points)
		fmt.Fprintf(&b, " %q %d %v", m.Name, len(m.Points), p)
	}
	return b.String()
}

// PNG is the charts below a line that says what they show, at twice the
// resolution of a plain screen, with the size in CSS pixels to show it at.
func (p *painter) PNG(s *Snapshot) (data []byte, width, height int, err error) {
	p.loss.take(s.Loss)
	p.onPage = true
	defer func() { p.onPage = false }()
	charts := chartHeight(s)
	h := charts + headHeight
	note := oneLine(s.Detail)
	if note != "" {
		h += noteHeight
	}
	c := vgimg.NewWith(vgimg.UseWH(figWidth, vg.Length(h)), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(color.Transparent))
	dc := draw.New(c)
	p.header(dc, s, note)
	dc.Max.Y = vg.Length(charts)
	p.charts(dc, s)
	var b bytes.Buffer
	if err := png.Encode(&b, paletted(c.Image())); err != nil {
		return nil, 0, 0, fmt.Errorf("live: encoding the figure: %w", err)
	}
	return b.Bytes(), figWidth * 4 / 3, h * 4 / 3, nil
}

// header is the title, the state and how far the run came.
func (p *painter) header(c draw.Canvas, s *Snapshot, note string) {
	y := c.Max.Y - 11
	state, sty := s.state(), p.bold(9, p.ink())
	right := p.text(8, p.ink())
	right.XAlign = draw.XRight
	extent := extentOf(s)
	c.FillText(right, vg.Point{X: c.Max.X - 4, Y: y}, extent)
	room := c.Max.X - right.Width(extent) - 30 - sty.Width(state)
	title := p.fit(sty, oneLine(s.Title), room)
	c.FillText(sty, vg.Point{X: 4, Y: y}, title)
	x := vg.Length(4)
	if title != "" {
		x += sty.Width(title) + 10
	}
	col := stateColor(state)
	c.SetColor(col)
	dot := vg.Path{}
	dot.Move(vg.Point{X: x + 6, Y: y + 3})
	dot.Arc(vg.Point{X: x + 3, Y: y + 3}, 3, 0, 2*math.Pi)
	dot.Close()
	c.Fill(dot)
	word := p.text(9, p.ink())
	if state == Failed || state == Interrupted {
		word = p.bold(9, p.ink())
	}
	c.FillText(word, vg.Point{X: x + 10, Y: y}, state)
	if note != "" {
		small := p.text(8, p.ink())
		c.FillText(small, vg.Point{X: 4, Y: y - noteHeight}, p.fit(small, note, c.Max.X-8))
	}
}

// extentOf is "20 epochs · 1,800 steps · learning rate 0.003 · 02:13", as far as
// known.
func extentOf(s *Snapshot) string {
	var parts []string
	switch {
	case s.Epoch > 0 && s.State == Done && s.Epoch >= s.Epochs:
		parts = append(parts, plural(s.Epoch, "epoch"))
	case s.Epoch > 0:
		parts = append(parts, "epoch "+of(s.Epoch, s.Epochs))
	}
	if n := len(s.Loss); n > 0 {
		parts = append(parts, plural(s.Loss[n-1].Step, "step"))
	}
	if lr, ok := lastOf(s.LR); ok {
		parts = append(parts, "learning rate "+short(lr.Y))
	}
	if s.Elapsed > 0 {
		parts = append(parts, elapsed(s.Elapsed))
	}
	return strings.Join(parts, " · ")
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return grouped(n) + " " + what
}

// fit shortens txt to a width on the canvas.
func (p *painter) fit(sty text.Style, txt string, room vg.Length) string {
	if sty.Width(txt) <= room {
		return txt
	}
	r := []rune(txt)
	r = r[:min(len(r), 400)]
	n := sort.Search(len(r), func(n int) bool { return sty.Width(string(r[:n+1])+"…") > room })
	return string(r[:n]) + "…"
}
