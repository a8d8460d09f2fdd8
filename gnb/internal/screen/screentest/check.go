package screentest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/chart"
)

// cssAllowed holds the style values that JupyterLab's sanitizer accepts
// (jupyterlab/packages/apputils/src/sanitizer.ts).
var cssAllowed = map[string]string{
	"background":       `transparent`,
	"background-color": `#[0-9a-f]{6}|rgba\(\d+,\d+,\d+,0\.\d+\)`,
	"color":            `#[0-9a-f]{6}|rgba\(\d+,\d+,\d+,0\.\d+\)`,
	"opacity":          `0\.\d+`,
	"border":           `0`,
	"border-top":       `1px solid rgba\(\d+,\d+,\d+,0\.\d+\)`,
	"border-bottom":    `1px solid rgba\(\d+,\d+,\d+,0\.\d+\)`,
	"border-left":      `3px solid #[0-9a-f]{6}`,
	"border-radius":    `\dpx`, "border-collapse": `collapse`,
	"table-layout": `auto`, "width": `\d+(\.\d+)?(px|%)`, "max-width": `\d+px`, "height": `\dpx|\d\dpx|auto`,
	"padding": `((0|\d+px) ?)+`, "padding-top": `\dpx`, "margin": `((0|\d+px) ?)+`,
	"display": `flex`, "overflow": `hidden`, "text-align": `left|right`, "vertical-align": `top`,
	"white-space": `nowrap|normal|pre-wrap`, "font-size": `1\dpx`, "font-family": `monospace`, "line-height": `1\.\d+`,
	"text-overflow": `ellipsis`,
	"align-items":   `baseline`, "font-variant-numeric": `tabular-nums`, // JupyterLab may drop these two
}

// CheckHTML checks that elements are balanced and harmless, but for the constant script of charts, and returns the text.
func CheckHTML(t *testing.T, s string) (text string) {
	t.Helper()
	if n := strings.Count(s, chart.Script()); n > 1 || n != strings.Count(s, "<script") {
		t.Errorf("the HTML has %d scripts, %d of them the constant one; want one of them at most", strings.Count(s, "<script"), n)
	}
	s = strings.ReplaceAll(s, chart.Script(), "")
	elements := map[string]bool{"div": true, "span": true, "b": true, "br": true, "img": true, "table": true, "tr": true, "td": true, "th": true, "details": true, "summary": true}
	attrs := map[string]bool{"style": true, "title": true, "alt": true, "src": true, "colspan": true, "data-gnb": true, "data-gnb-key": true}
	dec := xml.NewDecoder(strings.NewReader(s))
	dec.Strict, dec.AutoClose, dec.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var b strings.Builder
	open := 0
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			if open != 0 {
				t.Errorf("%d elements are not closed", open)
			}
			return b.String()
		}
		if err != nil {
			t.Fatalf("the HTML is broken: %v", err)
		}
		switch e := tok.(type) {
		case xml.CharData:
			b.Write(e)
		case xml.EndElement:
			open--
		case xml.StartElement:
			open++
			if !elements[e.Name.Local] {
				t.Errorf("element <%s>", e.Name.Local)
			}
			for _, a := range e.Attr {
				if !attrs[a.Name.Local] {
					t.Errorf("attribute %s of <%s>", a.Name.Local, e.Name.Local)
				}
				if a.Name.Local == "src" && !strings.HasPrefix(a.Value, "data:image/svg+xml;base64,") && !strings.HasPrefix(a.Value, "data:image/png;base64,") {
					t.Errorf("image from %.40s", a.Value)
				}
				if a.Name.Local == "data-gnb" && !json.Valid([]byte(a.Value)) {
					t.Errorf("the charts are no JSON: %.200s", a.Value)
				}
				if a.Name.Local != "style" {
					continue
				}
				for _, decl := range strings.Split(a.Value, ";") {
					prop, val, _ := strings.Cut(decl, ":")
					want, ok := cssAllowed[prop]
					if !ok || !regexp.MustCompile(`^(`+want+`)$`).MatchString(val) {
						t.Errorf("style %q of <%s>", decl, e.Name.Local)
					}
				}
			}
		}
	}
}

// Page returns a page that shows an output on white and on black.
func Page(body string) string {
	return fmt.Sprintf(`<!doctype html><meta charset=utf-8><body style="margin:0;font-family:system-ui,sans-serif">
<div style="background:#fff;color:rgba(0,0,0,.87);padding:12px">%s</div>
<div style="background:#111;color:#fff;padding:12px">%s</div>`, body, body)
}

// Put writes a file.
func Put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// CheckPicture draws a picture, compares its size in pixels with the size at which it is shown and,
// if GNB_LOOK is set, writes it to that directory.
func CheckPicture(t *testing.T, name string, draw func() (chart.Picture, error)) {
	t.Helper()
	pic, err := draw()
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	img, err := png.Decode(bytes.NewReader(pic.PNG))
	if err != nil || img.Bounds().Dx() != 2*pic.Width || img.Bounds().Dy() != 2*pic.Height {
		t.Errorf("%s: the picture has the size %v and is shown at %d × %d (%v)", name, img.Bounds(), pic.Width, pic.Height, err)
	}
	if pic.Areas != "" && !json.Valid([]byte(pic.Areas)) {
		t.Errorf("%s: the charts are no JSON: %.200s", name, pic.Areas)
	}
	if n := base64.StdEncoding.EncodedLen(len(pic.PNG)) + len(chart.Pointer("", pic.Areas)); n > 200_000 {
		t.Errorf("%s: the picture takes %d bytes of a notebook, want at most 200,000", name, n)
	}
	if dir := os.Getenv("GNB_LOOK"); dir != "" {
		Put(t, filepath.Join(dir, name+".png"), pic.PNG)
	}
}

// CheckContrast checks that the numbers at the axes of a saved picture are readable on any page,
// even if the picture is shown at half its size: they have the contrast that WCAG 2 requires for
// small text.
func CheckContrast(t *testing.T, name string, data []byte) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	b := img.Bounds()
	if _, _, _, a := img.At(b.Max.X-1, b.Max.Y-1).RGBA(); a != 0xffff {
		t.Errorf("%s: the picture is transparent", name)
	}
	// Left of the first chart there are only its numbers.
	dark, page := 1.0, halved(img, b.Max.X-4, b.Max.Y-4)
	for y := b.Min.Y + 120; y+1 < b.Max.Y-60; y += 2 {
		for x := 8; x < 40; x += 2 {
			dark = math.Min(dark, halved(img, x, y))
		}
	}
	if c := (page + 0.05) / (dark + 0.05); c < 4.5 {
		t.Errorf("%s: the numbers have a contrast of %.1f, want 4.5", name, c)
	}
}

// halved returns the luminance of a pixel of the picture at half its size.
func halved(img image.Image, x, y int) float64 {
	sum := [3]float64{}
	for i := range 4 {
		r, g, b, _ := img.At(x+i%2, y+i/2).RGBA()
		for k, v := range []uint32{r, g, b} {
			sum[k] += float64(v) / 4 / 0xffff
		}
	}
	return chart.Luminance(sum[0], sum[1], sum[2])
}
