package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// checker runs the programs of a bundle.
type checker struct {
	dir         string
	quick       bool
	interpreted bool     // there is no GPU
	gnb         string   // the program that trains
	env         []string // for what uses a device
	scratch     string   // a directory, until the end
	data        string   // a directory that stays
	deadline    time.Time
	piece       *piece
	save        func() error // writes the report as it is
}

// small tells that runs are to be short.
func (c *checker) small() bool { return c.quick || c.interpreted }

// errTime is that a piece's time is over.
var errTime = errors.New("the piece's time (-budget) is over")

// least is the time that is worth starting something for.
const least = 3 * time.Second

// limit returns how long something may take that takes so long at most.
func (c *checker) limit(most time.Duration) (time.Duration, error) {
	left := time.Until(c.deadline)
	if left < least {
		return 0, errTime
	}
	return min(most, left), nil
}

// leaveOut notes what is not done.
func (c *checker) leaveOut(what, why string) {
	c.piece.LeftOut = append(c.piece.LeftOut, what+": "+why)
	fmt.Printf("left out: %s: %s\n", what, why)
}

// overtime is that a program was ended.
type overtime struct{ limit time.Duration }

func (o overtime) Error() string { return fmt.Sprintf("it did not end in %.0f s", o.limit.Seconds()) }

// output runs a program of the bundle, or an absolute path, with more environment, for so long at most, and
// returns all it says. What it started ends with it.
func (c *checker) output(env []string, most time.Duration, name string, args ...string) (string, error) {
	limit, err := c.limit(most)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.dir, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(append(os.Environ(), c.env...), env...)
	cmd.Dir = os.TempDir()
	alone(cmd)
	cmd.WaitDelay = time.Second
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = overtime{limit}
	}
	return string(b), err
}

// device returns what nvidia-smi calls the first GPU.
func (c *checker) device() string {
	b, err := exec.Command("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").Output()
	if name, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n"); err == nil && name != "" {
		return name
	}
	return "no nvidia-smi"
}

// preflight says what the machine has, and trains the smallest graph.
func (c *checker) preflight(r *report) error {
	var err error
	r.Doctor, err = c.output(nil, time.Minute, c.gnb, "doctor") // a check that fails is among its lines
	if r.Doctor == "" && err != nil {
		return fmt.Errorf("gnb doctor: %w", err)
	}
	fmt.Print(r.Doctor)
	if smi, err := exec.LookPath("nvidia-smi"); err == nil && !c.interpreted {
		r.Machine, _ = c.output(nil, 30*time.Second, smi)
		fmt.Print(r.Machine)
	}
	if err := c.save(); err != nil || !c.trains() {
		return err
	}
	p := c.trainOn(parityRun{name: "karate, SAGE, in short", args: []string{"karate", "--model", "sage", "--batch", "6", "--epochs", "2", "--workers", "1"}})
	r.Parity = append(r.Parity, p)
	return c.save()
}

// why returns the end of what a program said, in one line.
func why(err error, text string) string {
	const most = 600
	return fmt.Sprintf("%v: %s", err, strings.Join(strings.Fields(text[max(0, len(text)-most):]), " "))
}
