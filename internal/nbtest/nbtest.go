// Package nbtest runs notebooks in a real Jupyter kernel, for tests.
//
// A test asks for the environment once and runs notebooks in it:
//
//	env := nbtest.Setup(t)
//	result := env.Run(t, "testdata/runs.ipynb", nbtest.Options{})
//	if err := result.Err(); err != nil {
//		t.Fatal(err)
//	}
//
// The environment is the checkout's private virtual environment (.venv, made by scripts/venv.sh),
// with this checkout's kernel under a separate name, configured to show compile errors as text and
// open no browser. Without that environment, the test is skipped, and the reason names the command
// to run.
//
// A notebook fails if a cell does not compile, panics, exits with a nonzero status, exceeds its
// time limit or runs a !command that fails; the result holds the output up to then. Each run has
// its own kernel, so tests may run notebooks in parallel.
package nbtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/filelock"
	"github.com/graphnb/graphnb/internal/testneed"
)

// KernelName is the kernelspec that Setup installs.
const KernelName = "graphnb-test"

// Env is an environment in which notebooks run.
type Env struct {
	Root   string // the checkout
	Python string // the virtual environment's interpreter
	Gnb    string // the gnb program beside the kernel, built from this checkout
}

// Options holds the options of one run; the zero value is a good default.
type Options struct {
	Dir     string        // where the cells run; default: a temporary directory
	Out     string        // where the executed notebook goes; default: a temporary file
	Timeout time.Duration // for one cell; default: two minutes
	Env     []string      // added to the environment, as "NAME=value"
}

// Result is the outcome of a notebook.
type Result struct {
	OK       bool               `json:"ok"`
	Failure  string             `json:"failure"` // the cell, the error and the end of its stderr
	Seconds  float64            `json:"seconds"` // includes starting the kernel
	Cells    []Cell             `json:"cells"`   // the code cells that ran
	Displays map[string]Display `json:"displays"`

	Executed string `json:"-"` // path of the executed notebook
}

// Cell is one executed cell. FirstOutput is negative if it showed nothing.
type Cell struct {
	Index       int // in the notebook, markdown cells included
	Source      string
	Seconds     float64
	FirstOutput float64 // seconds from the start of the cell
	Stdout      string
	Stderr      string
	Error       string // empty: success
}

// UnmarshalJSON reads the output of run.py, where a missing time or error is null.
func (c *Cell) UnmarshalJSON(b []byte) error {
	var j struct {
		Index       int      `json:"index"`
		Source      string   `json:"source"`
		Seconds     float64  `json:"seconds"`
		FirstOutput *float64 `json:"first_output_seconds"`
		Stdout      string   `json:"stdout"`
		Stderr      string   `json:"stderr"`
		Error       *string  `json:"error"`
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*c = Cell{j.Index, j.Source, j.Seconds, -1, j.Stdout, j.Stderr, ""}
	if j.FirstOutput != nil {
		c.FirstOutput = *j.FirstOutput
	}
	if j.Error != nil {
		c.Error = *j.Error
	}
	return nil
}

// Display is the output under one display id.
type Display struct {
	Cell            int       `json:"cell"`             // index of the cell
	Displays        int       `json:"displays"`         // number of new displays
	Updates         int       `json:"updates"`          // times it was updated in place
	DistinctUpdates int       `json:"distinct_updates"` // updates with different content
	Times           []float64 `json:"times"`            // of the updates, in seconds from the start of the cell
	MIME            []string  `json:"mime"`             // types of the last output
}

// Err returns nil if every cell succeeded.
func (r *Result) Err() error {
	if r.OK {
		return nil
	}
	return errors.New(r.Failure)
}

// Stdout returns the standard output of all cells, in order.
func (r *Result) Stdout() string {
	var b strings.Builder
	for _, c := range r.Cells {
		b.WriteString(c.Stdout)
	}
	return b.String()
}

// Shorter returns the path of a copy of a notebook that trains for fewer epochs, in the same form: in its text, each old
// string of the pairs in oldNew becomes the new one, and the test fails if one is not there. With GNB_SOAK=1 it returns
// the notebook itself.
func Shorter(t testing.TB, notebook string, oldNew ...string) string {
	t.Helper()
	if testneed.Soak.Here() {
		return notebook
	}
	b, err := os.ReadFile(notebook)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(oldNew); i += 2 {
		if !bytes.Contains(b, []byte(oldNew[i])) {
			t.Fatalf("nbtest: %s does not contain %q", notebook, oldNew[i])
		}
	}
	file := filepath.Join(t.TempDir(), filepath.Base(notebook))
	if err := os.WriteFile(file, []byte(strings.NewReplacer(oldNew...).Replace(string(b))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Setup prepares the environment with the current state of this checkout's gnb and library. It
// takes seconds the first time in a process; with -short the test is skipped.
func Setup(t testing.TB) *Env {
	t.Helper()
	if testing.Short() {
		t.Skip("a notebook in a real kernel takes seconds")
	}
	env, err := setup()
	var missing *missingError
	if errors.As(err, &missing) {
		testneed.Skip(t, testneed.Python, "%v", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// missingError is a missing prerequisite, for which the test is skipped.
type missingError struct{ reason string }

func (e *missingError) Error() string { return e.reason }

var setup = sync.OnceValues(func() (*Env, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	venv := filepath.Join(root, ".venv")
	env := &Env{
		Root:   root,
		Python: filepath.Join(venv, "bin", "python3"),
		Gnb:    filepath.Join(venv, "share", "jupyter", "graphnb", "bin", "gnb"),
	}
	// To import nbclient would take seconds.
	if err := exec.Command(env.Python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('nbclient') is None)").Run(); err != nil {
		return nil, &missingError{fmt.Sprintf("%s has no nbclient: %v", env.Python, err)}
	}
	return env, env.Install("--name", KernelName, "--display", "Go (GraphNB, tests)", "--raw-error", "--headless")
})

// Install installs this checkout's kernel in its current state into the environment; the flags are
// those of "gnb install".
func (e *Env) Install(flags ...string) error {
	venv := filepath.Join(e.Root, ".venv")
	// Test binaries of several packages may do this at the same time.
	lock, err := filelock.Lock(venv)
	for ; errors.Is(err, filelock.ErrLocked); lock, err = filelock.Lock(venv) {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil && !errors.Is(err, filelock.ErrNoLocks) {
		return fmt.Errorf("locking %s: %w", venv, err)
	}
	defer lock.Close()
	c := exec.Command("bash", append([]string{"docker/install.sh", "kernel", venv}, flags...)...)
	c.Dir = e.Root
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("installing the kernel for tests: %w\n%s", err, text)
	}
	return nil
}

// findRoot returns the checkout: the nearest parent directory with a go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("nbtest: no go.mod above the working directory")
		}
		dir = up
	}
}

// Run executes the notebook and returns the outcome; result.Err reports a failed cell. The test
// fails at once if the notebook could not be run at all. When the test's time is up, the kernel and
// its processes are ended.
func (e *Env) Run(t testing.TB, notebook string, o Options) *Result {
	t.Helper()
	tmp := t.TempDir()
	if o.Dir == "" {
		o.Dir = tmp
	}
	if o.Out == "" {
		o.Out = filepath.Join(tmp, "executed.ipynb")
	}
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Minute
	}
	summary := filepath.Join(tmp, "summary.json")
	_, err := e.script(t, o.Env, "run.py", "--kernel", KernelName, "--out", o.Out, "--summary", summary, "--dir", o.Dir,
		"--timeout", strconv.Itoa(int(max(1, o.Timeout.Seconds()))), notebook)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatal(err)
	}
	b, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	r := &Result{Executed: o.Out}
	if err := json.Unmarshal(b, r); err != nil {
		t.Fatalf("nbtest: the summary of %s: %v", notebook, err)
	}
	return r
}

// script runs one of this package's Python programs and returns its standard output. The error
// includes its standard error.
func (e *Env) script(t testing.TB, env []string, name string, args ...string) ([]byte, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), e.Python, append([]string{filepath.Join(e.Root, "internal", "nbtest", name)}, args...)...)
	c.Env = append(os.Environ(), env...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // it ends its kernel
	c.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return out, fmt.Errorf("nbtest: %s: %w\n%s", name, err, stderr.String())
	}
	return out, nil
}
