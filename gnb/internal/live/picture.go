package live

import (
	"github.com/graphnb/graphnb/gnb/internal/chart"

	"github.com/janpfeifer/gonb/gonbui/protocol"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// titledPNG draws a picture of standard size below a title and a note, at twice the resolution of a
// standard screen. It returns the size for display, in CSS pixels.
func titledPNG(title, note string, paint func(p *painter, c draw.Canvas)) (data []byte, width, height int, err error) {
	return tallPNG(title, note, chart.Height, paint)
}

// tallPNG is titledPNG with a given height.
func tallPNG(title, note string, tall vg.Length, paint func(p *painter, c draw.Canvas)) (data []byte, width, height int, err error) {
	h := tall + headHeight + noteHeight
	data, err = guarded(func() ([]byte, error) {
		p := painter{Painter: chart.Painter{OnPage: true}}
		return chart.PNG(h, func(c draw.Canvas) {
			y := c.Max.Y - 11
			c.FillText(p.Bold(9, p.Ink()), vg.Point{X: 4, Y: y}, p.Fit(p.Bold(9, p.Ink()), oneLine(title), c.Max.X-8))
			c.FillText(p.Text(8, p.Ink()), vg.Point{X: 4, Y: y - noteHeight}, p.Fit(p.Text(8, p.Ink()), oneLine(note), c.Max.X-8))
			c.Max.Y = tall
			paint(&p, c)
		})
	})
	return data, chart.Width * 4 / 3, int(h) * 4 / 3, err
}

// showPicture shows a picture in the current cell, with text for viewers without pictures; outside
// a notebook it does nothing.
func showPicture(paint func() (data []byte, width, height int, err error), text string, o Options) error {
	return showPictureAs("", paint, text, o)
}

// showPictureAs is showPicture, but replaces the picture with that id if there is one.
func showPictureAs(id string, paint func() (data []byte, width, height int, err error), text string, o Options) error {
	if pick(&o) != modeNotebook {
		return nil
	}
	data, w, h, err := paint()
	if err != nil {
		return err
	}
	if err := o.Display.Send(pngData(id, text, data, w, h)); err != nil {
		return err
	}
	return o.Display.Sync()
}

// pngData returns the output that shows a picture at the given size, with text for viewers without
// pictures. It replaces the output with that id, if there is one.
func pngData(id, text string, data []byte, width, height int) *protocol.DisplayData {
	return &protocol.DisplayData{
		DisplayID: id,
		Data:      map[protocol.MIMEType]any{protocol.MIMEImagePNG: data, protocol.MIMETextPlain: text},
		Metadata: map[string]any{
			string(protocol.MIMEImagePNG): map[string]int{"width": width, "height": height},
		},
	}
}

// lastData returns what remains of a panel at the end: its picture or, if drawing failed, the text
// and the reason.
func lastData(id, text string, paint func() (data []byte, width, height int, err error)) *protocol.DisplayData {
	d, err := guarded(func() (*protocol.DisplayData, error) {
		data, w, h, err := paint()
		return pngData(id, text, data, w, h), err
	})
	if err != nil {
		return textData(id, text+"\n"+err.Error())
	}
	return d
}

func textData(id, text string) *protocol.DisplayData {
	return &protocol.DisplayData{DisplayID: id, Data: map[protocol.MIMEType]any{protocol.MIMETextPlain: text}}
}

// htmlData returns the output that shows HTML, with text for viewers without HTML.
func htmlData(id, html, text string) *protocol.DisplayData {
	d := textData(id, text)
	d.Data[protocol.MIMETextHTML] = html
	return d
}
