package scaling

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// kept is what has been measured of a curve, in a file among the runs until the curve is whole.
type kept struct {
	Measured [][]Point `json:"measured"` // by mode, in the order of measurement
	Device   string    `json:"device"`
	GPUs     int       `json:"gpus"`
	Model    string    `json:"model"`
	Unit     string    `json:"unit"`

	file string
}

// keeping returns what an interrupted measurement of the same data, model code, settings and machine has kept, or nothing.
func (c *Curve) keeping(id *runs.Identity, a settings, modes []mode, o gnb.LaunchOptions) (*kept, error) {
	what, err := json.Marshal(struct {
		Identity *runs.Identity
		Settings settings
		Modes    string
		Curve    Curve
		Launch   []any
	}{id, a, fmt.Sprint(modes), *c, []any{o.Device, o.Precision, o.Seed, o.VirtualRanks, o.PlaneOptions}})
	if err != nil {
		return nil, err
	}
	k := &kept{file: filepath.Join(runs.Dir(), fmt.Sprintf(".scaling-%.8x.json", sha256.Sum256(what)))}
	if o.Resume != gnb.Never {
		b, err := os.ReadFile(k.file)
		if err == nil && json.Unmarshal(b, k) != nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.Measured = nil // damaged: measured again
		}
	}
	if len(k.Measured) != len(modes) {
		k.Measured = make([][]Point, len(modes))
	}
	for i := range k.Measured {
		k.Measured[i] = k.Measured[i][:min(len(k.Measured[i]), c.Repeats)]
	}
	if k.runs() > 0 {
		c.Device, c.GPUs, c.Model, c.Unit = k.Device, k.GPUs, k.Model, k.Unit
	}
	return k, nil
}

// runs is the number of measurements.
func (k *kept) runs() int {
	n := 0
	for _, repeats := range k.Measured {
		n += len(repeats)
	}
	return n
}

// add keeps a measurement of a mode. Without a place to write, an interrupted curve starts anew.
func (k *kept) add(mode int, p Point, c *Curve) {
	k.Measured[mode] = append(k.Measured[mode], p)
	k.Device, k.GPUs, k.Model, k.Unit = c.Device, c.GPUs, c.Model, c.Unit
	b, err := json.Marshal(k)
	if err == nil && atomicfile.MkdirAll(filepath.Dir(k.file), 0o755) == nil {
		_ = atomicfile.WriteFile(k.file, b, 0o600)
	}
}

// done removes the file, and the folder of runs if nothing else is in it.
func (k *kept) done() {
	_ = os.Remove(k.file)
	_ = os.Remove(filepath.Dir(k.file))
}
