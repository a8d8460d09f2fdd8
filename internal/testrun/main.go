// Command testrun runs the tests and prints a summary.
//
//	go run ./internal/testrun [flags] [PACKAGE…]
//
// Without packages it runs those of the flags alone, and without these all.
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
// First the packages are compiled, once, because lanes and tests that start at the same time would each compile
// them. Then three lanes run beside each other, so that a core idles neither at the end of a lane nor while tests
// wait for kernels and browsers: the packages; those of -race and -cudarace; and those of -beside, one at a time,
// before those of -cuda. In a lane, the packages with the most minutes in the budget start first. A lane that the
// budget says would end early also takes packages of the first. Tests are neither vetted nor linked with symbols
// and a debugger's tables, because "make check" vets them and no test reads these. The tests run with a separate
// temporary directory, and testrun lists the files that they leave in it.
//
// With -slowest, the tests that took longest are listed, so that the next one to shorten is known.
//
// If at most -again tests failed, each that timed out runs once more, alone. One that passes then counts as passed, is
// listed with the output of its failure, and is counted in the closing line. No other failure is tried again: a
// comparison that fails once, as of bits that two runs should have in common, has found a defect.
//
// With -run, only the tests that the pattern matches run.
//
// The packages listed in -cuda also run with -tags cuda if there is a C compiler; without one, that
// counts as a skip. The packages listed in -race, and in -cudarace with -tags cuda, run once more
// under the race detector, with -short; tests that -short skips are not counted. Tests that
// -raceskip matches are left out of these runs.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/internal/cudaheader"
	"github.com/graphnb/graphnb/internal/envknob"
)

func main() {
	budgetFile := flag.String("budget", "", "`file` with lines \"PACKAGE MINUTES\"")
	skipsFile := flag.String("skips", "", "`file` with the number of tests that may be skipped though they could run here; default: any")
	race := flag.String("race", "", "`packages` to run under the race detector too, space-separated")
	cuda := flag.String("cuda", "", "`packages` to run with -tags cuda too, space-separated")
	cudaRace := flag.String("cudarace", "", "`packages` to run with -tags cuda under the race detector too, space-separated")
	raceSkip := flag.String("raceskip", "", "tests to leave out under the race detector, a `pattern`")
	beside := flag.String("beside", "", "`packages` that mostly wait, to run one at a time beside the others, space-separated")
	only := flag.String("run", "", "tests to run, a `pattern`")
	again := flag.Int("again", 0, "run tests that timed out once more, alone, if at most this `number` of tests failed")
	slowest := flag.Int("slowest", 0, "`number` of slowest tests to list")
	parallel := flag.Int("p", runtime.NumCPU(), "`number` of packages to run at a time, not counting those of -beside, -cuda and -race")
	short := flag.Bool("short", false, "the quick tests only")
	timeout := flag.Duration("timeout", 20*time.Minute, "the longest `time` of a package")
	shuffle := flag.Bool("shuffle", false, "run the tests of a package in random order")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 && *race+*cudaRace+*cuda+*beside == "" {
		packages = []string{"./..."}
	}
	args := []string{
		fmt.Sprint("-timeout=", *timeout), // go test's 10 minutes are too few for a busy machine
		"-vet=off", "-ldflags=-s",         // "make check" vets; no test reads symbols or a debugger's tables
		rarely,
	}
	if *shuffle {
		args = append(args, "-shuffle=on")
	}
	if *short {
		args = append(args, "-short")
	}
	if *only != "" {
		args = append(args, "-run="+*only)
	}
	raced := []string{"-race"}
	if *raceSkip != "" { // which leaves out the tests that ask for the paths of files
		raced = append(raced, anyFolder)
	}
	few := max(1, (*parallel+1)/3) // of the lanes beside the first, whose packages wait half of their time
	if len(packages) == 0 {
		few = max(1, *parallel)
	}
	sets := []set{
		{packages: packages, except: strings.Fields(*beside), args: args, p: max(1, *parallel)},
		{packages: strings.Fields(*beside), args: args, p: 1, lane: 1},
		{label: "cuda ", packages: strings.Fields(*cuda), build: []string{tagged}, args: args, p: few, env: cudaEnv(), cgo: true, lane: 1},
		{label: "race ", packages: strings.Fields(*race), build: raced, args: append(slices.Clip(args), "-short", "-skip", *raceSkip), p: few, env: noSoak, cgo: true, lane: 2},
		{label: "race cuda ", packages: strings.Fields(*cudaRace), build: append(slices.Clip(raced), tagged), args: append(slices.Clip(args), "-short"), p: few, env: append(cudaEnv(), noSoak...), cgo: true, lane: 2},
	}
	if err := run(sets, *budgetFile, *skipsFile, *again, *slowest); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

// noSoak makes the race detector run the cases of "make test" in "make soak" too: under it they take many times as long.
var noSoak = []string{envknob.Soak.Name + "="}

// rarely is a flag of the go command: the compiler takes two thirds of the processor time if it collects its garbage
// only where it would use more than 2 GB. The environment of the tests stays as it is.
const rarely = "-toolexec=env GOGC=off GOMEMLIMIT=2GiB"

// tagged is a flag of go test. It replaces the tags of GOFLAGS, so that it repeats the tag of scripts/go-env.sh: without
// it, gRPC and what imports it would be compiled twice.
const tagged = "-tags=cuda,grpcnotrace"

// anyFolder is a flag of go test: what is compiled does not name the checkout's folder, so that a clone in another folder
// does not compile it again. Only the race detector's tests have it, unless all of them are run: the others share what they
// compile with the programs that they build as users do, whose code is identified by the paths of its files.
const anyFolder = "-trimpath"

// set is one run of go test.
type set struct {
	label            string   // before the packages' names: "race "
	packages, except []string // patterns
	build            []string // flags of go test that choose what is compiled
	args             []string // further flags of go test
	p                int      // packages at a time
	env              []string // added to the environment
	cgo              bool     // it needs a C compiler
	lane             int      // sets of a lane run one after the other, beside those of other lanes
}

func run(sets []set, budgetFile, skipsFile string, again, slowest int) error {
	budget, err := readBudget(budgetFile)
	if err != nil {
		return err
	}
	maxSkips, err := readSkips(skipsFile)
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
	lacking := noCgo()
	sets = slices.DeleteFunc(sets, func(s set) bool {
		if len(s.packages) > 0 && s.cgo && lacking != "" {
			r.skip(strings.TrimSpace(s.label)+" tests", lacking)
			return true
		}
		return len(s.packages) == 0
	})
	for i, s := range sets {
		if sets[i].packages, err = s.list(budget); err != nil {
			return err
		}
		sets[i].except = nil
	}
	sets = level(sets, budget)
	compile(r, sets[0])
	lanes := map[int][]int{}
	for i, s := range sets {
		lanes[s.lane] = append(lanes[s.lane], i)
	}
	var running sync.WaitGroup
	errs := make([]error, len(sets))
	for _, lane := range lanes {
		running.Go(func() {
			for _, i := range lane {
				errs[i] = goTest(r, sets[i])
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := r.again(sets, again); err != nil {
		return err
	}
	left, err := os.ReadDir(tmp)
	if err != nil {
		return err
	}
	for _, e := range left {
		fmt.Fprintln(r.w, "left in the temporary directory:", e.Name())
	}
	r.listSlowest(slowest)
	return r.finish(time.Since(start), maxSkips)
}

// level moves packages of the first set to the ends of lanes that would end before it, as far as the budget can tell.
func level(sets []set, budget map[string]float64) []set {
	var lanes []int       // one entry for each package at a time of the first lane, and one for each other lane
	var minutes []float64 // until the entry is free
	for range sets[0].p {
		lanes, minutes = append(lanes, sets[0].lane), append(minutes, 0)
	}
	for _, s := range sets[1:] {
		i := slices.Index(lanes, s.lane)
		if i < 0 {
			i = len(lanes)
			lanes, minutes = append(lanes, s.lane), append(minutes, 0)
		}
		for _, p := range s.packages {
			minutes[i] += budget[s.label+short(p)] / float64(s.p)
		}
	}
	var stay []string
	moved := map[int][]string{} // by lane
	for _, p := range sets[0].packages {
		free := slices.Index(minutes, slices.Min(minutes))
		minutes[free] += budget[sets[0].label+short(p)]
		if lanes[free] == sets[0].lane {
			stay = append(stay, p)
		} else {
			moved[lanes[free]] = append(moved[lanes[free]], p)
		}
	}
	out := slices.Clone(sets)
	out[0].packages = stay
	for _, lane := range slices.Sorted(maps.Keys(moved)) {
		more := sets[0]
		more.packages, more.lane, more.p = moved[lane], lane, 1
		out = append(out, more)
	}
	return out
}

// compile compiles the set's packages without their tests and without linking. Errors are left to go test, which names
// the packages that they keep from being tested.
func compile(r *report, s set) {
	c := exec.Command("go", slices.Concat([]string{"list", "-export", "-e", "-f", `{{""}}`, rarely}, s.build, s.packages)...)
	c.Env = append(os.Environ(), s.env...)
	if c.Run() == nil {
		r.used(c.ProcessState.UserTime() + c.ProcessState.SystemTime())
	}
}

// list returns the import paths of the set's packages, those with the most minutes in the budget
// first, so that none of them runs alone at the end.
func (s set) list(budget map[string]float64) ([]string, error) {
	all, err := list(s.packages)
	if err != nil {
		return nil, err
	}
	if len(s.except) > 0 {
		except, err := list(s.except)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(p string) bool { return slices.Contains(except, p) })
	}
	slices.SortStableFunc(all, func(a, b string) int {
		return cmp.Compare(budget[s.label+short(b)], budget[s.label+short(a)])
	})
	return all, nil
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

// cudaEnv returns additional environment variables for -tags cuda.
func cudaEnv() []string {
	dir, err := os.Getwd()
	if err != nil {
		return nil // the build says what is missing
	}
	var env []string
	for name, value := range cudaheader.Env(filepath.Join(dir, filepath.FromSlash(cudaheader.Dir)), os.Getenv) {
		env = append(env, name+"="+value)
	}
	return env
}

// goTest runs the set into r. A failing test is recorded in the report; it is not an error.
func goTest(r *report, s set) error {
	c := exec.Command("go", slices.Concat([]string{"test", "-json", fmt.Sprintf("-p=%d", s.p)}, s.build, s.args, s.packages)...)
	c.Env = append(os.Environ(), s.env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	if err := r.read(out, s.label); err != nil {
		return fmt.Errorf("reading go test's events: %w", err)
	}
	err = c.Wait()
	r.used(c.ProcessState.UserTime() + c.ProcessState.SystemTime())
	if err != nil && r.failures() == 0 {
		return fmt.Errorf("go test %s: %w", strings.Join(slices.Concat(s.build, s.args, s.packages), " "), err)
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
