package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"
)

// parity compares a run on the device with the same run on the CPU.
type parity struct {
	Name   string    `json:"name"`
	CPU    []float64 `json:"cpu_losses"`
	Device []float64 `json:"device_losses"`
	May    bool      `json:"may_be_impossible,omitempty"`
	Failed string    `json:"failed,omitempty"`
}

// parityRun describes a training run for both.
type parityRun struct {
	name      string
	may       bool // the run may be unsupported
	env, args []string
	program   string // on the device, in place of gnb
}

// parity trains the same runs on the device and on the CPU.
func (c *checker) parity(r *report) error {
	if !c.trains() {
		return nil
	}
	data, epochs := "planted?nodes=20000&classes=8&features=64&degree=10", "4"
	if c.interpreted {
		data, epochs = "planted?nodes=300&classes=3&features=8&degree=5", "1"
	}
	on := func(name, model string, more ...string) parityRun {
		args := []string{data, "--model", model, "--epochs", epochs, "--workers", "1"}
		if c.interpreted {
			args = append(args, "--hidden", "8", "--fanout", "3,2", "--batch", "64", "--eval", "none")
		}
		return parityRun{name: name, args: append(args, more...)}
	}
	parts := filepath.Join(c.scratch, "parts")
	if text, err := c.output(nil, time.Minute, c.gnb, "partition", data, "--parts", "2", "--out", parts); err != nil {
		return fmt.Errorf("dividing %s: %s", data, why(err, text))
	}
	inParts := on("planted in parts, SAGE", "sage", "--cache", "20%")
	inParts.args[0] = parts
	stay := on("planted in parts, rows on the GPU", "sage", "--gpu-cache", "20%")
	stay.args[0] = parts
	sharing := []string{"GNB_CUDA_SHARE=1", "CUDA_VISIBLE_DEVICES=0"}
	for _, p := range []parityRun{
		{name: "karate, SAGE", args: []string{"karate", "--model", "sage", "--batch", "6", "--epochs", "8", "--workers", "1"}},
		on("planted, SAGE", "sage"), on("planted, GCN", "gcn"), on("planted, GAT", "gat", "--heads", "4"), on("planted, GIN", "gin"),
		on("planted, SAGE, norm and residual", "sage", "--norm", "layer", "--residual"),
		inParts, stay,
		{name: "2 ranks on one GPU", may: true, env: sharing, args: []string{"karate", "--model", "sage", "--batch", "6", "--epochs", "4", "--workers", "2"}},
	} {
		if err := c.compare(r, p); err != nil {
			return err
		}
	}
	return nil
}

// compare trains a run on the device and on the CPU, and records the result.
func (c *checker) compare(r *report, p parityRun) error {
	got, err := c.trainOn(p)
	if err != nil {
		c.leaveOut(p.name, err.Error())
		return nil
	}
	r.Parity = append(r.Parity, got)
	return c.save()
}

// trainOn trains on the CPU and on the device; its error is errTime.
func (c *checker) trainOn(p parityRun) (r parity, err error) {
	r = parity{Name: p.name, May: p.may}
	if r.CPU, _, err = c.losses("cpu", nil, p.args...); err == nil {
		on := *c
		if p.program != "" {
			on.gnb = p.program
		}
		r.Device, _, err = on.losses("cuda", p.env, p.args...)
	}
	switch {
	case errors.Is(err, errTime):
		return r, errTime
	case p.may && err != nil: // NCCL is missing, or before 2.30 and refuses
		fmt.Printf("training of %-22s not possible here: %v\n", r.Name, err)
		return r, nil
	case err != nil:
		r.Failed = err.Error()
	case len(r.CPU) == 0 || len(r.CPU) != len(r.Device):
		r.Failed = fmt.Sprintf("%d and %d epochs", len(r.CPU), len(r.Device))
	default:
		for i := range r.CPU {
			// Rounding differences grow with the steps; a wrong kernel differs by far more.
			if d := math.Abs(r.CPU[i] - r.Device[i]); !(d <= 2e-3*float64(i+1)*(1+r.CPU[i])) {
				r.Failed = fmt.Sprintf("epoch %d has loss %.6f on the device and %.6f on the CPU", i, r.Device[i], r.CPU[i])
				break
			}
		}
	}
	fmt.Printf("training of %-14s %s\n", r.Name, map[bool]string{true: "as on the CPU", false: r.Failed}[r.Failed == ""])
	return r, nil
}

// verdict returns the result of the comparison.
func (p parity) verdict() string {
	switch {
	case p.Failed != "":
		return p.Failed
	case len(p.Device) == 0:
		return "not possible here"
	}
	return "yes"
}
