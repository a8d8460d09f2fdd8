package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/kernel"
	"github.com/graphnb/graphnb/internal/envknob"
)

// A kernel installed with --cuda compiles its cells with the tag and the header, in addition to the
// user's own settings.
func TestKernelEnvForGPUs(t *testing.T) {
	spec := newSpec(installOptions{display: cudaDisplay, cudaInclude: "/j/graphnb/cuda-include", prefix: "/env"}, "/bin", "/mod")
	if spec.Env["GNB_VENV"] != "/env" {
		t.Errorf("the kernel's environment lacks the directory of the wheels: %v", spec.Env)
	}
	env := kernel.Env([]string{envknob.CUDAInclude.Name + "=" + spec.Env[envknob.CUDAInclude.Name], "CGO_ENABLED=0", "CGO_CFLAGS=-O1", "CPATH=/mine"},
		kernel.Settings{GOFLAGS: "-tags=mine"}, "/tools", "/own")
	for _, want := range []string{"CGO_ENABLED=1", "CGO_CFLAGS=-O1", "CPATH=/j/graphnb/cuda-include:/mine", "GOFLAGS=-ldflags=-s -tags=mine,grpcnotrace,cuda"} {
		if !slices.Contains(env, want) {
			t.Errorf("the environment lacks %s: %q", want, env)
		}
	}
	if slices.Contains(env, "CGO_ENABLED=0") {
		t.Error("the kernel's environment also has CGO_ENABLED=0")
	}
	plain := newSpec(installOptions{display: display}, "/bin", "/mod")
	if _, ok := plain.Env[envknob.CUDAInclude.Name]; ok {
		t.Error("a kernel without --cuda has the settings of --cuda")
	}
}

func TestPrepareCUDA(t *testing.T) {
	module, tools := t.TempDir(), filepath.Join(t.TempDir(), "graphnb", "bin")
	if err := os.MkdirAll(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := prepareCUDA(t.Context(), module, tools); err == nil || !strings.Contains(err.Error(), "--cuda: ") {
		t.Errorf("a library without the header gave %v", err)
	}
	dir, err := prepareCUDA(t.Context(), filepath.Join("..", "..", "..", "..", ".."), tools)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "cuda.h"))
	if err != nil || !strings.Contains(string(b), "GRAPHNB_CUDA_H") {
		t.Errorf("%v: the header is not GraphNB's", err)
	}
}

func TestDriverCUDA(t *testing.T) {
	for release, want := range map[int]int{470: 0, 515: 0, 520: 11080, 525: 12000, 550: 12000, 580: 13000, 590: 13000} {
		if got := driverCUDA(release); got != want {
			t.Errorf("release %d: got CUDA %d, want %d", release, got, want)
		}
	}
}

func TestWheelsGoWithCUDA(t *testing.T) {
	if _, _, stderr := runFor(t, install, "--wheels"); !strings.Contains(stderr, "--cuda") {
		t.Errorf("%q", stderr)
	}
}
