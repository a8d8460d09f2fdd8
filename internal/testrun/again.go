package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// failure is a failed test, or a package that failed outside its tests.
type failure struct {
	label string // of the set: "race "
	pkg   string // import path
	test  string // with its subtest; empty for a package
	text  string // the output, ready to print
}

// surely is output after which a second attempt proves nothing: the defect is there, however rarely it shows.
var surely = regexp.MustCompile(`DATA RACE|race detected during execution|(?m)^\s*(panic:|fatal error:|SIG[A-Z]+:)`)

var (
	// slow is what the message of a test says that waited for too long.
	slow = regexp.MustCompile(`(?i)\btim(ed|e)[ -]?out\b|deadline exceeded|\bdeadline\b|waited a minute|after a minute|within (a minute|\d+ ?m?s\b|%v|[0-9.]+m?s)`)
	// message is the beginning of a test's message, and compared what the messages of comparisons say.
	message  = regexp.MustCompile(`(?m)^\s*\S+_test\.go:\d+: `)
	compared = regexp.MustCompile(`(?i)\bwant\b|\bdiffer|\bother (weights|bits|losses|digests?|rows|values)\b|not equal|to the bit|\bbits?\b|\bdigests?\b`)
)

// timedOut reports whether a test failed by nothing but waiting for too long: each of its messages says so, and none
// compares anything. Only such a failure can come from a busy machine. Any other is a difference, which is a defect
// even if it shows once in a hundred runs: a second attempt that passes proves nothing.
func timedOut(text string) bool {
	if surely.MatchString(text) {
		return false
	}
	at := message.FindAllStringIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if said := text[m[0]:end]; !slow.MatchString(said) || compared.MatchString(said) {
			return false
		}
	}
	return len(at) > 0
}

// again runs tests that timed out a second time, alone, if at most limit tests failed. A test that passes then is
// counted as passed, in the closing line as one of a second attempt, and listed with the output of its failure: on a busy
// machine a process may stand still for seconds, and a whole run should not be lost by that. All other failures are final.
func (r *report) again(sets []set, limit int) error {
	r.mu.Lock()
	broken := slices.Clone(r.broken)
	r.mu.Unlock()
	if len(broken) == 0 || len(broken) > limit {
		return nil
	}
	passed := map[string]bool{} // by label, package and test without subtests
	var left []failure
	for _, f := range broken {
		if f.test == "" || !timedOut(f.text) {
			left = append(left, f)
			continue
		}
		top, _, _ := strings.Cut(f.test, "/")
		key := f.label + f.pkg + " " + top
		ok, done := passed[key]
		if !done {
			var err error
			if ok, err = second(sets, f, top); err != nil {
				return err
			}
			passed[key] = ok
		}
		if ok {
			r.unsteady = append(r.unsteady, f)
		} else {
			left = append(left, f)
		}
	}
	r.passed += len(broken) - len(left)
	r.failed -= len(broken) - len(left)
	r.broken = left
	return nil
}

// second reports whether a test passes alone.
func second(sets []set, f failure, top string) (bool, error) {
	s := sets[slices.IndexFunc(sets, func(s set) bool { return s.label == f.label })]
	fmt.Fprintf(os.Stderr, "testrun: %s%s %s once more, alone\n", f.label, short(f.pkg), top)
	s.packages, s.except = []string{f.pkg}, nil
	s.args = append(slices.Clip(s.args), "-count=1", "-run", "^"+regexp.QuoteMeta(top)+"$")
	r := newReport(nil, io.Discard)
	if err := goTest(r, s); err != nil {
		return false, err
	}
	return r.failures() == 0 && r.passed > 0, nil
}

// listUnsteady prints the tests that passed at their second attempt only.
func (r *report) listUnsteady() {
	if len(r.unsteady) == 0 {
		return
	}
	fmt.Fprintf(r.w, "\ntimed out at first and passed alone, to be mended (%d)\n", len(r.unsteady))
	for _, f := range r.unsteady {
		fmt.Fprint(r.w, extract(f.text))
	}
}
