//go:build !cuda || !linux || !cgo

package device

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program without GPU support counts GPUs as a program with it does, and says how to get the
// support.
func TestGPUsWithoutSupport(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_NVIDIA_PROC", dir)
	if n, err := Count(); n != 0 || err == nil || !strings.Contains(err.Error(), "no NVIDIA GPU found, and this program was built without") {
		t.Errorf("%d, %v", n, err)
	}
	gpu := filepath.Join(dir, "gpus", "0000:01:00.0")
	if err := os.MkdirAll(gpu, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(gpu, "information"), []byte("Model: A GPU\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := Count(); n != 0 || err == nil || !strings.Contains(err.Error(), "1 NVIDIA GPUs found, but this program was built without") {
		t.Errorf("%d, %v", n, err)
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	if n, err := Count(); n != 0 || err == nil || !strings.Contains(err.Error(), "no NVIDIA GPU found") {
		t.Errorf("%d, %v", n, err)
	}
}
