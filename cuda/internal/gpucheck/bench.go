package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
)

// measure is a line of a Go benchmark.
type measure struct {
	Name   string             `json:"name"`
	Values map[string]float64 `json:"values"` // by unit
}

var benchLine = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// benchmarks runs those of a test binary.
func (c checker) benchmarks(binary string) []measure {
	text, err := c.output([]string{"GNB_GPU_CHECK=1"}, 5*time.Minute, binary, "-test.run=^$", "-test.bench=.", "-test.benchtime=200ms")
	if err != nil {
		fmt.Printf("benchmarks of %s: %v\n", binary, err)
	}
	return parseBenchmarks(text)
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

// training is the time of epochs.
type training struct {
	Name    string    `json:"name"`
	Seconds []float64 `json:"epoch_seconds"`
	Median  float64   `json:"median_seconds"`
	Edges   int64     `json:"sampled_edges"`
	Failed  string    `json:"failed,omitempty"`
}

// epochs times training with the settings of the README's tables, on graphs of the same size and make, and
// PyTorch Geometric on the same graph where a Python here has it.
func (c checker) epochs() ([]training, []peer) {
	const products = "planted?nodes=2449029&classes=47&features=100&degree=25.3"
	settings := []string{"--model", "sage", "--fanout", "15,10,5", "--hidden", "256", "--batch", "1024", "--eval", "none", "--checkpoint-every", "-1"}
	pinned := []string{"GNB_CUDA_GRAPH=pinned", "GNB_CUDA_FEATURES=pinned"}
	arxiv := "planted?nodes=169343&classes=40&features=128&degree=7"
	var all []training
	for _, t := range []struct {
		name, data string
		epochs     int
		slow       bool
		env, args  []string
	}{
		{"arxiv-like, in memory", arxiv, 5, false, nil, nil},
		{"arxiv-like, zero copy", arxiv, 5, false, pinned, nil},
		{"products-like, in memory", products, 4, true, nil, nil},
		{"products-like, zero copy", products, 4, true, pinned, nil},
		{"products-like, bf16", products, 4, true, nil, []string{"--precision", "bf16"}},
	} {
		if t.slow && c.quick {
			continue
		}
		args := slices.Concat([]string{t.data}, settings, t.args, []string{"--workers", "1", "--epochs", strconv.Itoa(t.epochs)})
		_, r, err := c.losses("cuda", t.env, args...)
		if err != nil {
			r.Failed = err.Error()
		}
		r.Name = t.name
		fmt.Printf("training of %s: epochs %.3f s %s\n", r.Name, r.Seconds, r.Failed)
		all = append(all, r)
	}
	of := map[string]string{"arxiv-like": arxiv}
	if !c.quick {
		of["products-like"] = products
	}
	var others []peer
	for _, name := range slices.Sorted(maps.Keys(of)) {
		dir := filepath.Join(c.scratch, name)
		if text, err := c.output(nil, 9*time.Minute, "gnb", "data", "generate", of[name], dir); err != nil {
			others = append(others, peer{Name: name, Why: fmt.Sprintf("%v: %s", err, strings.Join(strings.Fields(text), " "))})
			continue
		}
		others = append(others, c.peers(name, dir, 4))
	}
	return all, others
}

// losses trains and returns each epoch's loss and time.
func (c checker) losses(device string, env []string, args ...string) ([]float64, training, error) {
	var r training
	runs, err := os.MkdirTemp("", "gpucheck-")
	if err != nil {
		return nil, r, err
	}
	defer os.RemoveAll(runs)
	args = append([]string{"train"}, append(args, "--device", device, "--json", "--resume", "never")...)
	text, err := c.output(append(env, envknob.Runs.Name+"="+runs), 9*time.Minute, "gnb", args...)
	var losses []float64
	for line := range strings.Lines(text) {
		var e struct {
			Event        string    `json:"event"`
			Loss         *float64  `json:"loss"`
			EpochSeconds []float64 `json:"epoch_seconds"`
			SampledEdges int64     `json:"sampled_edges"`
			Device       string    `json:"device"`
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		switch {
		case e.Event == "epoch" && e.Loss != nil:
			losses = append(losses, *e.Loss)
		case e.Event == "result":
			r.Seconds, r.Edges = e.EpochSeconds, e.SampledEdges
			if e.Device != device && err == nil {
				err = fmt.Errorf("it ran on %s", e.Device)
			}
		}
	}
	if err != nil {
		const most = 600
		return losses, r, fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(text[max(0, len(text)-most):]), " "))
	}
	r.Median = median(r.Seconds)
	return losses, r, nil
}

// median is that of all epochs but the first, which compiles kernels and starts processes; 0 without others.
func median(seconds []float64) float64 {
	if len(seconds) < 2 {
		return 0
	}
	warm := slices.Sorted(slices.Values(seconds[1:]))
	return warm[len(warm)/2]
}

// verdict is how a run on the device compares.
func (p parity) verdict() string {
	switch {
	case p.Failed != "":
		return p.Failed
	case len(p.Device) == 0:
		return "not possible here"
	}
	return "yes"
}

// markdown is the report for people.
func (r report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# GPU check, %s, %s\n\n| tests | passed | failed | skipped | s |\n|---|---|---|---|---|\n", r.Date.Format("2006-01-02"), r.Device)
	for _, s := range slices.Concat(r.Suites, r.Sanitizer) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %.1f |\n", s.Name, s.Passed, len(s.Failed), s.Skipped, s.Seconds)
	}
	if r.Interpreted {
		b.WriteString("\nThere is no GPU here: the tests ran on the interpreter of the kernels, and nothing was measured.\n")
		return b.String()
	}
	b.WriteString("\n| training on the device | as on the CPU |\n|---|---|\n")
	for _, p := range r.Parity {
		fmt.Fprintf(&b, "| %s | %s |\n", p.Name, p.verdict())
	}
	b.WriteString("\n| epoch of | median s | sampled edges |\n|---|---|---|\n")
	for _, t := range r.Runs {
		fmt.Fprintf(&b, "| %s | %.3f %s | %d |\n", t.Name, t.Median, t.Failed, t.Edges)
	}
	for _, p := range r.Peers {
		if p.Why != "" {
			fmt.Fprintf(&b, "| %s | not measured: %s | |\n", p.Name, p.Why)
			continue
		}
		fmt.Fprintf(&b, "| %s | %.3f | |\n", p.Name, p.Median)
	}
	b.WriteString("\n| benchmark | |\n|---|---|\n")
	for _, m := range r.Measures {
		var values []string
		units := make([]string, 0, len(m.Values))
		for u := range m.Values {
			units = append(units, u)
		}
		slices.Sort(units)
		for _, u := range units {
			values = append(values, fmt.Sprintf("%.4g %s", m.Values[u], u))
		}
		fmt.Fprintf(&b, "| %s | %s |\n", m.Name, strings.Join(values, ", "))
	}
	return b.String()
}
