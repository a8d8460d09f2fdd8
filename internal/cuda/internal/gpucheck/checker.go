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
	env         []string // for programs that use a device
	scratch     string   // a directory that is removed at the end
	data        string   // a directory that is kept
	deadline    time.Time
	piece       *piece
	save        func() error // writes the report in its current state
}

// small reports whether runs are to be short.
func (c *checker) small() bool { return c.quick || c.interpreted }

// errTime reports that the time of a piece is used up.
var errTime = errors.New("the piece's time (-budget) is over")

// least is the shortest remaining time in which another item is started.
const least = 3 * time.Second

// limit returns the time limit of an item: most, or the remaining time if that is less.
func (c *checker) limit(most time.Duration) (time.Duration, error) {
	left := time.Until(c.deadline)
	if left < least {
		return 0, errTime
	}
	return min(most, left), nil
}

// leaveOut records an item that is skipped.
func (c *checker) leaveOut(what, why string) {
	c.piece.LeftOut = append(c.piece.LeftOut, what+": "+why)
	fmt.Printf("left out: %s: %s\n", what, why)
}

// overtime reports that a program exceeded its time limit and was ended.
type overtime struct{ limit time.Duration }

func (o overtime) Error() string { return fmt.Sprintf("it did not end in %.0f s", o.limit.Seconds()) }

// output runs a program of the bundle, or of an absolute path, with additional environment
// variables and a time limit, and returns its output. Its child processes end with it.
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

// device returns nvidia-smi's name of the first GPU.
func (c *checker) device() string {
	b, err := exec.Command("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").Output()
	if name, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n"); err == nil && name != "" {
		return name
	}
	return "no nvidia-smi"
}

// preflight records the machine's properties, and trains the smallest graph.
func (c *checker) preflight(r *report) error {
	var err error
	r.Doctor, err = c.output(nil, time.Minute, c.gnb, "doctor") // its output includes failed checks
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
	p, err := c.trainOn(parityRun{name: "karate, SAGE, in short", args: []string{"karate", "--model", "sage", "--batch", "6", "--epochs", "2", "--workers", "1"}})
	if err != nil {
		p.Failed = err.Error()
	}
	r.Parity = append(r.Parity, p)
	return c.save()
}

// why returns the end of a program's output, in one line.
func why(err error, text string) string {
	const most = 600
	return fmt.Sprintf("%v: %s", err, strings.Join(strings.Fields(text[max(0, len(text)-most):]), " "))
}
