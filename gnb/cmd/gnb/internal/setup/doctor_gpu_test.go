package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorOnGPUs(t *testing.T) {
	dir := t.TempDir()
	for _, bus := range []string{"0000:01:00.0", "0000:02:00.0"} {
		if err := os.MkdirAll(filepath.Join(dir, "gpus", bus), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "gpus", bus, "information"), []byte("Model: NVIDIA Test\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GNB_NVIDIA_PROC", dir)
	t.Setenv("CUDA_VISIBLE_DEVICES", "0,1")
	if c := checkGPU(t.Context(), patient{}); !c.OK || !strings.HasPrefix(c.Detail, "NVIDIA Test, NVIDIA Test") {
		t.Errorf("%+v", c)
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	if c := checkGPU(t.Context(), patient{}); !c.OK || !strings.Contains(c.Detail, "hides all 2 GPUs of this machine: training runs on the CPU") {
		t.Errorf("%+v", c)
	}
	lib := filepath.Join(dir, "libnccl.so.2")
	if err := os.WriteFile(lib, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNB_LIBNCCL", lib)
	if c := checkNCCL(t.Context(), patient{}); !c.OK || c.Detail != lib {
		t.Errorf("%+v", c)
	}
	t.Setenv("GNB_LIBCUBLAS", filepath.Join(dir, "nothing"))
	if c := checkCuBLAS(t.Context(), patient{}); c.OK || c.Fix == "" {
		t.Errorf("a variable that names no file passed: %+v", c)
	}
}
