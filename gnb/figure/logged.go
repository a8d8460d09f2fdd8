package figure

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"reflect"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// gnb.Worker.Log takes this package's charts, figures and tables, and pictures.
func init() { runfile.Draw = logged }

// Sizes of what is logged.
const (
	halfWidth  = chart.Width/2 - 6 // of a chart, in points: two beside each other
	halfHeight = 180
	mostLogged = 60_000 // bytes of a picture and its charts
	mostPixels = 480    // of a side of a picture
)

// logged implements [runfile.Draw]: it copies what it needs of v.
func logged(v any) func() (runfile.Drawn, error) {
	var d drawing
	switch x := v.(type) {
	case *Figure:
		if x == nil {
			return failing(errors.New("figure: the figure is nil; make one with figure.New"))
		}
		if err := x.check(); err != nil {
			return failing(err)
		}
		f := x.copied()
		return func() (runfile.Drawn, error) {
			return drawn(f.String(), chart.Width, f.height(), f.paint)
		}
	case Table:
		if err := x.check(); err != nil {
			return failing(fmt.Errorf("figure: %w", err))
		}
		t := runfile.Drawn{Kind: runfile.Table, Text: x.words()}
		t.Head, t.Rows = x.kept()
		return func() (runfile.Drawn, error) { return t, nil }
	case image.Image:
		return picture(x)
	case Scatter:
		d = &x
	case Bars:
		d = &x
	case Lines:
		d = &x
	case HeatMap:
		d = &x
	case Histogram:
		d = &x
	default:
		return nil
	}
	if err := d.check(); err != nil {
		return failing(fmt.Errorf("figure: %w", err))
	}
	d = d.copied()
	return func() (runfile.Drawn, error) {
		height := vg.Length(halfHeight)
		if h, ok := d.(*HeatMap); ok {
			height = vg.Length(min(max(halfHeight, 9*len(h.Rows)+90), 330)) / 3 * 3
		}
		out, err := drawn(d.words(), halfWidth, height, d.paint)
		if b, ok := d.(*bins); ok {
			out.Kind, out.Edges, out.Counts, out.Sum, out.Squares = runfile.Histogram, b.edges, b.counts, b.sum, b.squares
		}
		return out, err
	}
}

func failing(err error) func() (runfile.Drawn, error) {
	return func() (runfile.Drawn, error) { return runfile.Drawn{}, err }
}

// drawn draws a chart or a figure.
func drawn(words string, width, height vg.Length, paint func(p *chart.Painter, c draw.Canvas)) (runfile.Drawn, error) {
	pic, err := screen.Guarded(func() (chart.Picture, error) { return chart.Paint(width, height, mostLogged, paint) })
	if err != nil {
		return runfile.Drawn{}, fmt.Errorf("figure: %w", err)
	}
	return runfile.Drawn{Kind: runfile.Chart, Text: words, PNG: pic.PNG, Width: pic.Width, Height: pic.Height, Areas: pic.Areas}, nil
}

// picture keeps a picture, smaller if it is large.
func picture(img image.Image) func() (runfile.Drawn, error) {
	if r := reflect.ValueOf(img); r.Kind() == reflect.Pointer && r.IsNil() {
		return failing(errors.New("figure: the picture is nil"))
	}
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	if w <= 0 || h <= 0 {
		return failing(fmt.Errorf("figure: the picture has no pixels; it is %d wide and %d high", w, h))
	}
	side := mostPixels
	small := scaled(img, side)
	return func() (runfile.Drawn, error) {
		for {
			var out bytes.Buffer
			if err := png.Encode(&out, small); err != nil {
				return runfile.Drawn{}, fmt.Errorf("figure: the picture could not be kept: %w", err)
			}
			if out.Len() > mostLogged*3/4 && side > 16 {
				side = side * 3 / 4
				small = scaled(small, side)
				continue
			}
			size := small.Bounds().Size()
			// Small pictures are shown larger.
			zoom := max(1, min(240/max(size.X, size.Y), 8))
			return runfile.Drawn{
				Kind: runfile.Image, Text: fmt.Sprintf("a picture of %d × %d pixels", w, h), PNG: out.Bytes(),
				Width: min(size.X*zoom, halfWidth*4/3), Height: size.Y * zoom,
			}, nil
		}
	}
}

// scaled returns a copy of an image whose sides have at most the given number of pixels, each the mean of up to 16 of the image.
func scaled(img image.Image, side int) *image.NRGBA {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	if long := max(w, h); long > side {
		w, h = max(int(int64(w)*int64(side)/int64(long)), 1), max(int(int64(h)*int64(side)/int64(long)), 1)
	}
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	samples := func(from, length, i, n int) (at [4]int, count int) { // up to 4 of the pixels that become the i-th of n
		lo, hi := int(int64(length)*int64(i)/int64(n)), int(int64(length)*int64(i+1)/int64(n))
		count = min(max(hi-lo, 1), 4)
		for k := range count {
			at[k] = from + lo + (hi-lo)*k/count
		}
		return at, count
	}
	for y := range h {
		ys, ny := samples(b.Min.Y, b.Dy(), y, h)
		for x := range w {
			xs, nx := samples(b.Min.X, b.Dx(), x, w)
			var sum [4]uint64
			for _, v := range ys[:ny] {
				for _, u := range xs[:nx] {
					r, g, bl, a := img.At(u, v).RGBA()
					sum[0], sum[1], sum[2], sum[3] = sum[0]+uint64(r), sum[1]+uint64(g), sum[2]+uint64(bl), sum[3]+uint64(a)
				}
			}
			n := uint64(nx * ny)
			out.Set(x, y, color.RGBA64{R: uint16(sum[0] / n), G: uint16(sum[1] / n), B: uint16(sum[2] / n), A: uint16(sum[3] / n)})
		}
	}
	return out
}
