package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// checker runs the programs of a bundle.
type checker struct {
	dir         string
	quick       bool
	interpreted bool   // there is no GPU
	scratch     string // a directory, until the end
}

// output runs a program of the bundle, or an absolute path, with more environment, and returns all it says.
func (c checker) output(env []string, limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.dir, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = os.TempDir()
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end in %v", limit)
	}
	return string(b), err
}

// device is what nvidia-smi calls the first GPU.
func (c checker) device() string {
	b, err := exec.Command("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").Output()
	if name, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n"); err == nil && name != "" {
		return name
	}
	return "no nvidia-smi"
}

var verdict = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// sanitized are tests of most kernels under compute-sanitizer's tools, none with -quick or where it is not found.
func (c checker) sanitized() []suite {
	under := sanitizer()
	if c.quick || under == "" {
		return nil
	}
	var all []suite
	for _, tool := range []string{"memcheck", "racecheck", "synccheck"} {
		for _, of := range [][2]string{{"backend.test", "TestConformance"}, {"sampler.test", "TestDigest"}} {
			s := c.suite(of[0], under, tool, "-test.run="+of[1], "-test.short")
			fmt.Println(s.line())
			all = append(all, s)
		}
	}
	return all
}

// sanitizer is compute-sanitizer's path: on PATH, in a folder of CUDA, or in an environment of Python. "" where it
// is not found.
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

// suite runs a test binary on the device, under a checker's tool where one is named.
func (c checker) suite(binary, under, tool string, args ...string) suite {
	s := suite{Name: strings.TrimSuffix(binary, ".test"), Failed: []string{}}
	args = append([]string{"-test.v", "-test.timeout=9m"}, args...)
	program := binary
	if under != "" {
		args = append([]string{"--tool", tool, "--error-exitcode=9", filepath.Join(c.dir, binary)}, args...)
		program = under
		s.Name += " under compute-sanitizer " + tool
	}
	env := []string{"GNB_GPU_CHECK=1"}
	if c.interpreted {
		env, args = nil, append(args, "-test.short")
	}
	if under != "" {
		env = append(env, "GNB_CUDA_EXACT=1") // so that the checker sees where buffers end
	}
	start := time.Now()
	text, err := c.output(env, 10*time.Minute, program, args...)
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
	if err != nil && len(s.Failed) == 0 {
		s.Failed = []string{fmt.Sprintf("%s: %v", s.Name, err)}
	}
	if !s.ok() {
		const most = 8000
		s.Output = text[max(0, len(text)-most):]
	}
	return s
}

func (s suite) line() string {
	state := "ok  "
	if !s.ok() {
		state = "FAIL"
	}
	return fmt.Sprintf("%s  %-10s %4d passed, %d failed, %d skipped, %.1f s", state, s.Name, s.Passed, len(s.Failed), s.Skipped, s.Seconds)
}

// parity is a run on the device beside the same one on the CPU.
type parity struct {
	Name   string    `json:"name"`
	CPU    []float64 `json:"cpu_losses"`
	Device []float64 `json:"device_losses"`
	May    bool      `json:"may_be_impossible,omitempty"`
	Failed string    `json:"failed,omitempty"`
}

// parity trains alike on both.
func (c checker) parity() []parity {
	sharing := []string{"GNB_CUDA_SHARE=1", "CUDA_VISIBLE_DEVICES=0"}
	var all []parity
	for _, p := range []struct {
		name string
		may  bool // it may be impossible
		env  []string
		args []string
	}{
		{"karate, SAGE", false, nil, []string{"karate", "--model", "sage", "--batch", "6", "--epochs", "8", "--workers", "1"}},
		{"planted, SAGE", false, nil, []string{"planted?nodes=20000&classes=8&features=64&degree=10", "--model", "sage", "--epochs", "4", "--workers", "1"}},
		{"planted, GCN", false, nil, []string{"planted?nodes=20000&classes=8&features=64&degree=10", "--model", "gcn", "--epochs", "4", "--workers", "1"}},
		{"planted, GAT", false, nil, []string{"planted?nodes=20000&classes=8&features=64&degree=10", "--model", "gat", "--heads", "4", "--epochs", "3", "--workers", "1"}},
		{"2 ranks on one GPU", true, sharing, []string{"karate", "--model", "sage", "--batch", "6", "--epochs", "4", "--workers", "2"}},
	} {
		r := parity{Name: p.name}
		var err error
		if r.CPU, _, err = c.losses("cpu", nil, p.args...); err == nil {
			r.Device, _, err = c.losses("cuda", p.env, p.args...)
		}
		if r.May = p.may; r.May && err != nil { // NCCL before 2.30 refuses
			r.Failed, err = "", nil
			fmt.Printf("training of %-22s not possible here\n", r.Name)
			all = append(all, r)
			continue
		}
		switch {
		case err != nil:
			r.Failed = err.Error()
		case len(r.CPU) == 0 || len(r.CPU) != len(r.Device):
			r.Failed = fmt.Sprintf("%d and %d epochs", len(r.CPU), len(r.Device))
		default:
			for i := range r.CPU {
				// Rounding that grows with the steps; a wrong kernel differs by far more.
				if d := math.Abs(r.CPU[i] - r.Device[i]); !(d <= 2e-3*float64(i+1)*(1+r.CPU[i])) {
					r.Failed = fmt.Sprintf("epoch %d has loss %.6f on the device and %.6f on the CPU", i, r.Device[i], r.CPU[i])
					break
				}
			}
		}
		fmt.Printf("training of %-14s %s\n", r.Name, map[bool]string{true: "as on the CPU", false: r.Failed}[r.Failed == ""])
		all = append(all, r)
	}
	return all
}
