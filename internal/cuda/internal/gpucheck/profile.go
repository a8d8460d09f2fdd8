package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
)

// profile counts a training step's requests to a device.
type profile struct {
	Name     string         `json:"name"`
	Steps    int            `json:"steps,omitempty"`
	Launches float64        `json:"launches_per_step,omitempty"`
	Waits    float64        `json:"waits_per_step,omitempty"` // waits of the host for the device
	Fetched  float64        `json:"fetched_bytes_per_step,omitempty"`
	Takes    int            `json:"memory_takings,omitempty"` // allocations from the driver, in total
	Kernels  []kernelCounts `json:"kernels,omitempty"`
	Failed   string         `json:"failed,omitempty"`
}

// kernelCounts is a kernel's share: launches per step according to the trace, or, if Nsight Compute
// measured it, launches in the window, time and share of the device's peak.
type kernelCounts struct {
	Name         string  `json:"name"`
	PerStep      float64 `json:"per_step,omitempty"`
	Launches     int     `json:"launches,omitempty"`
	Microseconds float64 `json:"microseconds,omitempty"` // of all launches
	Memory       float64 `json:"memory_percent,omitempty"`
	Compute      float64 `json:"compute_percent,omitempty"`
}

// profile counts the requests of steps, by GNB_CUDA_TRACE, and times kernels with Nsight Compute if
// it is installed.
func (c *checker) profile(r *report) error {
	if !c.trains() {
		return nil
	}
	args := slices.Concat([]string{c.arxivLike()}, c.settings(), []string{"--workers", "1", "--epochs", "2"})
	trace := filepath.Join(c.scratch, "trace")
	p := profile{Name: "arxiv-like, by the trace"}
	if _, _, err := c.losses("cuda", []string{envknob.CUDATrace.Name + "=" + trace}, args...); errors.Is(err, errTime) {
		c.leaveOut(p.Name, err.Error())
		return nil
	} else if err != nil {
		p.Failed = err.Error()
	} else if err := p.read(trace); err != nil {
		p.Failed = err.Error()
	}
	fmt.Printf("%s: %d steps of %.1f launches, %.1f waits, %.0f bytes fetched %s\n", p.Name, p.Steps, p.Launches, p.Waits, p.Fetched, p.Failed)
	r.Profiles = append(r.Profiles, p)
	if err := c.save(); err != nil {
		return err
	}
	ncu, err := exec.LookPath("ncu")
	if err != nil || c.interpreted {
		c.leaveOut("kernels' times", "Nsight Compute (ncu) is not on PATH")
		return nil
	}
	// Other metrics than the time take several passes over each kernel, for which the tool copies all of the device's
	// memory: seconds a kernel for a large graph.
	const seconds = "gpu__time_duration.sum"
	type subject struct{ name, data, metrics string }
	of := []subject{{"arxiv-like", c.arxivLike(), seconds + ",gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed,sm__throughput.avg.pct_of_peak_sustained_elapsed"}}
	if products, err := c.productsLike(); err == nil {
		of = append(of, subject{"products-like", products, seconds})
	} else {
		c.leaveOut("products-like", err.Error())
	}
	// Nsight Compute does not see the kernels of processes that a Go program starts.
	for _, s := range of {
		q := profile{Name: s.name + ", by Nsight Compute"}
		const skipped, counted = "420", "210" // about three steps, after the first five
		text, err := c.output([]string{envknob.Runs.Name + "=" + c.scratch, envknob.InProcess.Name + "=1"}, 2*time.Minute, ncu, slices.Concat([]string{
			"--clock-control", "none", "--csv", "--metrics", s.metrics, "--launch-skip", skipped, "--launch-count", counted,
			filepath.Join(c.dir, c.gnb), "train", s.data,
		}, c.settings(), []string{"--workers", "1", "--epochs", "1", "--device", "cuda", "--resume", "never"})...)
		if errors.Is(err, errTime) {
			c.leaveOut(q.Name, err.Error())
			continue
		}
		if q.Kernels = kernelTimes(text); len(q.Kernels) == 0 {
			q.Failed = why(cmp.Or(err, errNoKernel), text)
			fmt.Println(q.Name, q.Failed)
		}
		r.Profiles = append(r.Profiles, q)
		if err := c.save(); err != nil {
			return err
		}
	}
	return nil
}

var errNoKernel = errors.New("no kernel was measured")

// read counts a trace's entries between the first and the last step: see package cuda's trace.
func (p *profile) read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	counts := map[string]int{}
	var launches, waits, fetched int
	// As of the last completed step, so that later entries do not count.
	type totals struct{ launches, waits, fetched int }
	var at, first totals
	kernels := map[string]int{}
	var atFirst, atLast map[string]int
	s := bufio.NewScanner(f)
	for s.Scan() {
		w := strings.Fields(s.Text())
		if len(w) < 3 {
			continue
		}
		switch w[0] {
		case "launch":
			launches++
			kernels[w[2]]++
			if w[1] == "compute" && strings.HasPrefix(w[2], "adam_") {
				p.Steps++
				at = totals{launches, waits, fetched}
				atLast = maps.Clone(kernels)
				if p.Steps == 1 {
					first, atFirst = at, atLast
				}
			}
		case "wait":
			waits++
		case "fetch":
			if n, err := strconv.Atoi(w[2]); err == nil {
				fetched += n
			}
		case "memory":
			counts[w[1]]++
		}
	}
	p.Takes = counts["taking"]
	if s.Err() != nil || p.Steps < 2 {
		return errors.Join(s.Err(), fmt.Errorf("the trace has %d steps", p.Steps))
	}
	n := float64(p.Steps - 1)
	p.Launches, p.Waits, p.Fetched = float64(at.launches-first.launches)/n, float64(at.waits-first.waits)/n, float64(at.fetched-first.fetched)/n
	for name, all := range atLast {
		if k := all - atFirst[name]; k > 0 {
			p.Kernels = append(p.Kernels, kernelCounts{Name: name, PerStep: float64(k) / n})
		}
	}
	slices.SortFunc(p.Kernels, func(a, b kernelCounts) int {
		return cmp.Or(-cmp.Compare(a.PerStep, b.PerStep), strings.Compare(a.Name, b.Name))
	})
	return nil
}

// kernelTimes returns the times of Nsight Compute's CSV, summed by kernel, the longest first.
func kernelTimes(text string) []kernelCounts {
	start := strings.Index(text, `"ID",`)
	if start < 0 {
		return nil
	}
	var table []string
	for line := range strings.Lines(text[start:]) {
		if strings.HasPrefix(line, `"`) { // the program's own output is between the rows
			table = append(table, line)
		}
	}
	reader := csv.NewReader(strings.NewReader(strings.Join(table, "")))
	reader.FieldsPerRecord, reader.LazyQuotes = -1, true
	rows, _ := reader.ReadAll() // use the rows that can be read
	if len(rows) == 0 {
		return nil
	}
	column := func(name string) int { return slices.Index(rows[0], name) }
	kernel, metric, unit, value := column("Kernel Name"), column("Metric Name"), column("Metric Unit"), column("Metric Value")
	if kernel < 0 || metric < 0 || unit < 0 || value < 0 {
		return nil
	}
	micro := map[string]float64{"nsecond": 1e-3, "ns": 1e-3, "usecond": 1, "us": 1, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6}
	by := map[string]*kernelCounts{}
	for _, row := range rows[1:] {
		if len(row) <= max(kernel, metric, unit, value) {
			continue
		}
		v, err := strconv.ParseFloat(strings.ReplaceAll(row[value], ",", ""), 64)
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(row[kernel], "(")
		k := by[name]
		if k == nil {
			k = &kernelCounts{Name: name}
			by[name] = k
		}
		switch m := row[metric]; {
		case strings.HasPrefix(m, "gpu__time_duration"):
			k.Launches++
			k.Microseconds += v * micro[row[unit]]
		case strings.HasPrefix(m, "gpu__dram_throughput"):
			k.Memory = max(k.Memory, v)
		case strings.HasPrefix(m, "sm__throughput"):
			k.Compute = max(k.Compute, v)
		}
	}
	var all []kernelCounts
	for _, k := range by {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b kernelCounts) int {
		return cmp.Or(-cmp.Compare(a.Microseconds, b.Microseconds), strings.Compare(a.Name, b.Name))
	})
	return all
}
