// Package getdata makes a dataset ready for a program, with progress bars: it downloads and converts
// published ones, and checks any before a run.
package getdata

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/machine"
)

// LoadOptions returns the options with which a program loads a dataset, with a progress bar where that
// may take long. Call done at the end.
func LoadOptions(spec string) (o datasets.LoadOptions, done func()) {
	o.Get = Get
	name, _, _ := strings.Cut(spec, "?")
	title := "generating "
	if datasets.IsRemote(spec) {
		title = "getting "
	} else if !slices.ContainsFunc(datasets.Generators(), func(g datasets.Generator) bool { return g.Name == name }) {
		return o, func() {}
	}
	bar := Begin(title+spec, 0, BarOptions{Unit: "%", After: time.Second})
	o.Progress = bar.Set
	return o, bar.Done
}

// Get downloads and converts a published dataset in this program if it links the necessary
// packages, else by the command gnb.
func Get(ctx context.Context, e registry.Entry) error {
	get := datasets.RegisteredGetter()
	if get == nil {
		return getByCommand(ctx, e)
	}
	bars := stageBars{name: e.Name}
	defer bars.end()
	return get(ctx, e, datasets.GetOptions{Progress: bars.set, Note: func(text string) { fmt.Fprintln(os.Stderr, "gnb: "+text) }})
}

// getByCommand gets a published dataset by the command gnb, which is on the kernel's PATH: cells
// do not link the packages that download, because they must link fast.
func getByCommand(ctx context.Context, e registry.Entry) error {
	path, err := machine.FindCommand()
	if err != nil {
		return fmt.Errorf("gnb: %s is not on this machine yet, and nothing here can get it: %w. Either add\n\timport _ %q\nto the program, which then downloads and converts it itself, or run: go run %s data get %s\n%s",
			e.Name, err, entry.Module+"/gnb/published", entry.Module+"/gnb/cmd/gnb", e.Name, e.Instructions())
	}
	cmd := exec.CommandContext(ctx, path, "data", "get", e.Name, "--json")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("gnb: getting %s: %w", e.Name, err)
	}
	reason := followGet(out, e.Name)
	if err := cmd.Wait(); err != nil {
		if reason == "" {
			reason = strings.TrimSpace(said.String())
		}
		return errors.New("gnb: getting " + e.Name + ": " + strings.TrimPrefix(reason, "gnb data: "))
	}
	return nil
}

// followGet shows the progress that "gnb data get --json" reports, with one bar per stage. If the
// command fails it returns the reported reason.
func followGet(out io.Reader, name string) (reason string) {
	bars := stageBars{name: name}
	defer bars.end()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Event, Stage, File, Error string
			Done, Total               int64
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch e.Event {
		case "error":
			reason = e.Error
		case "progress":
			bars.set(e.Stage, e.File, e.Done, e.Total)
		}
	}
	_, _ = io.Copy(io.Discard, out) // drain the output so that the command can end
	return reason
}

// stageBars shows the stages of getting a dataset one after the other, each with its own bar.
type stageBars struct {
	name, label string
	bar         *screen.Bar
}

func (b *stageBars) end() {
	if b.bar != nil {
		b.bar.Done()
	}
}

func (b *stageBars) set(stage, file string, done, total int64) {
	if l := strings.TrimSpace(stage + " " + file); l != b.label {
		b.end()
		b.label = l
		o := screen.BarOptions{Unit: "B"}
		switch stage {
		case "build": // work without a unit
			o.Unit, o.After = "%", time.Second
		case "check", "write":
			o.After = time.Second
		}
		b.bar = screen.Progress(b.name+": "+l, total, o)
	}
	b.bar.Set(done, total)
}
