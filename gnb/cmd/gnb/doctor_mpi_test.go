package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/clustertest"
)

func TestMPIRunName(t *testing.T) {
	for text, want := range map[string]string{
		"mpirun (Open MPI) 5.0.3\n\nReport bugs to https://www.open-mpi.org/community/help/\n": "Open MPI 5.0.3",
		"mpirun.openmpi (OpenRTE) 4.1.4\n":                                                "Open MPI 4.1.4",
		"HYDRA build details:\n    Version:             4.0.2\n    Release Date:   Thu\n": "MPICH 4.0.2",
		"Intel(R) MPI Library for Linux* OS, Version 2021.9\n":                            "Intel(R) MPI Library for Linux* OS, Version 2021.9",
		"": "",
	} {
		if got := mpirunName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A command that is built for a library of MPI says so, and the doctor finds the mpirun of another
// one on PATH.
func TestDoctorNamesMPI(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds gnb with -tags mpi")
	}
	open, mpich := clustertest.OpenMPI(t), clustertest.MPICH(t)
	exe := buildWithMPI(t, open)
	out, err := open.Run(1, exe, "version", "--json").Output()
	var b build
	if err == nil {
		err = json.Unmarshal(out, &b)
	}
	if err != nil || !strings.HasPrefix(b.MPI, "Open MPI ") {
		t.Errorf("gnb version: %v: %s", err, out)
	}
	for m, want := range map[*clustertest.MPI]bool{open: true, mpich: false} {
		out, _ := open.Run(1, "env", "PATH="+m.Bin+":"+os.Getenv("PATH"), exe, "doctor", "--json").Output() // other checks may fail
		var result struct{ Checks []check }
		if err := json.Unmarshal(out, &result); err != nil {
			t.Fatalf("gnb doctor: %v: %s", err, out)
		}
		found := false
		for _, c := range result.Checks {
			if c.Name == "mpi" {
				found = true
				if c.OK != want || !strings.Contains(c.Detail, "built for Open MPI") || !strings.Contains(c.Detail, "that of "+m.Name+" ") {
					t.Errorf("with the mpirun of %s: %+v", m.Name, c)
				}
			}
		}
		if !found {
			t.Errorf("gnb doctor has no finding about MPI: %s", out)
		}
	}
}

// buildWithMPI builds gnb for a library of MPI.
func buildWithMPI(t *testing.T, m *clustertest.MPI) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs a C compiler")
	}
	exe := filepath.Join(t.TempDir(), "gnb")
	cmd := exec.Command("bash", "-c", `. ../../../scripts/mpi-env.sh && go build -tags mpi -o "$1" .`, "build", exe)
	cmd.Env = m.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building for %s: %v: %s", m.Name, err, out)
	}
	return exe
}
