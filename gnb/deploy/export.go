package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/tables"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

// datasetDir is the directory of the dataset in an exported one.
const datasetDir = "dataset"

// ExportOptions configure [Export]. The zero value is a good default.
type ExportOptions struct {
	// Final exports the final weights even if the run has those of a best epoch.
	Final bool
	// FeatureType is the element type of the nodes' dense features: "" for their own, "f16" for half the size. Answers then have
	// other bits.
	FeatureType string
	// Progress receives the bytes of the dataset written, and their total.
	Progress func(done, total int64)
}

// File is a file of an exported directory, or one that was left out.
type File struct {
	Name  string `json:"name"` // within the directory, with slashes
	Bytes int64  `json:"bytes"`
}

// Exported says what [Export] wrote.
type Exported struct {
	Dir   string `json:"dir"`
	Files []File `json:"files"`
	// Left are the files of the run ("run/…") and of the dataset's directory ("dataset/…") that were left out.
	Left []File `json:"left_out"`
	// Compared is the number of nodes whose answers were compared, bit by bit, with those of the original.
	Compared int `json:"compared"`
}

// Bytes returns the size of the exported files.
func (e *Exported) Bytes() int64 { return total(e.Files) }

func total(files []File) (n int64) {
	for _, f := range files {
		n += f.Bytes
	}
	return n
}

// mostShown is the number of files that were left out and are shown: the largest.
const mostShown = 12

// String says in a few lines what was written, with sizes, and what was left out.
func (e *Exported) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s, %s\n", e.Dir, phrase.Count(len(e.Files), "file"), phrase.Bytes(e.Bytes()))
	for _, f := range e.Files {
		fmt.Fprintf(&s, "  %-36s %s\n", f.Name, phrase.Bytes(f.Bytes))
	}
	if len(e.Left) > 0 {
		fmt.Fprintf(&s, "left out: %s, %s\n", phrase.Count(len(e.Left), "file"), phrase.Bytes(total(e.Left)))
		largest := slices.Clone(e.Left)
		slices.SortStableFunc(largest, func(a, b File) int { return cmp.Compare(b.Bytes, a.Bytes) })
		for _, f := range largest[:min(len(largest), mostShown)] {
			fmt.Fprintf(&s, "  %-36s %s\n", f.Name, phrase.Bytes(f.Bytes))
		}
		if n := len(largest) - mostShown; n > 0 {
			fmt.Fprintf(&s, "  and %d smaller ones\n", n)
		}
	}
	return strings.TrimSuffix(s.String(), "\n")
}

// Export writes into dir what answering by a run needs: its description, one file of weights, and of the dataset the edges with
// what they have, the features, and the recipe and ids of its tables. It leaves out labels, targets, splits, checkpoints, metrics, and
// whatever else the two directories have. The result is a run's directory with the dataset inside; answers have the same bits.
//
// dir must not exist, or be empty, or be a link to an empty directory. A new one is written under a temporary name and gets its own when
// complete. An empty one stays, also if it is a mount point: the files are written into a temporary directory inside it and then moved, the
// run's description last, without which the directory is no run's. Before that Export opens the result, and compares answers for some nodes
// with those of the original. If Export fails, an empty directory is empty again. It refuses what predict.Open refuses, and a divided dataset.
func Export(ctx context.Context, run *runs.Run, ds *gnb.Dataset, dir string, o ExportOptions) (*Exported, error) {
	entry.Enter()
	if run == nil || ds == nil || dir == "" {
		return nil, errors.New("deploy: Export needs a run (runs.Last, runs.Open), a dataset (gnb.Load) and a directory")
	}
	fail := func(err error) error {
		return fmt.Errorf("deploy: exporting run %s to %s: %w", run.Config.ID, dir, err)
	}
	if err := dataset.CheckFeatureType(o.FeatureType); err != nil {
		return nil, fail(err)
	}
	of, err := predict.Open(ctx, run, ds, predictOptions(run, o.Final))
	if err != nil {
		return nil, fmt.Errorf("deploy: run %s cannot be exported: %w", run.Config.ID, err)
	}
	defer of.Close()
	slim, err := ds.WithoutAnswers()
	if err != nil {
		return nil, fail(err)
	}
	e := &Exported{Dir: dir}
	err = buildIn(dir, func(tmp string) error {
		if err := writeRun(tmp, run, of.Weights()); err != nil {
			return err
		}
		if err := writeDataset(ctx, filepath.Join(tmp, datasetDir), ds, slim, o); err != nil {
			return err
		}
		if e.Files, err = filesIn(tmp, ""); err != nil {
			return err
		}
		e.Compared, err = compare(ctx, of, tmp, o)
		return err
	})
	if err != nil {
		return nil, fail(err)
	}
	e.Left, err = leftOut(run, ds, e.Files)
	return e, err
}

// asideName is the name that the temporary directory in an empty one is made from.
const asideName = "export"

// buildIn is [atomicfile.BuildDir] for a directory that may exist and be empty, which then stays the same one.
func buildIn(dir string, fill func(tmp string) error) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if to, err := os.Readlink(dir); err == nil {
			return fmt.Errorf("it is a link to %s, which does not exist; make that directory, or remove the link", to)
		}
	}
	if err != nil || !info.IsDir() {
		return atomicfile.BuildDir(dir, fill)
	}
	isAside := func(name string) bool { return strings.HasPrefix(name, "."+asideName+".tmp-") }
	if err := onlyHas(dir, isAside); err != nil {
		return err
	}
	d, err := atomicfile.NewDir(dir, asideName) // removes those of exports that were killed
	if err != nil {
		return err
	}
	defer d.Remove()
	if err := onlyHas(dir, func(name string) bool { return name == filepath.Base(d.Path) }); err != nil {
		return err
	}
	if err := fill(d.Path); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(d.Path); err != nil {
		return err
	}
	return moveAll(d.Path, dir)
}

// onlyHas refuses a directory that has other entries than those that ours names.
func onlyHas(dir string, ours func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !ours(e.Name()) {
			return fmt.Errorf("it exists and is not empty, it has %s; empty it, or choose another directory: %w", e.Name(), fs.ErrExist)
		}
	}
	return nil
}

// moveAll moves what a directory has to another one of the same file system, the run's description last, when the rest is on disk. If it fails,
// nothing stays moved.
func moveAll(from, to string) (err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Name() != runfile.Config {
			names = append(names, e.Name())
		}
	}
	var moved []string
	defer func() {
		if err != nil {
			for _, name := range slices.Backward(moved) { // the description first
				err = errors.Join(err, os.RemoveAll(filepath.Join(to, name)))
			}
		}
	}()
	move := func(name string) error {
		path := filepath.Join(to, name)
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("another process made %s in it meanwhile; choose another directory: %w", name, fs.ErrExist)
		}
		err := os.Rename(filepath.Join(from, name), path)
		if err == nil {
			moved = append(moved, name)
		}
		return err
	}
	for _, name := range names {
		if err := move(name); err != nil {
			return err
		}
	}
	if err := atomicfile.SyncDir(to); err != nil {
		return err
	}
	if err := move(runfile.Config); err != nil {
		return err
	}
	return atomicfile.SyncDir(to)
}

// predictOptions draws some neighbours of each node, so that no hub is too large to compare answers.
func predictOptions(run *runs.Run, final bool) predict.Options {
	o := predict.Options{Final: final, Quiet: true}
	if m := run.Result.Model; m != nil {
		o.Fanouts = slices.Repeat([]int{8}, m.Config.Layers)
	}
	return o
}

// writeRun writes the files of the run.
func writeRun(dir string, run *runs.Run, weights string) error {
	c, r := run.Config, run.Result
	c.DatasetDir, c.DatasetSource, c.SplitSet = datasetDir, "", 0
	c.Tags, c.Notes, c.From, c.Identity, c.Changes, c.Restarts = nil, "", nil, nil, nil, nil
	name := filepath.Base(weights)
	r.EpochSeconds, r.WorkerSeeds, r.Rows, r.Weights = nil, nil, nil, map[string]string{}
	if sum, ok := run.Result.Weights[name]; ok {
		r.Weights[name] = sum
	}
	if err := copyFile(filepath.Join(dir, name), func() (fs.File, error) { return atomicfile.Open(weights) }); err != nil {
		return err
	}
	if err := runfile.WriteJSON("deploy", filepath.Join(dir, runfile.Config), c); err != nil {
		return err
	}
	return runfile.WriteJSON("deploy", filepath.Join(dir, runfile.Result), r)
}

// writeDataset writes the dataset without answers, with the recipe of its tables and the ids of its nodes.
func writeDataset(ctx context.Context, dir string, ds, slim *dataset.Dataset, o ExportOptions) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	names := []string{tables.RecipeFile}
	if s := ds.Schema(); s != nil {
		for _, t := range s.Nodes {
			names = append(names, dataset.NamesFile(t.Name))
		}
	} else {
		names = append(names, dataset.NamesFile(""))
	}
	if _, err := tables.NewEncoder(ds); err == nil { // without a recipe ids are numbers
		for _, name := range names {
			if err := copyFile(filepath.Join(dir, name), func() (fs.File, error) { return ds.OpenFile(name) }); err != nil {
				return err
			}
		}
	}
	if err := dataset.WriteWith(ctx, dir, slim, dataset.WriteOptions{FeatureType: o.FeatureType, Progress: o.Progress, Inside: true}); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

// copyFile writes a copy, synced.
func copyFile(to string, open func() (fs.File, error)) (err error) {
	in, err := open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}

// compare opens an exported directory and compares its answers with those of the original.
func compare(ctx context.Context, of *predict.Predictor, dir string, o ExportOptions) (n int, err error) {
	run, err := runs.Open(dir)
	if err != nil {
		return 0, err
	}
	ds, err := dataset.Open(filepath.Join(dir, datasetDir))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	p, err := predict.Open(ctx, run, ds, predictOptions(run, false))
	if err != nil {
		return 0, err
	}
	defer p.Close()
	if p.Kind() != of.Kind() || !slices.Equal(p.Columns(), of.Columns()) {
		return 0, fmt.Errorf("the exported directory answers %s %v, and the run %s %v; this is a bug of GraphNB", p.Kind(), p.Columns(), of.Kind(), of.Columns())
	}
	if o.FeatureType != "" {
		return 0, nil
	}
	const nodes = 8
	for i := range min(nodes, ds.Nodes()) {
		v := int32(int64(i) * int64(ds.Nodes()) / min(nodes, int64(ds.Nodes())))
		want, err1 := of.Numbered(ctx, v)
		got, err2 := p.Numbered(ctx, v)
		switch {
		case err1 != nil && err2 != nil && err1.Error() == err2.Error(): // such as a neighbourhood with too many edges
			continue
		case err1 != nil || err2 != nil:
			return n, fmt.Errorf("node %d: %w", v, cmp.Or(err2, err1))
		case !sameBits(want.Rows.F32, got.Rows.F32):
			return n, fmt.Errorf("node %d has another answer from the exported directory than from the run; this is a bug of GraphNB", v)
		}
		n++
	}
	return n, nil
}

// filesIn lists the files below a directory.
func filesIn(dir, prefix string) (all []File, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && info.Mode().IsRegular() {
			all = append(all, File{prefix + filepath.ToSlash(name), info.Size()})
		}
		return err
	})
	return all, err
}

// leftOut lists the files of the run and the dataset that were not exported.
func leftOut(run *runs.Run, ds *dataset.Dataset, exported []File) (left []File, err error) {
	add := func(dir, prefix, as string) error {
		files, err := filesIn(dir, prefix)
		for _, f := range files {
			name := as + strings.TrimPrefix(f.Name, prefix)
			if !slices.ContainsFunc(exported, func(x File) bool { return x.Name == name }) {
				left = append(left, f)
			}
		}
		return err
	}
	if err := add(run.Dir, "run/", ""); err != nil {
		return nil, err
	}
	if ds.Dir() == "" {
		return left, nil
	}
	return left, add(ds.Dir(), "dataset/", datasetDir+"/")
}
