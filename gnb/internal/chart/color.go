package chart

import "image/color"

// The colours are those of Okabe and Ito (2008), which colour-blind readers can distinguish,
// without those too light for a white page.
//
// A live panel has a transparent background to fit any theme: its ink is a grey with the same
// contrast (4.4 : 1) to a white page and to a dark one (#111). The background behind a saved
// picture is unknown, and scaling makes small text paler, so it has a white page and text in
// pageInk (8.6 : 1).
var (
	Ink     = color.NRGBA{0x78, 0x7a, 0x7e, 0xff} // of text in a live panel
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

// Alpha returns c with the opacity a.
func Alpha(c color.NRGBA, a uint8) color.NRGBA { c.A = a; return c }
