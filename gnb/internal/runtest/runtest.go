//go:build unix

// Package runtest helps the tests of package gnb and its subpackages: it starts programs as
// separate processes in place of notebook cells, and damages files on purpose.
package runtest

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Main is the TestMain of a package whose tests start cells. If [StartCell] started the test
// binary, Main runs the named cell with its options, otherwise the tests. Workers enter through
// flag.Parse.
func Main(m *testing.M, cells map[string]func(options []byte) error) {
	flag.Parse()
	name := os.Getenv("GNB_TEST_CELL")
	if name == "" {
		os.Exit(m.Run())
	}
	if err := cells[name]([]byte(os.Getenv("GNB_TEST_OPTIONS"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// MainWithRuns is the TestMain of a package whose examples leave runs: in a folder of their own, which is removed at the end.
func MainWithRuns(m *testing.M) {
	flag.Parse() // enters a worker
	dir, err := os.MkdirTemp("", "gnb-runs-of-tests-")
	if err != nil {
		panic(err)
	}
	os.Setenv("GNB_RUNS", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// Cell is a program that a test started in place of a notebook cell.
type Cell struct {
	t    *testing.T
	Tmp  string // its TMPDIR
	Cmd  *exec.Cmd
	mark string
	Out  bytes.Buffer
	Done chan error // receives the error with which the cell ended
}

// StartCell starts the test binary again as the cell of this name, with options that [Main] gives
// to it, and with its runs below runsDir. It marks the environment of the cell's processes,
// workers included, and kills the marked processes when the test ends.
func StartCell(t *testing.T, name, runsDir string, options any) *Cell {
	t.Helper()
	return StartCellBy(t, exec.Command("/proc/self/exe", "-test.run=^$"), name, runsDir, options)
}

// StartCellBy is StartCell with the given command, such as mpirun, which starts the test binary with
// the argument -test.run=^$ and passes its environment on.
func StartCellBy(t *testing.T, cmd *exec.Cmd, name, runsDir string, options any) *Cell {
	t.Helper()
	raw, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	var id [8]byte
	_, _ = rand.Read(id[:])
	c := &Cell{t: t, Tmp: t.TempDir(), mark: "GNBTEST_MARK=" + hex.EncodeToString(id[:]), Done: make(chan error, 1)}
	c.Cmd = cmd
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	c.Cmd.Env = append(cmd.Env, "GNB_TEST_CELL="+name, "GNB_TEST_OPTIONS="+string(raw), c.mark, "TMPDIR="+c.Tmp, "GNB_RUNS="+runsDir)
	c.Cmd.Stdout, c.Cmd.Stderr = &c.Out, &c.Out
	c.Cmd.WaitDelay = 2 * time.Second
	if err := c.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.Done <- c.Cmd.Wait() }()
	t.Cleanup(func() {
		for _, p := range c.Processes() {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
	})
	return c
}

// Wait waits for the cell's end.
func (c *Cell) Wait(limit time.Duration) error {
	c.t.Helper()
	select {
	case err := <-c.Done:
		return err
	case <-time.After(limit):
		c.t.Fatalf("the cell was still running after %v; it said:\n%s", limit, c.Out.String())
		return nil
	}
}

// Processes returns the live processes with the cell's mark in their environment.
func (c *Cell) Processes() []int {
	var out []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && len(env) == 0 { // of a killed process whose first thread has ended and another one has not, it is with that one
			threads, _ := filepath.Glob("/proc/" + e.Name() + "/task/*/environ")
			for _, f := range threads {
				more, _ := os.ReadFile(f)
				env = append(env, more...)
			}
		}
		if err == nil && bytes.Contains(env, []byte(c.mark)) {
			out = append(out, pid)
		}
	}
	return out
}

// Workers returns the cell's worker processes by rank.
func (c *Cell) Workers() map[int]int {
	out := map[int]int{}
	for _, pid := range c.Processes() {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue
		}
		for _, a := range strings.Split(string(args), "\x00") {
			if r, ok := strings.CutPrefix(a, "-gnb.worker="); ok {
				if rank, err := strconv.Atoi(r); err == nil {
					out[rank] = pid
				}
			}
		}
	}
	return out
}

// Gone waits until the cell has left no process, no temporary file and no named shared memory.
func (c *Cell) Gone(limit time.Duration) {
	c.t.Helper()
	defer func() {
		for _, pattern := range []string{c.Tmp + "/*", "/dev/shm/*gnb*"} {
			if left, _ := filepath.Glob(pattern); len(left) > 0 {
				c.t.Errorf("files are left after the end: %v", left)
			}
		}
	}()
	deadline := time.Now().Add(limit)
	for {
		left := c.Processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%d processes are left %v after the end: %v\n%s", len(left), limit, left, c.Out.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Within fails the test if f takes longer than reading a few files may take.
func Within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatalf("%s hangs", what)
	}
}

// CopyTree copies a directory of plain files.
func CopyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// Plant replaces path by something other than a regular file.
func Plant(t *testing.T, path, kind string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	var err error
	switch kind {
	case "pipe":
		err = syscall.Mkfifo(path, 0o600)
	case "directory":
		err = os.Mkdir(path, 0o700)
	case "link to a pipe":
		if err = syscall.Mkfifo(path+".pipe", 0o600); err == nil {
			err = os.Symlink(path+".pipe", path)
		}
	case "link to a device":
		err = os.Symlink("/dev/zero", path) // which never ends
	case "socket":
		var fd int
		if fd, err = syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); err == nil {
			defer syscall.Close(fd)
			t.Chdir(filepath.Dir(path)) // a socket's path is short
			err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Base(path)})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Specials returns the kinds of Plant to try in the i-th place: all with GNB_SOAK, else one.
func Specials(i int) []string {
	all := []string{"pipe", "directory", "link to a device", "socket", "link to a pipe"}
	if os.Getenv("GNB_SOAK") != "" {
		return all
	}
	return []string{all[i%len(all)]}
}

// Flips returns the bits to flip in a file of size bytes: all of them with GNB_SOAK, else a sample
// with the first and last bytes.
func Flips(size int64) []int64 {
	if os.Getenv("GNB_SOAK") != "" {
		all := make([]int64, 8*size)
		for i := range all {
			all[i] = int64(i)
		}
		return all
	}
	out := []int64{0, 5, 8*size - 1, 8*size - 9}
	for range 12 {
		out = append(out, mrand.Int64N(8*size))
	}
	return out
}
