package clustertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

const hello = `#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rank++;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d of %d: %d\n", rank, size, sum);
  MPI_Finalize();
}
`

// With each implementation, mpicc compiles a C program that runs as 3 ranks.
func TestMPI(t *testing.T) {
	testneed.NotShort(t, "it compiles a program for two libraries")
	t.Parallel()
	for name, get := range map[string]func(testing.TB) *MPI{"OpenMPI": OpenMPI, "MPICH": MPICH} {
		t.Run(name, func(t *testing.T) {
			m := get(t)
			if _, err := exec.LookPath("gcc"); err != nil {
				t.Skip("needs a C compiler")
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "hello.c"), []byte(hello), 0o600); err != nil {
				t.Fatal(err)
			}
			exe := filepath.Join(dir, "hello")
			if out, err := m.Command("mpicc", "-o", exe, exe+".c").CombinedOutput(); err != nil {
				t.Fatalf("mpicc: %v: %s", err, out)
			}
			out, err := m.Run(3, exe).CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			slices.Sort(lines)
			if want := []string{"1 of 3: 6", "2 of 3: 6", "3 of 3: 6"}; err != nil || !slices.Equal(lines, want) {
				t.Errorf("mpirun: %v, %q, want %q", err, lines, want)
			}
		})
	}
}

// srun runs ranks on both nodes and sbatch runs a script; no process is left at the end.
func TestSlurm(t *testing.T) {
	testneed.NotShort(t, "it starts a Slurm")
	t.Parallel()
	var dir string
	t.Run("cluster", func(t *testing.T) {
		start := time.Now()
		s := Slurm(t)
		t.Logf("up in %v", time.Since(start))
		dir = s.Dir
		out, err := s.Command("srun", "-N2", "-n4", "--ntasks-per-node=2", "sh", "-c",
			"echo $SLURM_PROCID $SLURM_NTASKS $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME").CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		slices.Sort(lines)
		want := []string{"0 4 0 0 n1", "1 4 1 0 n1", "2 4 0 1 n2", "3 4 1 1 n2"}
		if err != nil || !slices.Equal(lines, want) {
			t.Fatalf("srun: %v, %q, want %q", err, lines, want)
		}
		log := filepath.Join(t.TempDir(), "out")
		cmd := s.Command("sbatch", "-W", "-n2", "-o", log)
		cmd.Stdin = strings.NewReader("#!/bin/sh\nsrun -n2 sh -c 'echo rank $SLURM_PROCID'\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("sbatch: %v: %s", err, out)
		}
		text, err := os.ReadFile(log)
		if err != nil || strings.Count(string(text), "rank ") != 2 {
			t.Errorf("the job printed %q, %v", text, err)
		}
		// A job that does not end by itself is ended with the test.
		cmd = s.Command("sbatch", "-o", "/dev/null")
		cmd.Stdin = strings.NewReader("#!/bin/sh\nsleep 600\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("sbatch: %v: %s", err, out)
		}
	})
	if dir == "" {
		return // the subtest was skipped
	}
	if out, _ := exec.Command("sh", "-c", "grep -lz '"+marker+"="+dir+"' /proc/[0-9]*/environ 2>/dev/null").Output(); len(out) > 0 {
		t.Errorf("processes are left: %s", out)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
}
