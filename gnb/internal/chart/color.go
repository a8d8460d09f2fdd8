package chart

import (
	"image/color"
	"math"
)

// The colours are those of Okabe and Ito (2008), which colour-blind readers can distinguish,
// without those too light for a white page.
//
// A live panel has a transparent background to fit any theme: its text has a contrast of at least 4.5 : 1
// to a white page, and lighter colours for a dark one, which [Script] asks for (see onDark). Without the
// script, the ink has a contrast of 3.8 : 1 to a dark page (#111). A picture in a file has a white page and text in
// pageInk (8.6 : 1), because scaling makes small text paler. In a cell, the same picture has no page (see onAny), and its
// text a contrast of at least 4 : 1 to a white page and to a dark one; [Script] makes it lighter on a dark page.
var (
	Ink     = color.NRGBA{0x70, 0x72, 0x76, 0xff} // of text in a live panel
	pageInk = color.NRGBA{0x4a, 0x4c, 0x50, 0xff}
	paper   = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	GridInk = color.NRGBA{0x80, 0x80, 0x80, 0x3c} // of lines behind the values
	BaseInk = color.NRGBA{0x80, 0x80, 0x80, 0x90} // of the lowest of them, the axis
	Blue    = color.NRGBA{0x20, 0x80, 0xc8, 0xff} // of Okabe and Ito, lightened for dark pages
	Orange  = color.NRGBA{0xd5, 0x5e, 0x00, 0xff}
	Green   = color.NRGBA{0x00, 0x9e, 0x73, 0xff}
	Purple  = color.NRGBA{0xcc, 0x79, 0xa7, 0xff}
	Amber   = color.NRGBA{0xe6, 0x9f, 0x00, 0xff}
	Sky     = color.NRGBA{0x56, 0xb4, 0xe9, 0xff}
	Plum    = color.NRGBA{0x9e, 0x4a, 0x7c, 0xff} // this and the next are not of Okabe and Ito
	Olive   = color.NRGBA{0x99, 0x99, 0x33, 0xff}
	Grey    = color.NRGBA{0x80, 0x80, 0x80, 0xff}
)

// readable returns c, made darker until text in it can be read on a white page: with a contrast of 4.6 : 1, more than the
// Web Content Accessibility Guidelines ask for.
func readable(c color.NRGBA) color.NRGBA {
	for 1.05/(luminance(c)+0.05) < 4.6 {
		c = darker(c, 31, 32)
	}
	return c
}

// middle is the luminance of colours with the same contrast to a white page as to a dark one (#111): 4.3 : 1.
const middle = 0.19

// lifted returns c, made lighter until it has at least that luminance.
func lifted(c color.NRGBA) color.NRGBA {
	for luminance(c) < middle && c.A > 0 {
		lighter := func(v uint8) uint8 { return uint8(min(int(v)+(255-int(v)+31)/32, 255)) }
		c = color.NRGBA{lighter(c.R), lighter(c.G), lighter(c.B), c.A}
	}
	return c
}

// darker returns c with all channels times a/b.
func darker(c color.NRGBA, a, b int) color.NRGBA {
	dark := func(v uint8) uint8 { return uint8(int(v) * a / b) }
	return color.NRGBA{dark(c.R), dark(c.G), dark(c.B), c.A}
}

// luminance is that of an opaque colour.
func luminance(c color.NRGBA) float64 {
	return Luminance(float64(c.R)/0xff, float64(c.G)/0xff, float64(c.B)/0xff)
}

// Luminance is the relative luminance of a colour with channels from 0 to 1, by the same guidelines.
func Luminance(r, g, b float64) float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// Alpha returns c with the opacity a.
func Alpha(c color.NRGBA, a uint8) color.NRGBA { c.A = a; return c }
