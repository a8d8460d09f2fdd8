package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/simd"
)

// Limits holds upper bounds on the sustained rates of all CPUs together, except for data in caches.
// Limits measured on a busy machine are too low; a later measurement keeps the higher values.
type Limits struct {
	Machine string  `json:"machine"` // the machine's name
	GFLOPS  float64 `json:"gflops"`  // float32 multiply-adds in registers, 2 each, in 10⁹/s
	CopyGBs float64 `json:"copy_gb_per_second"`
	// RowGBs is the rate of reading rows of RowBytes at random positions, in 10⁹ bytes per second.
	RowGBs float64 `json:"random_row_gb_per_second"`
}

// RowBytes is the size of the rows used to measure RowGBs: 128 float32.
const RowBytes = 512

// room is the free memory that a measurement requires; it uses a quarter of that.
const room = 2 << 30

// Known returns the stored limits of a machine such as this one, and whether there are any. It
// reads a small file.
func Known() (Limits, bool) { return knownIn(cacheDir()) }

func knownIn(dir string) (Limits, bool) {
	var l Limits
	if dir == "" {
		return l, false
	}
	name := Name()
	raw, err := atomicfile.ReadFile(file(dir, name), 1<<20)
	if err != nil || json.Unmarshal(raw, &l) != nil || l.Machine != name || !(l.GFLOPS > 0 && l.CopyGBs > 0 && l.RowGBs > 0) {
		return Limits{}, false // an unreadable file is measured anew
	}
	return l, true
}

// Measure measures the limits on all CPUs, takes the higher of each measured and stored value, and
// stores them. peak measures multiply-adds, as in GFLOPS (it is gemm.PeakGFLOPS, which this package
// must not import). Measure takes about half a second and 512 MiB; it fails if that much memory is
// not free, or if the limits cannot be stored.
func Measure(peak func(threads int) float64) (Limits, error) {
	return measureIn(cacheDir(), func(threads int) Limits {
		l := Limits{GFLOPS: peak(threads)}
		l.CopyGBs, l.RowGBs = simd.QuickGBs(threads, RowBytes)
		return l
	})
}

func measureIn(dir string, measure func(threads int) Limits) (Limits, error) {
	if m, err := ReadMemory(); err == nil && m.Free < room {
		return Limits{}, fmt.Errorf("machine: %s of memory are free, too few to measure in; end another program, or leave it", phrase.Bytes(m.Free))
	}
	if err := writable(dir); err != nil { // otherwise each run would measure again
		return Limits{}, err
	}
	return keepIn(dir, measure(runtime.NumCPU()))
}

// Keep stores limits that were already measured, as Measure does.
func Keep(l Limits) (Limits, error) { return keepIn(cacheDir(), l) }

func keepIn(dir string, l Limits) (Limits, error) {
	old, _ := knownIn(dir)
	l = Limits{Name(), max(l.GFLOPS, old.GFLOPS), max(l.CopyGBs, old.CopyGBs), max(l.RowGBs, old.RowGBs)}
	err := writable(dir)
	if err != nil {
		return l, err
	}
	raw, err := json.Marshal(l)
	if err == nil {
		err = atomicfile.WriteFile(file(dir, l.Machine), append(raw, '\n'), 0o600)
	}
	if err != nil {
		return l, cannotKeep(dir, err)
	}
	return l, nil
}

// writable creates the directory, and returns an error if it cannot hold files.
func writable(dir string) error {
	if dir == "" {
		return errors.New("machine: there is no directory for caches; set XDG_CACHE_HOME or HOME")
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		probe := filepath.Join(dir, ".writable")
		if err = os.WriteFile(probe, nil, 0o600); err == nil {
			err = os.Remove(probe)
		}
		if errors.Is(err, fs.ErrNotExist) { // another process removed its file in the meantime
			err = nil
		}
	}
	if err != nil {
		return cannotKeep(dir, err)
	}
	return nil
}

func cannotKeep(dir string, err error) error {
	return fmt.Errorf("machine: keeping what this machine can do: %w; make %s writable, or set XDG_CACHE_HOME", err, dir)
}

func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "graphnb")
}

// CacheFile returns the file in which one kind of measurement of a machine such as this one is kept, and makes its
// directory. It fails if the directory cannot hold files.
func CacheFile(kind string) (string, error) {
	dir := cacheDir()
	if err := writable(dir); err != nil {
		return "", err
	}
	return kindFile(dir, kind, Name()), nil
}

func file(dir, name string) string { return kindFile(dir, "limits", name) }

func kindFile(dir, kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(dir, fmt.Sprintf("%s-%x.json", kind, sum[:8]))
}

// Name identifies machines by the properties that determine their rates, as in "Intel(R) Xeon(R)
// Processor, 2 CPUs, 24 GiB": containers and home directories move between machines of one kind.
func Name() string {
	name := CPUModel()
	name += fmt.Sprintf(", %d CPUs", runtime.NumCPU())
	if m, err := ReadMemory(); err == nil {
		name += fmt.Sprintf(", %d GiB", (m.Total+1<<29)>>30)
	}
	return name
}

// CPUModel returns the processor's model, or the architecture if the system does not name the
// model.
func CPUModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	head := make([]byte, 4096) // enough for the first processor
	n, _ := io.ReadFull(f, head)
	for line := range bytes.Lines(head[:n]) {
		if k, v, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}
