package gnb

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/live"
	"github.com/graphnb/graphnb/graphops/dataset"
	published "github.com/graphnb/graphnb/graphops/dataset/registry"
)

// Load opens a dataset: the directory of one, a generator such as "karate" or
// "planted?nodes=100000&classes=8", or a published one by name, such as "cora",
// which the first time is downloaded, verified and converted. Opening a directory
// maps its files; nothing is copied, and workers share the pages.
func Load(ctx context.Context, spec string) (*Dataset, error) {
	multigpuEnter()
	o := dataset.LoadOptions{Get: getByCommand}
	if name, _, _ := strings.Cut(spec, "?"); slices.ContainsFunc(dataset.Generators(), func(g dataset.Generator) bool { return g.Name == name }) {
		bar := live.ProgressWith("generating "+spec, 0, live.BarOptions{Unit: "%", After: time.Second})
		defer bar.Done()
		o.Progress = bar.Set
	}
	return dataset.LoadWith(ctx, spec, o)
}

// getByCommand gets a published dataset by the command gnb, which the kernel has
// on its PATH: the packages that download are no part of a cell, which must link
// fast.
func getByCommand(ctx context.Context, e published.Entry) error {
	path, err := command()
	if err != nil {
		return fmt.Errorf("gnb: %s is not on this machine yet, and what gets it is missing: %w; in a checkout: go run ./gnb/cmd/gnb data get %s", e.Name, err, e.Name)
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

// followGet shows the progress that "gnb data get --json" reports, a bar for each
// of its stages, and returns the reason it gives when it fails.
func followGet(out io.Reader, name string) (reason string) {
	var (
		bar   *live.Bar
		label string
	)
	end := func() {
		if bar != nil {
			bar.Done()
		}
	}
	defer func() { end() }()
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
			if l := strings.TrimSpace(e.Stage + " " + e.File); l != label {
				end()
				label = l
				o := live.BarOptions{Unit: "B"}
				switch e.Stage {
				case "build": // work of no unit
					o.Unit, o.After = "%", time.Second
				case "check", "write":
					o.After = time.Second
				}
				bar = live.ProgressWith(name+": "+l, e.Total, o)
			}
			bar.Set(e.Done, e.Total)
		}
	}
	_, _ = io.Copy(io.Discard, out) // what is left, so that the command can end
	return reason
}
