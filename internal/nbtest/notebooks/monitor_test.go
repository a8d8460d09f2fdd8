package notebooks_test

import (
	"bytes"
	"image"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
	"github.com/graphnb/graphnb/internal/nvmlstat/fakenvml"
)

// The monitor's notebook runs in a real kernel, on a machine with two GPUs that a library in NVML's shape makes
// up: the kernel's own gnb is the helper that reads them.
func TestMonitorNotebook(t *testing.T) {
	lib := fakenvml.Build(t)
	lib.Say("gpus 2", "throttle 1 4")
	env := nbtest.Setup(t)
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/monitor.ipynb", nbtest.Options{Dir: dir, Env: append(lib.Env(), "GNB_SMALL=1", "GNB_RUNS="+filepath.Join(dir, "runs"))})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if a := percent(t, r, "accuracy"); a < 60 {
		t.Errorf("an accuracy of %v %%", a)
	}
	for _, want := range []string{
		`watched for [\d.ms]+s: CPU \d+ % `, `GPU 0 \(NVIDIA Fake 0\): \d+ % .* busy, up to 9\.8 GiB of 74\.5 GiB`, `GPU 1 .*throttled \(power cap\) (9\d|100) % of the time`,
		`idle: \d+ of \d+ samples; the hottest GPU had [56]\d °C`,
	} {
		if !regexp.MustCompile(want).MatchString(r.Stdout()) {
			t.Errorf("the cells did not write %q:\n%s", want, r.Stdout())
		}
	}
	panels := map[int]int{}
	for id, d := range r.Displays {
		if strings.HasPrefix(id, "gnb_") {
			panels[d.Cell]++
			if d.Displays != 1 || d.DistinctUpdates < 2 {
				t.Errorf("cell %d: a panel was shown anew %d times and changed %d times, want once and at least 2", d.Cell, d.Displays, d.DistinctUpdates)
			}
		}
	}
	if len(panels) != 2 {
		t.Errorf("panels by cell: %v; want the run's and the monitor's in one, and another monitor's", panels)
	}
	cells := cellFigures(t, r.Executed)
	for i, want := range map[int]int{3: 2, 5: 1, 7: 0} {
		if len(cells[i]) != want {
			t.Errorf("cell %d keeps %d figures, want %d", i, len(cells[i]), want)
		}
		for _, f := range cells[i] {
			img, _, err := image.Decode(bytes.NewReader(f))
			if err != nil {
				t.Fatalf("cell %d: %v", i, err)
			}
			if n := nbtest.Drawn(img); n < 1000 {
				t.Errorf("cell %d: %d pixels differ from its background, want more than 1000", i, n)
			}
		}
	}
}
