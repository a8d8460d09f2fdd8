package gnb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/internal/machine"
)

// FakeHelper is a program that says, as "gnb monitor --helper" does, what two GPUs do: the first is busier
// every time, the second falls off the bus after a while.
func FakeHelper(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gnb")
	text := `#!/bin/sh
echo $$ > $0.pid
echo '{"event":"hello","protocol":1}'
( n=0
while sleep 0.1; do
n=$((n+1))
second='"utilization":0.5,"power_w":100'
[ $n -gt 8 ] && second='"error":"fell off the bus","utilization":null,"power_w":null'
echo '{"event":"gpus","driver":"1","gpus":[{"index":0,"name":"A","utilization":0.'$((n%10))',"memory_used":4e9,"memory_total":8e9,"temperature_c":60,"power_w":200,"throttled":["power cap"],"processes":[{"pid":7,"name":"w","memory":3e9,"run":"r1"},{"pid":8,"name":"w","memory":1e9,"run":"r2"}]},{"index":1,"name":"B",'$second',"memory_used":null,"memory_total":null,"temperature_c":null}]}'
done ) &
loop=$!
cat >/dev/null
kill $loop
`
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// LongReport is the report of n samples, one a second.
func LongReport(n int) *MonitorReport {
	m := &monitored{o: MonitorOptions{Quiet: true}, sink: live.NewMonitor(live.Options{Quiet: true})}
	for i := range n {
		m.add(MonitorSample{Time: time.Unix(int64(i), 0), Host: MonitorHost{CPU: MonitorValue(i%100) / 100}})
	}
	_ = m.sink.Close(m.picture(live.Done))
	return &m.report
}

// A run's GPUs are those on which a worker of it has memory, else those in the workers' order.
func TestGPUsOfARun(t *testing.T) {
	gpus := func(runs ...string) (all []MonitorGPU) {
		for i, r := range runs {
			g := machine.Blank(i)
			if r != "" {
				g.Processes = []MonitorProcess{{PID: 1}, {PID: 2, Run: r}}
			}
			all = append(all, g)
		}
		return all
	}
	for name, c := range map[string]struct {
		all            []MonitorGPU
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

// The panel of a run on GPUs has a line for each of its own, until the run ends; the helper ends with it.
func TestThePanelShowsGPUs(t *testing.T) {
	t.Setenv(envknob.Helper.Name, FakeHelper(t))
	v := &view{l: &launched{run: &Run{Config: Config{ID: "r1", Device: "cuda"}}, device: "cuda", o: LaunchOptions{Workers: 2}}}
	end := v.watchGPUs(t.Context())
	shown := func() []live.GPU {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.snap.GPUs
	}
	for deadline := time.Now().Add(time.Minute); len(shown()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no GPU in the panel")
		}
	}
	// A worker of it computes on the first GPU; the second one has no process.
	if g := shown(); len(g) != 1 || g[0].Name != "A" || g[0].Run != "r1" || !strings.Contains(g[0].Sum, "(runs 2.8 GiB)") || !g[0].Utilization.Known() {
		t.Errorf("%+v", g)
	}
	v.l.run.Config.Device = "cpu" // as one that falls back
	v.takeGPUs(MonitorSample{GPUs: []MonitorGPU{machine.Blank(0)}})
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
		t.Errorf("the helper is left: %v", err)
	}
	// Neither runs on the CPU nor quiet ones start a helper.
	for _, l := range []*launched{{run: &Run{}}, {run: &Run{}, device: "cuda", o: LaunchOptions{Quiet: true}}} {
		(&view{l: l}).watchGPUs(t.Context())()
	}
}
