package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// suite is the outcome of one test binary.
type suite struct {
	Name    string   `json:"name"`
	Passed  int      `json:"passed"`
	Failed  []string `json:"failed"`
	Skipped int      `json:"skipped"`
	Seconds float64  `json:"seconds"`
	Cut     bool     `json:"cut,omitempty"`    // ended by its time limit, under a tool that slows it down
	Output  string   `json:"output,omitempty"` // the end of the output, if a test failed
}

func (s suite) ok() bool { return len(s.Failed) == 0 }

func (s suite) line() string {
	state := "ok  "
	switch {
	case !s.ok():
		state = "FAIL"
	case s.Cut:
		state = "cut "
	}
	return fmt.Sprintf("%s  %-10s %4d passed, %d failed, %d skipped, %.1f s", state, s.Name, s.Passed, len(s.Failed), s.Skipped, s.Seconds)
}

var verdict = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// suiteTime is the time limit of a suite.
const suiteTime = 90 * time.Second

// binaries returns the bundle's test binaries, the quick ones first.
func (c *checker) binaries() ([]string, error) {
	found, err := filepath.Glob(filepath.Join(c.dir, "*.test"))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no test binaries next to this program, in %s", c.dir)
	}
	order := []string{"cuda", "cublas", "nccl", "store", "sampler", "backend"}
	at := func(path string) int {
		return slices.Index(order, strings.TrimSuffix(filepath.Base(path), ".test")) // unknown ones first
	}
	slices.SortStableFunc(found, func(a, b string) int { return at(a) - at(b) })
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found, err
}

// tests runs every test on the device.
func (c *checker) tests(r *report) error {
	all, err := c.binaries()
	if err != nil {
		return err
	}
	for _, b := range all {
		s, err := c.suite(b, "", "")
		if err != nil {
			c.leaveOut(b, err.Error())
			continue
		}
		fmt.Println(s.line())
		r.Suites = append(r.Suites, s)
		if err := c.save(); err != nil {
			return err
		}
	}
	return nil
}

// kernelTests selects tests of the backend that start every kernel, but with few sizes, because compute-sanitizer
// makes them a hundred times slower.
const kernelTests = "^(TestWorks|TestConformance)$/^(33x33|random_33|accumulation|max_ties)$"

// sanitized runs the tests of all kernels under compute-sanitizer's tools.
func (c *checker) sanitized(r *report) error {
	under := sanitizer()
	if under == "" {
		c.leaveOut("all of it", "compute-sanitizer is not on PATH, nor in a folder of CUDA")
		return nil
	}
	tools := []string{"memcheck", "racecheck", "synccheck"}
	if c.quick {
		tools = tools[:1]
	}
	for _, tool := range tools {
		for _, of := range [][2]string{{"sampler.test", "TestDigest"}, {"backend.test", kernelTests}} {
			s, err := c.suite(of[0], under, tool, "-test.run="+of[1])
			if err != nil {
				c.leaveOut(of[0]+" under "+tool, err.Error())
				continue
			}
			fmt.Println(s.line())
			r.Sanitizer = append(r.Sanitizer, s)
			if err := c.save(); err != nil {
				return err
			}
		}
	}
	return nil
}

// sanitizer returns compute-sanitizer's path: on PATH, in CUDA's folder, or in a Python
// environment; "" if it is not found.
func sanitizer() string {
	const name = "compute-sanitizer"
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	for _, pattern := range []string{
		filepath.Join(os.Getenv("CUDA_HOME"), "bin"), "/usr/local/cuda*/bin", "/usr/local/cuda*/compute-sanitizer",
		filepath.Join(os.Getenv("VIRTUAL_ENV"), "lib/python3*/site-packages/nvidia/*/bin"),
	} {
		found, err := filepath.Glob(filepath.Join(pattern, name))
		if err == nil && len(found) > 0 && executable(found[len(found)-1]) {
			return found[len(found)-1]
		}
	}
	return ""
}

// suite runs a test binary on the device, under one of the checker's tools if tool is set. A suite
// in which no test passed counts as failed, because it checked nothing. It returns an error if
// there is no time for the suite.
func (c *checker) suite(binary, under, tool string, args ...string) (suite, error) {
	s := suite{Name: strings.TrimSuffix(binary, ".test"), Failed: []string{}}
	args = append([]string{"-test.v"}, args...)
	program := binary
	if under != "" {
		args = append([]string{"--tool", tool, "--error-exitcode=9", filepath.Join(c.dir, binary)}, args...)
		program = under
		s.Name += " under compute-sanitizer " + tool
	}
	env := []string{"GNB_GPU_CHECK=1"}
	if c.interpreted {
		env = nil
		if under == "" {
			args = append(args, "-test.short")
		}
	}
	if under != "" {
		env = append(env, "GNB_CUDA_EXACT=1") // so that the checker sees where buffers end
	}
	start := time.Now()
	text, err := c.output(env, suiteTime, program, args...)
	if errors.Is(err, errTime) {
		return s, err
	}
	s.Seconds = time.Since(start).Seconds()
	for _, m := range verdict.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "PASS":
			s.Passed++
		case "SKIP":
			s.Skipped++
		default:
			s.Failed = append(s.Failed, s.Name+" "+m[2])
		}
	}
	late, cut := errors.AsType[overtime](err)
	switch {
	case len(s.Failed) > 0:
	case cut && under != "" && !strings.Contains(text, "ERROR SUMMARY") && !strings.Contains(text, "========= Invalid") && !strings.Contains(text, "========= Error"):
		s.Cut = true // nothing was found within the time limit
	case cut:
		s.Failed = []string{fmt.Sprintf("%s: %v", s.Name, late)}
	case err != nil:
		s.Failed = []string{fmt.Sprintf("%s: %v", s.Name, err)}
	case under != "" && !strings.Contains(text, " SUMMARY: "):
		s.Failed = []string{s.Name + ": compute-sanitizer saw no kernel"}
	case s.Passed == 0:
		s.Failed = []string{s.Name + ": no test passed"}
	}
	if !s.ok() || s.Cut {
		const most = 8000
		s.Output = text[max(0, len(text)-most):]
	}
	return s, nil
}
