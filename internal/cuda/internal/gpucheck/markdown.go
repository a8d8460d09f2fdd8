package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// markdown returns the report as Markdown.
func (r report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# GPU check, %s, %s\n\nCommit %s.\n", r.Date.Format("2006-01-02"), r.Device, r.Commit)
	if r.Interpreted {
		b.WriteString("\nThis machine has no GPU: all runs used the interpreter of the kernels, and no time in this report is that of a GPU.\n")
	}
	table := func(heads ...string) {
		fmt.Fprintf(&b, "\n| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	}
	table("piece", "s", "left out or failed")
	for _, p := range r.Pieces {
		notes := slices.Clone(p.LeftOut)
		if p.Failed != "" {
			notes = append(notes, p.Failed)
		}
		fmt.Fprintf(&b, "| %s | %.0f | %s |\n", p.Name, p.Seconds, strings.Join(notes, "; "))
	}
	if all := slices.Concat(r.Suites, r.Sanitizer); len(all) > 0 {
		table("tests", "passed", "failed", "skipped", "s")
		for _, s := range all {
			cut := ""
			if s.Cut {
				cut = ", then cut"
			}
			fmt.Fprintf(&b, "| %s | %d%s | %d | %d | %.1f |\n", s.Name, s.Passed, cut, len(s.Failed), s.Skipped, s.Seconds)
		}
	}
	if len(r.Parity) > 0 {
		table("training on the device", "as on the CPU")
		for _, p := range r.Parity {
			fmt.Fprintf(&b, "| %s | %s |\n", p.Name, p.verdict())
		}
	}
	if len(r.Accuracy) > 0 {
		table("test accuracy", "device", "s", "CPU", "s", "")
		for _, a := range r.Accuracy {
			fmt.Fprintf(&b, "| %s | %.4f | %.1f | %.4f | %.1f | %s |\n", a.Name, a.Device, a.DeviceSeconds, a.CPU, a.CPUSeconds, a.Failed)
		}
	}
	if len(r.Runs)+len(r.Peers) > 0 {
		table("epoch of", "median s", "steps", "sampled edges")
		for _, t := range r.Runs {
			fmt.Fprintf(&b, "| %s | %.3f %s | %d | %d |\n", t.Name, t.Median, t.Failed, t.Steps, t.Edges)
		}
		for _, p := range r.Peers {
			if p.Why != "" {
				fmt.Fprintf(&b, "| %s | not measured: %s | | |\n", p.Name, p.Why)
				continue
			}
			fmt.Fprintf(&b, "| %s | %.3f | | |\n", p.Name, p.Median)
		}
	}
	for _, p := range r.Profiles {
		fmt.Fprintf(&b, "\n%s: %d steps; a step has %.1f launches, %.1f waits of the host, %.0f bytes fetched; memory was taken %d times. %s\n", p.Name, p.Steps, p.Launches, p.Waits, p.Fetched, p.Takes, p.Failed)
		table("kernel", "a step", "launches", "µs", "% of memory's peak", "% of compute's")
		for _, k := range p.Kernels {
			fmt.Fprintf(&b, "| %s | %.2f | %d | %.1f | %.0f | %.0f |\n", k.Name, k.PerStep, k.Launches, k.Microseconds, k.Memory, k.Compute)
		}
	}
	if rates := r.bandwidths(); rates != "" {
		table("bandwidth of", "GB/s")
		b.WriteString(rates)
	}
	if len(r.Measures) > 0 {
		table("benchmark", "")
		for _, m := range r.Measures {
			var values []string
			for _, u := range slices.Sorted(maps.Keys(m.Values)) {
				values = append(values, fmt.Sprintf("%.4g %s", m.Values[u], u))
			}
			fmt.Fprintf(&b, "| %s | %s%s |\n", m.Name, strings.Join(values, ", "), m.Failed)
		}
	}
	return b.String()
}
