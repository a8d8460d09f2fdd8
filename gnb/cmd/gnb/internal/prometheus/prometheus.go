// Package prometheus writes what the monitor measures in the text format of Prometheus.
package prometheus

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb/monitor"
)

// metric is one of Prometheus' metrics with all its samples: names end in their base unit, and those of
// totals in _total.
type metric struct {
	name, kind, help string
	samples          []metricSample
}

type metricSample struct {
	labels []string // name, value, name, value, …
	value  float64
}

// add adds a sample, unless the figure is unknown.
func (m *metric) add(v monitor.Value, labels ...string) {
	if v.Known() {
		m.samples = append(m.samples, metricSample{labels, float64(v)})
	}
}

// Text returns a sample in Prometheus' text format, version 0.0.4. It omits unknown
// figures.
func Text(s *monitor.Sample) string {
	var b strings.Builder
	for _, m := range append(hostMetrics(&s.Host), gpuMetrics(s.GPUs)...) {
		if len(m.samples) == 0 {
			continue
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for _, x := range m.samples {
			b.WriteString(m.name)
			for i := 0; i+1 < len(x.labels); i += 2 {
				b.WriteString([]string{"{", ","}[min(i, 1)])
				fmt.Fprintf(&b, `%s="%s"`, x.labels[i], labelEscapes.Replace(x.labels[i+1]))
			}
			if len(x.labels) > 0 {
				b.WriteByte('}')
			}
			b.WriteString(" " + strconv.FormatFloat(x.value, 'g', -1, 64) + "\n")
		}
	}
	return b.String()
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func hostMetrics(h *monitor.Host) []metric {
	var out []metric
	one := func(name, kind, help string, v monitor.Value) {
		m := metric{name: "graphnb_host_" + name, kind: kind, help: help}
		m.add(v)
		out = append(out, m)
	}
	one("cpu_seconds_total", "counter", "Processor time used: the machine's, or the control group's where that is limited.", h.Totals.CPUSeconds)
	one("cpu_utilization_ratio", "gauge", "Share of the usable cores that was busy.", h.CPU)
	one("cpu_throttled_ratio", "gauge", "Share of time in which the control group's limit held it back.", h.CPUThrottled)
	if h.Cores > 0 {
		one("cpu_cores", "gauge", "Cores that may be used.", monitor.Value(h.Cores))
	}
	if h.MemoryTotal == 0 {
		return out // the host could not be read
	}
	one("memory_used_bytes", "gauge", "Memory in use, without what only caches files.", monitor.Value(h.MemoryUsed))
	one("memory_size_bytes", "gauge", "Memory that may be used.", monitor.Value(h.MemoryTotal))
	one("swap_used_bytes", "gauge", "Swap space in use.", monitor.Value(h.SwapUsed))
	one("disk_read_bytes_total", "counter", "Bytes read from all disks.", monitor.Value(h.Totals.DiskRead))
	one("disk_written_bytes_total", "counter", "Bytes written to all disks.", monitor.Value(h.Totals.DiskWrite))
	one("disk_busy_ratio", "gauge", "Share of time in which the busiest disk was in use.", h.DiskBusy)
	one("network_receive_bytes_total", "counter", "Bytes received by all network interfaces.", monitor.Value(h.Totals.NetReceive))
	one("network_transmit_bytes_total", "counter", "Bytes sent by all network interfaces.", monitor.Value(h.Totals.NetSend))
	return out
}

// gpuFigures are the metrics with one value per GPU.
var gpuFigures = []struct {
	name, help string
	of         func(g *monitor.GPU) monitor.Value
}{
	{"utilization_ratio", "Share of time in which a kernel ran.", func(g *monitor.GPU) monitor.Value { return g.Utilization }},
	{"memory_busy_ratio", "Share of time in which memory was read or written.", func(g *monitor.GPU) monitor.Value { return g.MemoryBusy }},
	{"memory_used_bytes", "Memory in use.", func(g *monitor.GPU) monitor.Value { return g.MemoryUsed }},
	{"memory_size_bytes", "Memory that there is.", func(g *monitor.GPU) monitor.Value { return g.MemoryTotal }},
	{"memory_runs_bytes", "Memory that workers of GraphNB have.", func(g *monitor.GPU) monitor.Value { return g.MemoryOf("") }},
	{"temperature_celsius", "Temperature.", func(g *monitor.GPU) monitor.Value { return g.TemperatureC }},
	{"power_watts", "Power drawn.", func(g *monitor.GPU) monitor.Value { return g.PowerW }},
	{"power_limit_watts", "Power limit that is enforced.", func(g *monitor.GPU) monitor.Value { return g.PowerLimitW }},
	{"clock_hertz", "Clock of the multiprocessors.", func(g *monitor.GPU) monitor.Value { return 1e6 * g.ClockMHz }},
	{"clock_max_hertz", "Highest clock of the multiprocessors.", func(g *monitor.GPU) monitor.Value { return 1e6 * g.ClockMaxMHz }},
	{"memory_clock_hertz", "Clock of the memory.", func(g *monitor.GPU) monitor.Value { return 1e6 * g.MemoryClockMHz }},
	{"pcie_receive_bytes_per_second", "Bytes a second from the bus.", func(g *monitor.GPU) monitor.Value { return g.PCIeReceive }},
	{"pcie_transmit_bytes_per_second", "Bytes a second to the bus.", func(g *monitor.GPU) monitor.Value { return g.PCIeSend }},
	{"nvlink_receive_bytes_per_second", "Bytes a second from all NVLinks.", func(g *monitor.GPU) monitor.Value { return g.NVLinkReceive }},
	{"nvlink_transmit_bytes_per_second", "Bytes a second to all NVLinks.", func(g *monitor.GPU) monitor.Value { return g.NVLinkSend }},
}

func gpuMetrics(gpus []monitor.GPU) []metric {
	up := metric{name: "graphnb_gpu_up", kind: "gauge", help: "1 where the GPU was read without an error, else 0."}
	throttled := metric{name: "graphnb_gpu_throttled", kind: "gauge", help: "1 for each reason why clocks are lower than they could be."}
	processes := metric{name: "graphnb_gpu_process_memory_bytes", kind: "gauge", help: "Memory that a process has."}
	used := metric{name: "graphnb_gpu_instance_memory_used_bytes", kind: "gauge", help: "Memory in use of a part of a divided GPU (MIG)."}
	size := metric{name: "graphnb_gpu_instance_memory_size_bytes", kind: "gauge", help: "Memory of a part of a divided GPU (MIG)."}
	var out []metric
	for _, f := range gpuFigures {
		m := metric{name: "graphnb_gpu_" + f.name, kind: "gauge", help: f.help}
		for i := range gpus {
			m.add(f.of(&gpus[i]), gpuLabels(&gpus[i])...)
		}
		out = append(out, m)
	}
	for i := range gpus {
		g := &gpus[i]
		labels := gpuLabels(g)
		with := func(more ...string) []string { return append(labels[:len(labels):len(labels)], more...) }
		ok := monitor.Value(1)
		if g.Error != "" {
			ok = 0
		}
		up.add(ok, labels...)
		for _, why := range g.Throttled {
			throttled.add(1, with("reason", why)...)
		}
		for _, p := range g.Processes {
			processes.add(p.Memory, with("pid", strconv.Itoa(p.PID), "process", p.Name, "run", p.Run)...)
		}
		for _, m := range g.Instances {
			l := with("instance", strconv.Itoa(m.Index), "instance_uuid", m.UUID)
			used.add(m.MemoryUsed, l...)
			size.add(m.MemoryTotal, l...)
		}
	}
	return append(out, up, throttled, processes, used, size)
}

func gpuLabels(g *monitor.GPU) []string {
	return []string{"gpu", strconv.Itoa(g.Index), "uuid", g.UUID, "name", g.Name}
}
