package chart

import (
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	stdfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
)

// family is the name of the fonts.
const family = "Liberation Sans"

// fonts are the fonts of charts: two of the twelve that gonum's package liberation would link. They are parsed at the first
// drawing; most processes of a run never draw.
var fonts = sync.OnceValue(func() text.Handler {
	var faces font.Collection
	for _, f := range []struct {
		weight stdfont.Weight
		ttf    []byte
	}{{stdfont.WeightNormal, liberationsansregular.TTF}, {stdfont.WeightBold, liberationsansbold.TTF}} {
		face, err := opentype.Parse(f.ttf)
		if err != nil {
			panic("chart: a font of the program itself: " + err.Error())
		}
		faces = append(faces, font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Weight: f.weight}, Face: face})
	}
	return text.Plain{Fonts: font.NewCache(faces)}
})
