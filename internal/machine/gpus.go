package machine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/phrase"
)

// procRoot is where the kernel part of the driver lists the GPUs, and devRoot where the device
// files are. GNB_NVIDIA_PROC replaces procRoot, for containers that have it elsewhere and for
// tests; all GPUs listed there then count as available.
const (
	procRoot = "/proc/driver/nvidia"
	devRoot  = "/dev"
)

// GPUSlot is a device that a process may use: a whole GPU, or an instance of a partitioned GPU
// (MIG).
type GPUSlot struct {
	// Device is the index for cuda.Options.Device.
	Device int
	// Visible is the value that CUDA_VISIBLE_DEVICES must have before the driver is loaded; ""
	// leaves the variable unchanged.
	Visible string
	// Shared reports that several workers use the device.
	Shared bool
	// Name is the name for users: the model and, with MIG, the instance.
	Name string
}

// GPUSlots returns the devices that workers on this machine may use, one per worker, in the order
// of their local ranks: those of CUDA_VISIBLE_DEVICES if it is set, else all. It reads the kernel's
// lists in /proc and the files of /dev without calling the driver: the caller gets no context and
// opens no device. If there is no GPU, the list is empty and the error gives the reason.
func GPUSlots() ([]GPUSlot, error) {
	root, dev := procRoot, devRoot
	if r := envknob.NVIDIAProc.Get(); r != "" {
		root, dev = r, ""
	}
	visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	return slots(root, dev, visible, set)
}

// ChooseGPU returns the slot of a worker, by its local rank among the workers on this machine: rank
// 0 gets slot number first, which is not 0 if several runs divide the devices, and later ranks wrap
// around. If there are more workers than devices, it returns an error with both numbers, unless
// GNB_CUDA_SHARE=1 lets them share devices.
func ChooseGPU(localRank, localWorld, first int) (GPUSlot, error) {
	all, err := GPUSlots()
	if err != nil {
		return GPUSlot{}, err
	}
	if localWorld > len(all) && !SharingGPUs() {
		return GPUSlot{}, phrase.Errorf("cuda", "%d workers on this machine, which has %s: take %s, or let workers share GPUs with GNB_CUDA_SHARE=1 (NCCL 2.30 or newer)",
			localWorld, phrase.Count(len(all), "GPU"), phrase.Count(len(all), "worker"))
	}
	s := all[(first+localRank)%len(all)]
	s.Shared = localWorld > len(all)
	return s, nil
}

// SharingGPUs reports whether several workers may use one device, which GNB_CUDA_SHARE=1 allows.
func SharingGPUs() bool { return envknob.CUDAShare.On() }

// gpu describes a GPU as /proc lists it.
type gpu struct {
	minor     int // -1 if unknown
	name      string
	uuid      string // "" if unknown
	bus       string
	instances int // number of MIG instances, 0 without MIG
}

// slots lists the GPUs below root, and checks for their device files in dev, unless that is "".
func slots(root, dev, visible string, set bool) ([]GPUSlot, error) {
	all, err := gpus(root)
	switch {
	case err != nil && (dev == "" || !errors.Is(err, fs.ErrNotExist)):
		return nil, err
	case err != nil:
		if all = nodes(dev, visible); len(all) == 0 {
			return nil, err
		}
	case dev != "":
		if all, err = reachable(all, dev); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, phrase.Errorf("cuda", "the NVIDIA driver of this machine has no GPU (%s is empty)", filepath.Join(root, "gpus"))
	}
	if !set {
		return every(all), nil
	}
	var got []GPUSlot
	seen := map[string]bool{}
	for i, token := range strings.Split(visible, ",") {
		token = strings.TrimSpace(token)
		name, mig, ok := find(all, token)
		if !ok {
			break // as the driver does: it ignores all items after the first unknown one
		}
		if seen[token] {
			return nil, phrase.Errorf("cuda", "CUDA_VISIBLE_DEVICES=%q names %s twice, and the driver refuses that", visible, token)
		}
		seen[token] = true
		s := GPUSlot{Device: i, Name: name}
		if mig { // a process sees only one instance: the first one named
			s.Device, s.Visible = 0, token
		}
		got = append(got, s)
	}
	if len(got) == 0 {
		return nil, phrase.Errorf("cuda", "CUDA_VISIBLE_DEVICES=%q hides all %d GPUs of this machine", visible, len(all))
	}
	return got, nil
}

// every returns the devices that a process sees without CUDA_VISIBLE_DEVICES. If a GPU is
// partitioned (MIG), the driver shows one instance and no other device; /proc does not list the
// instances' names.
func every(all []gpu) []GPUSlot {
	for _, g := range all {
		if g.instances > 0 {
			return []GPUSlot{{Name: g.name + " (the first of its " + strconv.Itoa(g.instances) + " MIG instances; name others in CUDA_VISIBLE_DEVICES)"}}
		}
	}
	var got []GPUSlot
	for i, g := range all {
		got = append(got, GPUSlot{Device: i, Name: g.name})
	}
	return got
}

// find returns the device that an item of CUDA_VISIBLE_DEVICES names: an index, the start of a
// UUID, or an instance.
func find(all []gpu, token string) (name string, mig, ok bool) {
	if i, err := strconv.Atoi(token); err == nil {
		if i < 0 || i >= len(all) {
			return "", false, false
		}
		return all[i].name, all[i].instances > 0, true
	}
	switch {
	case strings.HasPrefix(token, "MIG-"):
		return "MIG instance " + token, true, true
	case strings.HasPrefix(token, "GPU-"):
		for _, g := range all {
			if g.uuid == "" || strings.HasPrefix(g.uuid, token) {
				return g.name, g.instances > 0, true
			}
		}
	}
	return "", false, false
}

// reachable returns the GPUs whose device file this process has: a container gets some of the
// machine's GPUs, while /proc lists all. If even the driver's own device file is missing, the
// driver has not been used since the machine's start; it creates all files at its first use.
func reachable(all []gpu, dev string) ([]gpu, error) {
	if _, err := os.Stat(filepath.Join(dev, "nvidiactl")); err != nil {
		return all, nil //nolint:nilerr // as said
	}
	var got []gpu
	for _, g := range all {
		if _, err := os.Stat(filepath.Join(dev, "nvidia"+strconv.Itoa(g.minor))); g.minor < 0 || !errors.Is(err, fs.ErrNotExist) {
			got = append(got, g)
		}
	}
	if len(got) == 0 && len(all) > 0 {
		return nil, phrase.Errorf("cuda", "this machine has %d GPUs, and this container was given none (no %s): start it with the GPUs it is to have, as \"docker run --gpus all\" does", len(all), filepath.Join(dev, "nvidia"+strconv.Itoa(all[0].minor)))
	}
	return got, nil
}

// nodes returns the GPUs with files in dev, for systems on which the driver has no directory in
// /proc: sandboxes such as gVisor, and WSL2, whose single file dxg stands for all GPUs: as many as
// CUDA_VISIBLE_DEVICES names, at least one. Whether they work shows only when a worker loads the
// driver.
func nodes(dev, visible string) []gpu {
	entries, err := os.ReadDir(dev)
	if err != nil {
		return nil
	}
	var all []gpu
	wsl := false
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), "nvidia")
		if n, err := strconv.ParseUint(number, 10, 16); ok && err == nil {
			all = append(all, gpu{minor: int(n), name: "GPU (" + filepath.Join(dev, e.Name()) + ")"})
			for i := len(all) - 1; i > 0 && all[i].minor < all[i-1].minor; i-- { // nvidia10 is read before nvidia2
				all[i], all[i-1] = all[i-1], all[i]
			}
		}
		wsl = wsl || e.Name() == "dxg"
	}
	if len(all) > 0 || !wsl {
		return all
	}
	n := 0
	for token := range strings.SplitSeq(visible, ",") {
		if i, err := strconv.ParseUint(strings.TrimSpace(token), 10, 8); err == nil {
			n = max(n, int(i))
		}
	}
	for range n + 1 {
		all = append(all, gpu{minor: -1, name: "GPU (" + filepath.Join(dev, "dxg") + ")"})
	}
	return all
}

// gpus reads the GPUs in bus order, which is the driver's order with CUDA_DEVICE_ORDER=PCI_BUS_ID
// and for identical GPUs.
func gpus(root string) ([]gpu, error) {
	entries, err := os.ReadDir(filepath.Join(root, "gpus"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, phrase.Errorf("cuda", "no GPU: the kernel has no NVIDIA driver loaded: %w", err)
	}
	if err != nil {
		return nil, phrase.Errorf("cuda", "looking for GPUs: %w", err)
	}
	var all []gpu
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(root, "gpus", e.Name(), "information"))
		if err != nil {
			return nil, phrase.Errorf("cuda", "looking for GPUs: %w", err)
		}
		g := gpu{bus: e.Name(), name: "GPU", minor: -1}
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
			case "Model":
				g.name = value
			case "GPU UUID":
				g.uuid = value
			case "Device Minor":
				if n, err := strconv.Atoi(value); err == nil {
					g.minor = n
				}
			}
		}
		found, err := filepath.Glob(filepath.Join(root, "capabilities", "gpu"+strconv.Itoa(g.minor), "mig", "gi*", "ci*"))
		if err != nil {
			return nil, phrase.Errorf("cuda", "looking for MIG instances: %w", err)
		}
		g.instances = len(found)
		all = append(all, g)
	}
	return all, nil // in the order of their names, in which ReadDir returns them
}
