package chart

import (
	"bytes"
	"compress/zlib"
	_ "embed"
	"sync"

	stdfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
)

// The two fonts of charts draw as Liberation Sans does (fonts/LICENSE-SIL). They lack what is only for grids of pixels, and
// are compressed, to a quarter of its size in all, because they are the largest part of each cell's program. "go test
// ./gnb/internal/chart -run TestFonts -update" writes them from the module that provides Liberation Sans; Zopfli (the
// package zopfli for Python) has then made each file 7 kB smaller.
var (
	//go:embed fonts/regular.ttf.zlib
	regular []byte
	//go:embed fonts/bold.ttf.zlib
	bold []byte
)

// family is the name of the fonts. A font that differs from Liberation Sans must not have its name.
const family = "Chart"

// fonts are the fonts of charts. They are unpacked and parsed at the first drawing; most processes
// of a run never draw.
var fonts = sync.OnceValue(func() text.Handler {
	var faces font.Collection
	for _, f := range []struct {
		weight stdfont.Weight
		packed []byte
	}{{stdfont.WeightNormal, regular}, {stdfont.WeightBold, bold}} {
		ttf, err := unpack(f.packed)
		if err != nil {
			panic("chart: a font of the program itself: " + err.Error())
		}
		face, err := opentype.Parse(ttf)
		if err != nil {
			panic("chart: a font of the program itself: " + err.Error())
		}
		faces = append(faces, font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Weight: f.weight}, Face: face})
	}
	return text.Plain{Fonts: font.NewCache(faces)}
})

func unpack(packed []byte) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	ttf := bytes.NewBuffer(make([]byte, 0, 2*len(packed)))
	_, err = ttf.ReadFrom(z)
	return ttf.Bytes(), err
}
