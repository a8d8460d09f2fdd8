package chart

import (
	"cmp"
	"image"
	"image/color"
	"iter"
	"slices"
)

// inks are the colours of figures.
var inks = []color.NRGBA{Ink, pageInk, GridInk, Blue, Orange, Green, Purple, Amber}

// paletted returns the transparent image img on the white page in at most 256 colours, which takes
// a third of the bytes without visible difference. A figure has few inks; the opacity at the edges
// of strokes, which makes most of its colours, is rounded to 16 levels.
func paletted(src *image.RGBA) image.Image {
	// snapped maps a pixel to its rounded colour, which is the colour itself for areas; count counts the pixels of each colour.
	snapped := areas(src)
	count := map[color.NRGBA]int{}
	for px, n := range stretches(src.Pix) {
		if px[3] == 0 {
			continue
		}
		c, ok := snapped[px]
		if !ok {
			c = snap(px)
			snapped[px] = c
		}
		count[c] += n
	}
	found := make([]color.NRGBA, 0, len(count))
	order := make([]int, 0, len(count)) // a stable sort of int is in each program; one of colours is 11 kB more
	for c := range count {
		order = append(order, len(found))
		found = append(found, c)
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := found[i], found[j]
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B), cmp.Compare(a.A, b.A))
	})
	colors := make([]color.NRGBA, len(order))
	for i, k := range order {
		colors[i] = found[k]
	}
	pal := color.Palette{color.NRGBA{}}
	index := map[color.NRGBA]uint8{}
	for i, c := range colors {
		if i < 255 {
			index[c] = uint8(len(pal))
			pal = append(pal, c)
			continue
		}
		best, far := 0, 1<<30
		for j, d := range colors[:255] {
			if v := distance(c, d); v < far {
				best, far = j, v
			}
		}
		index[c] = uint8(best + 1)
	}
	byPixel := make(map[[4]uint8]uint8, len(snapped))
	for px, c := range snapped {
		byPixel[px] = index[c]
	}
	dst := image.NewPaletted(src.Rect, pal)
	w := src.Rect.Dx()
	for y := range src.Rect.Dy() {
		row := src.Pix[y*src.Stride : y*src.Stride+4*w]
		out := dst.Pix[y*dst.Stride : y*dst.Stride+w]
		x := 0
		for px, n := range stretches(row) {
			if px[3] != 0 {
				k := byPixel[px]
				for i := range n {
					out[x+i] = k
				}
			}
			x += n
		}
	}
	for i, c := range pal {
		pal[i] = over(c.(color.NRGBA), paper)
	}
	return dst
}

// stretches returns each pixel that differs from the one before it, and how many equal ones it begins: most pixels of a
// figure are in long stretches, and a map is looked up once for each.
func stretches(pix []uint8) iter.Seq2[[4]uint8, int] {
	return func(yield func([4]uint8, int) bool) {
		for len(pix) >= 4 {
			px, n := [4]uint8(pix), 4
			for len(pix) >= n+4 && [4]uint8(pix[n:]) == px {
				n += 4
			}
			if !yield(px, n/4) {
				return
			}
			pix = pix[n:]
		}
	}
}

// areas returns the opaque colours of at least areaPixels pixels.
func areas(src *image.RGBA) map[[4]uint8]color.NRGBA {
	pixels := map[[4]uint8]int{}
	for px, n := range stretches(src.Pix) {
		if px[3] == 255 {
			pixels[px] += n
		}
	}
	kept := map[[4]uint8]color.NRGBA{}
	for px, n := range pixels {
		if n >= areaPixels {
			kept[px] = color.NRGBA{px[0], px[1], px[2], 255}
		}
	}
	return kept
}

// areaPixels is less than the smallest coloured area that a reader compares with others has, and more than the pixels of
// one colour along the edge of a curve.
const areaPixels = 600

// over returns the colour of c painted on an opaque colour.
func over(c, below color.NRGBA) color.NRGBA {
	a := int(c.A)
	mix := func(x, y uint8) uint8 { return uint8((int(x)*a + int(y)*(255-a) + 127) / 255) }
	return color.NRGBA{mix(c.R, below.R), mix(c.G, below.G), mix(c.B, below.B), 255}
}

// snap rounds a premultiplied pixel of an image.RGBA: to the nearest ink if it is close to it or
// too faint to distinguish, else each channel to 16 levels.
func snap(px [4]uint8) color.NRGBA {
	a := int(px[3])
	un := func(v uint8) uint8 { return uint8(min(int(v)*255/a, 255)) }
	c := color.NRGBA{un(px[0]), un(px[1]), un(px[2]), 255}
	near, far := c, 1<<30
	for _, k := range inks {
		k.A = 255
		if v := distance(c, k); v < far {
			near, far = k, v
		}
	}
	level := func(v uint8) uint8 { return uint8((int(v) + 8) / 17 * 17) }
	if far > 300 && a >= 96 {
		near = color.NRGBA{level(c.R), level(c.G), level(c.B), 255}
	}
	near.A = max(level(uint8(a)), 17)
	return near
}

func distance(a, b color.NRGBA) int {
	sq := func(x, y uint8) int { d := int(x) - int(y); return d * d }
	return sq(a.R, b.R) + sq(a.G, b.G) + sq(a.B, b.B) + 2*sq(a.A, b.A)
}
