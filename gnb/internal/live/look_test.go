package live

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// TestLook draws the panels. If GNB_LOOK names a directory, they are written there for review.
func TestLook(t *testing.T) {
	dir := os.Getenv("GNB_LOOK")
	if dir == "" {
		dir = t.TempDir()
	}
	for _, c := range []struct {
		name           string
		steps, workers int
		done           float64
		state          string
	}{
		{"start", 10000, 2, 0, Starting},
		{"early", 10000, 2, 0.002, Running},
		{"running", 10000, 2, 0.62, Running},
		{"ten", 10, 1, 0.6, Running},
		{"eight", 10000, 8, 0.31, Evaluating},
		{"done", 10000, 8, 1, Done},
		{"done1", 10000, 1, 1, Done},
		{"done10", 10, 1, 1, Done},
		{"interrupted", 10000, 2, 0.62, Interrupted},
		{"failed", 10000, 2, 0.625, Failed},
		{"failed0", 10000, 2, 0, Failed},
		{"schedule", 10000, 2, 0.62, Running},
		{"scheduledone", 10000, 2, 1, Done},
	} {
		s := sampleRun(c.steps, c.workers, c.done, c.state)
		if strings.HasPrefix(c.name, "schedule") {
			s.LR = cosine(c.steps, len(s.Loss))
		}
		d := &tape{}
		synctest.Test(t, func(t *testing.T) { // here drawing takes no time, so Close, which waits for the drawing for a limited time, sees it done
			sink := New(Options{Display: d})
			if !s.final() {
				sink.Update(s)
				synctest.Wait()
				put(t, filepath.Join(dir, c.name+".html"), []byte(page(htmlOf(d.all()[0]))))
			}
			if err := sink.Close(s); err != nil {
				t.Fatal(err)
			}
		})
		out := d.outputs()
		if s.stopped() {
			put(t, filepath.Join(dir, c.name+"-reason.html"), []byte(page(htmlOf(out[0]))))
			out = out[1:]
		}
		png, ok := out[0].Data["image/png"].([]byte)
		if !ok {
			t.Fatalf("%s: the picture is missing: %s", c.name, plainOf(out[0]))
		}
		t.Log(c.name, len(png), "bytes of PNG")
		put(t, filepath.Join(dir, c.name+".png"), png)
		put(t, filepath.Join(dir, c.name+"-table.html"), []byte(page(`<img width=880 src="`+c.name+`.png">`+htmlOf(out[1])+`<pre>`+plainOf(out[0])+"\n\n"+plainOf(out[1])+`</pre>`)))
	}
}

// cosine returns a learning rate that rises over 500 steps and then falls along a cosine.
func cosine(steps, n int) (lr []Point) {
	for i := range n {
		y := 0.003 * min(1, float64(i+1)/500) * (1 + math.Cos(math.Pi*float64(i)/float64(steps))) / 2
		lr = append(lr, Point{Step: i + 1, Y: y})
	}
	return lr
}

func page(body string) string {
	return fmt.Sprintf(`<!doctype html><meta charset=utf-8><body style="margin:0;font-family:system-ui,sans-serif">
<div style="background:#fff;color:rgba(0,0,0,.87);padding:12px">%s</div>
<div style="background:#111;color:#fff;padding:12px">%s</div>`, body, body)
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkPicture draws a picture, compares its size in pixels with the size at which it is shown and,
// if GNB_LOOK is set, writes it to that directory.
func checkPicture(t *testing.T, name string, draw func() (data []byte, w, h int, err error)) {
	t.Helper()
	data, w, h, err := draw()
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil || img.Bounds().Dx() != 2*w || img.Bounds().Dy() != 2*h {
		t.Errorf("%s: the picture has the size %v and is shown at %d × %d (%v)", name, img.Bounds(), w, h, err)
	}
	if dir := os.Getenv("GNB_LOOK"); dir != "" {
		put(t, filepath.Join(dir, name+".png"), data)
	}
}
