package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fakeProc writes /proc/driver/nvidia of a machine with GPUs; the instances belong to the first
// GPU.
func fakeProc(t *testing.T, gpus, instances int) string {
	t.Helper()
	root := t.TempDir()
	write := func(file, text string) {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range gpus {
		write(fmt.Sprintf("gpus/0000:%02x:00.0/information", i+1),
			fmt.Sprintf("Model: \t\t NVIDIA Test %d\nIRQ:   \t\t 16\nGPU UUID: \t GPU-%d0000000-1111-2222-3333-444444444444\nDevice Minor: \t %d\n", i, i, i))
	}
	for i := range instances {
		write(fmt.Sprintf("capabilities/gpu0/mig/gi%d/ci0/access", i), "DeviceFileMinor: 1\n")
	}
	if gpus == 0 {
		write("gpus/.keep", "")
		if err := os.Remove(filepath.Join(root, "gpus/.keep")); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestSlots(t *testing.T) {
	const unset = "-"
	for name, c := range map[string]struct {
		gpus, mig int
		visible   string
		want      string // for each slot: the device, its visible name and the model's number
		fails     string
	}{
		"all":                {3, 0, unset, "0::0 1::1 2::2", ""},
		"some, in order":     {4, 0, "2,0", "0::2 1::0", ""},
		"spaces":             {4, 0, " 1 , 3", "0::1 1::3", ""},
		"up to an unknown":   {4, 0, "1,9,2", "0::1", ""},
		"up to -1":           {4, 0, "0,1,-1,2", "0::0 1::1", ""},
		"by UUID":            {3, 0, "GPU-2000,GPU-0", "0::2 1::0", ""},
		"unknown UUID":       {3, 0, "GPU-7", "", "hides all 3 GPUs"},
		"none":               {2, 0, "", "", "hides all 2 GPUs"},
		"-1":                 {2, 0, "-1", "", "hides all 2 GPUs"},
		"twice":              {2, 0, "1,1", "", "names 1 twice"},
		"divided":            {2, 3, unset, "0::0", ""},
		"instances":          {2, 3, "MIG-a,MIG-b", "0:MIG-a: 0:MIG-b:", ""},
		"divided and others": {2, 3, "1,MIG-b", "0::1 0:MIG-b:", ""},
		"no GPU":             {0, 0, unset, "", "has no GPU"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := slots(fakeProc(t, c.gpus, c.mig), "", c.visible, c.visible != unset)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("%v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var text []string
			for _, s := range got {
				model := ""
				if after, ok := strings.CutPrefix(s.Name, "NVIDIA Test "); ok {
					model = after[:1]
				}
				text = append(text, strconv.Itoa(s.Device)+":"+s.Visible+":"+model)
			}
			if s := strings.Join(text, " "); s != c.want {
				t.Errorf("%s, want %s", s, c.want)
			}
		})
	}
	if _, err := slots(filepath.Join(t.TempDir(), "nothing"), t.TempDir(), "", false); err == nil || !strings.Contains(err.Error(), "no NVIDIA driver loaded") {
		t.Errorf("a machine without a driver gave %v", err)
	}
}

func TestChoose(t *testing.T) {
	t.Setenv("GNB_NVIDIA_PROC", fakeProc(t, 2, 0))
	t.Setenv("CUDA_VISIBLE_DEVICES", "1,0")
	if s, err := ChooseGPU(1, 2, 0); err != nil || s.Device != 1 || s.Shared || s.Name != "NVIDIA Test 0" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := ChooseGPU(0, 3, 0); err == nil || !strings.Contains(err.Error(), "3 workers on this machine, which has 2 GPUs: take 2 workers") {
		t.Errorf("%v", err)
	}
	t.Setenv("GNB_CUDA_SHARE", "1")
	if s, err := ChooseGPU(2, 3, 0); err != nil || s.Device != 0 || !s.Shared {
		t.Errorf("%+v, %v", s, err)
	}
}

// /proc lists the machine's GPUs; /dev has only those that this container may use.
func TestSlotsOfDeviceFiles(t *testing.T) {
	const unset = "-"
	for name, c := range map[string]struct {
		gpus    int // number of GPUs in /proc; -1 means that the directory is missing
		dev     string
		visible string
		want    string // the devices and their names
		fails   string
	}{
		"all":               {2, "nvidiactl nvidia0 nvidia1 nvidia-uvm", unset, "0 NVIDIA Test 0|1 NVIDIA Test 1", ""},
		"some":              {4, "nvidiactl nvidia1 nvidia3", unset, "0 NVIDIA Test 1|1 NVIDIA Test 3", ""},
		"some, chosen":      {4, "nvidiactl nvidia1 nvidia3", "1", "0 NVIDIA Test 3", ""},
		"some, by UUID":     {4, "nvidiactl nvidia1 nvidia3", "GPU-3,GPU-2", "0 NVIDIA Test 3", ""},
		"none":              {2, "nvidiactl nvidia-uvm", unset, "", "has 2 GPUs, and this container was given none"},
		"not used yet":      {2, "null", unset, "0 NVIDIA Test 0|1 NVIDIA Test 1", ""},
		"no /proc":          {-1, "nvidiactl nvidia10 nvidia2 nvidia-uvm nvidia-caps", unset, "0 GPU (/nvidia2)|1 GPU (/nvidia10)", ""},
		"no /proc, chosen":  {-1, "nvidia0 nvidia1", "1,0", "0 GPU (/nvidia1)|1 GPU (/nvidia0)", ""},
		"no /proc, by UUID": {-1, "nvidia0", "GPU-7", "0 GPU (/nvidia0)", ""},
		"no /proc, hidden":  {-1, "nvidia0", "", "", "hides all 1 GPUs"},
		"WSL":               {-1, "dxg", unset, "0 GPU (/dxg)", ""},
		"WSL, chosen":       {-1, "dxg", "2,0", "0 GPU (/dxg)|1 GPU (/dxg)", ""},
		"WSL, hidden":       {-1, "dxg", "-1", "", "hides all"},
		"nothing":           {-1, "null", unset, "", "no NVIDIA driver loaded"},
	} {
		t.Run(name, func(t *testing.T) {
			root, dev := filepath.Join(t.TempDir(), "nothing"), t.TempDir()
			if c.gpus >= 0 {
				root = fakeProc(t, c.gpus, 0)
			}
			for _, f := range strings.Fields(c.dev) {
				if err := os.WriteFile(filepath.Join(dev, f), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := slots(root, dev, c.visible, c.visible != unset)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("%v, %v", got, err)
				}
				return
			}
			var text []string
			for _, s := range got {
				text = append(text, strconv.Itoa(s.Device)+" "+strings.ReplaceAll(s.Name, dev, ""))
			}
			if s := strings.Join(text, "|"); err != nil || s != c.want {
				t.Errorf("%s, %v; want %s", s, err, c.want)
			}
		})
	}
}
