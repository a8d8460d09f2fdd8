package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
)

// memoryOfRun is the memory of one run of gnb train.
type memoryOfRun struct {
	Predicted int64 `json:"predicted"`
	Bytes     int64 `json:"bytes"`   // of all processes at the moment when they had the most
	Workers   int64 `json:"workers"` // of it, the workers'
}

// timeOfRun is the time of one run of gnb train.
type timeOfRun struct {
	Predicted float64 `json:"predicted"`
	Step      float64 `json:"step"` // seconds, median over the epochs but the first
	Load      float64 `json:"load"` // the machine's load average over one minute, before the run
}

// memory measures the memory of a run.
func (c *comparison) memory(args []string) (m memoryOfRun, err error) {
	_, err = c.train(args, func(pid int) {
		if own, others, err := machine.Resident(pid); err == nil && own+others > m.Bytes {
			m.Bytes, m.Workers = own+others, others
		}
	})
	return m, err
}

// time measures the time of a run's steps.
func (c *comparison) time(args []string) (t timeOfRun, err error) {
	t.Load = load()
	out, err := c.train(args, nil)
	if err == nil {
		t.Step, err = stepTime(out)
	}
	return t, err
}

// train runs gnb train with --json and returns what it printed. It calls watch, if that is not nil, every 20 ms.
func (c *comparison) train(args []string, watch func(pid int)) ([]byte, error) {
	dir, err := os.MkdirTemp("", "gnb-plan-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(c.gnb, slices.Concat([]string{"train", "--json", "--run", filepath.Join(dir, "run"), "--resume", "never"}, args)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err = <-ended:
			if err != nil {
				err = fmt.Errorf("gnb train %s: %w: %s", strings.Join(args, " "), err, errs.Bytes())
			}
			return out.Bytes(), err
		case <-tick.C:
			if watch != nil {
				watch(cmd.Process.Pid)
			}
		}
	}
}

// stepTime returns the median time of a step from the events of a run.
func stepTime(out []byte) (float64, error) {
	var result struct {
		Steps  int64 `json:"steps"`
		Epochs int   `json:"epochs"`
	}
	var times []float64
	s := bufio.NewScanner(bytes.NewReader(out))
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var e struct {
			Event   string             `json:"event"`
			Seconds float64            `json:"seconds"`
			Stages  map[string]float64 `json:"stages"`
		}
		if json.Unmarshal(s.Bytes(), &e) != nil {
			continue
		}
		if e.Event == "epoch" {
			times = append(times, e.Seconds-e.Stages["evaluate"])
		}
		_ = json.Unmarshal(s.Bytes(), &result)
	}
	if len(times) < 2 || result.Steps == 0 || result.Epochs == 0 {
		return 0, errors.New("the run reported too few epochs")
	}
	times = times[1:]
	slices.Sort(times)
	return times[len(times)/2] / (float64(result.Steps) / float64(result.Epochs)), nil
}

func load() float64 {
	b, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(b), " ")
	x, _ := strconv.ParseFloat(one, 64)
	return x
}
