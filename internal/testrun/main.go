// Command testrun runs the tests and prints a summary.
//
//	go run ./internal/testrun [flags] PACKAGE…
//
// It prints one line per package with its minutes and its budget from the file of -budget; the
// skipped tests with their reasons and, if the machine lacks a prerequisite (package testneed), how
// to make them run; the output of failed tests; and, last, the line
//
//	N passed, N failed, N skipped
//
// Only tests without subtests are counted, and a package that does not build or ends outside a test
// is one failure. The exit status is 1 if a test failed. With -skips it is also 1 if more tests
// were skipped than the number in that file, so that no test is disabled unnoticed; skips for
// prerequisites that this machine lacks do not count there. Minutes over the budget are marked but
// are no failure, because machines differ.
//
// The packages of -alone run after the others, one at a time. The tests run with a separate
// temporary directory, and testrun lists the files that they leave in it.
//
// The packages listed in -cuda also run with -tags cuda if there is a C compiler; without one, that
// counts as a skip. The packages listed in -race, and in -cudarace with -tags cuda, run once more
// under the race detector, with -short; tests that -short skips are not counted. Tests that
// -raceskip matches are left out of these runs.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	budgetFile := flag.String("budget", "", "`file` with lines \"PACKAGE MINUTES\"")
	skipsFile := flag.String("skips", "", "`file` with the number of tests that may be skipped though they could run here; default: any")
	race := flag.String("race", "", "`packages` to run under the race detector too, space-separated")
	cuda := flag.String("cuda", "", "`packages` to run with -tags cuda too, space-separated")
	cudaRace := flag.String("cudarace", "", "`packages` to run with -tags cuda under the race detector too, space-separated")
	raceSkip := flag.String("raceskip", "", "tests to leave out under the race detector, a `pattern`")
	alone := flag.String("alone", "", "`packages` to run one at a time, space-separated")
	short := flag.Bool("short", false, "the quick tests only")
	flag.Parse()
	if err := run(flag.Args(), *budgetFile, *skipsFile, strings.Fields(*alone), strings.Fields(*cuda), strings.Fields(*race), strings.Fields(*cudaRace), *raceSkip, *short); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

func run(packages []string, budgetFile, skipsFile string, alone, cuda, race, cudaRace []string, raceSkip string, short bool) error {
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	budget, err := readBudget(budgetFile)
	if err != nil {
		return err
	}
	maxSkips, err := readSkips(skipsFile)
	if err != nil {
		return err
	}
	together, last, err := split(packages, alone)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "tests-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.Setenv("TMPDIR", tmp); err != nil {
		return err
	}
	start := time.Now()
	r := newReport(budget, os.Stdout)
	args := []string{"-timeout=20m"} // of a package; go test's 10 minutes are too few for a busy machine
	if short {
		args = append(args, "-short")
	}
	if err := goTest(r, "", args, together, nil); err != nil {
		return err
	}
	if err := goTest(r, "", append(args, "-p=1"), last, nil); err != nil {
		return err
	}
	if why := noCgo(); why != "" {
		if len(cuda) > 0 {
			r.skip("-tags cuda", why)
		}
		if len(race) > 0 {
			r.skip("race detector", why)
		}
	} else if err := goTest(r, "cuda ", append(args, "-tags=cuda"), cuda, cudaEnv()); err != nil {
		return err
	} else if err := goTest(r, "race ", []string{"-race", "-short", "-skip", raceSkip}, race, nil); err != nil {
		return err
	} else if err := goTest(r, "race cuda ", []string{"-race", "-short", "-tags=cuda"}, cudaRace, cudaEnv()); err != nil {
		return err
	}
	left, err := os.ReadDir(tmp)
	if err != nil {
		return err
	}
	for _, e := range left {
		fmt.Fprintln(r.w, "left in the temporary directory:", e.Name())
	}
	return r.finish(time.Since(start), maxSkips)
}

// split lists packages in two parts: those that alone does not match, and those that it matches.
func split(packages, alone []string) (together, last []string, err error) {
	all, err := list(packages)
	if err != nil || len(alone) == 0 {
		return all, nil, err
	}
	single, err := list(alone)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range all {
		if slices.Contains(single, p) {
			last = append(last, p)
		} else {
			together = append(together, p)
		}
	}
	return together, last, nil
}

// list returns the import paths of packages.
func list(packages []string) ([]string, error) {
	c := exec.Command("go", append([]string{"list"}, packages...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(packages, " "), err)
	}
	return strings.Fields(string(out)), nil
}

// cudaEnv returns additional environment variables for -tags cuda: with them, gorgonia.org/cu finds
// the module's own cuda.h, and CUDA need not be installed.
func cudaEnv() []string {
	dir, err := os.Getwd()
	if err != nil {
		return nil // the build says what is missing
	}
	return []string{"CGO_CFLAGS=-O2 -g -I" + filepath.Join(dir, "cuda", "internal", "shim", "include")}
}

// goTest runs "go test -json args… packages…" into r, with env added to the environment. A failing
// test is recorded in the report; it is not an error.
func goTest(r *report, label string, args, packages, env []string) error {
	if len(packages) == 0 {
		return nil
	}
	c := exec.Command("go", slices.Concat([]string{"test", "-json"}, args, packages)...)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	if err := r.read(out, label); err != nil {
		return fmt.Errorf("reading go test's events: %w", err)
	}
	if err := c.Wait(); err != nil && r.failures() == 0 {
		return fmt.Errorf("go test %s: %w", strings.Join(slices.Concat(args, packages), " "), err)
	}
	return nil
}

// noCgo returns why neither -tags cuda nor the race detector is available, or "".
func noCgo() string {
	out, err := exec.Command("go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		return err.Error()
	}
	enabled, cc, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if enabled != "1" {
		return "cgo is needed, and CGO_ENABLED is 0"
	}
	words := strings.Fields(cc)
	if len(words) == 0 {
		return "a C compiler is needed"
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return "a C compiler is needed: " + err.Error()
	}
	return ""
}

// readBudget reads lines "PACKAGE MINUTES"; "race PACKAGE MINUTES" for the race detector's run.
func readBudget(file string) (map[string]float64, error) {
	budget := map[string]float64{}
	return budget, eachLine(file, func(line string) error {
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			return fmt.Errorf("%q is not \"PACKAGE MINUTES\"", line)
		}
		m, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			return fmt.Errorf("%q is not \"PACKAGE MINUTES\"", line)
		}
		budget[strings.Join(strings.Fields(line[:i]), " ")] = m
		return nil
	})
}

// readSkips reads the number of skips allowed; without a file there is no limit (-1).
func readSkips(file string) (int, error) {
	n := -1
	err := eachLine(file, func(line string) (err error) {
		if n, err = strconv.Atoi(line); err != nil || n < 0 {
			err = fmt.Errorf("%q is not a number of tests", line)
		}
		return err
	})
	return n, err
}

// eachLine calls f with the lines of file that are neither empty nor comments. If file is "", there
// are none.
func eachLine(file string, f func(string) error) error {
	if file == "" {
		return nil
	}
	h, err := os.Open(file)
	if err != nil {
		return err
	}
	defer h.Close()
	s := bufio.NewScanner(h)
	for n := 1; s.Scan(); n++ {
		if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' {
			if err := f(line); err != nil {
				return fmt.Errorf("%s:%d: %w", file, n, err)
			}
		}
	}
	return s.Err()
}
