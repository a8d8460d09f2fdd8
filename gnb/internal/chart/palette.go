package chart

import (
	"cmp"
	"image"
	"image/color"
	"maps"
	"slices"
)

// inks are the colours of figures; paper is that of a heat map's cells for 0.
var inks = []color.NRGBA{paper, Ink, pageInk, GridInk, Blue, Orange, Green, Purple, Amber}

// paletted returns the transparent image src in at most 256 colours, which takes
// a third of the bytes without visible difference. areas has the colours of its opaque areas. A figure has few inks; the opacity at the edges
// of strokes, which makes most of its colours, is rounded to 16 levels.
func paletted(src *image.RGBA) (dst *image.Paletted, areas map[color.NRGBA]bool) {
	areas = map[color.NRGBA]bool{}
	pixels := map[[4]uint8]int{}
	for pix, n := src.Pix, 0; len(pix) > 0; pix = pix[4*n:] {
		n = stretch(pix)
		if px := [4]uint8(pix); px[3] != 0 {
			pixels[px] += n
		}
	}
	// rounded is the colour of a pixel: its own for areas.
	rounded := func(px [4]uint8, n int) color.NRGBA {
		if px[3] == 255 && n >= areaPixels {
			c := color.NRGBA{px[0], px[1], px[2], 255}
			areas[c] = !textColor(c)
			return c
		}
		return snap(px)
	}
	count := map[color.NRGBA]int{} // of the pixels of each colour
	for px, n := range pixels {
		count[rounded(px, n)] += n
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.NRGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B), cmp.Compare(a.A, b.A))
	})
	pal := color.Palette{color.NRGBA{}}
	index := count // the counts are not needed any more
	for i, c := range colors {
		if i < 255 {
			index[c] = len(pal)
			pal = append(pal, c)
			continue
		}
		best, far := 0, 1<<30
		for j, d := range colors[:255] {
			if v := distance(c, d); v < far {
				best, far = j, v
			}
		}
		index[c] = best + 1
	}
	for px, n := range pixels {
		pixels[px] = index[rounded(px, n)]
	}
	dst = image.NewPaletted(src.Rect, pal)
	out := dst.Pix // the rows of both images follow each other
	for pix, n := src.Pix, 0; len(pix) > 0; pix, out = pix[4*n:], out[n:] {
		n = stretch(pix)
		if px := [4]uint8(pix); px[3] != 0 {
			k := uint8(pixels[px])
			for i := range n {
				out[i] = k
			}
		}
	}
	return dst, areas
}

// onPaper returns an image on the white page.
func onPaper(img *image.Paletted) *image.Paletted {
	return recoloured(img, func(c color.NRGBA) color.NRGBA { return over(c, paper) })
}

// onAny returns an image without a page, its dark colours lighter, so that text can be read on a light page and on a
// dark one. Opaque areas keep their colours, and so does black text, which is drawn on them.
func onAny(img *image.Paletted, areas map[color.NRGBA]bool) *image.Paletted {
	return recoloured(img, func(c color.NRGBA) color.NRGBA {
		if areas[c] || c.A == 255 && c.R|c.G|c.B == 0 {
			return c
		}
		return lifted(c)
	})
}

func recoloured(img *image.Paletted, change func(c color.NRGBA) color.NRGBA) *image.Paletted {
	out := *img
	out.Palette = make(color.Palette, len(img.Palette))
	for i, c := range img.Palette {
		out.Palette[i] = change(c.(color.NRGBA))
	}
	return &out
}

// textColor reports whether text on a page has the colour c; see [Painter.Ink] and [Painter.Word].
func textColor(c color.NRGBA) bool {
	return c == pageInk || slices.ContainsFunc([]color.NRGBA{Blue, Orange, Green, Purple, Amber, Sky, Plum, Olive, Grey}, func(k color.NRGBA) bool { return c == darker(k, 7, 10) })
}

// stretch returns how many pixels pix begins with that equal its first: most pixels of a figure are in long stretches, and
// a map is looked up once for each.
func stretch(pix []uint8) int {
	n := 4
	for step := 4; step > 0; {
		if len(pix) >= n+step && string(pix[n:n+step]) == string(pix[:step]) {
			n += step
			step = min(2*step, 1<<10)
		} else {
			step = step / 2 &^ 3
		}
	}
	return n / 4
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
