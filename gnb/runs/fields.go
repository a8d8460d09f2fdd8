package runs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Fields are the run's settings ("workers", "args.LR"), its progress ("state", "epochs", "seconds") and the values that it
// reported ("val_accuracy"), by name, as text. [Table.Filter] and [Table.Sort] use them.
func (r *Run) Fields() map[string]string {
	out := r.settings()
	for name, value := range r.outcome() {
		if _, taken := out[name]; taken { // a reported value has the name of a setting
			name = valuesOf + name
		}
		out[name] = value
	}
	out["id"], out["name"] = r.Config.ID, r.name()
	out["title"], out["notes"], out["tag"] = r.Config.Title, r.Config.Notes, strings.Join(r.Config.Tags, ",")
	if !r.Config.Created.IsZero() {
		out["created"] = r.Config.Created.Format(time.RFC3339)
	}
	if out["model"] = out["args.Model"]; r.Result.Model != nil {
		out["model"], out["parameters"] = r.Result.Model.Name, strconv.Itoa(r.Result.Model.Parameters)
	}
	if n, ok := strings.CutPrefix(filepath.Base(r.Dir), "trial-"); ok {
		out["sweep"], out["trial"] = filepath.Base(filepath.Dir(r.Dir)), cmp.Or(strings.TrimLeft(n, "0"), "0")
	}
	for name, value := range out {
		if value == "" {
			delete(out, name)
		}
	}
	return out
}

// name returns the name by which users find a run: its directory, relative to [Dir] if it is
// there.
func (r *Run) name() string {
	if name, ok := r.inRunsDir(); ok {
		return name
	}
	return cmp.Or(r.Dir, r.Config.ID)
}

// inRunsDir returns the run's path relative to [Dir]; ok is false if the run is not inside it.
func (r *Run) inRunsDir() (path string, ok bool) {
	rel, err := filepath.Rel(runfile.Absolute(Dir()), runfile.Absolute(r.Dir))
	return rel, r.Dir != "" && err == nil && rel != "." && filepath.IsLocal(rel)
}

// settings returns all settings of a run by name.
func (r *Run) settings() map[string]string {
	c := r.Config
	out := map[string]string{
		"program": c.Program, "dataset": c.Dataset, "seed": fmt.Sprint(c.Seed), "workers": fmt.Sprint(c.Workers),
		"virtual_ranks": fmt.Sprint(c.VirtualRanks), "threads": fmt.Sprint(c.Threads), "device": c.Device,
		"precision": cmp.Or(c.Precision, "float32"), "split_set": fmt.Sprint(c.SplitSet),
		"graphnb_version": c.Version, "go": c.Go, "cpu": c.CPU,
	}
	if c.Metric != "" {
		out["metric"] = c.Metric
	}
	if c.From != nil {
		out["from"] = c.From.Run
	}
	var args any
	if json.Unmarshal(c.Args, &args) == nil {
		runfile.Flatten("args", args, out)
	}
	return out
}

// outcome returns a run's result or progress by field name.
func (r *Run) outcome() map[string]string {
	res := r.Result
	out := map[string]string{"state": res.State, "epochs": strconv.Itoa(res.Epochs), "steps": strconv.FormatInt(res.Steps, 10)}
	if res.Error != "" {
		out["error"] = res.Error
	}
	put := func(name string, x float64) {
		if !math.IsNaN(x) {
			out[name] = strconv.FormatFloat(x, 'g', -1, 64)
		}
	}
	if res.Seconds > 0 {
		put("seconds", res.Seconds)
	}
	if res.Epochs > 0 {
		put("loss", float64(res.Loss))
	}
	if secs := slices.Clone(res.EpochSeconds); len(secs) > 0 {
		slices.Sort(secs)
		put("epoch_seconds", secs[len(secs)/2])
	}
	if res.PeakMemory > 0 {
		out["peak_memory"] = strconv.FormatInt(res.PeakMemory, 10)
	}
	if res.Restarts > 0 {
		out["restarts"] = strconv.Itoa(res.Restarts)
	}
	own := slices.Collect(maps.Keys(out))
	for n, v := range res.Values {
		if slices.Contains(own, n) {
			n = valuesOf + n
		}
		put(n, v)
	}
	return out
}

// valuesOf is the prefix for reported values that have the name of another field.
const valuesOf = "values."

// readable returns a field's text with numbers shortened to at most five digits.
func readable(text string) string {
	if x, err := strconv.ParseFloat(text, 64); err == nil && len(text) > 6 && x != math.Trunc(x) {
		return strconv.FormatFloat(x, 'g', 5, 64)
	}
	return text
}

// plainName normalises a field's name, so that different spellings match: "weight-decay" and
// args.WeightDecay are the same.
func plainName(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// field lists the full names that a name stands for: the field of that name, or else the fields
// whose path ends with it ("hidden" is args.Hidden), of which each run has one.
type field []string

func (f field) of(fields map[string]string) (value string, ok bool) {
	for _, name := range f {
		if v, ok := fields[name]; ok {
			return v, true
		}
	}
	return "", false
}

// findField finds the fields that a name stands for: the field with exactly this name, else those
// with another spelling of it, else those whose path ends with it. It fails if no run has such a
// field, or one run has several.
func findField(name string, runs []map[string]string) (field, error) {
	want := plainName(name)
	means := []func(full string) bool{
		func(full string) bool { return full == name },
		func(full string) bool { return plainName(full) == want },
		func(full string) bool { return strings.HasSuffix(plainName(full), "."+want) },
	}
	for _, is := range means {
		found := map[string]bool{}
		for _, fields := range runs {
			var here []string
			for full := range fields {
				if is(full) {
					here, found[full] = append(here, full), true
				}
			}
			if len(here) > 1 {
				slices.SortStableFunc(here, byDepth)
				return nil, fmt.Errorf("runs: the field %q can be %s; write it out", name, strings.Join(here, " or "))
			}
		}
		if len(found) > 0 {
			names := slices.Sorted(maps.Keys(found))
			slices.SortStableFunc(names, byDepth)
			return names, nil
		}
	}
	all := map[string]bool{}
	for _, fields := range runs {
		for full := range fields {
			all[full] = true
		}
	}
	near := phrase.Closest(name, slices.Sorted(maps.Keys(all)), 3)
	return nil, fmt.Errorf("runs: no run has a field %q; the nearest names are %s; \"gnb runs list --json\" prints all fields, as Run.Fields returns them", name, strings.Join(near, ", "))
}

func byDepth(a, b string) int {
	return cmp.Or(strings.Count(a, ".")-strings.Count(b, "."), cmp.Compare(a, b))
}

// shortName returns the last part of a field's name if it is unambiguous, else the full name.
func shortName(full string, runs []map[string]string) string {
	short := full[strings.LastIndexByte(full, '.')+1:]
	if f, err := findField(short, runs); err != nil || len(f) != 1 || f[0] != full {
		return full
	}
	return short
}
