package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/kernel"
	"github.com/graphnb/graphnb/internal/cuda/libs"
	"github.com/graphnb/graphnb/internal/cudaheader"
)

// Names of the kernel of "gnb install --cuda", which is installed next to the one without CUDA.
const (
	cudaKernelName = kernelName + "-cuda"
	cudaDisplay    = "Go (GraphNB, CUDA)"
)

// prepareCUDA checks that cells can be compiled for GPUs and copies the header next to the tools,
// where it remains if the module's directory is removed. It returns the header's directory.
func prepareCUDA(ctx context.Context, module, tools string) (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("--cuda: GPUs are used on Linux only, and this is %s", runtime.GOOS)
	}
	if _, err := compiler(ctx); err != nil {
		return "", fmt.Errorf("--cuda: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(cudaheader.Dir), "cuda.h"))
	if err != nil {
		return "", fmt.Errorf("--cuda: the library's header is missing: %w", err)
	}
	dir := filepath.Join(filepath.Dir(tools), "cuda-include")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("--cuda: %w", err)
	}
	return dir, kernel.ReplaceFile(filepath.Join(dir, "cuda.h"), text, 0o644)
}

// Entries of a CUDA kernel's metadata for uninstall: the wheels that install added, and their
// environment.
const (
	wheelsKey = "graphnb_wheels"
	prefixKey = "graphnb_prefix"
)

// offerWheels reports which libraries of a GPU run are installed, and installs the others with pip
// if want is set; it returns their names. A run finds them in the environment.
func offerWheels(ctx context.Context, prefix string, want bool, out *cli.Output) ([]string, error) {
	release, _ := driverRelease()
	major := max(driverCUDA(release), 12000) / 1000
	var missing []string
	for _, k := range []libs.Kind{libs.CuBLAS, libs.NCCL} {
		found, err := libs.Find(k, driverCUDA(release))
		if err == nil {
			out.Printf("%s: %s\n", k.Name, found[0].Path)
			continue
		}
		missing = append(missing, k.Wheel(major))
	}
	switch {
	case len(missing) == 0:
		return nil, nil
	case !want:
		out.Printf("not found: %s. \"gnb install --cuda --wheels\" gets them (some 1 GB), or: pip install %s\n", strings.Join(missing, ", "), strings.Join(missing, " "))
		return nil, nil
	case prefix == "":
		return nil, errors.New("--wheels installs into a Python environment: activate one, or pass --prefix")
	}
	c := exec.CommandContext(ctx, filepath.Join(prefix, "bin", "python3"), append([]string{"-m", "pip", "install", "--no-deps"}, missing...)...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("installing %s by pip: %w", strings.Join(missing, " "), err)
	}
	return missing, nil
}
