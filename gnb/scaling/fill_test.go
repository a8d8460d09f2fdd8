package scaling

import (
	"slices"
	"strings"
	"testing"
)

// The ideal counts computing units: cores, up to the number that exists, or one GPU per worker,
// independent of the number of threads.
func TestScalingIdeal(t *testing.T) {
	measured := func(rates ...float64) (out [][]Point) {
		for i, r := range rates {
			at := func(r float64) Point {
				return Point{Workers: 1 << i, Batch: 64, Rate: r, Seconds: 64 / r, Stages: map[string]float64{"forward": 48 / r, "idle": 16 / r}, Edges: 100 + float64(i), UniqueEdges: 100}
			}
			out = append(out, []Point{at(r), at(r * 0.5), at(r * 1.5)}) // the first point is the median
		}
		return out
	}
	for _, tc := range []struct {
		name  string
		c     Curve
		ideal []float64
		texts []string
	}{
		{"cores", Curve{Threads: 2, Cores: 5, Device: "cpu"}, []float64{1, 2, 2.5}, []string{"5 cores (cpu)", "workers  cores", "4 workers: ", "they share 5 cores"}},
		{"GPUs", Curve{Threads: 4, Cores: 8, Device: "cuda", GPUs: 2}, []float64{1, 2, 2}, []string{"8 cores and 2 GPUs", "workers  GPUs", "they share 2 GPUs"}},
		{"enough GPUs", Curve{Threads: 1, Cores: 2, Device: "cuda", GPUs: 8}, []float64{1, 2, 4}, []string{"2 cores and 8 GPUs"}},
	} {
		c := tc.c
		c.Repeats = 3
		c.fill(measured(100, 180, 200))
		var ideal []float64
		for _, p := range c.Points {
			ideal = append(ideal, p.Ideal)
			if p.Speedup != p.Rate/100 || p.Low != p.Speedup/2 || p.High != 1.5*p.Speedup || p.Efficiency != p.Speedup/p.Ideal || !slices.Equal(p.Rates, []float64{p.Rate, p.Rate / 2, 1.5 * p.Rate}) {
				t.Errorf("%s: %+v", tc.name, p)
			}
		}
		if !slices.Equal(ideal, tc.ideal) {
			t.Errorf("%s: the ideal is %v, want %v", tc.name, ideal, tc.ideal)
		}
		for _, want := range tc.texts {
			if !strings.Contains(c.String(), want) {
				t.Errorf("%s: %q is missing in\n%s", tc.name, want, c)
			}
		}
		if strings.Contains(c.String(), "they share") != (len(tc.texts) > 1) {
			t.Errorf("%s:\n%s", tc.name, c)
		}
		if p := c.picture(); len(p.Ideal) != 4 || p.Ideal[3].Y != tc.ideal[2] || !strings.HasSuffix(p.Points[1].On, "s") {
			t.Errorf("%s: drawn as %+v", tc.name, p)
		}
		if png, err := c.PNG(); err != nil || len(png) < 1000 {
			t.Errorf("%s: the picture has %d bytes (%v)", tc.name, len(png), err)
		}
	}
}
