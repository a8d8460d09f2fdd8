package gnb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// from finds the weights that the run starts with, if they are another run's.
func (l *launched) from() error {
	o, c := &l.o, &l.run.Config
	if o.Resume != "" && o.Resume != Never {
		if o.From != "" {
			return errors.New("gnb: From begins a new run with the weights of another one, and Resume continues a run; give one of them")
		}
		if old, err := saving.OpenToResume(o.Resume); err == nil { // another error is told later
			l.setFrom(old.Config.From)
		}
		return nil
	}
	if o.From == "" {
		return nil
	}
	r, err := runs.Open(o.From)
	if err != nil {
		return fmt.Errorf("gnb: From: %w", err)
	}
	if r.Result.State == runs.StateRunning {
		return fmt.Errorf("gnb: From: run %s is still running, and its weights change; wait for its end", r.Dir)
	}
	if _, _, err := r.WeightsFile(false); err != nil {
		return fmt.Errorf("gnb: From: %w", err)
	}
	o.From = runfile.Absolute(r.Dir)
	from := &runs.From{Run: r.Config.ID, Dir: o.From, Weights: map[string]string{}}
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return fmt.Errorf("gnb: From: %w", err)
	}
	files := map[string]bool{}
	for _, e := range entries {
		files[e.Name()] = true
	}
	for name := range files { // the best weights of each network, or its final ones
		kind, _, _ := strings.Cut(strings.TrimSuffix(name, ".safetensors"), "-")
		if filepath.Ext(name) != ".safetensors" || kind != "best" && kind != "model" {
			continue
		}
		if best := strings.Replace(name, "model", "best", 1); kind == "model" && files[best] {
			continue
		}
		sum, err := safetensors.Sum(filepath.Join(r.Dir, name))
		if err != nil {
			return fmt.Errorf("gnb: From: %w", err)
		}
		from.Weights[name] = sum
	}
	if id := r.Config.Identity; id != nil && id.Data != nil {
		from.Structure = id.Data.Structure
	}
	c.From = from
	l.setFrom(from)
	return nil
}

func (l *launched) setFrom(from *runs.From) { l.run.Config.From, l.job.From = from, from }

// fromOtherData tells the workers whether the dataset is that of the run whose weights they start with: only then do
// its learned rows of nodes belong to the same nodes.
func (l *launched) fromOtherData() {
	if f, id := l.job.From, l.run.Config.Identity; f != nil && id != nil && id.Data != nil {
		l.job.FromRows = f.Structure == id.Data.Structure
	}
}
