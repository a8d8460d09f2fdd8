//go:build unix

package labtest

import (
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The library's outputs (a run's panel, the monitor, a sweep, a scaling curve) are readable in
// JupyterLab's light and dark themes. If GNB_PICTURES names a directory ("make pictures"), their
// pictures are kept there and show larger runs.
func pictures(t *testing.T, lab *Lab) {
	dir := picturesDir()
	if dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		own := lab.Out
		lab.Out = abs
		defer func() { lab.Out = own }()
	}
	lab.Copy(t, "testdata/pictures.ipynb")
	looks := 20
	if os.Getenv("GNB_PANEL") != "" {
		looks = 250 // most of the run
	}
	shots := []map[string]any{
		{"name": "panel", "text": "// The panel", "looks": looks},
		{"name": "monitor", "text": "// The monitor", "looks": 0, "hover": 4},
		{"name": "sweep", "text": "// A sweep", "looks": 0, "hover": 4},
		{"name": "scaling", "text": "// A scaling curve", "looks": 0},
		{"name": "figure", "text": "// A figure", "looks": 0},
	}
	var facts []struct {
		Name, Theme, File string
		Faint             []struct {
			Text     string
			Contrast float64
		}
		Words int
		Error bool
		Text  string
		// What charts show to the pointer: while they change, at once and after updates, and at the end.
		Live   struct{ At, Later *pointed }
		Charts []triedChart
	}
	lab.Script(t, "pictures.mjs", map[string]any{
		"notebook": "pictures.ipynb", "size": map[string]int{"width": 1010, "height": 1100}, "scale": 1.5,
		"shots": append([]map[string]any{{"name": "first", "text": "fmt.Println(gnb.Must(gnb.Load", "looks": 0}}, shots...),
	}, &facts)
	taken, tried := map[string]float64{}, map[string][]triedChart{}
	for _, f := range facts {
		if f.Theme == "end" {
			if f.Error {
				t.Errorf("the cell of %s ended with an error:\n%s", f.Name, f.Text)
			}
			for when, p := range map[string]*pointed{"at once": f.Live.At, "after updates": f.Live.Later} {
				if p != nil && p.Tip == "" { // nil: it has ended
					t.Errorf("%s: while it changes, the pointer shows nothing %s", f.Name, when)
				}
			}
			tried[f.Name] = f.Charts
			continue
		}
		if f.Name == "first" {
			_ = os.Remove(f.File) // this notebook makes the data of the others
			continue
		}
		if f.Name == "figure" && dir != "" {
			defer os.Remove(f.File) // the documentation does not show it
		}
		for _, faint := range f.Faint {
			t.Errorf("%s in the %s theme: %q has a contrast of %.1f to its background, want 4.5", f.Name, f.Theme, faint.Text, faint.Contrast)
		}
		light, ink, err := look(f.File)
		if err != nil {
			t.Error(err)
			continue
		}
		if (light > 0.5) != (f.Theme == "light") {
			t.Errorf("%s in the %s theme has a background of luminance %.2f", f.Name, f.Theme, light)
		}
		// The lines of a drawing and of text take a few per cent of the picture; the figure has few.
		least := 0.01
		if f.Name == "figure" {
			least = 0.004
		}
		if ink < least {
			t.Errorf("%s in the %s theme: %.1f %% of the picture contrasts with the neighbouring pixels, want at least %.1f", f.Name, f.Theme, 100*ink, 100*least)
		}
		taken[f.Name+f.Theme] = ink
	}
	checkTried(t, tried)
	if len(taken) != 2*len(shots) {
		t.Errorf("%d pictures, want %d of each theme: %v", len(taken), len(shots), taken)
	}
	for _, s := range shots[:4] {
		light, dark := taken[fmt.Sprint(s["name"], "light")], taken[fmt.Sprint(s["name"], "dark")]
		if s["looks"] == 0 && (light > 2*dark || dark > 2*light) {
			t.Errorf("%s: %.1f %% of the picture has contrast in the light theme and %.1f %% in the dark one: one of the pictures is incomplete", s["name"], 100*light, 100*dark)
		}
	}
}

func picturesDir() string { return os.Getenv("GNB_PICTURES") }

// measuredLimits is the environment for pictures that are kept: the folder of this machine's measured limits, if they were
// measured.
func measuredLimits(t *testing.T) []string {
	if picturesDir() == "" {
		return nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"XDG_CACHE_HOME=" + cache}
}

// triedChart is what a chart showed to the pointer at its end.
type triedChart struct {
	Title, Kind           string
	Names                 []string
	All                   int // paths
	Hover, Dragged, Reset pointed
	Log                   *pointed
}

// checkTried checks what the charts of the ended cells showed: a value under the pointer, a zoom or a choice of paths after a
// drag, a logarithmic axis, and all of it undone by a double click.
func checkTried(t *testing.T, tried map[string][]triedChart) {
	t.Helper()
	for name, want := range map[string]map[string]string{ // what the pointer shows, by chart
		"panel":   {"loss per step": `(?s)^step [\d,]+\n.*smoothed: \d`, "accuracy per epoch": `^epoch \d+\n`},
		"monitor": {"host, %": `^s \d[\d.]*\n.* CPU: \d`},
		"sweep":   {"trials: parameters and val_accuracy": `(?s)^.*trial \d+: val_accuracy 0\.\d+.*\nlr .*\nhidden \d+\ndropout 0\.\d`},
		"scaling": {"speed-up": `^workers, efficiency \d\n.*independent: \d`, "ms of a step, by stage": `^.*\w+: [\d.]+ ms\n\d workers?$`, "work done more than once": `^workers \d\n.*rows: 1\b`},
		"figure":  {"time": `^share 0\.5\n.*a: 400$`, "second": `^.*(left|right)\nfirst: \d\nsecond: \d$`, "accuracy": `^.*0\.75\nsecond$`, "confusion": `^.*[0134]\nclass: [ab]\npredicted: [ab]$`},
	} {
		seen := map[string]bool{}
		for _, c := range tried[name] {
			seen[c.Title] = true
			if re, ok := want[c.Title]; ok && !regexp.MustCompile(re).MatchString(c.Hover.Tip) {
				t.Errorf("%s: the pointer on %q shows %q, want %s", name, c.Title, c.Hover.Tip, re)
			}
			zoomed := slices.Equal(c.Dragged.Charts, []string{c.Title})
			switch c.Kind {
			case "curves", "dots":
				if !zoomed || len(c.Reset.Charts) != 0 {
					t.Errorf("%s: a drag over %q draws the charts %q anew, and a double click leaves %q", name, c.Title, c.Dragged.Charts, c.Reset.Charts)
				}
				if c.Log != nil && (!slices.Contains(c.Log.Pressed, "log") || slices.ContainsFunc(c.Log.Ticks, func(y float64) bool { return y <= 0 })) {
					t.Errorf("%s: a logarithmic axis of %q has the numbers %v", name, c.Title, c.Log.Ticks)
				}
			case "paths":
				if c.All < 10 || c.Dragged.Picked == 0 || c.Reset.Picked != 0 {
					t.Errorf("%s: of %d trials a drag chooses %d, and a double click %d", name, c.All, c.Dragged.Picked, c.Reset.Picked)
				}
			default:
				if len(c.Dragged.Charts) != 0 {
					t.Errorf("%s: a drag over %q draws %q anew", name, c.Title, c.Dragged.Charts)
				}
			}
		}
		for title := range want {
			if !seen[title] {
				t.Errorf("%s: no chart %q answers to the pointer, but %v do", name, title, seen)
			}
		}
	}
}

// look returns the brightness of a picture's background, from 0 to 1, and the share of its pixels
// whose perceived brightness differs by at least a fifth of the whole range from the pixel to their
// left. It works on the page of a saved figure and on the theme's background.
func look(file string) (background, ink float64, err error) {
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", file, err)
	}
	b := img.Bounds()
	background = lightness(img, b.Max.X-2, b.Max.Y-2)
	n := 0
	for y := b.Min.Y; y < b.Max.Y; y++ {
		last := lightness(img, b.Min.X, y)
		for x := b.Min.X; x < b.Max.X; x++ {
			l := lightness(img, x, y)
			if math.Abs(l-last) > 0.2 {
				n++
			}
			last = l
		}
	}
	return background, float64(n) / float64(b.Dx()*b.Dy()), nil
}

func lightness(img image.Image, x, y int) float64 {
	r, g, b, _ := img.At(x, y).RGBA()
	return (0.299*float64(r) + 0.587*float64(g) + 0.114*float64(b)) / 0xffff
}
