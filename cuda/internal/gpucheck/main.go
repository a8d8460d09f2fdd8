// Command gpucheck is what "make gpu-check" runs on a machine with a real GPU: everything that the tests
// run on the interpreter, on the device; then benchmarks. It lies in a bundle beside the programs that it
// starts (scripts/gpu-bundle.sh makes it) and needs no network, no Go and no compiler.
//
//	gpucheck [-out DIR] [-quick]
//
// Where there is no GPU the tests run on the interpreter of the kernels, in their quick form, and nothing is
// measured or kept: that shows that a bundle is whole. Else it leaves gpu-DATE-DEVICE.json and .md in DIR. The exit status is 1 when a test failed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
)

// report is the JSON that is left.
type report struct {
	Date      time.Time  `json:"date"`
	Device    string     `json:"device"`
	Doctor    string     `json:"doctor"`
	Suites    []suite    `json:"tests"`
	Sanitizer []suite    `json:"sanitizer"` // null: there is none
	Parity    []parity   `json:"training_parity"`
	Measures  []measure  `json:"benchmarks"`
	Runs      []training `json:"epochs"`
	Peers     []peer     `json:"peers"`

	Interpreted bool `json:"interpreted,omitempty"` // there is no GPU
}

// suite is one test binary's outcome.
type suite struct {
	Name    string   `json:"name"`
	Passed  int      `json:"passed"`
	Failed  []string `json:"failed"`
	Skipped int      `json:"skipped"`
	Seconds float64  `json:"seconds"`
	Output  string   `json:"output,omitempty"` // where something failed, its end
}

func (s suite) ok() bool { return len(s.Failed) == 0 }

func main() {
	out := flag.String("out", ".", "`directory` for the results")
	quick := flag.Bool("quick", false, "leave out what takes minutes: the largest graph, the sanitizer")
	flag.Parse()
	self, err := os.Executable()
	if err == nil {
		err = run(filepath.Dir(self), *out, *quick)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpucheck:", err)
		os.Exit(1)
	}
}

func run(dir, out string, quick bool) error {
	scratch, err := os.MkdirTemp("", "gpucheck-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	c := checker{dir: dir, quick: quick, scratch: scratch}
	r := report{Date: time.Now().UTC()}
	if _, err := machine.GPUSlots(); err != nil {
		c.interpreted, r.Interpreted, r.Device = true, true, "PTX interpreter"
		fmt.Printf("%v: the tests run on the interpreter of the kernels, and nothing is measured\n", err)
	} else {
		r.Device = c.device()
	}
	r.Doctor, _ = c.output(nil, time.Minute, "gnb", "doctor") // a check that fails is among its lines
	fmt.Printf("%s\n%s", r.Device, r.Doctor)
	binaries, err := filepath.Glob(filepath.Join(dir, "*.test"))
	if err != nil || len(binaries) == 0 {
		return fmt.Errorf("no test binaries beside this program in %s", dir)
	}
	for _, b := range binaries {
		s := c.suite(filepath.Base(b), "", "")
		fmt.Println(s.line())
		r.Suites = append(r.Suites, s)
	}
	if !c.interpreted {
		r.Sanitizer = c.sanitized()
		r.Parity = c.parity()
		for _, b := range binaries {
			r.Measures = append(r.Measures, c.benchmarks(filepath.Base(b))...)
		}
		r.Runs, r.Peers = c.epochs()
	}
	if r.Interpreted {
		fmt.Print(r.markdown())
		return r.failure()
	}
	name := filepath.Join(out, "gpu-"+r.Date.Format("2006-01-02-1504")+"-"+regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(r.Device, "-"))
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name+".json", append(text, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(name+".md", []byte(r.markdown()), 0o644); err != nil {
		return err
	}
	fmt.Printf("%s\nkept in %s.json and .md\n", r.markdown(), name)
	return r.failure()
}

// failure is an error that names what failed, or nil.
func (r report) failure() error {
	var failed []string
	for _, s := range r.Suites {
		failed = append(failed, s.Failed...)
	}
	for _, s := range r.Sanitizer {
		failed = append(failed, s.Failed...)
	}
	for _, p := range r.Parity {
		if p.Failed != "" {
			failed = append(failed, "training of "+p.Name+" on the device and the CPU: "+p.Failed)
		}
	}
	for _, t := range r.Runs {
		if t.Failed != "" {
			failed = append(failed, "training of "+t.Name+": "+t.Failed)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d failures: %s", len(failed), strings.Join(failed, "; "))
}
