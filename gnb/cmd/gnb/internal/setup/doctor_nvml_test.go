package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nvmlstat/fakenvml"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestDoctorOnNVML(t *testing.T) {
	testneed.NotShort(t, "it runs the doctor several times")
	lib := fakenvml.Build(t)
	lib.Setenv(t)
	lib.Say("gpus 2", "mig 1 1", "throttle 0 32")
	if c := checkNVML(t.Context(), patient{}); !c.OK || c.Detail != "GPU 0 NVIDIA Fake 0 (slowed: thermal); GPU 1 NVIDIA Fake 1, 1:0 NVIDIA Fake 1 MIG 1g.10gb MIG-1-0" {
		t.Errorf("%+v", c)
	}
	lib.Say("gpus 2", "fail nvmlDeviceGetUtilizationRates 1 15")
	if c := checkNVML(t.Context(), patient{}); c.OK || !strings.Contains(c.Detail, "GPU 1: the GPU has fallen off the bus") || c.Fix == "" {
		t.Errorf("%+v", c)
	}
	// If /proc lists GPUs but NVML does not start, the check fails; it passes if there are no GPUs.
	lib.Say("fail nvmlInit_v2 0 18")
	t.Setenv("GNB_NVIDIA_PROC", t.TempDir())
	if c := checkNVML(t.Context(), patient{}); !c.OK || !strings.Contains(c.Detail, "shows the host") {
		t.Errorf("%+v", c)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"gpus/0000:01:00.0/information": "Model: \t\t NVIDIA A\nGPU UUID: \t GPU-1\nDevice Minor: \t 0\n", "version": "NVRM version: NVIDIA 570.12\n"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GNB_NVIDIA_PROC", dir)
	if c := checkNVML(t.Context(), patient{}); c.OK || !strings.Contains(c.Detail, "restart the machine") {
		t.Errorf("%+v", c)
	}
}
