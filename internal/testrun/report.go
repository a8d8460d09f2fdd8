package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

// event is one line of "go test -json".
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output, e.g. "m/p [m/p.test]"
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// test is the state of one test, or, with the empty name, of a package outside its tests.
type test struct {
	result  string // pass, fail, skip; empty while it runs
	seconds float64
	output  []string
}

// report collects events and prints. Several runs of "go test" may be read at a time.
type report struct {
	budget map[string]float64
	w      io.Writer

	mu             sync.Mutex
	passed, failed int
	skipped        []skip
	broken         []failure
	unsteady       []failure // timed out, and passed at the second attempt
	took           []timed
	processor      time.Duration // time of go test and of all processes below it
	builds         map[string][]string
}

func newReport(budget map[string]float64, w io.Writer) *report {
	return &report{budget: budget, w: w, builds: map[string][]string{}}
}

func (r *report) failures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// used adds processor time.
func (r *report) used(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processor += d
}

// timed is a test without its subtests, with its package.
type timed struct {
	name    string
	seconds float64
}

// listSlowest prints the n tests that took longest.
func (r *report) listSlowest(n int) {
	slices.SortStableFunc(r.took, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	if n = min(n, len(r.took)); n > 0 {
		fmt.Fprintf(r.w, "\nthe slowest tests, in seconds\n")
	}
	for _, t := range r.took[:n] {
		fmt.Fprintf(r.w, "%7.1f %s\n", t.seconds, t.name)
	}
}

// skip is an untested item, a package and test, with the reason.
type skip struct{ what, why string }

// skip records an untested item.
func (r *report) skip(what, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped = append(r.skipped, skip{what, why})
}

// listSkips prints the skips: first those for lack of a prerequisite, grouped by prerequisite with
// how to make them run, then the others. It returns how many of them could have run on this
// machine.
func (r *report) listSkips(maxSkips int) (possible int) {
	wanting := map[string][]skip{}
	var others []skip
	for _, s := range r.skipped {
		n, why, ok := testneed.Of(s.why)
		if !ok {
			others = append(others, s)
			continue
		}
		wanting[n.Name] = append(wanting[n.Name], skip{s.what, why})
	}
	list := func(skips []skip) {
		for _, s := range skips {
			fmt.Fprintln(r.w, "  "+s.what+": "+s.why)
		}
	}
	for _, n := range testneed.All() {
		skips := wanting[n.Name]
		if len(skips) == 0 {
			continue
		}
		here := n.Here()
		if here {
			possible += len(skips)
		}
		fmt.Fprintf(r.w, "\nskipped for want of %s (%d)", n.What, len(skips))
		if here && maxSkips >= 0 {
			fmt.Fprint(r.w, ", which this machine has")
		}
		fmt.Fprintf(r.w, "; to run them: %s\n", n.Way)
		list(skips)
	}
	if len(others) > 0 {
		fmt.Fprintf(r.w, "\nskipped (%d)\n", len(others))
		list(others)
	}
	return possible + len(others)
}

// read reads the events of one "go test"; label ("race ", "cuda ") is prefixed to the packages'
// names.
func (r *report) read(from io.Reader, label string) error {
	tests := map[string]map[string]*test{}
	s := bufio.NewScanner(from)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var e event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			continue // a line that the go command itself printed between the events
		}
		if e.Action == "build-output" {
			r.mu.Lock()
			r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
			r.mu.Unlock()
		}
		if e.Package == "" {
			continue
		}
		if tests[e.Package] == nil {
			tests[e.Package] = map[string]*test{}
		}
		t := tests[e.Package][e.Test]
		if t == nil {
			t = &test{}
			tests[e.Package][e.Test] = t
		}
		switch e.Action {
		case "output":
			t.output = append(t.output, e.Output)
		case "pass", "fail", "skip":
			t.result, t.seconds = e.Action, e.Elapsed
			if e.Test == "" {
				r.endPackage(label, e, tests[e.Package])
				delete(tests, e.Package)
			}
		}
	}
	// The package has no end event: go test was killed.
	for name, tt := range tests {
		tt[""] = &test{result: "fail", output: []string{"it did not end\n"}}
		r.endPackage(label, event{Package: name, Action: "fail"}, tt)
	}
	return s.Err()
}

// endPackage counts a package's tests and prints its line.
func (r *report) endPackage(label string, e event, tests map[string]*test) {
	name := label + short(e.Package)
	names := make([]string, 0, len(tests))
	for n := range tests {
		if n != "" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	r.mu.Lock()
	defer r.mu.Unlock()
	failed, before := 0, len(r.broken)
	for _, n := range names {
		t := tests[n]
		if !strings.Contains(n, "/") {
			r.took = append(r.took, timed{name + " " + n, t.seconds})
		}
		below := func(result string) bool {
			return slices.ContainsFunc(names, func(m string) bool {
				return strings.HasPrefix(m, n+"/") && (result == "" || tests[m].result == result)
			})
		}
		switch {
		case t.result == "fail" && !below("fail"), t.result == "" && !below(""): // the second: it never ended
			failed++
			r.broken = append(r.broken, failure{label, e.Package, n, fmt.Sprintf("--- %s %s\n%s", name, n, relevant(t.output))})
		case below(""): // its subtests are counted instead
		case t.result == "pass":
			r.passed++
		case t.result == "skip" && !strings.HasPrefix(label, "race "):
			r.skipped = append(r.skipped, skip{name + " " + n, reason(t.output)})
		}
	}
	if e.Action == "fail" && failed == 0 {
		failed++
		text := relevant(tests[""].output)
		if e.FailedBuild != "" {
			text = strings.Join(r.builds[e.FailedBuild], "")
		}
		r.broken = append(r.broken, failure{label, e.Package, "", fmt.Sprintf("--- %s\n%s", name, text)})
	}
	r.failed += failed
	if len(names) == 0 && failed == 0 {
		return // no tests
	}
	state := "ok  "
	if failed > 0 {
		state = "FAIL"
	}
	minutes := e.Elapsed / 60
	line := fmt.Sprintf("%s  %-36s %6.2f min", state, name, minutes)
	if b, ok := r.budget[name]; ok {
		line += fmt.Sprintf(" of %.2f", b)
		if minutes > b {
			line += ", over budget"
		}
	} else if len(r.budget) > 0 {
		line += ", no budget"
	}
	fmt.Fprintln(r.w, line)
	for _, b := range r.broken[before:] {
		fmt.Fprint(r.w, extract(b.text))
	}
}

// finish prints the skips, the failures and the closing line.
func (r *report) finish(took time.Duration, maxSkips int) error {
	possible := r.listSkips(maxSkips)
	r.listUnsteady()
	for _, b := range r.broken {
		fmt.Fprintf(r.w, "\n%s\n", strings.TrimRight(b.text, "\n"))
	}
	var err error
	switch {
	case r.failed > 0:
		err = errors.New("tests failed")
	case maxSkips >= 0 && possible > maxSkips:
		err = fmt.Errorf("%d tests were skipped that could have run here, and the committed number is %d; make them run, or say in its file why not", possible, maxSkips)
	}
	fmt.Fprintf(r.w, "\n%.1f minutes in all, %.1f minutes of processor time\n", took.Minutes(), r.processor.Minutes())
	if err != nil && r.failed == 0 {
		fmt.Fprintln(r.w, err)
	}
	again := ""
	if n := len(r.unsteady); n > 0 {
		again = fmt.Sprintf(" (%d at a second attempt, after a time-out)", n)
	}
	fmt.Fprintf(r.w, "%d passed%s, %d failed, %d skipped\n", r.passed, again, r.failed, len(r.skipped))
	return err
}

// short returns a package's path below the module: everything after the third element.
func short(pkg string) string {
	if parts := strings.SplitN(pkg, "/", 4); len(parts) == 4 && strings.Contains(parts[0], ".") {
		return parts[3]
	}
	return pkg
}

// maxLines is the number of lines shown of a failing test's output.
const maxLines = 120

// relevant returns a test's output without progress lines, limited to maxLines.
func relevant(lines []string) string {
	var out []string
	for _, l := range lines {
		t := strings.TrimSpace(l)
		if t == "" || t == "PASS" || t == "FAIL" || strings.HasPrefix(t, "=== ") || strings.HasPrefix(t, "FAIL\t") || strings.HasPrefix(t, "--- ") {
			continue
		}
		out = append(out, l)
	}
	if len(out) > maxLines {
		left := len(out) - maxLines
		out = append(append(slices.Clone(out[:maxLines/2]), fmt.Sprintf("    … %d lines left out\n", left)), out[len(out)-maxLines/2:]...)
	}
	return strings.Join(out, "")
}

// extractLines is the number of lines of a failure shown directly below its package's line.
const extractLines = 12

// extract returns a failure's head, and the beginning and the end of its output, indented, so that
// a reader of a part of a long log sees the failure.
func extract(failure string) string {
	lines := strings.Split(strings.TrimRight(failure, "\n"), "\n")
	if len(lines) > extractLines {
		lines = slices.Concat(lines[:extractLines/2], []string{"…"}, lines[len(lines)-extractLines/2:])
	}
	return "      " + strings.Join(lines, "\n      ") + "\n"
}

// reason returns a skipped test's message without its file and line.
func reason(lines []string) string {
	text := strings.Join(strings.Fields(relevant(lines)), " ")
	if at, rest, ok := strings.Cut(text, ": "); ok && strings.Contains(at, ".go:") {
		text = rest
	}
	return text
}
