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

// measured is one run of gnb train.
type measured struct {
	Bytes    int64   `json:"bytes"`   // of all processes at the moment when they had the most
	Workers  int64   `json:"workers"` // of it, the workers'
	StepTime float64 `json:"step"`    // seconds, median over the epochs but the first
	Load     float64 `json:"load"`    // the machine's load average over one minute, before the run
}

// train runs gnb train with --json, and measures its time or, if watch is set, its memory.
func train(gnb string, args []string, watch bool) (m measured, err error) {
	m.Load = load()
	dir, err := os.MkdirTemp("", "gnb-plan-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(gnb, slices.Concat([]string{"train", "--json", "--run", filepath.Join(dir, "run"), "--resume", "never"}, args)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return m, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-tick.C:
			if !watch {
				continue
			}
			if own, others, err := machine.Resident(cmd.Process.Pid); err == nil && own+others > m.Bytes {
				m.Bytes, m.Workers = own+others, others
			}
		}
	}
	if err != nil {
		return m, fmt.Errorf("gnb train %s: %w: %s", strings.Join(args, " "), err, errs.Bytes())
	}
	m.StepTime, err = stepTime(out.Bytes())
	return m, err
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
