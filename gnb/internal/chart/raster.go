package chart

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"slices"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// raster is a vg.Canvas that draws into an image. The canvas of package vgimg does the same, but with it each cell of a
// notebook would link twelve more packages, encoders of TIFF and JPEG among them.
type raster struct {
	img           *image.RGBA
	width, height vg.Length
	fill          vector.Rasterizer
	mask          []uint8 // memory of the outline that is drawn
	glyphs        sfnt.Buffer
	pen
	saved []pen
}

// pen is what Push saves.
type pen struct {
	color  color.Color
	width  float64 // of lines, in pixels before toPixels scales them
	dashes []float64
	offset float64
	// toPixels maps a point (x, y), in dots from the lower left corner, to the pixel
	// (t[0]x + t[1]y + t[2], t[3]x + t[4]y + t[5]), counted from the upper left corner.
	toPixels [6]float64
}

// point is a point in pixels from the upper left corner.
type point struct{ x, y float64 }

// line is a sequence of points; the last is joined to the first if it is closed.
type line struct {
	points []point
	closed bool
}

const dotsPerPoint = float64(pngDPI) / 72

// newRaster returns a transparent canvas of the given size.
func newRaster(width, height vg.Length) *raster {
	w, h := dots(width), dots(height)
	r := &raster{img: image.NewRGBA(image.Rect(0, 0, int(w+0.5), int(h+0.5))), width: width, height: height}
	r.toPixels = [6]float64{0: 1, 4: -1, 5: float64(r.img.Bounds().Dy())}
	vg.Initialize(r)
	return r
}

func dots(l vg.Length) float64 { return l.Points() * dotsPerPoint }

func (r *raster) Size() (w, h vg.Length)   { return r.width, r.height }
func (r *raster) SetLineWidth(w vg.Length) { r.pen.width = dots(w) }
func (r *raster) Push()                    { r.saved = append(r.saved, r.pen) }
func (r *raster) Pop()                     { r.pen, r.saved = r.saved[len(r.saved)-1], r.saved[:len(r.saved)-1] }
func (r *raster) Translate(p vg.Point)     { r.apply([6]float64{1, 0, dots(p.X), 0, 1, dots(p.Y)}) }
func (r *raster) Scale(x, y float64)       { r.apply([6]float64{x, 0, 0, 0, y, 0}) }
func (r *raster) Rotate(radians float64) {
	sin, cos := math.Sincos(radians)
	r.apply([6]float64{cos, -sin, 0, sin, cos, 0})
}

func (r *raster) SetLineDash(pattern []vg.Length, offset vg.Length) {
	r.dashes, r.offset = nil, dots(offset)
	for _, l := range pattern {
		r.dashes = append(r.dashes, dots(l))
	}
}

func (r *raster) SetColor(c color.Color) {
	if c == nil {
		c = color.Black
	}
	r.color = c
}

// apply makes the canvas map each point by m first.
func (r *raster) apply(m [6]float64) {
	t := r.toPixels
	r.toPixels = [6]float64{
		t[0]*m[0] + t[1]*m[3], t[0]*m[1] + t[1]*m[4], t[0]*m[2] + t[1]*m[5] + t[2],
		t[3]*m[0] + t[4]*m[3], t[3]*m[1] + t[4]*m[4], t[3]*m[2] + t[4]*m[5] + t[5],
	}
}

// at returns the place of a point given in dots.
func (r *raster) at(x, y float64) point {
	t := &r.toPixels
	return point{t[0]*x + t[1]*y + t[2], t[3]*x + t[4]*y + t[5]}
}

func (r *raster) Fill(p vg.Path) {
	var outline []line
	for _, l := range r.lines(p) {
		outline = append(outline, line{l.points, true})
	}
	r.paint(outline)
}

// Stroke draws a line of constant width: a rectangle for each of its segments, and where two of them meet, the sector
// that is open on the outer side. All of these have the same orientation, so that their union is filled.
func (r *raster) Stroke(p vg.Path) {
	if r.pen.width <= 0 {
		return
	}
	half := r.pen.width / 2
	var outline []line
	for _, whole := range r.lines(p) {
		for _, l := range dashed(whole, r.dashes, r.offset) {
			points := l.points
			if l.closed {
				points = append(slices.Clone(points), points[0])
			}
			var first, before *point // directions
			for i, b := range points[1:] {
				a := points[i]
				length := math.Hypot(b.x-a.x, b.y-a.y)
				if length == 0 {
					continue
				}
				d := point{(b.x - a.x) / length * half, (b.y - a.y) / length * half}
				outline = append(outline, line{[]point{{a.x - d.y, a.y + d.x}, {a.x + d.y, a.y - d.x}, {b.x + d.y, b.y - d.x}, {b.x - d.y, b.y + d.x}}, true})
				if before != nil {
					outline = append(outline, join(a, *before, d))
				} else {
					first = &d
				}
				before = &d
			}
			if l.closed && before != nil {
				outline = append(outline, join(points[0], *before, *first))
			}
		}
	}
	r.paint(outline)
}

// join returns the sector between two segments that meet in c, of directions a and b, whose length is the radius.
func join(c, a, b point) line {
	angle := math.Atan2(a.x*b.y-a.y*b.x, a.x*b.x+a.y*b.y)
	side := 1.0 // the outer side is to the right of a
	if angle < 0 {
		side = -1
	}
	n := 1 + int(math.Abs(angle)*3)
	l := line{[]point{c}, true}
	for i := range n + 1 {
		sin, cos := math.Sincos(angle * float64(i) / float64(n))
		d := point{a.x*cos - a.y*sin, a.x*sin + a.y*cos}
		l.points = append(l.points, point{c.x + side*d.y, c.y - side*d.x})
	}
	if angle < 0 {
		slices.Reverse(l.points)
	}
	return l
}

// lines returns a path with each arc and curve as short straight lines.
func (r *raster) lines(p vg.Path) []line {
	var all []line
	var x, y float64 // the current point, in dots
	add := func(px, py float64) {
		x, y = px, py
		if len(all) == 0 || all[len(all)-1].closed {
			all = append(all, line{})
		}
		l := &all[len(all)-1]
		q := r.at(x, y)
		if math.IsNaN(q.x-q.x) || math.IsNaN(q.y-q.y) {
			return // not a number, or infinite
		}
		if len(l.points) == 0 || l.points[len(l.points)-1] != q {
			l.points = append(l.points, q)
		}
	}
	curve := func(n int, f func(t float64) (x, y float64)) {
		for i := range n {
			add(f(float64(i+1) / float64(n)))
		}
	}
	for _, c := range p {
		px, py := dots(c.Pos.X), dots(c.Pos.Y)
		switch c.Type {
		case vg.MoveComp:
			all = append(all, line{})
			add(px, py)
		case vg.LineComp:
			add(px, py)
		case vg.ArcComp:
			radius := dots(c.Radius)
			arc := func(t float64) (float64, float64) {
				sin, cos := math.Sincos(c.Start + t*c.Angle)
				return px + radius*cos, py + radius*sin
			}
			add(arc(0))
			curve(int(2+math.Abs(c.Angle)*(2+math.Sqrt(radius))), arc)
		case vg.CurveComp:
			x0, y0 := x, y
			switch len(c.Control) {
			case 1:
				x1, y1 := dots(c.Control[0].X), dots(c.Control[0].Y)
				curve(16, func(t float64) (float64, float64) {
					a, b, d := (1-t)*(1-t), 2*t*(1-t), t*t
					return a*x0 + b*x1 + d*px, a*y0 + b*y1 + d*py
				})
			case 2:
				x1, y1, x2, y2 := dots(c.Control[0].X), dots(c.Control[0].Y), dots(c.Control[1].X), dots(c.Control[1].Y)
				curve(24, func(t float64) (float64, float64) {
					a, b, d, e := (1-t)*(1-t)*(1-t), 3*t*(1-t)*(1-t), 3*t*t*(1-t), t*t*t
					return a*x0 + b*x1 + d*x2 + e*px, a*y0 + b*y1 + d*y2 + e*py
				})
			}
		case vg.CloseComp:
			if len(all) > 0 {
				all[len(all)-1].closed = true
			}
		}
	}
	return slices.DeleteFunc(all, func(l line) bool { return len(l.points) == 0 })
}

// dashed returns the parts of a line that a pattern of dashes and gaps, by turns, leaves; without dashes the whole line.
func dashed(l line, pattern []float64, offset float64) []line {
	total := 0.0
	for _, d := range pattern {
		total += d
	}
	points := l.points
	if l.closed {
		points = append(slices.Clone(points), points[0])
	}
	length := 0.0
	for i, b := range points[1:] {
		length += math.Hypot(b.x-points[i].x, b.y-points[i].y)
	}
	if total <= 0 || length/total > 1e5 { // far outside the image
		return []line{l}
	}
	k, left := 0, math.Mod(offset, total*float64(1+len(pattern)%2))
	if left < 0 {
		left += total * float64(1+len(pattern)%2)
	}
	for left >= pattern[k%len(pattern)] {
		left -= pattern[k%len(pattern)]
		k++
	}
	left = pattern[k%len(pattern)] - left // of the dash or gap k
	parts := []line{{points: points[:1:1]}}
	for i, b := range points[1:] {
		a := points[i]
		for {
			length := math.Hypot(b.x-a.x, b.y-a.y)
			if length <= left {
				left -= length
				break
			}
			t := left / length
			a = point{a.x + t*(b.x-a.x), a.y + t*(b.y-a.y)}
			if k%2 == 0 {
				parts[len(parts)-1].points = append(parts[len(parts)-1].points, a)
			}
			k++
			left = pattern[k%len(pattern)]
			if k%2 == 0 {
				parts = append(parts, line{points: []point{a}})
			}
		}
		if k%2 == 0 {
			parts[len(parts)-1].points = append(parts[len(parts)-1].points, b)
		}
	}
	return parts
}

// paint fills the closed lines of one orientation, and what lies between two of different orientation.
func (r *raster) paint(outline []line) {
	low, high := none()
	for _, l := range outline {
		for _, p := range l.points {
			low, high = reach(low, high, p)
		}
	}
	r.draw(low, high, func(x, y float64) {
		for _, l := range outline {
			r.fill.MoveTo(float32(l.points[0].x-x), float32(l.points[0].y-y))
			for _, p := range l.points[1:] {
				r.fill.LineTo(float32(p.x-x), float32(p.y-y))
			}
			r.fill.ClosePath()
		}
	})
}

// draw fills, in the pen's colour, the outline that add gives to r.fill, moved by (-x, -y). It lies between low and high.
func (r *raster) draw(low, high point, add func(x, y float64)) {
	part := r.within(low, high)
	if part.Empty() {
		return
	}
	r.fill.Reset(part.Dx(), part.Dy())
	add(float64(part.Min.X), float64(part.Min.Y))
	if n := part.Dx() * part.Dy(); len(r.mask) < n {
		r.mask = make([]uint8, n)
	}
	mask := &image.Alpha{Pix: r.mask, Stride: part.Dx(), Rect: image.Rect(0, 0, part.Dx(), part.Dy())}
	r.fill.DrawOp = draw.Src
	r.fill.Draw(mask, mask.Rect, image.Opaque, image.Point{})
	// Most pixels of a curve's rectangle are empty. r.fill would blend these too, and draw.DrawMask makes a program larger.
	var ink [4]uint32
	ink[0], ink[1], ink[2], ink[3] = r.color.RGBA()
	for i, m := range mask.Pix[:part.Dx()*part.Dy()] {
		if m == 0 {
			continue
		}
		cover := uint32(m) * 0x101
		rest := (0xffff - ink[3]*cover/0xffff) * 0x101
		pix := r.img.Pix[r.img.PixOffset(part.Min.X+i%mask.Stride, part.Min.Y+i/mask.Stride):]
		for k, c := range ink {
			pix[k] = uint8((uint32(pix[k])*rest + c*cover) / 0xffff >> 8)
		}
	}
}

// FillString draws the outlines of a text's glyphs.
func (r *raster) FillString(f font.Face, at vg.Point, text string) {
	size := f.Font.Size.Points() * dotsPerPoint
	if size <= 0 {
		return
	}
	ppem := fixed.Int26_6(math.Round(size * 64))
	x, y := dots(at.X), dots(at.Y)
	before := sfnt.GlyphIndex(0)
	for _, c := range text {
		glyph, err := f.Face.GlyphIndex(&r.glyphs, c)
		if err != nil {
			continue // the font's tables are those of the program itself
		}
		if before != 0 {
			if kern, err := f.Face.Kern(&r.glyphs, before, glyph, ppem, 0); err == nil {
				x += float64(kern) / 64
			}
		}
		before = glyph
		if segments, err := f.Face.LoadGlyph(&r.glyphs, glyph, ppem, nil); err == nil {
			r.glyph(segments, x, y)
		}
		if advance, err := f.Face.GlyphAdvance(&r.glyphs, glyph, ppem, 0); err == nil {
			x += float64(advance) / 64
		}
	}
}

// glyph fills a glyph's outline whose origin is (x, y), in dots.
func (r *raster) glyph(segments sfnt.Segments, x, y float64) {
	place := func(p fixed.Point26_6) point { return r.at(x+float64(p.X)/64, y-float64(p.Y)/64) }
	low, high := none()
	for _, s := range segments {
		for _, a := range s.Args {
			low, high = reach(low, high, place(a)) // unused arguments are the origin
		}
	}
	r.draw(low, high, func(left, top float64) {
		var a [6]float32
		for _, s := range segments {
			for i, p := range s.Args {
				q := place(p)
				a[2*i], a[2*i+1] = float32(q.x-left), float32(q.y-top)
			}
			switch s.Op {
			case sfnt.SegmentOpMoveTo:
				r.fill.ClosePath()
				r.fill.MoveTo(a[0], a[1])
			case sfnt.SegmentOpLineTo:
				r.fill.LineTo(a[0], a[1])
			case sfnt.SegmentOpQuadTo:
				r.fill.QuadTo(a[0], a[1], a[2], a[3])
			case sfnt.SegmentOpCubeTo:
				r.fill.CubeTo(a[0], a[1], a[2], a[3], a[4], a[5])
			}
		}
		r.fill.ClosePath()
	})
}

// DrawImage draws a picture into a rectangle. Each pixel has the mean colour of the picture's pixels there, of at most 8
// × 8 of them; a picture with fewer pixels than the rectangle keeps its edges.
func (r *raster) DrawImage(into vg.Rectangle, img image.Image) {
	x0, y0, w, h := dots(into.Min.X), dots(into.Min.Y), dots(into.Size().X), dots(into.Size().Y)
	t := r.toPixels
	det := t[0]*t[4] - t[1]*t[3]
	if det == 0 || w <= 0 || h <= 0 {
		return
	}
	low, high := none()
	for _, p := range []point{r.at(x0, y0), r.at(x0+w, y0), r.at(x0, y0+h), r.at(x0+w, y0+h)} {
		low, high = reach(low, high, p)
	}
	b := img.Bounds()
	scale := math.Sqrt(math.Abs(det))
	n := int(min(max(math.Ceil(max(float64(b.Dx())/(w*scale), float64(b.Dy())/(h*scale))), 1), 8))
	part := r.within(low, high)
	for py := part.Min.Y; py < part.Max.Y; py++ {
		for px := part.Min.X; px < part.Max.X; px++ {
			var sum [4]uint32
			for k := range n * n {
				dx, dy := float64(px)+(float64(k%n)+0.5)/float64(n)-t[2], float64(py)+(float64(k/n)+0.5)/float64(n)-t[5]
				u, v := ((t[4]*dx-t[1]*dy)/det-x0)/w, ((t[0]*dy-t[3]*dx)/det-y0)/h
				if u >= 0 && u < 1 && v >= 0 && v < 1 {
					red, green, blue, alpha := img.At(b.Min.X+int(u*float64(b.Dx())), b.Max.Y-1-int(v*float64(b.Dy()))).RGBA()
					sum = [4]uint32{sum[0] + red, sum[1] + green, sum[2] + blue, sum[3] + alpha}
				}
			}
			mean := func(i int) uint16 { return uint16(sum[i] / uint32(n*n)) }
			draw.Draw(r.img, image.Rect(px, py, px+1, py+1), image.NewUniform(color.RGBA64{mean(0), mean(1), mean(2), mean(3)}), image.Point{}, draw.Over)
		}
	}
}

// none returns the corners of an empty rectangle, and reach those of one that holds p too.
func none() (low, high point) {
	return point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
}

func reach(low, high, p point) (l, h point) {
	return point{min(low.x, p.x), min(low.y, p.y)}, point{max(high.x, p.x), max(high.y, p.y)}
}

// within returns the image's pixels between two corners; none if a coordinate is not a number.
func (r *raster) within(low, high point) image.Rectangle {
	b := r.img.Bounds()
	if math.IsNaN(low.x + low.y + high.x + high.y) {
		return image.Rectangle{}
	}
	whole := func(f float64, most int) int { return int(min(max(f, 0), float64(most))) }
	return image.Rect(whole(math.Floor(low.x), b.Max.X), whole(math.Floor(low.y), b.Max.Y), whole(math.Ceil(high.x), b.Max.X), whole(math.Ceil(high.y), b.Max.Y))
}
