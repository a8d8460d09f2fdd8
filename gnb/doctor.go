package gnb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/machine"

	"github.com/graphnb/graphnb/multigpu"
)

// Finding is one thing that [Doctor] looked at.
type Finding struct {
	Name   string `json:"name"`   // such as "kernel"
	OK     bool   `json:"ok"`     // false: something is wrong with it
	Detail string `json:"detail"` // what there is
	Fix    string `json:"fix"`    // how to put it right, where it is not OK
}

// Diagnosis is what [Doctor] found, in the order in which it looked.
type Diagnosis []Finding

// Doctor looks at what notebooks and training need on this machine (Go, Python, Jupyter, the kernel, PATH,
// memory, shared memory, disk, GPUs, NVIDIA's driver and libraries), prints what it found and how to put
// right what is wrong, and returns it. Something wrong is no error, and neither is a missing GPU; an error
// says why nothing could be looked at. It takes a second or two.
//
// The looking is done by the command gnb, "gnb doctor", so that it sees what the kernel's environment is and
// a cell links none of it: by that of GNB_HELPER, else the one on PATH, which in a notebook is the one that
// the kernel came with.
func Doctor(ctx context.Context) (Diagnosis, error) {
	multigpuEnter()
	if multigpu.InWorker() {
		return nil, errWorker
	}
	path, err := command()
	if err != nil {
		return nil, fmt.Errorf("gnb: %w; in a checkout: go run ./gnb/cmd/gnb doctor", err)
	}
	cmd := exec.CommandContext(ctx, path, "doctor", "--json")
	cmd.WaitDelay = 2 * time.Second // what a program that it asked leaves behind may keep its output open
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, fmt.Errorf("gnb: running %s: %w", path, err)
	}
	var last struct {
		Event, Error string
		Checks       Diagnosis
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if json.Unmarshal(lines[len(lines)-1], &last) != nil || last.Event != "result" || len(last.Checks) == 0 {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("gnb: %s doctor did not say what it found (%s%s); is it of this release?", path, last.Error, strings.TrimSpace(said.String()))
	}
	fmt.Print(last.Checks)
	return last.Checks, nil
}

// OK is whether nothing is wrong.
func (d Diagnosis) OK() bool {
	for _, f := range d {
		if !f.OK {
			return false
		}
	}
	return true
}

// String is a line a finding, and one more on how to put it right.
func (d Diagnosis) String() string {
	var b strings.Builder
	for _, f := range d {
		b.WriteString(f.String())
	}
	return b.String()
}

// String is the finding's line or lines.
func (f Finding) String() string {
	mark := "ok  "
	if !f.OK {
		mark = "FAIL"
	}
	s := fmt.Sprintf("%s  %-13s  %s\n", mark, f.Name, f.Detail)
	if f.Fix != "" {
		s += fmt.Sprintf("      %-13s  to fix: %s\n", "", f.Fix)
	}
	return s
}

// command is the gnb program, for what is no part of a cell: that of GNB_HELPER, else the one on PATH, on
// which a kernel has its own.
func command() (string, error) {
	path, err := machine.FindCommand()
	if err != nil {
		return "", fmt.Errorf("the command gnb cannot be found: %w", err)
	}
	return path, nil
}
