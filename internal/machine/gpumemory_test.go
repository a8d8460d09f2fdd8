package machine

import (
	"os"
	"path/filepath"
	"testing"
)

// The driver is asked through the helper.
func TestFreeGPUMemory(t *testing.T) {
	root := t.TempDir()
	gpu := filepath.Join(root, "gpus", "0000:01:00.0")
	if err := os.MkdirAll(gpu, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(gpu, "information"), []byte("Model: a GPU\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNB_NVIDIA_PROC", root)
	t.Setenv("GNB_HELPER", script(t, hello, `echo '{"event":"gpus","driver":"1","gpus":[{"index":0,"name":"a GPU","memory_used":2000,"memory_total":9000}]}'`, untilIn))
	if n := FreeGPUMemory(t.Context(), 0, 1); n != 7000 {
		t.Errorf("%d bytes are free, want 7000", n)
	}
}

func TestLeastFreeGPUMemory(t *testing.T) {
	gpu := func(i int, total, used Value) GPU {
		g := Blank(i)
		g.MemoryTotal, g.MemoryUsed = total, used
		return g
	}
	split := gpu(0, 100, 10)
	split.Instances = []Instance{{}}
	three := []GPU{gpu(0, 100, 10), gpu(1, 100, 70), gpu(2, 100, 20)}
	slots := []GPUSlot{{Device: 0}, {Device: 1}, {Device: 2}}
	for name, c := range map[string]struct {
		gpus           []GPU
		slots          []GPUSlot
		first, workers int
		reordered      bool
		want           int64
	}{
		"one":              {three, slots, 0, 1, false, 90},
		"the fullest":      {three, slots, 0, 3, false, 30},
		"from the third":   {three, slots, 2, 2, false, 80},
		"another order":    {three, slots[:1], 0, 1, true, 90},
		"no reading":       {nil, slots, 0, 1, false, 0},
		"not all are read": {three[:1], slots, 0, 2, false, 0},
		"unknown":          {[]GPU{Blank(0)}, slots, 0, 1, false, 0},
		"an instance":      {[]GPU{split}, slots, 0, 1, false, 0},
	} {
		if got := leastFree(c.gpus, c.slots, c.first, c.workers, c.reordered); got != c.want {
			t.Errorf("%s: %d bytes are free, want %d", name, got, c.want)
		}
	}
}

// Without GPUs nobody is asked.
func TestFreeGPUMemoryWithoutGPUs(t *testing.T) {
	t.Setenv("GNB_NVIDIA_PROC", t.TempDir())
	t.Setenv("GNB_HELPER", "/nonexistent")
	if n := FreeGPUMemory(t.Context(), 0, 1); n != 0 {
		t.Errorf("%d bytes are free on no GPU", n)
	}
}
