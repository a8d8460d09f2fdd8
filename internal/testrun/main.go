// Command testrun runs the tests and prints what a person wants to know of them.
//
//	go run ./internal/testrun [flags] PACKAGE…
//
// It prints one line a package with its minutes and, from the file of -budget, how many it should
// take; the skipped tests with their reasons; the output of what failed; and, last, the line
//
//	N passed, N failed, N skipped
//
// Only tests without subtests are counted, and a package that does not build or ends outside a test
// is one failure. The exit status is 1 when a test failed, or when more tests were skipped than the
// number in the file of -skips, so that nothing is switched off unnoticed. Minutes over the budget
// are marked and fail nothing: machines differ.
//
// With -race the packages that it lists run once more under the race detector, with -short; what
// they skip by that is not counted.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

func main() {
	budgetFile := flag.String("budget", "", "`file` with lines \"PACKAGE MINUTES\"")
	skipsFile := flag.String("skips", "", "`file` with the number of tests that may be skipped")
	race := flag.String("race", "", "`packages` to run under the race detector too, space-separated")
	short := flag.Bool("short", false, "the quick tests only")
	flag.Parse()
	if err := run(flag.Args(), *budgetFile, *skipsFile, strings.Fields(*race), *short); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

func run(packages []string, budgetFile, skipsFile string, race []string, short bool) error {
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
	start := time.Now()
	r := newReport(budget, os.Stdout)
	args := []string{}
	if short {
		args = append(args, "-short")
	}
	if err := goTest(r, "", append(args, packages...)); err != nil {
		return err
	}
	if len(race) > 0 {
		if why := noRace(); why != "" {
			r.skip("race detector", why)
		} else if err := goTest(r, "race ", append([]string{"-race", "-short"}, race...)); err != nil {
			return err
		}
	}
	return r.finish(time.Since(start), maxSkips)
}

// goTest runs "go test -json args…" into r. A failing test is in the report and no error.
func goTest(r *report, label string, args []string) error {
	c := exec.Command("go", append([]string{"test", "-json"}, args...)...)
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
		return fmt.Errorf("go test %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// noRace says why the race detector cannot run, or nothing.
func noRace() string {
	out, err := exec.Command("go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		return err.Error()
	}
	enabled, cc, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if enabled != "1" {
		return "it needs cgo, and CGO_ENABLED is 0"
	}
	words := strings.Fields(cc)
	if len(words) == 0 {
		return "it needs a C compiler"
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return "it needs a C compiler: " + err.Error()
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

// eachLine calls f with the lines of file that are neither empty nor comments. No file: no lines.
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
