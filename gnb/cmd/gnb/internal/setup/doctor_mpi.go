package setup

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/graphnb/graphnb/multigpu/mpi"
)

// checkMPI reports whether ranks of mpirun use MPI, and of which library. None is no failure.
func checkMPI(ctx context.Context, _ patient) check {
	on := mpirunVersion(ctx)
	built := mpi.Library()
	switch {
	case built == "" && on == "":
		return good("this gnb is built without MPI, and there is no mpirun on PATH")
	case built == "":
		return good("this gnb is built without MPI: under mpirun (%s on PATH) its ranks use shared memory and TCP; docs/cluster.md says how to build it", on)
	case on == "":
		return good("this gnb is built for %s; there is no mpirun on PATH", built)
	}
	name, _, _ := strings.Cut(built, " ")
	if !strings.HasPrefix(on, name) {
		return bad(fmt.Sprintf("put the mpirun of %s first on PATH, or build gnb again with the mpicc of %s", built, on), "this gnb is built for %s, but mpirun on PATH is that of %s", built, on)
	}
	return good("this gnb is built for %s; mpirun on PATH is that of %s", built, on)
}

// mpirunVersion is the library and version of mpirun on PATH, such as "Open MPI 4.1.4", or "".
func mpirunVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "mpirun", "--version").Output()
	if err != nil {
		return ""
	}
	return mpirunName(string(out))
}

// mpirunName is the library and version in what mpirun prints about itself: "mpirun (Open MPI)
// 4.1.4", "HYDRA build details:" and "Version: 4.0.2", or whatever another one's first line is.
func mpirunName(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if fields := strings.Fields(line); len(fields) > 0 && (strings.Contains(line, "(Open MPI)") || strings.Contains(line, "(OpenRTE)")) {
		return "Open MPI " + fields[len(fields)-1]
	}
	if strings.HasPrefix(text, "HYDRA") {
		_, version, _ := strings.Cut(text, "Version:")
		version, _, _ = strings.Cut(version, "\n")
		return strings.TrimSpace("MPICH " + strings.TrimSpace(version))
	}
	return strings.TrimSpace(line)
}
