package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

// events are lines as "go test -json" writes them: one package passes with a skip and a subtest,
// one has a failing subtest, one does not build, and one panics.
const events = `{"Action":"run","Package":"m.test/a/b/p","Test":"TestA"}
{"Action":"pass","Package":"m.test/a/b/p","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"m.test/a/b/p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"m.test/a/b/p","Test":"TestB","Output":"    b_test.go:7: no numpy here\n"}
{"Action":"skip","Package":"m.test/a/b/p","Test":"TestB"}
{"Action":"pass","Package":"m.test/a/b/p","Test":"TestC/one"}
{"Action":"pass","Package":"m.test/a/b/p","Test":"TestC/two"}
{"Action":"pass","Package":"m.test/a/b/p","Test":"TestC"}
{"Action":"pass","Package":"m.test/a/b/p","Elapsed":90}
{"Action":"output","Package":"m.test/a/b/q","Test":"TestD/x","Output":"    d_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"m.test/a/b/q","Test":"TestD/x"}
{"Action":"fail","Package":"m.test/a/b/q","Test":"TestD"}
{"Action":"fail","Package":"m.test/a/b/q","Elapsed":0.5}
{"ImportPath":"m.test/a/b/r [m.test/a/b/r.test]","Action":"build-output","Output":"r.go:1:1: syntax error\n"}
{"ImportPath":"m.test/a/b/r [m.test/a/b/r.test]","Action":"build-fail"}
{"Action":"fail","Package":"m.test/a/b/r","Elapsed":0,"FailedBuild":"m.test/a/b/r [m.test/a/b/r.test]"}
{"Action":"run","Package":"m.test/a/b/s","Test":"TestE"}
{"Action":"output","Package":"m.test/a/b/s","Test":"TestE","Output":"panic: boom\n"}
{"Action":"fail","Package":"m.test/a/b/s","Elapsed":0.1}
{"Action":"output","Package":"m.test/a/b/none","Output":"?   \tm.test/a/b/none\t[no test files]\n"}
{"Action":"skip","Package":"m.test/a/b/none","Elapsed":0}
`

func TestReport(t *testing.T) {
	var b bytes.Buffer
	r := newReport(map[string]float64{"p": 1}, &b)
	if err := r.read(strings.NewReader(events), ""); err != nil {
		t.Fatal(err)
	}
	r.listSlowest(1)
	r.used(90 * time.Second)
	if err := r.finish(time.Minute, 1); err == nil {
		t.Error("failing tests give no error")
	}
	text := b.String()
	for _, want := range []string{
		"1.50 min of 1.00, over budget", "skipped (1)\n  p TestB: no numpy here",
		"--- q TestD/x\n    d_test.go:3: got 1, want 2", "r.go:1:1: syntax error", "panic: boom", "FAIL  q",
		"the slowest tests, in seconds\n    1.0 p TestA\n\n", "1.0 minutes in all, 1.5 minutes of processor time\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if !strings.Contains(text, "FAIL  q                                      0.01 min, no budget\n      --- q TestD/x\n          d_test.go:3: got 1, want 2\n") {
		t.Errorf("a failure is not listed below its package's line:\n%s", text)
	}
	if strings.Contains(text, "none") {
		t.Error("a package without tests has a line")
	}
	if !strings.HasSuffix(text, "\n3 passed, 3 failed, 1 skipped\n") {
		t.Errorf("closing line:\n%s", text)
	}
}

func TestMoreSkipsThanCommittedFail(t *testing.T) {
	passing := events[:strings.Index(events, `{"Action":"output","Package":"m.test/a/b/q"`)]
	for _, tc := range []struct {
		label string
		limit int
		fails bool
		last  string
	}{
		{"", 1, false, "3 passed, 0 failed, 1 skipped"},
		{"", 0, true, "3 passed, 0 failed, 1 skipped"},
		{"", -1, false, "3 passed, 0 failed, 1 skipped"},
		{"race ", 0, false, "3 passed, 0 failed, 0 skipped"}, // with -short, skipped tests do not count
	} {
		var b bytes.Buffer
		r := newReport(nil, &b)
		if err := r.read(strings.NewReader(passing), tc.label); err != nil {
			t.Fatal(err)
		}
		if err := r.finish(0, tc.limit); (err != nil) != tc.fails {
			t.Errorf("%+v: %v", tc, err)
		}
		if !strings.HasSuffix(b.String(), tc.last+"\n") {
			t.Errorf("%+v: closing line of\n%s", tc, b.String())
		}
	}
}

// If go test is killed, the report of a package lacks its end, which counts as a failure.
func TestInterruptedPackageFails(t *testing.T) {
	r := newReport(nil, &bytes.Buffer{})
	if err := r.read(strings.NewReader(`{"Action":"run","Package":"m.test/a/b/p","Test":"TestA"}`+"\n"), ""); err != nil {
		t.Fatal(err)
	}
	if r.failures() == 0 {
		t.Error("no failure")
	}
}

func TestFiles(t *testing.T) {
	write := func(text string) string {
		f := filepath.Join(t.TempDir(), "f.txt")
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	b, err := readBudget(write("# minutes\ngraphops/nn 0.5\nrace   multigpu 1\n\n"))
	if err != nil || b["graphops/nn"] != 0.5 || b["race multigpu"] != 1 || len(b) != 2 {
		t.Errorf("%v %v", b, err)
	}
	if _, err := readBudget(write("graphops\n")); err == nil || !strings.Contains(err.Error(), "f.txt:1") {
		t.Errorf("a budget line without minutes gave %v", err)
	}
	if n, err := readSkips(write("# why\n3\n")); n != 3 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if _, err := readSkips(write("few\n")); err == nil {
		t.Error("a word instead of a number gave no error")
	}
	if n, err := readSkips(""); n != -1 || err != nil {
		t.Errorf("without a budget file: %d %v", n, err)
	}
}

func TestLongFailureIsCut(t *testing.T) {
	var b strings.Builder
	b.WriteString("--- q TestD\n")
	for i := range 100 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	got := extract(b.String())
	if n := strings.Count(got, "\n"); n != extractLines+1 {
		t.Errorf("%d lines", n)
	}
	for _, want := range []string{"      --- q TestD\n", "line 0\n", "…", "line 99\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// The packages that took longest come first; those in except are left out.
func TestList(t *testing.T) {
	s := set{label: "race ", packages: []string{"../envknob", "../phrase", "../mapped", "../testneed"}, except: []string{"../phrase"}}
	got, err := s.list(map[string]float64{"race internal/mapped": 2, "internal/testneed": 3, "race internal/envknob": 1})
	const at = "github.com/graphnb/graphnb/internal/"
	if want := []string{at + "mapped", at + "envknob", at + "testneed"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// Lanes that would end early take packages of the first, whose other packages keep their order; without a budget all stay.
func TestLevel(t *testing.T) {
	at := func(names ...string) []string {
		for i, n := range names {
			names[i] = "m.test/a/b/" + n
		}
		return names
	}
	sets := func() []set {
		return []set{
			{packages: at("a", "b", "c", "d", "e", "f"), p: 2},
			{packages: at("l"), p: 1, lane: 1},
			{label: "cuda ", packages: at("a"), p: 1, lane: 1},
			{label: "race ", packages: at("a", "b"), p: 2, lane: 2},
		}
	}
	budget := map[string]float64{"a": 6, "b": 5, "c": 4, "d": 3, "e": 2, "f": 1, "l": 3, "cuda a": 3, "race a": 7, "race b": 7}
	got := level(sets(), budget)
	// The first lane is busy for 9 minutes with two at a time, the others for 8 instead of 6 and 7.
	want := []string{"0 a b c d", "1 l", "1 cuda a", "2 race a b", "1 e", "2 f"}
	var said []string
	for _, s := range got {
		names := fmt.Sprint(s.lane, " ", s.label)
		for _, p := range s.packages {
			names += short(p) + " "
		}
		said = append(said, strings.TrimSpace(names))
	}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	if got := level(sets(), nil); len(got) != 4 || !slices.Equal(got[0].packages, sets()[0].packages) {
		t.Errorf("without a budget: %v", got)
	}
}

// The report lists what a machine lacks, with the way to provide it. A skip counts as an error only
// if the machine has what the skip names.
func TestSkipsForWant(t *testing.T) {
	event := func(test, why string) string {
		return fmt.Sprintf(`{"Action":"output","Package":"m.test/a/b/p","Test":%q,"Output":"    p_test.go:7: %s\n"}`+"\n"+
			`{"Action":"skip","Package":"m.test/a/b/p","Test":%q}`+"\n", test, why, test)
	}
	events := event("TestA", "needs data: there is no cora among them") + event("TestB", "needs data: there is no arxiv among them") +
		`{"Action":"pass","Package":"m.test/a/b/p","Elapsed":1}` + "\n"
	other := event("TestC", "it is Tuesday") + `{"Action":"pass","Package":"m.test/a/b/p","Elapsed":1}` + "\n"
	for _, tc := range []struct {
		name, events string
		here         bool
		limit        int
		fails        bool
		want         string
	}{
		{"no data, strict", events, false, 0, false, "skipped for want of the public graphs (2); to run them: set GNB_DATA"},
		{"no data, any", events, false, -1, false, "  p TestA: there is no cora among them\n  p TestB: there is no arxiv"},
		{"data there, strict", events, true, 0, true, "skipped for want of the public graphs (2), which this machine has; to run them"},
		{"data there, any", events, true, -1, false, "(2); to run them"},
		{"another reason, strict", other, false, 0, true, "\nskipped (1)\n  p TestC: it is Tuesday\n"},
		{"another reason, one allowed", other, false, 1, false, "\nskipped (1)\n"},
		{"another reason, any", other, false, -1, false, "\nskipped (1)\n"},
	} {
		dir := filepath.Join(t.TempDir(), "none")
		if tc.here {
			dir = t.TempDir()
		}
		t.Setenv("GNB_DATA", dir)
		var b bytes.Buffer
		r := newReport(nil, &b)
		if err := r.read(strings.NewReader(tc.events), ""); err != nil {
			t.Fatal(err)
		}
		if err := r.finish(0, tc.limit); (err != nil) != tc.fails {
			t.Errorf("%s: %v", tc.name, err)
		}
		if !strings.Contains(b.String(), tc.want) {
			t.Errorf("%s: no %q in\n%s", tc.name, tc.want, b.String())
		}
	}
}

// Only a failure whose messages all say that time ran out is one that a second attempt may undo.
func TestTimedOut(t *testing.T) {
	const at = "--- p TestX (1.00s)\n"
	for text, want := range map[string]bool{
		at + "    p_test.go:7: timed out waiting for the other ranks\n":                               true,
		at + "    p_test.go:7: running: context deadline exceeded\n":                                  true,
		at + "    p_test.go:7: dial tcp: i/o timeout\n":                                               true,
		at + "    p_test.go:7: rank 1 ended: did not happen within 30s: steps\n    and its output\n":  true,
		at + "    p_test.go:7: waited a minute for the kernel\n    p_test.go:9: timed out again\n":    true,
		at + "    p_test.go:7: the weights differ\n":                                                  false,
		at + "    p_test.go:7: 4 workers have other weights than one\n":                               false,
		at + "    p_test.go:7: loss 0.5, want 0.25\n":                                                 false,
		at + "    p_test.go:7: timed out\n    p_test.go:9: rank 1 has 0.5000001\n":                    false,
		at + "    p_test.go:7: after the time-out the bits are 0x3f000001, want 0x3f000000\n":         false,
		at + "    p_test.go:7: timed out\npanic: oh\n":                                                false,
		at + "    p_test.go:7: timed out\n    testing.go:1: race detected during execution of test\n": false,
		at + "a worker printed that something timed out\n":                                            false,
		"": false,
	} {
		if got := timedOut(text); got != want {
			t.Errorf("%q is a time-out: %v, want %v", text, got, want)
		}
	}
}

// A test that timed out and passes alone is counted as passed and listed; one that fails again, a panic, a report of
// the race detector, a failure outside tests and any comparison stay failures, even if they pass alone: among them the
// difference of one bit in one of two workers. Above the limit nothing runs again.
func TestFailedTestsRunAgain(t *testing.T) {
	testneed.NotShort(t, "it runs go test four times")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m.test/a/b\n\ngo 1.26\n",
		"p/p_test.go": `package p
import ("bytes"; "fmt"; "math"; "os"; "os/exec"; "testing")
func TestMain(m *testing.M) {
	if rank := os.Getenv("GNB_TEST_RANK"); rank != "" { // a worker, whose sum has one other bit at the first attempt
		bits := math.Float32bits(0.5)
		if rank == "1" && os.Getenv("GNB_TEST_FIRST") != "" { bits ^= 1 }
		fmt.Print(bits)
		return
	}
	os.Exit(m.Run())
}
func TestWorkers(t *testing.T) {
	var sums [2][]byte
	for rank := range sums {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), fmt.Sprint("GNB_TEST_RANK=", rank))
		sums[rank], _ = c.Output()
	}
	if !bytes.Equal(sums[0], sums[1]) { t.Errorf("the sums are %s and %s", sums[0], sums[1]) }
}
func TestOnce(t *testing.T) { t.Run("sub", func(t *testing.T) { if os.Getenv("GNB_TEST_FIRST") != "" { t.Fatal("timed out waiting for a process") } }) }
func TestAlways(t *testing.T) { t.Fatal("broken") }
func TestRaces(t *testing.T) { if os.Getenv("GNB_TEST_FIRST") != "" { t.Fatal("race detected during execution of test") } }
`,
	} {
		f := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	for _, tc := range []struct {
		limit          int
		passed, failed int
	}{{4, 1, 3}, {2, 0, 4}} {
		var b bytes.Buffer
		r := newReport(nil, &b)
		sets := []set{{packages: []string{"./p"}, p: 1, args: []string{"-vet=off"}, env: []string{"GNB_TEST_FIRST=1"}}}
		if err := goTest(r, sets[0]); err != nil {
			t.Fatal(err)
		}
		sets[0].env = nil
		if err := r.again(sets, tc.limit); err != nil {
			t.Fatal(err)
		}
		if err := r.finish(0, -1); err == nil {
			t.Error("failing tests give no error")
		}
		if r.passed != tc.passed || r.failed != tc.failed {
			t.Errorf("limit %d: %d passed and %d failed, want %d and %d:\n%s", tc.limit, r.passed, r.failed, tc.passed, tc.failed, b.String())
		}
		if listed := strings.Contains(b.String(), "timed out at first and passed alone, to be mended (1)\n      --- p TestOnce/sub\n"); listed != (tc.passed == 1) {
			t.Errorf("limit %d: the test that passed alone is listed: %v\n%s", tc.limit, listed, b.String())
		}
		if counted := strings.Contains(b.String(), "1 passed (1 at a second attempt, after a time-out), 3 failed"); counted != (tc.passed == 1) {
			t.Errorf("limit %d: the second attempt is counted: %v\n%s", tc.limit, counted, b.String())
		}
	}
}
