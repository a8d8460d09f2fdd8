package setup

import "testing"

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
