// Package convert turns graphs as others store them into dataset directories.
//
// # Basics
//
// [Convert] looks at a file or folder, finds its format, reads it, and writes a
// directory that [dataset.Open] opens. [Formats] lists what it reads. The
// directory appears under its name when it is complete and synced: a conversion
// that fails or is killed leaves nothing that looks finished.
//
// # What becomes of the nodes and edges
//
// Node ids stay as they are. In a list of edges, which has no number of nodes,
// the largest id says how many there are; ids that do not occur are nodes without
// neighbours. Where fewer than half of them occur, that is an error, unless
// Options.Relabel numbers those that occur by ascending id; so does a comment
// "# Nodes: N Edges: M", as SNAP writes it, of which N is their number. Formats that define
// their first node to be 1 (METIS, DIMACS, Graphs.jl) are counted from 0.
//
// An edge that occurs several times is kept once; where edges have weights, the
// weights are added. Weights that are all 1 are dropped. Options.Undirected adds
// the opposite of each edge.
//
// A set with a class for each node and without a split gets ten: see
// [RandomSplits].
//
// Files of a folder that nothing was read of are named in a note.
//
// # Caveats
//
// Files are not trusted. What a header says is compared with what is there before
// memory depends on it, compressed data that grows beyond any list of numbers is
// refused, nothing that is read is executed, and everything is checked once more
// ([dataset.Dataset.Check]) before it is written. Errors name the file, the
// position and the reason.
//
// A file that is refused has cost at most four times its size and a fixed part:
// the program, 2 MiB a thread for the blocks of text in hand, and what the first
// 4 MiB of decompressed text become, which no ratio of sizes can tell from a
// bomb; 15 to 25 MB in all for the worst of them, and the dictionary of an .xz file, at
// most 64 MiB. For compressed text that is
// honest up to the error, its size is that of the text: an edge is 8 bytes in
// memory, however well its line was compressed.
package convert

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/machine"
)

// Options says how to convert. The zero value finds the format and takes
// everything as it is.
type Options struct {
	// Format is the name of one of the [Formats]; "" and "auto" find it by looking.
	Format string
	// Name chooses a dataset where the folder holds several, and names the result.
	// The default name is that of the file or folder.
	Name string
	// Undirected adds the opposite of every edge.
	Undirected bool
	// Features replaces the features: "FILE.npy" [nodes, any]; "one-hot:FILE.csv",
	// with a line of class ids for each node, each of which becomes a 1 in the
	// block of columns of its place in the line; "random:DIM".
	Features string
	// FeatureType is how dense features are written: [dataset.WriteOptions].
	FeatureType string
	// LargestComponent keeps only the nodes of the largest connected component
	// ([dataset.LargestComponent]), numbered anew by ascending id. Random splits are
	// drawn among them.
	LargestComponent bool
	// Relabel numbers the nodes of an edge list anew, by ascending id.
	Relabel bool
	// OverlappingSplits permits nodes in two of train, val and test.
	OverlappingSplits bool
	// Seed is the random seed of features and splits.
	Seed uint64
	// Threads is the number of threads (0: GOMAXPROCS). It does not change the
	// result, but for the last bits of weights that are added.
	Threads int
	// Progress is told how many bytes of the input have been read, of how many
	// known so far. It is called from one goroutine at a time.
	Progress func(done, total int64)
	// Finish is told how far what follows reading has come: the stage "build" of the
	// graph, in work of about the same time each, and "check" and "write", in bytes of
	// the result. It is called from one goroutine at a time, about ten times a second.
	Finish func(stage string, done, total int64)
	// Note is told in a sentence what the user may want to know.
	Note func(text string)
}

func (o *Options) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

// stage reports one of the stages that follow reading.
func (o *Options) stage(name string) func(done, total int64) {
	if o.Finish == nil {
		return func(int64, int64) {}
	}
	var told time.Time
	return func(done, total int64) {
		if now := time.Now(); done == total || now.Sub(told) >= 100*time.Millisecond {
			told = now
			o.Finish(name, done, total)
		}
	}
}

// Stats is what a conversion did.
type Stats struct {
	Format   string `json:"format"`
	Name     string `json:"name"`
	Nodes    int    `json:"nodes"`
	Edges    int64  `json:"edges"` // directed: an undirected edge counts twice
	Features int    `json:"features"`
	Classes  int    `json:"classes"`
	// PeakRSSBytes is the largest resident set that the process has had so far; 0
	// where the system does not tell.
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
	Seconds      float64 `json:"seconds"`
}

// Reader reads one format. It may be asked to Detect anything, and to Read what
// it has not detected where the user names the format.
type Reader interface {
	// Name is the value of Options.Format.
	Name() string
	// About says in a line what the format is.
	About() string
	// Detect tells whether the source looks like the format, from its names and
	// its beginning.
	Detect(s *Source) bool
	// Read reads all of it. The dataset may lack a name.
	Read(ctx context.Context, s *Source, o Options) (*dataset.Dataset, error)
}

// Formats are the readers in the order in which they are asked.
func Formats() []Reader {
	return []Reader{
		saintReader{},
		sageReader{},
		ogbReader{},
		musaeReader{},
		csvReader{},
		planetoidReader{},
		numpyReader{},
		npzReader{},
		jlgReader{},
		dimacsReader{},
		metisReader{},
		edgeListReader{},
	}
}

func formatNames() string {
	names := []string{"auto"}
	for _, r := range Formats() {
		names = append(names, r.Name())
	}
	return strings.Join(names, ", ")
}

func errorf(format string, args ...any) error { return fmt.Errorf("convert: "+format, args...) }

func errorText(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// A name becomes a part of file names.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Convert reads the file or folder src and writes it as the dataset directory
// dst, which must not exist. It stops when ctx is cancelled. The error says which
// file is wrong, where and why; dst does not exist then.
//
// Memory: the arrays of the result, and 16 bytes an edge while the graph is
// built (twice that when it is made undirected).
func Convert(ctx context.Context, src, dst string, o Options) (Stats, error) {
	start := time.Now()
	if o.Name != "" && (!namePattern.MatchString(o.Name) || strings.Contains(o.Name, "..")) {
		return Stats{}, errorf("--name is %q; a name has at most 100 letters, digits, ., _ and -, and begins with a letter or digit", o.Name)
	}
	if err := checkFeatures(o.Features); err != nil {
		return Stats{}, err
	}
	if err := dataset.CheckFeatureType(o.FeatureType); err != nil {
		return Stats{}, errorf("--feature-type: %w", err)
	}
	if _, err := os.Lstat(dst); err == nil {
		return Stats{}, errorf("%s: %w; remove it or choose another directory", dst, fs.ErrExist)
	}
	m := &meter{report: o.Progress}
	if finish, stage, told := o.Finish, "", int64(0); finish != nil && o.Progress != nil {
		o.Finish = func(next string, done, total int64) {
			if read := m.done.Load(); stage != next && read > told { // what there was to read before it has been read
				o.Progress(read, read)
				told = read
			}
			stage = next
			finish(next, done, total)
		}
	}
	d, r, err := read(ctx, src, m, o)
	if err != nil {
		return Stats{}, err
	}
	defer d.Close()
	if err := dataset.WriteWith(ctx, dst, d, dataset.WriteOptions{Progress: o.stage("write"), Checked: true, FeatureType: o.FeatureType}); err != nil {
		return Stats{}, err
	}
	if o.Progress != nil && o.Finish == nil {
		o.Progress(m.done.Load(), m.done.Load())
	}
	return Stats{
		Format: r.Name(), Name: d.Name(), Nodes: d.Nodes(), Edges: d.Edges(), Features: d.FeatureDim(), Classes: d.Classes(),
		PeakRSSBytes: machine.PeakRSS(), Seconds: time.Since(start).Seconds(),
	}, nil
}

// read finds the format and reads and checks the dataset.
func read(ctx context.Context, src string, m *meter, o Options) (*dataset.Dataset, Reader, error) {
	s, err := newSource(src, m)
	if err != nil {
		return nil, nil, err
	}
	folder := s
	r, s, err := find(s, o)
	if err != nil {
		return nil, nil, err
	}
	d, err := r.Read(ctx, s, o)
	if err != nil {
		return nil, nil, err
	}
	if d, err = finish(ctx, d, s, r, m, o); err != nil {
		return nil, nil, err
	}
	if left := folder.unused(); len(left) > 0 {
		o.note("%s: nothing was read of %s, which the format %s has no use for", folder.Path, someOf(left), r.Name())
	}
	d.Meta.OverlappingSplits = o.OverlappingSplits
	if err := d.CheckWith(ctx, o.stage("check")); err != nil {
		return nil, nil, errorf("reading %s: %w", s.Path, err)
	}
	return d, r, nil
}

// someOf lists names, and says how many more there are than ten.
func someOf(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// finish does what is the same for all formats.
func finish(ctx context.Context, d *dataset.Dataset, s *Source, r Reader, m *meter, o Options) (*dataset.Dataset, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Undirected {
		if err := makeUndirected(d, o.Threads); err != nil {
			return nil, err
		}
	}
	// GraphSAINT's files, for example, list both directions and do not say so.
	d.Meta.Undirected = d.Meta.Undirected || d.Graph.Symmetric()
	if d.Meta.Name == "" || o.Name != "" {
		d.Meta.Name = o.Name
	}
	if d.Meta.Name == "" {
		d.Meta.Name = s.base(r.Name())
	}
	if o.Features != "" {
		if err := addFeatures(ctx, d, m, o); err != nil {
			return nil, err
		}
	}
	how := r.Name() + " files"
	if o.Features != "" {
		kind, path, ok := strings.Cut(o.Features, ":")
		if !ok {
			kind, path = "file", o.Features
		}
		how += ", features " + kind + ":" + filepath.Base(path)
	}
	if o.LargestComponent {
		nodes := d.Nodes()
		var err error
		if d, err = d.Subset(dataset.LargestComponent(d.Graph)); err != nil {
			return nil, err
		}
		how += fmt.Sprintf(", largest component (%d of %d nodes)", d.Nodes(), nodes)
	}
	if d.Labels != nil && len(d.Splits) == 0 {
		const sets, train, val = 10, 20, 30
		if err := RandomSplits(d, sets, train, val, o.Seed); err != nil {
			return nil, err
		}
		how += fmt.Sprintf(", %d random splits of %d train and %d val nodes a class, seed %d", sets, train, val, o.Seed)
	}
	if d.Meta.Source == "" {
		d.Meta.Source = "converted from " + how
	} else {
		d.Meta.Source += "; converted from " + how
	}
	return d, nil
}

// find chooses the reader, and the file where a folder holds several.
func find(s *Source, o Options) (Reader, *Source, error) {
	if o.Format != "" && o.Format != "auto" {
		for _, r := range Formats() {
			if r.Name() == o.Format {
				s, err := enter(s, r, o)
				return r, s, err
			}
		}
		return nil, nil, errorf("there is no format %q; the formats are %s", o.Format, formatNames())
	}
	if s.Dir {
		if s.Has("metadata.json") && s.Has("indptr.npy") {
			return nil, nil, errorf("%s is a dataset directory already", s.Path)
		}
	}
	for _, r := range Formats() {
		if r.Detect(s) {
			return r, s, nil
		}
	}
	if s.Dir {
		return findInside(s, o)
	}
	return nil, nil, errorf("%s is of no known format (it begins with %s); --format says which it is: %s", s.Path, shown(s.Head), formatNames())
}

// enter is the file of the folder that is meant, for formats that are one file.
func enter(s *Source, r Reader, o Options) (*Source, error) {
	if !s.Dir || isFolder(r) {
		if !s.Dir && isFolder(r) {
			return nil, errorf("%s is a file; the format %s is %s", s.Path, r.Name(), r.About())
		}
		return s, nil
	}
	_, inside, err := findInside(s, o)
	return inside, err
}

// isFolder tells whether the format is a folder.
func isFolder(r Reader) bool {
	switch r.(type) {
	case saintReader, sageReader, ogbReader, musaeReader, csvReader, planetoidReader, numpyReader:
		return true
	}
	return false
}

// findInside looks for the one file of a folder that is a dataset, or for the
// one that --name means.
func findInside(s *Source, o Options) (Reader, *Source, error) {
	type found struct {
		reader Reader
		source *Source
	}
	var all []found
	var names []string
	for _, file := range s.Files {
		if o.Name != "" && stem(file) != o.Name && file != o.Name || slices.Contains([]string{"README.md", "README", "LICENSE"}, file) {
			continue
		}
		inside, err := newSource(s.Path+string(os.PathSeparator)+file, s.meter)
		if err != nil {
			if o.Name != "" {
				return nil, nil, err
			}
			continue
		}
		for _, r := range Formats() {
			if r.Detect(inside) {
				all = append(all, found{r, inside})
				names = append(names, stem(file))
				break
			}
		}
	}
	switch {
	case len(all) == 1:
		return all[0].reader, all[0].source, nil
	case len(all) > 1:
		return nil, nil, errorf("%s holds several datasets, %s: --name says which", s.Path, strings.Join(names, ", "))
	case o.Name != "":
		return nil, nil, errorf("%s has no dataset %q", s.Path, o.Name)
	}
	return nil, nil, errorf("%s is a folder of no known format; --format says which it is: %s (gnb data convert --help describes them)", s.Path, formatNames())
}
