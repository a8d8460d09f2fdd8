package saving

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/codeid"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Digest returns the digest of everything in a configuration that determines a run's results, for
// its Identity.Run.
func Digest(c runs.Config) string {
	var data string
	if c.Identity.Data != nil {
		data = c.Identity.Data.Whole
	}
	code := c.Identity.Code
	code.Why = ""
	if code.By == codeid.Source {
		code.Revision = ""
	}
	what := map[string]any{
		"program": c.Program, "args": flatArgs(c.Args), "seed": c.Seed, "precision": cmp.Or(c.Precision, "float32"),
		"ranks": ranksOf(c), "device": c.Device, "data": data, "split_set": c.SplitSet, "code": code,
	}
	if c.From != nil {
		what["from"] = c.From.Weights
	}
	if c.Metric != "" {
		what["metric"] = c.Metric
	}
	b, err := json.Marshal(what)
	if err != nil { // impossible: the value holds only strings and numbers
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ranksOf returns the number of parts into which a step is divided.
func ranksOf(c runs.Config) int { return c.Workers * max(1, c.VirtualRanks) }

// flatArgs returns a program's arguments by name, without zero values: a later version of the
// program may have additional arguments.
func flatArgs(args json.RawMessage) map[string]string {
	out := allArgs(args)
	maps.DeleteFunc(out, func(_, value string) bool { return slices.Contains([]string{"", "0", "false", "null", "[]"}, value) })
	return out
}

// NamesMetric reports whether a program's arguments have the option Metric.
func NamesMetric(args json.RawMessage) bool { return flatArgs(args)[".Metric"] != "" }

func allArgs(args json.RawMessage) map[string]string {
	out := map[string]string{}
	var v any
	if json.Unmarshal(args, &v) != nil {
		return map[string]string{"": string(args)}
	}
	runfile.Flatten("", v, out)
	return out
}

// Differences are the reasons, as text, why one run cannot be resumed as another.
type Differences struct {
	// Made are the differences that change the result: data, code, arguments, seed, precision.
	Made []string
	// Placed are the differences in workers and device. A run that is resumed explicitly accepts
	// and reports them.
	Placed []string
	// Unrecorded is true if the earlier run did not record its data and code.
	Unrecorded bool
}

// None reports whether there are no differences.
func (d Differences) None() bool { return len(d.Made)+len(d.Placed) == 0 && !d.Unrecorded }

// All returns Made followed by Placed.
func (d Differences) All() []string { return slices.Concat(d.Made, d.Placed) }

// Compare compares the configuration of an earlier run with that of a run to be started now.
func Compare(c, now runs.Config) (d Differences) {
	differ := func(name string, was, is any) {
		if was != is {
			d.Made = append(d.Made, fmt.Sprintf("%s was %v and is %v", name, was, is))
		}
	}
	differ("the program", c.Program, now.Program)
	d.Made = append(d.Made, DataChanges(c, now)...)
	if c.Identity != nil && now.Identity != nil {
		d.Made = append(d.Made, CodeChanges(c.Identity.Code, now.Identity.Code)...)
	}
	d.Made = append(d.Made, argChanges(c.Args, now.Args)...)
	differ("the metric of nodes", cmp.Or(c.Metric, "that of the dataset or the options"), cmp.Or(now.Metric, "that of the dataset or the options"))
	differ("the seed", c.Seed, now.Seed)
	differ("the precision", cmp.Or(c.Precision, "float32"), cmp.Or(now.Precision, "float32"))
	if a, b := fromOf(c), fromOf(now); a != b {
		d.Made = append(d.Made, fmt.Sprintf("the weights to start with were %s and are %s", a, b))
	}
	if ranksOf(c) != ranksOf(now) {
		d.Placed = append(d.Placed, fmt.Sprintf("workers × virtual ranks were %d and are %d", ranksOf(c), ranksOf(now)))
	}
	if c.Device != now.Device {
		d.Placed = append(d.Placed, fmt.Sprintf("the device was %s and is %s", c.Device, now.Device))
	}
	d.Unrecorded = c.Identity == nil
	return d
}

// fromOf describes the weights that a run starts with.
func fromOf(c runs.Config) string {
	if c.From == nil {
		return "drawn"
	}
	s := "those of run " + c.From.Run
	for _, name := range slices.Sorted(maps.Keys(c.From.Weights)) {
		s += fmt.Sprintf(", %s %.8s", name, c.From.Weights[name])
	}
	return s
}

// DataChanges describes how the data of two configurations differs.
func DataChanges(c, now runs.Config) []string {
	called := func(c runs.Config) string { return cmp.Or(c.Dataset, "no dataset") }
	was, is := called(c), called(now)
	if was != is {
		was, is = "was "+was, " and is "+is
	} else {
		was, is = "changed", ""
	}
	if c.Identity == nil || now.Identity == nil {
		if c.Nodes != now.Nodes || c.Edges != now.Edges || c.SplitSet != now.SplitSet {
			return []string{fmt.Sprintf("the data %s%s: it had %d nodes, %d edges and split set %d and has %d, %d and %d",
				was, is, c.Nodes, c.Edges, c.SplitSet, now.Nodes, now.Edges, now.SplitSet)}
		}
		return nil
	}
	a, b := c.Identity.Data, now.Identity.Data
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil || b == nil:
		return []string{"the data " + was + is}
	case c.SplitSet != now.SplitSet && a.Splits != b.Splits:
		return []string{fmt.Sprintf("the split set was %d and is %d", c.SplitSet, now.SplitSet)}
	}
	if parts := dataset.Digests(*a).Differences(dataset.Digests(*b)); len(parts) > 0 {
		return []string{fmt.Sprintf("the data %s%s (other %s)", was, is, phrase.List(parts))}
	}
	return nil
}

// CodeChanges describes the differences between the code of two runs.
func CodeChanges(was, is runs.CodeIdentity) []string {
	return codeid.Code(was).Changes(codeid.Code(is))
}

// argChanges describes the arguments that differ.
func argChanges(was, is json.RawMessage) (out []string) {
	a, b := flatArgs(was), flatArgs(is)
	allA, allB := allArgs(was), allArgs(is)
	names := map[string]bool{}
	for _, m := range []map[string]string{a, b} {
		for name := range m {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a[name] != b[name] {
			out = append(out, fmt.Sprintf("%s was %s and is %s", cmp.Or(strings.TrimPrefix(strings.TrimPrefix(name, "."), "Sizes."), "the argument"), shown(allA[name]), shown(allB[name])))
		}
	}
	return out
}

// shown returns an argument's value, shortened if it is long.
func shown(value string) string {
	if r := []rune(value); len(r) > 60 {
		return string(r[:57]) + "…"
	}
	return cmp.Or(value, "none")
}
