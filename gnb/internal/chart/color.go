package chart

import "image/color"

// The colours are those of Okabe and Ito (2008), told apart by colour-blind
// readers, less the ones too light for a white page.
//
// A live panel has no background of its own, so that any theme shines through: its
// ink is a grey of equal contrast (4.4 : 1) to a white page and to a dark one (#111).
// A saved picture is seen in places whose background nobody knows, at sizes that
// make small text paler. It has a white page of its own, and text in pageInk (8.6 : 1).
var (
	Ink     = color.NRGBA{0x78, 0x7a, 0x7e, 0xff} // of text in a live panel
	pageInk = color.NRGBA{0x4a, 0x4c, 0x50, 0xff}
	paper   = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	GridInk = color.NRGBA{0x80, 0x80, 0x80, 0x3c} // of lines behind the values
	BaseInk = color.NRGBA{0x80, 0x80, 0x80, 0x90} // of the lowest of them, the axis
	Blue    = color.NRGBA{0x20, 0x80, 0xc8, 0xff} // theirs, lightened for dark pages
	Orange  = color.NRGBA{0xd5, 0x5e, 0x00, 0xff}
	Green   = color.NRGBA{0x00, 0x9e, 0x73, 0xff}
	Purple  = color.NRGBA{0xcc, 0x79, 0xa7, 0xff}
	Amber   = color.NRGBA{0xe6, 0x9f, 0x00, 0xff}
	Sky     = color.NRGBA{0x56, 0xb4, 0xe9, 0xff}
	Plum    = color.NRGBA{0x9e, 0x4a, 0x7c, 0xff} // this and the next are not theirs
	Olive   = color.NRGBA{0x99, 0x99, 0x33, 0xff}
	Grey    = color.NRGBA{0x80, 0x80, 0x80, 0xff}
)

// Alpha is c with the opacity a.
func Alpha(c color.NRGBA, a uint8) color.NRGBA { c.A = a; return c }
