//go:build linux

package mpi_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

var libraries = map[string]func(testing.TB) *clustertest.MPI{"OpenMPI": clustertest.OpenMPI, "MPICH": clustertest.MPICH}

// build compiles the ranks of these tests (rank_test.go) for an MPI library.
func build(t *testing.T, m *clustertest.MPI) string {
	t.Helper()
	return m.Build(t, "test", "-c")
}

// run runs n ranks and returns their output line by line. It fails the test if the ranks do not
// end.
func run(t *testing.T, m *clustertest.MPI, exe, what string, n int) (lines []string, err error) {
	t.Helper()
	cmd := m.Run(n, exe)
	cmd.Env = append(cmd.Env, "MPITEST="+what)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() {
		t.Errorf("%d ranks of %s did not end in time", n, m.Name)
		_ = cmd.Process.Kill()
	})
	defer late.Stop()
	err = cmd.Wait()
	return strings.Split(strings.TrimSpace(out.String()), "\n"), err
}

var rankLine = regexp.MustCompile(`^rank (\d+) of (\d+), process (\d+), (.* [\d.]+), (\d+) bytes$`)

// Every rank runs the suite of collectives in its own process, through the MPI library that it was
// built for. All numbers of ranks and both libraries give sums with the same bits.
func TestConformance(t *testing.T) {
	if testing.Short() { // the race detector's run is -short too, because the ranks are not built with it
		t.Skip("builds the ranks for two libraries")
	}
	worlds := []int{1, 4}
	if testneed.Soak.Here() {
		worlds = []int{1, 2, 3, 4, 5, 6, 7, 8}
	}
	digests := map[string]string{}
	for name, get := range libraries {
		t.Run(name, func(t *testing.T) {
			m := get(t)
			exe := build(t, m)
			for _, n := range worlds {
				t.Run(fmt.Sprintf("world %d", n), func(t *testing.T) {
					digest := conforms(t, m, exe, n)
					digests[digest] += fmt.Sprintf(" %s %d", m.Name, n)
				})
			}
			t.Run("pieces", func(t *testing.T) {
				if out, err := run(t, m, exe, "pieces", 2); err != nil {
					t.Errorf("%v: %s", err, strings.Join(out, "\n"))
				}
			})
			if m.Name == "MPICH" {
				t.Run("over TCP", func(t *testing.T) { // over TCP, MPI_Finalize hangs if it is called right after the last message
					for name, value := range map[string]string{"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"} {
						t.Setenv(name, value)
					}
					times := 1
					if testneed.Soak.Here() {
						times = 5
					}
					for range times {
						if out, err := run(t, m, exe, "pieces", 4); err != nil {
							t.Errorf("%v: %s", err, strings.Join(out, "\n"))
						}
					}
				})
			}
			t.Run("ends", func(t *testing.T) { ends(t, m, exe) })
		})
	}
	if len(digests) > 1 {
		t.Errorf("sums differ: %v", digests)
	}
}

// conforms runs the suite on n ranks and returns the digest of their sums.
func conforms(t *testing.T, m *clustertest.MPI, exe string, n int) string {
	out, err := run(t, m, exe, "conformance", n)
	if err != nil {
		t.Fatalf("%v: %s", err, strings.Join(out, "\n"))
	}
	var ranks, processes []string
	digest := ""
	for _, line := range out {
		if d, ok := strings.CutPrefix(line, "digest "); ok {
			if digest != "" && d != digest {
				t.Errorf("two ranks have different digests of sums: %s and %s", digest, d)
			}
			digest = d
		}
		if f := rankLine.FindStringSubmatch(line); f != nil {
			ranks, processes = append(ranks, f[1]), append(processes, f[3])
			if f[2] != fmt.Sprint(n) || !strings.HasPrefix(f[4], m.Name+" ") || n > 1 && len(f[5]) < 7 {
				t.Errorf("a rank of %s, which sends megabytes: %q", m.Name, line)
			}
		}
	}
	slices.Sort(ranks)
	slices.Sort(processes)
	if len(slices.Compact(ranks)) != n || len(slices.Compact(processes)) != n || digest == "" {
		t.Errorf("%d ranks: %s", n, strings.Join(out, "\n"))
	}
	return digest
}

// ends checks that a rank that aborts, panics or is killed ends all other ranks, which wait for it.
func ends(t *testing.T, m *clustertest.MPI, exe string) {
	for _, c := range []struct{ what, want string }{
		{"abort", ""},
		{"panic", "panic: rank 1 is broken"},
		{"kill", ""},
	} {
		out, err := run(t, m, exe, c.what, 3)
		text := strings.Join(out, "\n")
		if err == nil || !strings.Contains(text, c.want) || strings.Contains(text, "rank 0 of 3") {
			t.Errorf("%s: %v: %s", c.what, err, text)
		}
	}
}

// The error names an mpirun of another library than the program's; its ranks would each run alone.
func TestOtherLauncher(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	open, mpich := clustertest.OpenMPI(t), clustertest.MPICH(t)
	exe := build(t, open)
	cmd := mpich.Run(2, exe)
	cmd.Env = append(cmd.Env, "MPITEST=conformance", "TMPDIR="+t.TempDir(), "OPAL_PREFIX="+filepath.Join(filepath.Dir(filepath.Dir(open.Bin)), "usr"))
	out, err := cmd.CombinedOutput()
	if want := "MPICH's mpirun, or another one of its kind, started 2 ranks (PMI_SIZE), but this program was built for Open MPI"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: %s", err, out)
	}
}

// One message carries more than 2^31 bytes.
func TestLarge(t *testing.T) {
	if os.Getenv("GNB_SOAK") == "" {
		testneed.Skip(t, testneed.Soak, "it takes 9 GB of memory")
	}
	for name, get := range libraries {
		t.Run(name, func(t *testing.T) {
			m := get(t)
			if out, err := run(t, m, build(t, m), "large", 2); err != nil {
				t.Errorf("%v: %s", err, strings.Join(out, "\n"))
			}
		})
	}
}
