package setup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ask"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/kernel"
	"github.com/graphnb/graphnb/internal/cuda/libs"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// The first driver releases for each relevant CUDA version: the one that the kernels need (11.8),
// and those from which libraries of newer major versions work.
var driverReleases = []struct{ release, cuda int }{{580, 13000}, {525, 12000}, {520, 11080}}

// driverCUDA returns the CUDA version that a driver's release supports at least, 0 if it is too
// old.
func driverCUDA(release int) int {
	for _, d := range driverReleases {
		if release >= d.release {
			return d.cuda
		}
	}
	return 0
}

// driverRelease reads from /proc the driver's release, such as 550, and its full version.
func driverRelease() (release int, version string) {
	b, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return 0, ""
	}
	for _, word := range strings.Fields(string(b)) {
		if first, _, ok := strings.Cut(word, "."); ok {
			if n, err := strconv.Atoi(first); err == nil && n > 100 {
				return n, word
			}
		}
	}
	return 0, ""
}

// checkGPU counts devices without opening any. None is no failure.
func checkGPU(context.Context, patient) check {
	slots, err := machine.GPUSlots()
	if err != nil {
		return good("%v: training runs on the CPU (%s/%s, %d cores)", phrase.Bare(err), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	}
	names := make([]string, len(slots))
	for i, s := range slots {
		names[i] = s.Name
	}
	release, version := driverRelease()
	if release > 0 && driverCUDA(release) == 0 {
		return bad("update NVIDIA's driver to release 520 or newer, or train on the CPU", "%s with driver %s, which is older than the kernels need", strings.Join(names, ", "), version)
	}
	if version != "" {
		version = " with driver " + version
	}
	return good("%s%s", strings.Join(names, ", "), version)
}

// checkCuBLAS and checkNCCL report the library that a run on GPUs would load, or how to get one.
func checkCuBLAS(context.Context, patient) check {
	return checkLibrary(libs.CuBLAS, "without it, matrix products run on GraphNB's own kernel, at about a third of its speed")
}

func checkNCCL(context.Context, patient) check {
	return checkLibrary(libs.NCCL, "only runs on several GPUs need it")
}

func checkLibrary(k libs.Kind, need string) check {
	release, _ := driverRelease()
	found, err := libs.Find(k, driverCUDA(release))
	if err != nil {
		if os.Getenv(k.Env) != "" {
			return bad("correct "+k.Env+", or unset it", "%v", phrase.Bare(err))
		}
		return good("%v (%s)", phrase.Bare(err), need)
	}
	return good("%s", found[0].Path)
}

// checkCUDABuild reports whether cells can be compiled for GPUs.
func checkCUDABuild(ctx context.Context, p patient) check {
	cc, err := compiler(ctx)
	if err != nil {
		return good("%v; cells for GPUs need it, others do not", err)
	}
	for _, dir := range p.jupyter {
		if file := filepath.Join(dir, "kernels", cudaKernelName, "kernel.json"); kernel.IsFile(file) {
			return good("%s compiles cells for GPUs; their kernel is %s", cc, filepath.Dir(file))
		}
	}
	return good(`%s can compile cells for GPUs; "gnb install --cuda" makes their kernel`, cc)
}

// compiler is the C compiler that the go command uses.
func compiler(ctx context.Context) (string, error) {
	b, err := ask.Run(ctx, "go", "env", "CC")
	if err != nil {
		return "", fmt.Errorf("asking the go command for the C compiler: %w", err)
	}
	word := strings.Fields(string(b))
	if len(word) == 0 {
		return "", fmt.Errorf("the go command knows no C compiler")
	}
	path, err := exec.LookPath(word[0])
	if err != nil {
		return "", fmt.Errorf("no C compiler (%s) is on PATH; Debian, Ubuntu: apt install gcc libc6-dev", word[0])
	}
	return path, nil
}
