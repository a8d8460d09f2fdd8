package gnb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/codeid"
)

// Identity is what a run was made of beside its settings. Two runs are one, so that
// one goes on with the other's checkpoint, if they have the same data, code, program,
// arguments, seed, precision, product of workers and virtual ranks, and kind of
// device.
type Identity struct {
	// Data are the digests of the dataset's content: structure, features, labels and
	// splits. It is nil where there was no dataset.
	Data *dataset.Digests `json:"data,omitempty"`
	// Code is the code of the program, and of the models whose names are in its
	// arguments.
	Code CodeIdentity `json:"code"`
	// Library is the version of GraphNB, with the revision where it is known. Another
	// one is said when a run goes on, and no reason not to.
	Library string `json:"library"`
	// Run is the digest of all that makes the run what it is; checkpoints have it.
	Run string `json:"run,omitempty"`
}

// CodeIdentity says which code a run executed: the declarations that its program and
// model reach, each with a digest, and the versions of the modules they use. Where the
// sources could not be read it is the revision that the program was built from, or the
// executable's digest; By and Why say which and why.
type CodeIdentity struct {
	// By is "library", "source", "revision" or "executable".
	By string `json:"by"`
	// Parts are the declarations that are reached, each with a digest, and the modules,
	// each with its version.
	Parts map[string]string `json:"parts,omitempty"`
	// Revision is the one that the program was built from, where that was clean.
	Revision string `json:"revision,omitempty"`
	// Executable is the SHA-256 of the program's file, where nothing else identifies it.
	Executable string `json:"executable,omitempty"`
	// Why says why the source does not identify the code.
	Why string `json:"why,omitempty"`
}

// Changes describes how the code now differs from c; it is empty where the two are the same.
func (c CodeIdentity) Changes(now CodeIdentity) []string {
	return codeid.Code(c).Changes(codeid.Code(now))
}

// Change is something that became another one when a run went on; see
// [LaunchOptions.ResumeChanged].
type Change struct {
	When time.Time `json:"when"`
	// Step is the step after which the run went on.
	Step int64 `json:"step"`
	// What changed, in words: "LR was 0.01 and is 0.0001".
	What []string `json:"what"`
	// Before is Identity.Run until then.
	Before string `json:"before"`
}

func (c Change) String() string {
	return fmt.Sprintf("after step %d, %s: %s", c.Step, c.When.Local().Format("2006-01-02 15:04"), strings.Join(c.What, "; "))
}

// identify says what a run is made of.
func identify(ctx context.Context, ds *Dataset, code CodeIdentity) (*Identity, error) {
	id := &Identity{Code: code, Library: libraryVersion()}
	if ds != nil {
		d, err := ds.Digests(ctx, nil)
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("gnb: %w before it began", ErrInterrupted)
		}
		if err != nil {
			return nil, fmt.Errorf("gnb: telling whether the data is that of an earlier run: %w", err)
		}
		id.Data = &d
	}
	return id, nil
}

// codeOf is the code of a program with its arguments. Models are reached by variables, and
// by their names in arguments and code.
func codeOf(program string, args json.RawMessage) CodeIdentity {
	roots := programs.roots(program)
	for name := range stringsIn(args) {
		roots = append(roots, models.roots(name)...)
	}
	return CodeIdentity(codeid.Of(roots, codeid.Options{Library: entry.Module, Programs: []string{"tutorials"}, Named: models.roots}))
}

// stringsIn are the texts anywhere in arguments.
func stringsIn(args json.RawMessage) map[string]bool {
	out := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out[v] = true
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	var v any
	if json.Unmarshal(args, &v) == nil {
		walk(v)
	}
	return out
}

// libraryVersion is the version of this library, with the module's where that has one,
// or the revision that the command was built from.
func libraryVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version
	}
	path := entry.Module
	if info.Main.Path == path {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return Version + " " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	for _, m := range info.Deps {
		if m.Path == path && m.Replace == nil && m.Version != "" && m.Version != "(devel)" {
			return Version + " " + m.Version
		}
	}
	return Version
}

// seal sets the digest of a configuration.
func (c *Config) seal() {
	var data string
	if c.Identity.Data != nil {
		data = c.Identity.Data.Whole
	}
	code := c.Identity.Code
	code.Why = ""
	if code.By == codeid.Source {
		code.Revision = ""
	}
	b, err := json.Marshal(map[string]any{
		"program": c.Program, "args": flatArgs(c.Args), "seed": c.Seed, "precision": cmp.Or(c.Precision, "float32"),
		"ranks": c.ranks(), "device": c.Device, "data": data, "split_set": c.SplitSet, "code": code,
	})
	if err != nil { // of strings and numbers
		panic(err)
	}
	sum := sha256.Sum256(b)
	c.Identity.Run = hex.EncodeToString(sum[:])
}

// ranks is how many parts a step is cut into.
func (c Config) ranks() int { return c.Workers * max(1, c.VirtualRanks) }

// flatArgs are a program's arguments by name, without those that have no value: a later
// version of a program may have more of them.
func flatArgs(args json.RawMessage) map[string]string {
	out := allArgs(args)
	maps.DeleteFunc(out, func(_, value string) bool { return slices.Contains([]string{"", "0", "false", "null", "[]"}, value) })
	return out
}

func allArgs(args json.RawMessage) map[string]string {
	out := map[string]string{}
	var v any
	if json.Unmarshal(args, &v) != nil {
		return map[string]string{"": string(args)}
	}
	flatten("", v, out)
	return out
}

// differences are what keeps one configuration from going on with another's checkpoint.
type differences struct {
	// made are those of what the run is: data, code, arguments, seed, precision.
	made []string
	// placed are those of where it computes: workers and device. A run goes on with
	// others where it is told to, and says so.
	placed []string
	// unrecorded is a run of a version that did not record its data and code.
	unrecorded bool
}

func (d differences) none() bool { return len(d.made)+len(d.placed) == 0 && !d.unrecorded }

func (d differences) all() []string { return slices.Concat(d.made, d.placed) }

// differencesOf says what is other in now than in the run of configuration c.
func (c Config) differencesOf(now Config) (d differences) {
	differ := func(name string, was, is any) {
		if was != is {
			d.made = append(d.made, fmt.Sprintf("%s was %v and is %v", name, was, is))
		}
	}
	differ("the program", c.Program, now.Program)
	d.made = append(d.made, c.dataChanges(now)...)
	if c.Identity != nil && now.Identity != nil {
		d.made = append(d.made, c.Identity.Code.Changes(now.Identity.Code)...)
	}
	d.made = append(d.made, argChanges(c.Args, now.Args)...)
	differ("the seed", c.Seed, now.Seed)
	differ("the precision", cmp.Or(c.Precision, "float32"), cmp.Or(now.Precision, "float32"))
	if c.ranks() != now.ranks() {
		d.placed = append(d.placed, fmt.Sprintf("workers × virtual ranks were %d and are %d", c.ranks(), now.ranks()))
	}
	if c.Device != now.Device {
		d.placed = append(d.placed, fmt.Sprintf("the device was %s and is %s", c.Device, now.Device))
	}
	d.unrecorded = c.Identity == nil
	return d
}

// dataChanges says what is other in the data.
func (c Config) dataChanges(now Config) []string {
	called := func(c Config) string { return cmp.Or(c.Dataset, "no dataset") }
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
	if parts := a.Differences(*b); len(parts) > 0 {
		return []string{fmt.Sprintf("the data %s%s (other %s)", was, is, list(parts))}
	}
	return nil
}

// argChanges says which arguments are other ones.
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

// shown is an argument's value, not too long.
func shown(value string) string {
	if r := []rune(value); len(r) > 60 {
		return string(r[:57]) + "…"
	}
	return cmp.Or(value, "none")
}

// list is "a", "a and b", "a, b and c".
func list(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// sentence is what changed, a few of it where it is much.
func sentence(changes []string) string {
	const most = 4
	if more := len(changes) - most; more > 1 {
		return strings.Join(changes[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(changes, "; ")
}
