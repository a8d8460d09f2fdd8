package recorder

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/machine/fakehelper"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A run's GPUs are those on which its workers have memory; if there are none, the first GPUs in the
// order of the workers.
func TestGPUsOfARun(t *testing.T) {
	gpus := func(of ...string) (all []machine.GPU) {
		for i, r := range of {
			g := machine.Blank(i)
			if r != "" {
				g.Processes = []machine.Process{{PID: 1}, {PID: 2, Run: r}}
			}
			all = append(all, g)
		}
		return all
	}
	for name, c := range map[string]struct {
		all            []machine.GPU
		first, workers int
		chosen         bool
		want           string
	}{
		"its own":           {gpus("a", "b", "b", ""), 0, 2, false, "1 2"},
		"of nobody":         {gpus("", "", "", ""), 0, 2, false, "0 1"},
		"a later trial's":   {gpus("a", "", "", ""), 2, 1, false, "2"},
		"chosen":            {gpus("a", "", "", ""), 0, 1, true, "0 1 2 3"},
		"its own of chosen": {gpus("a", "", "b", ""), 0, 1, true, "2"},
		"none":              {nil, 0, 1, false, ""},
	} {
		var got []string
		for _, g := range gpusOfRun(c.all, "b", c.first, c.workers, c.chosen) {
			got = append(got, fmt.Sprint(g.Index))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// Until a run on GPUs ends, its panel has a line for each of its own GPUs. The helper ends with the
// run.
func TestThePanelShowsGPUs(t *testing.T) {
	testneed.Raced(t, "it waits two seconds for samples")
	t.Setenv(envknob.Helper.Name, fakehelper.Make(t))
	rec := &Recorder{run: &runs.Run{Config: runs.Config{ID: "r1", Device: "cuda", Workers: 2}}, panel: &panel{}}
	end := rec.watchGPUs(t.Context())
	shown := func() []live.GPU {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		return rec.panel.snap.GPUs
	}
	for deadline := time.Now().Add(time.Minute); len(shown()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no GPU in the panel")
		}
	}
	// A worker of the run computes on the first GPU; the second GPU has no process.
	if g := shown(); len(g) != 1 || g[0].Name != "A" || g[0].Run != "r1" || !strings.Contains(g[0].Sum, "(runs 2.8 GiB)") || !g[0].Utilization.Known() {
		t.Errorf("%+v", g)
	}
	rec.mu.Lock()
	rec.run.Config.Device = "cpu" // a run that falls back to the CPU
	rec.panel.takeGPUs(rec.run.Config, machine.Sample{GPUs: []machine.GPU{machine.Blank(0)}}, 0)
	rec.mu.Unlock()
	if g := shown(); len(g) != 0 {
		t.Errorf("a run on the CPU shows %+v", g)
	}
	end()
	text, err := os.ReadFile(os.Getenv(envknob.Helper.Name) + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("the helper still runs: %v", err)
	}
	// Runs on the CPU and quiet runs start no helper.
	for _, rec := range []*Recorder{{run: &runs.Run{Config: runs.Config{Device: "cpu"}}}, {run: &runs.Run{Config: runs.Config{Device: "cuda"}}, o: Options{Quiet: true}}} {
		rec.watchGPUs(t.Context())()
	}
}
