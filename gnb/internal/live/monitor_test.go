package live

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/testneed"
)

// aMachine returns n seconds of a machine with GPUs: the second GPU is slowed down, the third falls
// off the bus in the middle, and the fourth is divided.
func aMachine(n, gpus int) Monitor {
	m := Monitor{Title: "monitor", State: screen.Running, Elapsed: time.Duration(n) * time.Second, Run: "20261121-a"}
	for i := range n {
		x := float64(i) / 10
		s := machine.Sample{Time: time.Unix(int64(i), 0), Host: machine.Host{
			CPU: machine.Value(0.5 + 0.4*math.Sin(x)), Cores: 16, MemoryUsed: 20<<30 + int64(i)<<24, MemoryTotal: 64 << 30, CPUThrottled: machine.Unknown(),
			DiskRead: machine.Value(3e8 * math.Abs(math.Cos(x/3))), DiskWrite: 2e7, DiskBusy: 0.4, NetReceive: 1e6, NetSend: machine.Value(2e6 + 1e6*math.Sin(x)),
		}}
		if i == 0 {
			s.Host.CPU, s.Host.DiskRead, s.Host.NetSend = machine.Unknown(), machine.Unknown(), machine.Unknown()
		}
		for k := range gpus {
			g := machine.Blank(k)
			g.Name, g.UUID = "NVIDIA H100 80GB HBM3", "GPU-"+strings.Repeat("x", k)
			if k == 2 && i > n/2 {
				g.Error = "the GPU has fallen off the bus"
				s.GPUs = append(s.GPUs, g)
				continue
			}
			g.Utilization, g.MemoryBusy = machine.Value(0.5+0.45*math.Sin(x+float64(k))), 0.3
			g.MemoryUsed, g.MemoryTotal = machine.Value(float64(20+8*k)*(1<<30)), 80<<30
			g.TemperatureC, g.PowerW, g.PowerLimitW = machine.Value(55+k), machine.Value(300+100*math.Sin(x/2)+float64(40*k)), 700
			g.ClockMHz, g.ClockMaxMHz, g.MemoryClockMHz = 1755, 1980, 2619
			g.PCIeReceive, g.PCIeSend, g.NVLinkReceive, g.NVLinkSend = 5.1e9, 2.2e9, 41e9, 39e9
			g.Processes = []machine.Process{{PID: 4242, Name: "cell", Memory: machine.Value(float64(18+8*k) * (1 << 30)), Run: "20261121-a", Rank: k}}
			switch k {
			case 1:
				g.Throttled = []string{"power cap"}
				g.Processes = append(g.Processes, machine.Process{PID: 99, Name: "<python>", Memory: machine.Unknown()})
			case 3:
				g.Utilization, g.Processes = machine.Unknown(), nil
				g.Instances = []machine.Instance{{Index: 2, GPU: 9, UUID: "MIG-3-2", Name: "1g.10gb", MemoryUsed: 1 << 30, MemoryTotal: 10 << 30}}
			}
			s.GPUs = append(s.GPUs, g)
		}
		m.Samples = append(m.Samples, s)
	}
	return m
}

// The test draws machines of all kinds. If GNB_LOOK names a directory, the pictures are written
// there for review.
func TestLookMonitor(t *testing.T) {
	testneed.NotShort(t, "it draws a whole page")
	dir := os.Getenv("GNB_LOOK")
	if dir == "" {
		dir = t.TempDir()
	}
	for name, m := range map[string]Monitor{
		"gpus": aMachine(150, 4), "host": aMachine(600, 0), "many": aMachine(20000, 12), "young": aMachine(2, 2), "one": aMachine(1, 1), "none": {Title: "monitor"},
	} {
		pic, err := MonitorPNG(m)
		screentest.CheckPicture(t, "monitor-"+name, func() (chart.Picture, error) { return pic, err })
		if rows := pic.Height / 200; rows != 1+min(len(m.gpus()), 1) {
			t.Errorf("%s: the picture has the height %d", name, pic.Height)
		}
		d, err := m.drawing()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		screentest.Put(t, filepath.Join(dir, "monitor-"+name+".html"), []byte(screentest.Page(monitorHTML("id", &m, d, ""))))
	}
}

// In a cell there is one output, which changes, and at the end a picture and a table.
func TestMonitorCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &screentest.Tape{}
		sink := NewMonitor(screen.Options{Display: d})
		m := aMachine(60, 4)
		m.Samples[59].Note = "something <b>odd</b>"
		sink.Update(m)
		for len(d.All()) == 0 {
			time.Sleep(time.Millisecond)
		}
		live := screentest.HTMLOf(d.All()[0])
		text := screentest.CheckHTML(t, live)
		for _, want := range []string{
			"monitor", "running", "0 NVIDIA H100", "33 %", "(this run 18.0 GiB)", "of 700 W", "1755 of 1980 MHz", "slowed: power cap",
			"PCIe in 5.10 GB/s out 2.20 GB/s", "NVLink in 41.0 GB/s", "worker 1 of 20261121-a 26.0 GiB", "<python> 99", "fallen off the bus", "GPU 3:2  1g.10gb  MIG-3-2",
			"of 16 cores", "something <b>odd</b>",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the panel lacks %q:\n%s", want, text)
			}
		}
		if n := strings.Count(live, "data:image/svg+xml"); n != 1 {
			t.Errorf("%d pictures in the panel", n)
		}
		m = aMachine(61, 4)
		m.State = screen.Done
		if err := sink.Close(m); err != nil {
			t.Fatal(err)
		}
		out := d.Outputs()
		if len(out) != 2 {
			t.Fatalf("%d outputs remain, want a picture and a table", len(out))
		}
		if _, ok := out[0].Data[protocol.MIMEImagePNG].([]byte); !ok || !strings.Contains(screentest.PlainOf(out[0]), "GPU 0") {
			t.Errorf("the first output is %v", out[0].Data)
		}
		if text := screentest.CheckHTML(t, screentest.HTMLOf(out[1])); !strings.Contains(text, "done") || strings.Contains(screentest.HTMLOf(out[1]), "<img") {
			t.Errorf("the table says\n%s", text)
		}
		sink.Update(aMachine(5, 1))
		if n := len(d.All()); n != len(out)+1 {
			t.Errorf("after an update at the end there are %d outputs", n)
		}
	})
}

// A run's panel has a line per GPU, its progress bar shows the GPUs' mean, and its final table
// shows the figures of each GPU.
func TestGPUsInThePanel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sampleRun(1000, 2, 0.5, screen.Running)
		m := aMachine(60, 3)
		for _, g := range m.gpus() {
			s.GPUs = append(s.GPUs, GPU{GPU: g, Run: "20261121-a", Sum: "half <busy>"})
		}
		d := &screentest.Tape{}
		sink := New(screen.Options{Display: d})
		sink.Update(s)
		for len(d.All()) == 0 {
			time.Sleep(time.Millisecond)
		}
		text := screentest.CheckHTML(t, screentest.HTMLOf(d.All()[0]))
		for _, want := range []string{"0 NVIDIA H100", "33 %", "20.0 GiB of 80.0 GiB (this run 18.0 GiB)", "319 of 700 W", "slowed: power cap", "fallen off the bus"} {
			if !strings.Contains(text, want) {
				t.Errorf("the panel lacks %q:\n%s", want, text)
			}
		}
		if strings.Contains(text, "NVLink") || strings.Contains(text, "<python>") {
			t.Error("the panel of a run shows figures that belong only to the monitor")
		}
		if bar := barLine(screen.Style{}, &s, 200); !strings.Contains(bar, "GPU 55 %") {
			t.Errorf("the bar shows %q", bar)
		}
		s.State = screen.Done
		if err := sink.Close(s); err != nil {
			t.Fatal(err)
		}
		out := d.Outputs()
		if text := screentest.CheckHTML(t, screentest.HTMLOf(out[len(out)-1])); strings.Count(text, "half <busy>") != 3 {
			t.Errorf("the table says\n%s", text)
		}
		if text := screentest.PlainOf(out[len(out)-1]); !strings.Contains(text, "GPU 2 ") {
			t.Errorf("the table says\n%s", text)
		}
	})
}

// A terminal shows lines that fit its width and change in place; a pipe gets a line every few
// seconds.
func TestMonitorTerminal(t *testing.T) {
	m := aMachine(60, 4)
	for _, w := range []int{200, 120, 72, 40, 20} {
		for _, ascii := range []bool{false, true} {
			lines := monitorLines(&m, screen.Style{ASCII: ascii}, w)
			if len(lines) < 6 {
				t.Errorf("%d lines", len(lines))
			}
			for _, l := range lines[1:] {
				if n := screen.Width(l); n > max(w, 39) { // the gauges need a minimum width
					t.Errorf("a line has %d columns, the terminal %d: %q", n, w, l)
				}
				if ascii && strings.ContainsAny(l, "━─▁▂▃▄▅▆▇█") {
					t.Errorf("not suitable for an ASCII terminal: %q", l)
				}
			}
		}
	}
	var b bytes.Buffer
	rows := 40
	term := &monitorTerminal{Block: screen.Block{W: &b, Size: func() (int, int) { return 100, rows }}}
	for range 2 {
		if err := term.frame(screen.Frame{}, &m); err != nil {
			t.Fatal(err)
		}
	}
	n := len(monitorLines(&m, screen.Style{}, 99))
	if up := fmt.Sprintf("\x1b[%dA\r", n); strings.Count(b.String(), up) != 1 || strings.Count(b.String(), "\n") != 2*n {
		t.Errorf("the second frame does not move up %d lines:\n%q", n, b.String())
	}
	rows = 6
	b.Reset()
	if err := term.frame(screen.Frame{}, &m); err != nil || strings.Count(b.String(), "\n") != rows-1 || !strings.Contains(b.String(), fmt.Sprintf("and %d more lines", n-rows+2)) {
		t.Errorf("in a terminal of %d rows (%v):\n%q", rows, err, b.String())
	}
	b.Reset()
	plain := &monitorPlain{out: &b, every: 5 * time.Second}
	for i := 1; i <= 60; i++ {
		part := m
		part.Samples = m.Samples[:i]
		if err := plain.frame(screen.Frame{Last: i == 60}, &part); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Count(b.String(), "\n"); lines != 13 || !strings.Contains(b.String(), "GPU 1 ") || !strings.Contains(b.String(), "GPU 2: the GPU has fallen off the bus") {
		t.Errorf("the output has %d lines for a minute:\n%s", lines, b.String())
	}
}

// An impossible figure, for example from a faulty library, is drawn at the axis: drawing it far
// below would take minutes.
func TestMonitorDrawsNothingFarOutside(t *testing.T) {
	m := aMachine(1, 2)
	for i := range m.Samples {
		m.Samples[i].GPUs[0].Utilization, m.Samples[i].GPUs[1].PowerW = -1e12, -1e12
	}
	if _, err := MonitorPNG(m); err != nil {
		t.Error(err)
	}
}

// A curve has a gap where the figure is missing, and means where there are more samples than
// columns.
func TestMonitorCurve(t *testing.T) {
	m := aMachine(1000, 0)
	for i := 300; i < 600; i++ {
		m.Samples[i].Host.NetReceive = machine.Unknown()
	}
	curve := m.curve(func(s *machine.Sample) machine.Value { return s.Host.NetReceive }, 1e-6)
	if len(curve) > monitorPoints || curve[len(curve)-1].X != 999 {
		t.Errorf("the curve has %d points up to %v", len(curve), curve[len(curve)-1])
	}
	for _, q := range curve {
		if gap := q.X >= 309 && q.X < 600; gap != math.IsNaN(q.Y) || !gap && q.Y != 1 {
			t.Errorf("the value is %v at %v s", q.Y, q.X)
		}
	}
}

// BenchmarkMonitorFrame measures the cost of one second's update for a machine with eight GPUs,
// after an hour.
func BenchmarkMonitorFrame(b *testing.B) {
	m := aMachine(machine.MaxSamples, 8)
	for b.Loop() {
		d, err := m.drawing()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(monitorHTML("id", &m, d, ""))), "bytes")
	}
}
