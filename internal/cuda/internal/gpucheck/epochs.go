package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
)

// training holds the times of epochs.
type training struct {
	Name    string    `json:"name"`
	Seconds []float64 `json:"epoch_seconds"`
	Median  float64   `json:"median_seconds"`
	Edges   int64     `json:"sampled_edges"`
	Steps   int       `json:"steps,omitempty"`
	Failed  string    `json:"failed,omitempty"`

	test, val float64 // accuracies at the end
}

// settings returns the flags for the README's tables.
func (c *checker) settings() []string {
	if c.small() {
		return []string{"--model", "sage", "--fanout", "3,3,2", "--hidden", "16", "--batch", "64", "--eval", "none", "--checkpoint-every", "-1"}
	}
	return []string{"--model", "sage", "--fanout", "15,10,5", "--hidden", "256", "--batch", "1024", "--eval", "none", "--checkpoint-every", "-1"}
}

// arxivLike returns a generated graph of ogbn-arxiv's size.
func (c *checker) arxivLike() string {
	switch {
	case c.interpreted:
		return "planted?nodes=400&classes=4&features=16&degree=5"
	case c.quick:
		return "planted?nodes=20000&classes=40&features=128&degree=7"
	}
	return "planted?nodes=169343&classes=40&features=128&degree=7"
}

// productsLike returns the directory of a graph of ogbn-products' size (bench/productslike), which
// it generates once.
func (c *checker) productsLike() (string, error) {
	name, args := "products-like", []string(nil)
	if c.small() {
		name, args = "products-like-small", []string{"-scale", "9", "-nodes", "400", "-degree", "6", "-seeds", "100"}
	}
	dir := filepath.Join(c.data, name)
	if _, err := os.Stat(filepath.Join(dir, "metadata.json")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(c.data, 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(c.data, name+"-") // renamed to dir when complete
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	start := time.Now()
	made := filepath.Join(fresh, "graph")
	if text, err := c.output(nil, 4*time.Minute, "productslike", append(args, made)...); err != nil {
		return "", fmt.Errorf("productslike: %w: %s", err, strings.Join(strings.Fields(text), " "))
	}
	fmt.Printf("products-like made in %.0f s\n", time.Since(start).Seconds())
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.Rename(made, dir)
}

// epochs times training on graphs of two sizes, and the same in PyTorch Geometric if a Python on
// this machine has it.
func (c *checker) epochs(r *report) error {
	if !c.trains() {
		return nil
	}
	pinned := []string{"GNB_CUDA_GRAPH=pinned", "GNB_CUDA_FEATURES=pinned"}
	of := map[string]string{}
	for name, kind := range map[string]string{"arxiv-like": "f32", "arxiv-like, float16": "f16"} {
		of[name] = filepath.Join(c.scratch, "arxiv-"+kind)
		if text, err := c.output(nil, time.Minute, c.gnb, "data", "generate", c.arxivLike(), of[name], "--feature-type", kind); err != nil {
			return fmt.Errorf("the graph of arxiv's size: %s", why(err, text))
		}
	}
	products, err := c.productsLike()
	if err != nil {
		c.leaveOut("products-like", err.Error())
	} else {
		of["products-like"] = products
	}
	for _, t := range []struct {
		data, how string
		env, args []string
	}{
		{"arxiv-like", "in memory", nil, nil},
		{"products-like", "in memory", nil, nil},
		{"products-like", "bf16", nil, []string{"--precision", "bf16"}},
		{"products-like", "tf32", nil, []string{"--precision", "tf32"}},
		{"products-like", "features by zero copy", pinned[1:], nil},
		{"products-like", "zero copy", pinned, nil},
		{"products-like", "peer", nil, nil},
		{"arxiv-like", "gcn", nil, []string{"--model", "gcn"}},
		{"arxiv-like", "gat", nil, []string{"--model", "gat", "--heads", "4"}},
		{"arxiv-like", "gatv2", nil, []string{"--model", "gatv2", "--heads", "4"}},
		{"arxiv-like", "tf32", nil, []string{"--precision", "tf32"}},
		{"arxiv-like", "zero copy", pinned, nil},
		{"arxiv-like, float16", "in memory", nil, nil},
		{"arxiv-like, float16", "zero copy", pinned, nil},
		{"arxiv-like", "peer", nil, nil},
	} {
		dir := of[t.data]
		if dir == "" {
			continue
		}
		name := t.data + ", " + t.how
		if t.how == "peer" {
			p, err := c.peers(t.data, dir, 4)
			if errors.Is(err, errTime) {
				c.leaveOut(name, err.Error())
				continue
			}
			r.Peers = append(r.Peers, p)
		} else {
			_, run, err := c.losses("cuda", t.env, slices.Concat([]string{dir}, c.settings(), t.args, []string{"--workers", "1", "--epochs", "4"})...)
			if errors.Is(err, errTime) {
				c.leaveOut(name, err.Error())
				continue
			}
			if err != nil {
				run.Failed = err.Error()
			}
			if (t.how == "bf16" || t.how == "tf32") && c.interpreted && run.Failed != "" { // needs cuBLAS, which the interpreter lacks
				c.leaveOut(name, "there is no cuBLAS")
				continue
			}
			run.Name = name
			fmt.Printf("training of %s: epochs %.3f s %s\n", run.Name, run.Seconds, run.Failed)
			r.Runs = append(r.Runs, run)
		}
		if err := c.save(); err != nil {
			return err
		}
	}
	return nil
}

// runTime is the time limit of one run.
const runTime = 2 * time.Minute

// losses trains, and returns each epoch's loss and time.
func (c *checker) losses(device string, env []string, args ...string) ([]float64, training, error) {
	var r training
	runs, err := os.MkdirTemp(c.scratch, "runs-")
	if err != nil {
		return nil, r, err
	}
	defer os.RemoveAll(runs)
	args = append([]string{"train"}, append(args, "--device", device, "--json", "--resume", "never")...)
	text, err := c.output(append(env, envknob.Runs.Name+"="+runs), runTime, c.gnb, args...)
	if errors.Is(err, errTime) {
		return nil, r, err
	}
	var losses []float64
	for line := range strings.Lines(text) {
		var e struct {
			Event        string             `json:"event"`
			Loss         *float64           `json:"loss"`
			EpochSeconds []float64          `json:"epoch_seconds"`
			SampledEdges int64              `json:"sampled_edges"`
			Steps        int                `json:"steps"`
			Device       string             `json:"device"`
			Values       map[string]float64 `json:"values"`
			Val          float64            `json:"val_accuracy"`
			Test         float64            `json:"test_accuracy"`
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		switch {
		case e.Event == "epoch" && e.Loss != nil:
			losses = append(losses, *e.Loss)
		case e.Event == "result":
			r.Seconds, r.Edges, r.Steps, r.val, r.test = e.EpochSeconds, e.SampledEdges, e.Steps, e.Val, e.Test
			if e.Device != device && err == nil {
				err = fmt.Errorf("it ran on %s", e.Device)
			}
		}
	}
	if err != nil {
		return losses, r, errors.New(why(err, text))
	}
	r.Median = median(r.Seconds)
	return losses, r, nil
}

// median returns the median of all epochs except the first, which compiles kernels and starts
// processes; 0 if there are no others.
func median(seconds []float64) float64 {
	if len(seconds) < 2 {
		return 0
	}
	warm := slices.Sorted(slices.Values(seconds[1:]))
	return warm[len(warm)/2]
}

// accuracy holds the accuracies of training on the device and on the CPU, with the same seed.
type accuracy struct {
	Name   string  `json:"name"`
	Device float64 `json:"device"`
	CPU    float64 `json:"cpu"`
	// Seconds for the whole run.
	DeviceSeconds float64 `json:"device_seconds"`
	CPUSeconds    float64 `json:"cpu_seconds"`
	Failed        string  `json:"failed,omitempty"`
}

// accuracy trains ogbn-arxiv to the README's accuracy, if the bundle has the dataset: on the device
// and on the CPU, with the same seeds. Rounding makes the two differ over a run, by about as much
// as another seed does.
func (c *checker) accuracy(r *report) error {
	if !c.trains() {
		return nil
	}
	data, aim, near, seeds := filepath.Join(c.dir, "data", "arxiv"), 0.745, 0.01, 2
	args := []string{"--model", "sage", "--hidden", "128", "--layers", "3", "--fanout", "10,10,5", "--batch", "2048", "--epochs", "14", "--eval-every", "2", "--lr", "0.005"}
	name := "ogbn-arxiv, features from gpt_preds, SAGE"
	_, err := os.Stat(filepath.Join(data, "metadata.json"))
	if err != nil {
		c.leaveOut("ogbn-arxiv", "the bundle has no data/arxiv; make it where GNB_DATA has ogbn_arxiv")
	}
	if err != nil || c.small() {
		data, aim, near, seeds, name = "planted?nodes=300&classes=3&features=16&degree=8&noise=1", 0.6, 0.1, 1, "planted, SAGE"
		args = []string{"--model", "sage", "--hidden", "16", "--fanout", "4,4", "--batch", "64", "--epochs", "4", "--eval-every", "4", "--lr", "0.02"}
	}
	for seed := 1; seed <= seeds; seed++ {
		a := accuracy{Name: fmt.Sprintf("%s, seed %d", name, seed)}
		for _, on := range []struct {
			device   string
			got, sec *float64
		}{{"cuda", &a.Device, &a.DeviceSeconds}, {"cpu", &a.CPU, &a.CPUSeconds}} {
			start := time.Now()
			_, run, err := c.losses(on.device, nil, slices.Concat([]string{data}, args, []string{"--seed", strconv.Itoa(seed), "--workers", "1"})...)
			*on.got, *on.sec = run.test, time.Since(start).Seconds()
			if errors.Is(err, errTime) {
				c.leaveOut(a.Name+" on "+on.device, err.Error())
				return nil
			}
			if err != nil && a.Failed == "" {
				a.Failed = fmt.Sprintf("on %s: %v", on.device, err)
			}
		}
		switch d := a.Device - a.CPU; {
		case a.Failed != "":
		case !(a.Device >= aim):
			a.Failed = fmt.Sprintf("%.4f on the device, of at least %.3f", a.Device, aim)
		case !(d <= near && d >= -near):
			a.Failed = fmt.Sprintf("%.4f on the device and %.4f on the CPU, more than %v apart", a.Device, a.CPU, near)
		}
		fmt.Printf("%s: test accuracy %.4f on the device (%.1f s), %.4f on the CPU (%.1f s) %s\n", a.Name, a.Device, a.DeviceSeconds, a.CPU, a.CPUSeconds, a.Failed)
		r.Accuracy = append(r.Accuracy, a)
		if err := c.save(); err != nil {
			return err
		}
	}
	return nil
}
