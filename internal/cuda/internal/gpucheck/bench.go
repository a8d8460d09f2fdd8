package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// measure is the result of a Go benchmark.
type measure struct {
	Name   string             `json:"name"`
	Values map[string]float64 `json:"values,omitempty"` // by unit
	Failed string             `json:"failed,omitempty"` // output of a program that failed before printing all results
}

var benchLine = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// bench runs the benchmarks of all test binaries: operations compared with the measured bandwidth
// of a copy on this device, copies to and from the host, launches, sampling, gathering.
func (c *checker) bench(r *report) error {
	all, err := c.binaries()
	if err != nil {
		return err
	}
	env, benchtime := []string{"GNB_GPU_CHECK=1"}, "200ms"
	if c.interpreted {
		env, benchtime, all = nil, "1x", all[:1] // only the benchmark of the driver's calls; on the interpreter the others take minutes
	}
	for i, b := range all {
		share := time.Until(c.deadline) / time.Duration(len(all)-i) // an equal share of the remaining time
		text, err := c.output(env, max(share, least), b, "-test.run=^$", "-test.bench=.", "-test.benchtime="+benchtime)
		if errors.Is(err, errTime) {
			c.leaveOut("benchmarks of "+b, err.Error())
			continue
		}
		found := parseBenchmarks(text)
		fmt.Printf("%d benchmarks of %s\n", len(found), b)
		if _, cut := errors.AsType[overtime](err); cut {
			c.leaveOut("the last benchmarks of "+b, err.Error())
		} else if err != nil {
			found = append(found, measure{Name: b, Failed: why(err, text)})
			fmt.Println(found[len(found)-1].Failed)
		}
		r.Measures = append(r.Measures, found...)
		if err := c.save(); err != nil {
			return err
		}
	}
	return nil
}

func parseBenchmarks(text string) []measure {
	var all []measure
	for _, m := range benchLine.FindAllStringSubmatch(text, -1) {
		b := measure{Name: m[1], Values: map[string]float64{}}
		f := strings.Fields(m[2])
		for i := 0; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				b.Values[f[i+1]] = v
			}
		}
		all = append(all, b)
	}
	return all
}

// bandwidths returns the measured bandwidths of the device and of its bus, in GB/s.
func (r report) bandwidths() (text string) {
	for _, m := range r.Measures {
		rate, name := m.Values["GB/s"], m.Name
		if rate == 0 {
			rate = m.Values["MB/s"] / 1e3
		}
		switch strings.TrimPrefix(name, "Benchmark") {
		case "Operations/copy":
			name = "a copy on the device (read and written)"
		case "Copy/from_pinned":
			name = "from pinned memory of the host"
		case "Copy/to_pinned":
			name = "to pinned memory of the host"
		default:
			continue
		}
		if rate > 0 {
			text += fmt.Sprintf("| %s | %.4g |\n", name, rate)
		}
	}
	return text
}
