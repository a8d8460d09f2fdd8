// Package clustertest runs real launchers and hosts for tests: mpirun of Open MPI and of MPICH, a Slurm of four
// nodes, and hosts as network namespaces. None of them needs root.
//
//	m := clustertest.OpenMPI(t)                 // or MPICH(t)
//	out, err := m.Run(2, exe, "-flag").CombinedOutput()
//
//	s := clustertest.Slurm(t)
//	out, err := s.Command("srun", "-n", "2", exe).CombinedOutput()
//
//	w := clustertest.Hosts(t, 2)                // joined at 1 Gbit/s
//	out, err := w.Hosts[0].Command(exe).CombinedOutput()
//
//	w := clustertest.HostsOver(t, 2, clustertest.Link{Delay: time.Millisecond, Loss: 0.01, Rate: 1e9})
//
// The programs are those that scripts/cluster-tools.sh puts into .cluster ("make test" runs it). A test skips,
// with the reason, where the machine has them not.
package clustertest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/testneed"
)

// tools returns the folder of one of the packages ("openmpi", "mpich", "slurm"), or skips the test.
func tools(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(testneed.ClusterDir(), name, "bin")
	if _, err := os.Stat(dir); err != nil {
		testneed.Skip(t, testneed.Cluster, "there is no %s", dir)
	}
	return dir
}

// MPI is one implementation of MPI.
type MPI struct {
	Name string // "Open MPI" or "MPICH"
	Bin  string // the folder of mpirun and mpicc
	tmp  string // where each mpirun of Open MPI has a folder for its files while it runs
	runs atomic.Int64
}

// OpenMPI returns Open MPI, or skips the test. More ranks than processors are allowed. The files of
// an mpirun that was killed are removed at the end of the test.
func OpenMPI(t testing.TB) *MPI {
	t.Helper()
	m := &MPI{Name: "Open MPI", Bin: tools(t, "openmpi")}
	dir, err := os.MkdirTemp("", "ompi") //nolint:usetesting // mpirun makes sockets, whose paths are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m.tmp = dir
	return m
}

// MPICH returns MPICH, or skips the test.
func MPICH(t testing.TB) *MPI {
	t.Helper()
	return &MPI{Name: "MPICH", Bin: tools(t, "mpich")}
}

// Env returns an environment for one command, in which mpirun and mpicc are this implementation's.
// Two mpirun of Open MPI that start at once can fail if both make the same folder, so each has its own.
func (m *MPI) Env() []string {
	env := withPath(os.Environ(), m.Bin)
	if m.tmp != "" {
		dir := filepath.Join(m.tmp, itoa(int(m.runs.Add(1))))
		if os.Mkdir(dir, 0o700) != nil { // the test has ended, and its folder with it
			dir = m.tmp
		}
		env = append(env, "OMPI_MCA_orte_tmpdir_base="+dir)
	}
	return env
}

// Command returns a command of this implementation: "mpirun" or "mpicc".
func (m *MPI) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(m.Bin, name), args...)
	cmd.Env = m.Env()
	return cmd
}

// Run returns the command that runs a program as n ranks on this machine.
func (m *MPI) Run(n int, program string, args ...string) *exec.Cmd {
	return m.Command("mpirun", append([]string{"-np", itoa(n), program}, args...)...)
}

// converse starts a command in a process group of its own, with pipes to its input and from its output.
// The end of the test closes the input and waits for the command. problems receives its standard error.
func converse(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out io.Reader, problems *strings.Builder) {
	t.Helper()
	machine.OwnGroup(cmd)
	problems = new(strings.Builder)
	cmd.Stderr = problems
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err = cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return in, out, problems
}

// marker is the variable by which the processes of a test's cluster are found and ended.
const marker = "CLUSTERTEST_DIR"

// keep starts a shell that ends every process whose environment has marker=dir once the returned function is called
// or this process ends, whatever ends it. The function returns when they have ended.
func keep(t testing.TB, dir string) (end func()) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `
cat >/dev/null
for round in 1 2 3 4 5 6 7 8 9 10; do
  found=
  for p in $(grep -lzx "$1=$2" /proc/[0-9]*/environ 2>/dev/null); do
    p=${p#/proc/}; found=1; kill -KILL "${p%/environ}" 2>/dev/null
  done
  [ -n "$found" ] || exit 0
  sleep 0.05
done`, "keep", marker, dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	machine.OwnGroup(cmd) // Ctrl-C ends the test, and the end of the test this shell
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("ending the processes of %s: %v: %s", dir, err, out.Bytes())
		}
	}
}

// tail is the end of a log file, for a failed test.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 2000 {
		_, _ = f.Seek(-2000, io.SeekEnd)
	}
	b, _ := io.ReadAll(f)
	return string(b)
}
