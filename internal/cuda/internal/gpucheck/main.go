// Command gpucheck is the check that "make gpu-check" runs on a machine with a real GPU: it runs on
// the device all tests that otherwise run on the PTX interpreter, and then measures speed. It is
// part of a bundle with the programs that it starts (scripts/gpu-bundle.sh makes the bundle) and
// needs no network, no Go and no compiler.
//
//	gpucheck [-out DIR] [-only PIECE,PIECE] [-budget 8m] [-data DIR] [-commit HASH] [-quick]
//
// The pieces are preflight, tests, parity, ranks, bench, epochs, accuracy, profile and sanitizer, in this order; -only
// selects some. Each piece ends within the time of -budget, and reports the items that it left out for lack of time.
// gpucheck writes gpu-DATE-DEVICE-PIECES.json and .md to DIR, again after each item, so that a lost machine costs
// one item only. The exit status is 1 if an item failed.
//
// Without a GPU, the tests and, if the bundle has gnb-interpreted, small runs use the PTX
// interpreter, which checks that the bundle is complete.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/machine"
)

// report is the content of the JSON report.
type report struct {
	Date      time.Time  `json:"date"`
	Commit    string     `json:"commit"` // from which the bundle was made
	Device    string     `json:"device"`
	Pieces    []piece    `json:"pieces"`
	Doctor    string     `json:"doctor,omitempty"`
	Machine   string     `json:"machine,omitempty"` // output of nvidia-smi
	Suites    []suite    `json:"tests,omitempty"`
	Sanitizer []suite    `json:"sanitizer,omitempty"`
	Parity    []parity   `json:"training_parity,omitempty"`
	Measures  []measure  `json:"benchmarks,omitempty"`
	Runs      []training `json:"epochs,omitempty"`
	Peers     []peer     `json:"peers,omitempty"`
	Accuracy  []accuracy `json:"accuracy,omitempty"`
	Profiles  []profile  `json:"profiles,omitempty"`

	Interpreted bool `json:"interpreted,omitempty"` // there is no GPU
}

// piece is the result of one piece of the check.
type piece struct {
	Name    string   `json:"name"`
	Seconds float64  `json:"seconds"`
	LeftOut []string `json:"left_out,omitempty"` // items left out, with reasons
	Failed  string   `json:"failed,omitempty"`   // reason why the piece could not run at all
}

// options are the command line's.
type options struct {
	out, data, commit string
	only              []string
	budget            time.Duration
	quick             bool
}

// pieces lists all pieces in the order in which they run.
var pieces = []struct {
	name string
	run  func(c *checker, r *report) error
}{
	{"preflight", (*checker).preflight},
	{"tests", (*checker).tests},
	{"parity", (*checker).parity},
	{"ranks", (*checker).ranks},
	{"bench", (*checker).bench},
	{"epochs", (*checker).epochs},
	{"accuracy", (*checker).accuracy},
	{"profile", (*checker).profile},
	{"sanitizer", (*checker).sanitized},
}

func main() {
	var o options
	only := flag.String("only", "", "`pieces` to run, separated by commas; all by default")
	flag.StringVar(&o.out, "out", ".", "`directory` for the results")
	flag.StringVar(&o.data, "data", filepath.Join(os.TempDir(), "gpucheck-data"), "`directory` of graphs, made once and kept")
	flag.StringVar(&o.commit, "commit", "", "refuse a bundle of another commit than this `hash`")
	flag.DurationVar(&o.budget, "budget", 8*time.Minute, "`time` for each piece")
	flag.BoolVar(&o.quick, "quick", false, "smaller graphs, fewer repetitions")
	flag.Parse()
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	self, err := os.Executable()
	if err == nil && flag.NArg() > 0 {
		err = fmt.Errorf("it takes no argument %q", flag.Arg(0))
	}
	if err == nil {
		err = run(filepath.Dir(self), o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpucheck:", err)
		os.Exit(1)
	}
}

func run(dir string, o options) error {
	for _, name := range o.only {
		if !slices.ContainsFunc(pieces, func(p struct {
			name string
			run  func(c *checker, r *report) error
		},
		) bool {
			return p.name == name
		}) {
			return fmt.Errorf("there is no piece %q; there are %s", name, pieceNames())
		}
	}
	commit, err := bundleCommit(dir)
	if err != nil {
		return err
	}
	if o.commit != "" && !strings.HasPrefix(commit, o.commit) {
		return fmt.Errorf("the bundle is of commit %s, not %s; rebuild it with \"make gpu-bundle\"", commit, o.commit)
	}
	scratch, err := os.MkdirTemp("", "gpucheck-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	c := &checker{dir: dir, quick: o.quick, scratch: scratch, data: o.data, gnb: "gnb"}
	r := report{Date: time.Now().UTC(), Commit: commit}
	if err := c.find(&r); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	name := "gpu-" + r.Date.Format("2006-01-02-150405") + "-" + regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(r.Device, "-")
	if len(o.only) > 0 {
		name += "-" + strings.Join(o.only, "-")
	}
	name = filepath.Join(o.out, name)
	c.save = func() error { return r.write(name) }
	fmt.Printf("%s, bundle of commit %s\n", r.Device, commit)
	for _, p := range pieces {
		if len(o.only) > 0 && !slices.Contains(o.only, p.name) {
			continue
		}
		start := time.Now()
		c.deadline = start.Add(o.budget)
		r.Pieces = append(r.Pieces, piece{Name: p.name})
		c.piece = &r.Pieces[len(r.Pieces)-1]
		fmt.Printf("== %s\n", p.name)
		if err := p.run(c, &r); err != nil {
			c.piece.Failed = err.Error()
			fmt.Printf("%s: %v\n", p.name, err)
		}
		c.piece.Seconds = time.Since(start).Seconds()
		if err := c.save(); err != nil {
			return err
		}
	}
	fmt.Printf("%s\nkept in %s.json and .md\n", r.markdown(), name)
	return r.failure()
}

func pieceNames() string {
	names := make([]string, len(pieces))
	for i, p := range pieces {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// bundleCommit returns the commit of a bundle, which scripts/gpu-bundle.sh recorded.
func bundleCommit(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "COMMIT"))
	if err != nil {
		return "", fmt.Errorf("the bundle's commit is unknown: %w; rebuild it with \"make gpu-bundle\"", err)
	}
	commit, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(commit), nil
}

// find finds the GPU, or selects the interpreter.
func (c *checker) find(r *report) error {
	_, err := machine.GPUSlots()
	if err == nil {
		r.Device = c.device()
		return nil
	}
	c.interpreted, r.Interpreted, r.Device = true, true, "PTX interpreter"
	fmt.Printf("%v: tests and training use the interpreter of the kernels, so no time says anything about a GPU\n", err)
	const own = "gnb-interpreted"
	if !executable(filepath.Join(c.dir, own)) {
		return nil
	}
	c.gnb = own
	gpu := filepath.Join(c.scratch, "gpus", "0000:01:00.0")
	if err := os.MkdirAll(gpu, 0o755); err != nil {
		return err
	}
	c.env = append(c.env, envknob.NVIDIAProc.Name+"="+c.scratch)
	return os.WriteFile(filepath.Join(gpu, "information"), []byte("Model: Interpreter\n"), 0o600)
}

// trains reports whether training runs are possible, and otherwise leaves the piece out.
func (c *checker) trains() bool {
	if c.interpreted && c.gnb == "gnb" {
		c.leaveOut("all of it", "there is no GPU, and the bundle has no gnb-interpreted")
		return false
	}
	return true
}

// write writes the report's two files atomically.
func (r report) write(name string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(name+".json", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return atomicfile.WriteFile(name+".md", []byte(r.markdown()), 0o644)
}

// failure returns an error that names the failed items, or nil.
func (r report) failure() error {
	var failed []string
	add := func(what, why string) {
		if why != "" {
			failed = append(failed, what+": "+why)
		}
	}
	for _, p := range r.Pieces {
		add(p.Name, p.Failed)
	}
	for _, s := range slices.Concat(r.Suites, r.Sanitizer) {
		failed = append(failed, s.Failed...)
	}
	for _, p := range r.Parity {
		add("training of "+p.Name+" on the device and the CPU", p.Failed)
	}
	for _, t := range r.Runs {
		add("training of "+t.Name, t.Failed)
	}
	for _, m := range r.Measures {
		add("benchmarks of "+m.Name, m.Failed)
	}
	for _, a := range r.Accuracy {
		add("accuracy of "+a.Name, a.Failed)
	}
	for _, p := range r.Profiles {
		add("profile of "+p.Name, p.Failed)
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d failures: %s", len(failed), strings.Join(failed, "; "))
}
