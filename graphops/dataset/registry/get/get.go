// Package get brings published datasets onto this machine: it finds or downloads
// their files, verifies them, and converts them into the dataset directory that
// datasets.Load opens by name.
//
// It imports net/http, so it is a separate package: programs that import package gnb stay small,
// and the command gnb downloads.
package get

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/filelock"
)

// Options says how to get a dataset. The zero value is a good default.
type Options struct {
	// Progress receives the progress of a stage, at most about ten times a second.
	Progress func(Progress)
	// Note receives messages for the user, one sentence each.
	Note func(text string)
	// Threads is the number of threads that convert; 0 means GOMAXPROCS.
	Threads int
	// Seed is the random seed of splits; 0 is a seed like any other.
	Seed uint64
	// ToWrite is that of [datasets.LoadOptions].
	ToWrite bool
	// Client makes the requests; nil means one that uses the proxies of the environment.
	Client *http.Client

	stall, backoff time.Duration
}

// Progress is the progress of a stage.
type Progress struct {
	// Stage is "download", "unpack", "convert", then "build", "check" and "write" (see
	// [convert.Options].Finish), or "generate" in Load.
	Stage string
	File  string // or the dataset's name, from "build" on
	Done  int64  // bytes, or units of work in "build" and "generate"
	Total int64  // 0: unknown
}

func (o Options) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

func (o Options) progress(stage, file string) func(done, total int64) {
	return func(done, total int64) {
		if o.Progress != nil {
			o.Progress(Progress{Stage: stage, File: file, Done: done, Total: total})
		}
	}
}

// Load is like datasets.Load, but gets a dataset that is not on this machine.
func Load(ctx context.Context, spec string, o Options) (*dataset.Dataset, error) {
	return datasets.LoadWith(ctx, spec, datasets.LoadOptions{
		Get: func(ctx context.Context, e registry.Entry) error {
			_, err := Get(ctx, e, o)
			return err
		},
		Progress: o.progress("generate", spec),
		ToWrite:  o.ToWrite,
	})
}

// Get creates the directory of the dataset, e.Dir(), unless it exists, and returns it. It uses the
// files of the first folder of e.RawDirs() that has all of them, or else downloads them into
// e.RawDir() and keeps them there. Known checksums are verified, wherever the files come from. If
// another process gets the same dataset, Get waits for it.
//
// The directory appears only when it is complete. If the network fails, the error says which files
// to put where.
func Get(ctx context.Context, e registry.Entry, o Options) (string, error) {
	dir, err := e.Dir()
	if err != nil {
		return "", err
	}
	if finished(dir) {
		return dir, nil
	}
	fail := func(err error) (string, error) { return "", fmt.Errorf("dataset: getting %s: %w", e.Name, err) }
	raw, err := e.RawDir()
	if err != nil {
		return fail(err)
	}
	for _, d := range []string{raw, filepath.Dir(dir)} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			return fail(err)
		}
	}
	lock, err := wait(ctx, raw, o)
	if err != nil {
		return fail(err)
	}
	if lock != nil {
		defer lock.Close()
	}
	if finished(dir) {
		return dir, nil
	}
	from, err := files(ctx, e, raw, o)
	if err != nil {
		return fail(err)
	}
	src, err := source(ctx, e, from, raw, o)
	if err != nil {
		return fail(err)
	}
	if err := convertTo(ctx, e, src, dir, o); err != nil {
		return fail(err)
	}
	if src != from && filepath.Dir(src) == raw && len(e.Files[0].Unzipped) > 0 {
		if _, err := os.Stat(filepath.Join(raw, e.Files[0].Name)); err == nil {
			_ = os.RemoveAll(src) // the archive can be unpacked again
		}
	}
	return dir, nil
}

func finished(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "metadata.json"))
	return err == nil
}

// wait locks the folder and waits for another process's lock; it returns nil on systems without
// locks.
func wait(ctx context.Context, raw string, o Options) (*os.File, error) {
	for said := false; ; said = true {
		lock, err := filelock.Lock(raw)
		switch {
		case err == nil:
			return lock, nil
		case errors.Is(err, filelock.ErrNoLocks):
			return nil, nil
		case !errors.Is(err, filelock.ErrLocked):
			return nil, err
		}
		if !said {
			o.note("another process is getting it: waiting for that")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// files finds or downloads the files and returns their folder.
func files(ctx context.Context, e registry.Entry, raw string, o Options) (string, error) {
	from, err := e.FindRaw()
	if err != nil {
		return "", err
	}
	if from != "" {
		for _, f := range e.Files {
			if f.HasUnzipped(from) != "" {
				continue
			}
			if err := expected(f, o).verify(filepath.Join(from, f.Name)); err != nil {
				return "", fmt.Errorf("%w; it differs from what %s publishes: remove it, and it is downloaded", err, e.Homepage)
			}
		}
		o.note("using the files in %s", from)
		return from, nil
	}
	for _, f := range e.Files {
		if !f.Known() {
			o.note("%s is %s", f.Name, f.Verified())
		}
		err := fetch(ctx, f.URL, filepath.Join(raw, f.Name), expected(f, o))
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			return "", fmt.Errorf("%w; %s", err, e.Instructions())
		}
	}
	return raw, nil
}

func expected(f registry.File, o Options) fetchOptions {
	return fetchOptions{
		size: f.Size, sums: checksums{sha256: f.SHA256, gitBlob: f.GitBlob}, maxSize: f.MaxSize,
		progress: o.progress("download", f.Name), note: o.Note, client: o.Client, stall: o.stall, backoff: o.backoff,
	}
}

// source returns the input of the conversion: the folder with the files, the only file, or the
// files unpacked from it.
func source(ctx context.Context, e registry.Entry, from, raw string, o Options) (string, error) {
	f := e.Files[0]
	switch {
	case len(e.Files) > 1:
		return from, nil
	case len(f.Unzipped) == 0:
		return filepath.Join(from, f.Name), nil
	}
	if src := f.HasUnzipped(from); src != "" {
		return src, nil
	}
	folder, _, _ := strings.Cut(f.Unzipped[0], "/")
	if err := unzip(ctx, filepath.Join(from, f.Name), folder, raw, o.progress("unpack", f.Name)); err != nil {
		return "", err
	}
	if src := f.HasUnzipped(raw); src != "" {
		return src, nil
	}
	return "", fmt.Errorf("%s does not hold %s", filepath.Join(from, f.Name), f.Unzipped[0])
}

// convertTo converts into a directory beside dir, completes the metadata and renames it to dir.
func convertTo(ctx context.Context, e registry.Entry, src, dir string, o Options) error {
	tmp, err := atomicfile.NewDir(filepath.Dir(dir), e.Name)
	if err != nil {
		return err
	}
	defer tmp.Remove()
	made := filepath.Join(tmp.Path, e.Name)
	c := convert.Options{
		Format: e.Format, Undirected: e.Undirected, Seed: o.Seed, Threads: o.Threads,
		Progress: o.progress("convert", filepath.Base(src)), Note: o.Note,
		Finish: func(stage string, done, total int64) { o.progress(stage, e.Name)(done, total) },
	}
	if e.Format == "planetoid" || e.Format == "graphsage" { // folders of these formats may hold several datasets
		c.Name = e.Name
	}
	if _, err := convert.Convert(ctx, src, made, c); err != nil {
		return err
	}
	err = dataset.EditMetadata(made, func(m *dataset.Metadata) {
		m.Name, m.Licence, m.Citation, m.Metric, m.KnownAccuracies = e.Name, e.Licence, e.Citation, e.Metric, e.Known
		if m.Source != "" {
			m.Source = "; " + m.Source
		}
		m.Source = e.Homepage + m.Source
	})
	if err != nil {
		return err
	}
	if err := os.Rename(made, dir); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}
