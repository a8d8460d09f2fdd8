package screen

import (
	"fmt"
	"image/color"

	"github.com/graphnb/graphnb/gnb/internal/chart"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Draw draws a picture of the given height in points on a page.
func Draw(height vg.Length, paint func(p *chart.Painter, c draw.Canvas)) (chart.Picture, error) {
	return Guarded(func() (chart.Picture, error) {
		return chart.Paint(chart.Width, height, chart.SavedRoom(), paint)
	})
}

// Titled draws a picture of standard size below a title and a note.
func Titled(title, note string, paint func(p *chart.Painter, c draw.Canvas)) (chart.Picture, error) {
	return Tall(title, note, chart.Height, paint)
}

// Tall is Titled with a given height.
func Tall(title, note string, tall vg.Length, paint func(p *chart.Painter, c draw.Canvas)) (chart.Picture, error) {
	return Draw(tall+HeadHeight+NoteHeight, func(p *chart.Painter, c draw.Canvas) {
		y := c.Max.Y - 11
		c.FillText(p.Bold(9, p.Ink()), vg.Point{X: 4, Y: y}, p.Fit(p.Bold(9, p.Ink()), OneLine(title), c.Max.X-8))
		c.FillText(p.Text(8, p.Ink()), vg.Point{X: 4, Y: y - NoteHeight}, p.Fit(p.Text(8, p.Ink()), OneLine(note), c.Max.X-8))
		c.Max.Y = tall
		paint(p, c)
	})
}

// ShowPicture shows a picture in the current cell, with text for viewers without pictures; outside
// a notebook it does nothing. Its charts answer to the pointer.
func ShowPicture(paint func() (chart.Picture, error), text string, o Options) error {
	return ShowPictureAs("", true, paint, text, o)
}

// ShowPictureAs is ShowPicture, but replaces the picture with that id if there is one. Its charts answer to the pointer
// if it is the last one.
func ShowPictureAs(id string, last bool, paint func() (chart.Picture, error), text string, o Options) error {
	if Pick(&o) != Notebook {
		return nil
	}
	pic, err := forCell(paint)
	if err != nil {
		return err
	}
	if err := o.Display.Send(pngData(id, text, pic)); err != nil {
		return err
	}
	if last && pic.Areas != "" {
		if err := o.Display.Send(HTMLData("", chart.Pointer(id, pic.Areas), "")); err != nil {
			return err
		}
	}
	return o.Display.Sync()
}

// forCell returns a picture as a cell shows it.
func forCell(paint func() (chart.Picture, error)) (chart.Picture, error) {
	pic, err := paint()
	if err != nil {
		return pic, err
	}
	return pic.ForCell()
}

// ShowSVG shows a drawing in the current cell, with text for viewers without pictures; outside a
// notebook it does nothing.
func ShowSVG(svg, text string, o Options) error {
	if Pick(&o) != Notebook {
		return nil
	}
	d := textData("", text)
	d.Data[protocol.MIMEImageSVG] = svg
	return send(o.Display, d)
}

// send shows d and returns when the notebook has received it.
func send(to Display, d *protocol.DisplayData) error {
	if err := to.Send(d); err != nil {
		return err
	}
	return to.Sync()
}

// NewID returns a new id of an output, by which later outputs replace it.
func NewID() string { return "gnb_" + gonbui.UniqueId() }

// pngData returns the output that shows a picture at the given size, with text for viewers without
// pictures. It replaces the output with that id, if there is one.
func pngData(id, text string, pic chart.Picture) *protocol.DisplayData {
	return &protocol.DisplayData{
		DisplayID: id,
		Data:      map[protocol.MIMEType]any{protocol.MIMEImagePNG: pic.PNG, protocol.MIMETextPlain: text},
		Metadata: map[string]any{
			string(protocol.MIMEImagePNG): map[string]int{"width": pic.Width, "height": pic.Height},
		},
	}
}

// LastData returns what remains of a panel at the end: its picture or, if drawing failed, the text
// and the reason; and the picture's charts, for [chart.Pointer] in a later output.
func LastData(id, text string, paint func() (chart.Picture, error)) (d *protocol.DisplayData, areas string) {
	pic, err := Guarded(func() (chart.Picture, error) { return forCell(paint) })
	if err != nil {
		return textData(id, text+"\n"+err.Error()), ""
	}
	return pngData(id, text, pic), pic.Areas
}

func textData(id, text string) *protocol.DisplayData {
	return &protocol.DisplayData{DisplayID: id, Data: map[protocol.MIMEType]any{protocol.MIMETextPlain: text}}
}

// HTMLData returns the output that shows HTML, with text for viewers without HTML.
func HTMLData(id, html, text string) *protocol.DisplayData {
	d := textData(id, text)
	d.Data[protocol.MIMETextHTML] = html
	return d
}

// StateColor returns the colour of a state's dot. All states before the end have the same colour,
// otherwise runs that evaluate every second would flicker.
func StateColor(state string) color.NRGBA {
	switch state {
	case Done:
		return chart.Green
	case Failed:
		return chart.Orange
	case Interrupted:
		return chart.Amber
	}
	return chart.Blue
}

// Guarded turns a panic of the plotting library into an error, because a missing picture must not
// end a training run.
func Guarded[T any](draw func() (T, error)) (drawn T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the figure could not be drawn: %v", r)
		}
	}()
	return draw()
}

const (
	HeadHeight = 20 // added height of a figure with a title
	NoteHeight = 13 // added height of a reason
)
