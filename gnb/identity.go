package gnb

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/internal/codeid"
)

// identify returns the identity of a run: its data, code and settings.
func identify(ctx context.Context, ds *Dataset, code runs.CodeIdentity) (*runs.Identity, error) {
	id := &runs.Identity{Code: code, Library: libraryVersion()}
	if ds != nil {
		d, err := ds.Digests(ctx, nil)
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("gnb: %w before it began", ErrInterrupted)
		}
		if err != nil {
			return nil, fmt.Errorf("gnb: telling whether the data is that of an earlier run: %w", err)
		}
		id.Data = (*runs.DataIdentity)(&d)
	}
	return id, nil
}

// codeOf is the code of a program with its arguments. Models are reached by variables, and
// by their names in arguments and code.
func codeOf(program string, args json.RawMessage) runs.CodeIdentity {
	roots := programs.Roots(program)
	for name := range stringsIn(args) {
		roots = append(roots, models.Roots(name)...)
	}
	return runs.CodeIdentity(codeid.Of(roots, codeid.Options{Library: entry.Module, Programs: []string{"tutorials"}, Named: models.Roots}))
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
