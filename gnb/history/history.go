// Package history makes graphs of events of the histories of git repositories: who changed which file when. So everybody who has a
// repository has a timed graph, to try models of events (package gnb/events) on data that one knows.
//
// # Basics
//
//	ds, err := history.Read(ctx, "my-repository", "events", history.Options{})
//
// The nodes are of two types, author and file, and each change of a file by a commit is an event from its author to the file at the time of the
// commit. Nothing of an author is stored but a number. The ids of files are their paths.
//
// # Caveats
//
// The package runs the command git, which must be installed, and gives it no occasion to run what the repository configures: no hooks,
// pagers, filters, external diffs or file system monitors, and no download of what a partial clone lacks. A commit's time is
// what its author's clock said, which can be wrong; the result is sorted by it.
package history

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

// The types of nodes, and the relation from an author to a file.
const (
	Author  = "author"
	File    = "file"
	Changes = "changes"
)

// Options say which part of a history is read. The zero value reads all commits that HEAD has, without merges.
type Options struct {
	// Name is the dataset's name; "" means that of the directory.
	Name string
	// Ref is a branch, a tag or a commit, whose ancestors are read; "" means HEAD.
	Ref string
	// Since and Until are the first and the last moment of events: a date, which is midnight in UTC, or a time with a zone such as
	// 2024-05-01T12:00:00+02:00. "" is no limit.
	Since, Until string
	// Merges reads merges, too, with what they changed relative to their first parent. By default they are left out, because their
	// changes are those of other commits.
	Merges bool
	// Renames follows files that were renamed: they stay one node, with the last path as id. By default the old path and the new one are two files.
	Renames bool
	// Committed takes the times at which commits were made part of the history (git's committer date), instead of those at which their
	// authors wrote them.
	Committed bool
	// MaxFiles leaves out commits that change more files, such as those that format a whole repository; 0 means no limit.
	MaxFiles int
	// Quiet prints nothing.
	Quiet bool
	// Notice receives what was left out, sorted or odd; without it that is printed, unless Quiet is set.
	Notice func(notice.Notice)
	// Progress receives the number of commits read and the total.
	Progress func(done, total int64)
}

// change is what a commit did to a file.
type change struct {
	status byte   // A, M, D, R, C, T
	from   string // of a rename or a copy
	path   string
}

// commit is one of a history.
type commit struct {
	id        string
	time      int64
	author    string
	parents   []string
	changes   []change
	undatable bool
}

func fault(format string, args ...any) error { return phrase.Errorf("history", format, args...) }

// Read makes a dataset of events of the history of the repository that the directory repo is, or is in, and writes it as the directory
// dir, which must not exist. Nothing is left of dir after an error. Events are in the order of their times, and those of one time in
// the order of the history, ancestors first. The caller closes the dataset, which is that of [dataset.Open].
//
// Cost: git reads the trees of all commits; memory is about 60 bytes an event, and the paths.
func Read(ctx context.Context, repo, dir string, o Options) (*dataset.Dataset, error) {
	var said notice.List
	say := func(n notice.Notice) {
		n.Where = cmp.Or(n.Where, filepath.Base(filepath.Clean(repo)))
		said.Add(n)
		switch {
		case o.Notice != nil:
			o.Notice(n)
		case !o.Quiet:
			fmt.Println("history: " + n.String())
		}
	}
	switch _, err := os.Lstat(dir); {
	case dir == "":
		return nil, fault("the directory of the dataset has no name")
	case err == nil:
		return nil, fault("%s: %w; remove it, or choose another directory", dir, fs.ErrExist)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fault("%w", err)
	}
	b := &builder{o: o, say: say, authors: map[string]int32{}, files: map[string]int32{}, times: map[string]int64{}}
	var err error
	if b.since, err = moment("Since (--since)", o.Since); err != nil {
		return nil, err
	}
	if b.until, err = moment("Until (--until)", o.Until); err != nil {
		return nil, err
	}
	if o.MaxFiles < 0 {
		return nil, fault("MaxFiles (--max-files) is %d; it is the largest number of files of a commit, 0 for no limit", o.MaxFiles)
	}
	g, err := openGit(ctx, repo)
	if err != nil {
		return nil, err
	}
	if err := b.read(ctx, g); err != nil {
		return nil, err
	}
	d, err := b.dataset()
	if err != nil {
		return nil, err
	}
	d.Meta.Name = cmp.Or(o.Name, filepath.Base(filepath.Clean(dir)))
	d.Meta.Source = "history of a git repository"
	d.Meta.Notices = dataset.KeepNotices(said)
	if err := b.write(ctx, dir, d); err != nil {
		return nil, err
	}
	return dataset.Open(dir)
}

// moment reads a limit of times; nil for none.
func moment(option, text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			t := at.Unix()
			return &t, nil
		}
	}
	return nil, fault("%s is %q; write a date such as 2024-05-01, which begins in UTC, or a time such as 2024-05-01T12:00:00+02:00", option, text)
}

// builder collects the events of a history.
type builder struct {
	o            Options
	say          func(notice.Notice)
	since, until *int64

	authors map[string]int32
	files   map[string]int32 // by path; with Renames, by the path until now
	paths   []string         // by file, the last one
	times   map[string]int64 // of commits, for the order of clocks

	src, dst []int32
	time     []int64
	// counts of commits
	commits, used, empty, outside, large, boundary, undatable, backwards, early, late, merges int64
	renamed                                                                                   int64
}

// read runs git and takes in all commits.
func (b *builder) read(ctx context.Context, g *git) error {
	ref := cmp.Or(b.o.Ref, "HEAD")
	head, err := g.resolve(ctx, ref)
	if err != nil {
		return err
	}
	shallow, err := g.shallow(ctx)
	if err != nil {
		return err
	}
	total, err := g.count(ctx, head, b.o.Merges)
	if err != nil {
		return err
	}
	if !b.o.Merges {
		all, err := g.count(ctx, head, true)
		if err != nil {
			return err
		}
		b.merges = all - total
	}
	now := time.Now().Unix()
	err = g.log(ctx, head, b.o, func(c *commit) error {
		b.commits++
		if b.o.Progress != nil && (b.commits%1000 == 0 || b.commits == total) {
			b.o.Progress(b.commits, total)
		}
		return b.add(c, shallow, now)
	})
	if err != nil {
		return err
	}
	b.sayAll(len(shallow) > 0)
	if len(b.src) == 0 {
		return fault("no event is left of the %s of %s: none changes a file in the time and with the options given", phrase.Count(int(b.commits), "commit"), g.dir)
	}
	return nil
}

// add takes in a commit.
func (b *builder) add(c *commit, shallow map[string]bool, now int64) error {
	if b.o.Renames { // also of commits that are left out: later ones have the new paths
		moved := map[string]int32{} // all at once: two files can have exchanged their names
		for _, x := range c.changes {
			if id, ok := b.files[x.from]; ok && x.status == 'R' {
				moved[x.path] = id
			}
		}
		for _, x := range c.changes {
			if x.status == 'R' {
				delete(b.files, x.from)
			}
		}
		for path, id := range moved {
			b.files[path], b.paths[id] = id, path
			b.renamed++
		}
	}
	for _, p := range c.parents {
		if t, ok := b.times[p]; ok && !c.undatable && c.time < t {
			b.backwards++
			break
		}
	}
	if !c.undatable {
		b.times[c.id] = c.time
	}
	switch {
	case shallow[c.id]:
		b.boundary++
		return nil
	case c.undatable:
		b.undatable++
		return nil
	case b.since != nil && c.time < *b.since || b.until != nil && c.time > *b.until:
		b.outside++
		return nil
	case len(c.changes) == 0:
		b.empty++
		return nil
	case b.o.MaxFiles > 0 && len(c.changes) > b.o.MaxFiles:
		b.large++
		return nil
	}
	b.used++
	if c.time < 0 {
		b.early++
	}
	if c.time > now {
		b.late++
	}
	author, ok := b.authors[c.author]
	if !ok {
		author = int32(len(b.authors))
		b.authors[c.author] = author
	}
	for _, x := range c.changes {
		id, ok := b.files[x.path]
		if !ok {
			if len(b.paths) >= 1<<30 {
				return fault("the history has more than %d files", 1<<30)
			}
			id = int32(len(b.paths))
			b.files[x.path], b.paths = id, append(b.paths, x.path)
		}
		b.src, b.dst, b.time = append(b.src, author), append(b.dst, id), append(b.time, c.time)
	}
	return nil
}

// sayAll says what was left out and what is odd.
func (b *builder) sayAll(shallow bool) {
	say := func(kind notice.Kind, count, of int64, what, option string) {
		if count > 0 {
			b.say(notice.Notice{Kind: kind, What: what, Count: count, Of: of, Option: option})
		}
	}
	if shallow {
		b.say(notice.Notice{Kind: notice.Dropped, What: "the clone is shallow: the history before its oldest commits is missing, and those commits are left out, because they seem to add every file", Count: b.boundary, Of: b.commits, Option: "git fetch --unshallow gets the rest"})
	}
	clock := "the author's clock"
	if b.o.Committed {
		clock = "the committer's clock"
	}
	say(notice.Dropped, b.merges, b.merges+b.commits, "merges are left out, whose changes are those of other commits", "--merges reads them")
	say(notice.Dropped, b.empty, b.commits, "commits change no file", "")
	say(notice.Dropped, b.outside, b.commits, "commits are before --since or after --until", "")
	say(notice.Dropped, b.large, b.commits, fmt.Sprintf("commits change more than %d files", b.o.MaxFiles), "--max-files 0 reads them")
	say(notice.Dropped, b.undatable, b.commits, "commits have no date that can be read", "")
	say(notice.Told, b.backwards, b.commits, "commits are earlier than a parent of theirs by "+clock+"; events are sorted by time", "")
	say(notice.Told, b.early, b.used, "commits are before 1970 by "+clock, "")
	say(notice.Told, b.late, b.used, "commits are in the future of this machine's clock", "")
	say(notice.Renumbered, b.renamed, 0, "renames are followed: a file keeps its node, and has its last path as id", "")
}

// dataset makes the graph.
func (b *builder) dataset() (*dataset.Dataset, error) {
	// Numbers in the order of time, so that they do not tell of later changes in the order of the history.
	order := make([]int, len(b.src))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(b.time[i], b.time[j]) })
	number := func(of []int32, n int) []int32 {
		to, next := slices.Repeat([]int32{-1}, n), int32(0)
		for _, i := range order {
			if v := of[i]; to[v] < 0 {
				to[v] = next
				next++
			}
		}
		return to
	}
	authors, files := number(b.src, len(b.authors)), number(b.dst, len(b.paths))
	named, seen := make([]string, len(b.paths)), 0
	for id, to := range files {
		if to < 0 {
			continue
		}
		seen++
		if named[to] = b.paths[id]; b.files[b.paths[id]] != int32(id) { // another file was renamed to this path
			named[to] += fmt.Sprintf(" (earlier, file %d)", to)
		}
	}
	b.paths = named[:seen]
	src, dst, at := make([]int32, len(order)), make([]int32, len(order)), make([]int64, len(order))
	for k, i := range order {
		src[k], dst[k], at[k] = authors[b.src[i]], int32(len(b.authors))+files[b.dst[i]], b.time[i]
	}
	b.src, b.dst, b.time = nil, nil, nil
	schema := &graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: Author, Count: len(b.authors)}, {Name: File, Count: seen}},
		Relations: []graphops.Relation{{Src: Author, Name: Changes, Dst: File}},
	}
	numbers := dataset.RowNumbers(len(src), at)
	g, err := graphops.FromEdgesWith(len(b.authors)+seen, src, dst, graphops.EdgeData{Times: numbers, Types: make([]uint16, len(src))}, graphops.BuildOptions{})
	if err != nil {
		return nil, fault("%w", err)
	}
	if g, err = g.WithTypes(schema, g.EdgeTypes); err != nil {
		return nil, fault("%w", err)
	}
	g, events := dataset.FromRowNumbers(g, src, dst, numbers, at)
	d := &dataset.Dataset{Graph: g, Events: events, Splits: map[string][]int32{}, Meta: dataset.Metadata{TimeUnit: dataset.Seconds}}
	return d, nil
}

// write writes the dataset, with a number as the id of each author and its path as that of each file.
func (b *builder) write(ctx context.Context, dir string, d *dataset.Dataset) error {
	quoted := int64(0)
	paths := make([]string, len(b.paths))
	for i, path := range b.paths {
		if paths[i] = path; !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) {
			paths[i] = strconv.Quote(path)
			quoted++
		}
	}
	if quoted > 0 {
		n := notice.Notice{Kind: notice.Unrepresentable, What: "paths have line breaks, control characters or bytes that are not UTF-8; their ids are quoted as in Go", Count: quoted, Of: int64(len(paths))}
		b.say(n)
		d.Meta.Notices = append(d.Meta.Notices, n)
	}
	err := atomicfile.BuildDir(dir, func(tmp string) error {
		if err := names(filepath.Join(tmp, dataset.NamesFile(Author)), len(b.authors), strconv.Itoa); err != nil {
			return err
		}
		if err := names(filepath.Join(tmp, dataset.NamesFile(File)), len(paths), func(i int) string { return paths[i] }); err != nil {
			return err
		}
		return dataset.WriteWith(ctx, tmp, d, dataset.WriteOptions{Inside: true})
	})
	if err != nil {
		return fault("writing %s: %w", dir, err)
	}
	return nil
}

func names(path string, n int, name func(i int) string) error {
	return atomicfile.WriteWith(path, 0o644, func(w io.Writer) error {
		out := bufio.NewWriter(w)
		for i := range n {
			_, _ = out.WriteString(name(i) + "\n") // Flush returns the error
		}
		return out.Flush()
	})
}
