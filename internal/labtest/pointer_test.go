//go:build unix

package labtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
)

// pointed is what the charts of a cell show to the pointer.
type pointed struct {
	Tip          string
	Charts       []string  // those drawn anew
	Ticks, Steps []float64 // the numbers at their axes
	Pressed      []string  // buttons
	Picked       int       // paths that are chosen
}

// ended is what the charts of a run show to the pointer when it has ended.
type ended struct {
	Before, Last, Zoomed, Reset pointed
	Drawn                       pointed // a cell of the logged confusion matrix
	Pictures                    []int
	Scripts, Table              int
	Cut                         map[string][]string // text and pictures that are cut off, by the width of the window
}

// The pointer shows values in the charts of a run and changes the charts: while the run trains, whose panel is replaced up to
// 20 times per second, when it has ended, and in the saved notebook if that is trusted. Otherwise the picture and the table remain.
func pointer(t *testing.T, lab *Lab) {
	lab.Copy(t, "testdata/pointer.ipynb")
	var f struct {
		Errors                                              []string
		Hover, HoverLater, Zoomed, ZoomedLater, Log, Logged pointed
		Drawn                                               pointed // a bar of the logged histogram
		Faint                                               map[string][]struct {
			Text     string
			Contrast float64
		}
		Ended, Trusted, Untrusted ended
		Text                      string
		Bytes                     []int
	}
	lab.Script(t, "pointer.mjs", map[string]any{"notebook": "pointer.ipynb"}, &f)
	for _, e := range f.Errors {
		t.Errorf("the page has an error: %s", e)
	}
	const loss = "loss per step"
	for name, p := range map[string]pointed{"at once": f.Hover, "after updates": f.HoverLater} {
		if !regexp.MustCompile(`(?s)^step \d+\n.*smoothed: [01]\.\d`).MatchString(p.Tip) || len(p.Charts) != 0 {
			t.Errorf("the pointer on the loss shows %s %q, and the charts %q are drawn anew", name, p.Tip, p.Charts)
		}
	}
	for name, p := range map[string]pointed{"at once": f.Zoomed, "after updates": f.ZoomedLater} {
		if !slices.Equal(p.Charts, []string{loss}) || !strings.HasPrefix(p.Tip, "step ") || len(p.Steps) < 2 || len(p.Ticks) < 2 {
			t.Errorf("after a zoom there is %s %+v", name, p)
		}
	}
	if !slices.Equal(f.Zoomed.Steps, f.ZoomedLater.Steps) {
		t.Errorf("a zoom shows the steps %v, and after updates %v", f.Zoomed.Steps, f.ZoomedLater.Steps)
	}
	if !slices.Equal(f.Log.Pressed, []string{"smooth", "log"}) || !slices.Equal(f.Log.Charts, []string{loss}) {
		t.Errorf("with smoothing and a logarithmic axis there is %+v", f.Log)
	}
	if !regexp.MustCompile(`^step [\d,]+\n.* half: \d+\.5$`).MatchString(f.Logged.Tip) {
		t.Errorf("the pointer on a logged value shows %q, want one that ends in .5", f.Logged.Tip)
	}
	if !regexp.MustCompile(`^(■ )?3\n0 to \d+(\.5)?$`).MatchString(f.Drawn.Tip) {
		t.Errorf("the pointer on a logged histogram shows %q, want the 3 zeros of the first bar", f.Drawn.Tip)
	}
	for _, theme := range []string{"light", "dark"} {
		faint, ok := f.Faint[theme]
		if !ok {
			t.Errorf("the %s theme was not looked at", theme)
		}
		for _, e := range faint {
			t.Errorf("in the %s theme %q has a contrast of %.1f to its background, want 4.5", theme, e.Text, e.Contrast)
		}
	}

	// The last logged value is half an epoch less than the number of epochs, which the cell prints.
	epochs := regexp.MustCompile(`epochs (\d+)`).FindStringSubmatch(f.Text)
	if epochs == nil {
		t.Fatalf("the cell prints no number of epochs:\n%s", f.Text)
	}
	n, err := strconv.Atoi(epochs[1])
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]ended{"ended": f.Ended, "trusted": f.Trusted} {
		if last := regexp.MustCompile(`half: (\d+)\.5$`).FindStringSubmatch(e.Last.Tip); last == nil || last[1] != strconv.Itoa(n-1) {
			t.Errorf("%s: the pointer at the end of the logged value shows %q after %s epochs", name, e.Last.Tip, epochs[1])
		}
		if !slices.Equal(e.Zoomed.Charts, []string{loss}) || len(e.Reset.Charts) != 0 || !strings.HasPrefix(e.Reset.Tip, "step ") {
			t.Errorf("%s: zoomed there is %+v, and after a double click %+v", name, e.Zoomed, e.Reset)
		}
		if e.Scripts != 2 {
			t.Errorf("%s: %d scripts, want one for the run and one for what it logged", name, e.Scripts)
		}
		if !regexp.MustCompile(`^\d*0\nrow: a\ncolumn: a$`).MatchString(e.Drawn.Tip) {
			t.Errorf("%s: the pointer on a logged matrix shows %q", name, e.Drawn.Tip)
		}
	}
	// What was chosen while it trained is there when it has ended, and is no part of the notebook.
	if !slices.Equal(f.Ended.Before.Charts, []string{loss}) || len(f.Trusted.Before.Charts) != 0 {
		t.Errorf("the ended run has the changed charts %q, the reopened notebook %q", f.Ended.Before.Charts, f.Trusted.Before.Charts)
	}
	if u := f.Untrusted; u.Scripts != 0 || u.Last.Tip != "" {
		t.Errorf("the notebook that is not trusted has %d scripts, and shows the pointer %q", u.Scripts, u.Last.Tip)
	}
	for name, e := range map[string]ended{"ended": f.Ended, "trusted": f.Trusted, "untrusted": f.Untrusted} {
		// The run's picture and table, and the logged histogram, matrix and table.
		if e.Table != 2 || len(e.Pictures) != 3 || slices.Min(e.Pictures) < 500 {
			t.Errorf("%s: %d tables, and pictures %d pixels wide; want two and three", name, e.Table, e.Pictures)
		}
		for _, width := range []string{"900", "1280"} {
			cut, ok := e.Cut[width]
			if !ok || len(cut) > 0 {
				t.Errorf("%s, %s pixels wide: %q", name, width, cut)
			}
		}
	}
	// In a browser that has Liberation Sans, the same; the machines that test this have other fonts.
	fonts := t.TempDir()
	if err := os.Mkdir(filepath.Join(fonts, "fonts"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, ttf := range map[string][]byte{"regular.ttf": liberationsansregular.TTF, "bold.ttf": liberationsansbold.TTF} {
		if err := os.WriteFile(filepath.Join(fonts, "fonts", name), ttf, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var with struct {
		Installed bool
		Charts    []string
		Cut       map[string][]string
	}
	lab.Script(t, "fonts.mjs", map[string]any{"notebook": "pointer.ipynb", "fonts": fonts}, &with)
	if !with.Installed || !slices.Equal(with.Charts, []string{loss}) {
		t.Errorf("Liberation Sans is installed: %v, and the zoomed charts are %q", with.Installed, with.Charts)
	}
	for _, width := range []string{"900", "1280"} {
		if cut, ok := with.Cut[width]; !ok || len(cut) > 0 {
			t.Errorf("with Liberation Sans, %s pixels wide: %q", width, cut)
		}
	}
	for i, n := range f.Bytes {
		if n > 200_000 {
			t.Errorf("output %d has %d bytes in the saved notebook, want at most 200,000", i, n)
		}
	}
}
