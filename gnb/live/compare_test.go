package live

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sampleComparison(runs int) Comparison {
	c := Comparison{Title: "runs of sage on <reddit>", Note: "they differ in hidden and lr", Metric: "val accuracy"}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range runs {
		r := ComparedRun{Name: fmt.Sprintf("hidden %d, lr %.3g", 8<<(i%5), 0.1/float64(i+1)), Result: fmt.Sprintf("done, val accuracy %.3f", 0.7+0.02*float64(i%7))}
		for s := range 400 + 100*i {
			r.Loss = append(r.Loss, Point{Step: s + 1, Y: 0.3 + 0.05*float64(i) + 2*math.Exp(-float64(s)/(60+20*float64(i))) + 0.1*rng.Float64()})
		}
		for e := range 10 {
			r.Metric = append(r.Metric, Point{Step: e + 1, Y: 0.7 + 0.02*float64(i%7) - 0.3*math.Exp(-float64(e)/2)})
		}
		c.Runs = append(c.Runs, r)
	}
	return c
}

// A comparison is drawn whatever its numbers are; with GNB_LOOK set, for eyes to
// see.
func TestComparisonPNG(t *testing.T) {
	odd := sampleComparison(5)
	odd.Runs[0].Loss = []Point{{1, math.NaN()}, {2, math.Inf(1)}, {5, 1e300}}
	odd.Runs[1].Loss, odd.Runs[1].Metric = nil, nil
	odd.Runs[2].Metric = []Point{{3, 0.7}}
	odd.Runs[3].Name, odd.Runs[3].Result = strings.Repeat("long ", 200), strings.Repeat("\x1b[31mred\n", 3)
	for i := range odd.Runs[4].Loss {
		odd.Runs[4].Loss[i].Y *= 1e4 // astray
	}
	for name, c := range map[string]Comparison{
		"none": {Title: strings.Repeat("long ", 100)}, "one": sampleComparison(1), "three": sampleComparison(3), "many": sampleComparison(40), "odd": odd,
		"empty": {Metric: "val accuracy", Runs: []ComparedRun{{Name: "a"}, {Name: "b"}}},
	} {
		data, w, h, err := ComparisonPNG(c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil || img.Bounds().Dx() != 2*w || img.Bounds().Dy() != 2*h {
			t.Errorf("%s: a picture of %v to be shown at %d × %d (%v)", name, img.Bounds(), w, h, err)
		}
		if dir := os.Getenv("GNB_LOOK"); dir != "" {
			put(t, filepath.Join(dir, "compare-"+name+".png"), data)
		}
	}
}

// In a cell a comparison is one picture with its text, drawn anew in its place;
// elsewhere it is nothing.
func TestShowComparison(t *testing.T) {
	d := &tape{}
	show := showComparison(Options{Display: d})
	for _, n := range []int{2, 3} {
		if err := show(sampleComparison(n), "the numbers"); err != nil {
			t.Fatal(err)
		}
	}
	sent := d.all()
	if len(sent) != 2 || d.syncs != 2 || sent[0].DisplayID == "" || sent[0].DisplayID != sent[1].DisplayID || sent[0].Data["text/plain"] != "the numbers" {
		t.Fatalf("sent %v, %d syncs", sent, d.syncs)
	}
	if b, ok := sent[1].Data["image/png"].([]byte); !ok || len(b) < 1000 {
		t.Errorf("no picture: %T", sent[1].Data["image/png"])
	}
	var out bytes.Buffer
	if err := showComparison(Options{Out: &out})(sampleComparison(1), ""); err != nil || out.Len() > 0 {
		t.Errorf("outside of a notebook it wrote %q (%v)", out.String(), err)
	}
}
