package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/testneed"
)

// repo is a repository that a test makes.
type repo struct {
	t     *testing.T
	dir   string
	clock int
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	testneed.Git(t)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull) // the machine's settings are not the tests'
	r := &repo{t, filepath.Join(t.TempDir(), "repo"), 1_700_000_000}
	r.run("init", "-q", "-b", "main", r.dir)
	return r
}

func (r *repo) run(args ...string) string {
	r.t.Helper()
	return r.as("a@example.org", args...)
}

func (r *repo) as(author string, args ...string) string {
	r.t.Helper()
	if args[0] != "init" {
		args = append([]string{"-C", r.dir}, args...)
	}
	c := exec.Command("git", append([]string{"-c", "core.quotePath=false"}, args...)...)
	when := fmt.Sprintf("%d +0200", r.clock)
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=A", "GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.org", "GIT_AUTHOR_EMAIL="+author, "GIT_AUTHOR_DATE="+when, "GIT_COMMITTER_DATE="+when)
	out, err := c.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files, with a text of their own each time, and commits them a minute later; a name that begins with - is removed.
func (r *repo) commit(author string, files ...string) {
	r.t.Helper()
	r.clock += 60
	for _, name := range files {
		path := filepath.Join(r.dir, strings.TrimPrefix(name, "-"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		var err error
		if strings.HasPrefix(name, "-") {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, []byte(strings.Repeat(name+"\n", 20)+fmt.Sprint(r.clock)), 0o644)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	r.run("add", "-A")
	r.as(author, "commit", "-q", "--allow-empty", "-m", "change")
}

// read reads the repository, and returns its events as "author>file@seconds since the first commit", and what was said.
func (r *repo) read(o Options) (all []string, said string, err error) {
	r.t.Helper()
	var list []string
	o.Quiet, o.Notice = true, func(n notice.Notice) { list = append(list, n.String()) }
	dir := filepath.Join(r.t.TempDir(), "ds")
	ds, err := Read(r.t.Context(), r.dir, dir, o)
	if err != nil {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			r.t.Errorf("a failed reading leaves %s", dir)
		}
		return nil, strings.Join(list, "\n"), err
	}
	defer ds.Close()
	if err := ds.Check(r.t.Context()); err != nil {
		r.t.Error(err)
	}
	ids, err := ds.IDs()
	if err != nil {
		r.t.Fatal(err)
	}
	src, dst, _ := ds.Graph.EdgesAt(ds.Events)
	for i, e := range ds.Events {
		all = append(all, fmt.Sprintf("%s>%s@%d", ids[src[i]], ids[dst[i]], ds.Graph.EdgeTimes[e]-1_700_000_060))
	}
	return all, strings.Join(list, "\n"), nil
}

// Each file that a commit changes is an event of the commit's author; addresses and names of authors are nowhere in the dataset.
func TestHistory(t *testing.T) {
	r := newRepo(t)
	r.commit("a@example.org", "x", "sub/y")
	r.commit("B@example.org", "x")
	r.commit("b@example.org", "-x", "ä ö", "new\nline")
	r.commit("a@example.org")
	r.run("checkout", "-q", "-b", "side")
	r.commit("c@example.org", "side")
	r.run("checkout", "-q", "main")
	r.commit("a@example.org", "sub/y")
	r.clock += 60
	r.run("merge", "-q", "--no-ff", "-m", "merge", "side")
	got, said, err := r.read(Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0>sub/y@0", "0>x@0", "1>x@60", `1>"new\nline"@120`, "1>x@120", "1>ä ö@120", "2>side@240", "0>sub/y@300"}
	if !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
	for _, text := range []string{"merges are left out, whose changes are those of other commits (1 of 7); --merges reads them", "commits change no file (1 of 6)", "their ids are quoted as in Go (1 of 5)"} {
		if !strings.Contains(said, text) {
			t.Errorf("said %s, want %s", said, text)
		}
	}
	if got, _, err = r.read(Options{Merges: true}); err != nil || !slices.Equal(got, append(want, "0>side@360")) {
		t.Errorf("with merges the events are %q, %v", got, err)
	}
	if got, _, err = r.read(Options{Ref: "side"}); err != nil || !slices.Equal(got, want[:7]) {
		t.Errorf("of side the events are %q, %v", got, err)
	}
	if got, said, err = r.read(Options{Since: "2023-11-14T22:15:20Z", Until: "2023-11-15T00:16:20+02:00"}); err != nil || !slices.Equal(got, []string{"0>x@60", `0>"new\nline"@120`, "0>x@120", "0>ä ö@120"}) || !strings.Contains(said, "commits are before --since or after --until (4 of 6)") {
		t.Errorf("of a time the events are %q, %s, %v", got, said, err)
	}
	if got, said, err = r.read(Options{MaxFiles: 2}); err != nil || len(got) != 5 || !strings.Contains(said, "commits change more than 2 files (1 of 6); --max-files 0 reads them") {
		t.Errorf("of small commits the events are %q, %s, %v", got, said, err)
	}
	dir := filepath.Join(t.TempDir(), "ds")
	ds, err := Read(t.Context(), filepath.Join(r.dir, "sub"), dir, Options{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if s := ds.Schema(); s.Nodes[0].Name != Author || s.Nodes[0].Count != 3 || s.Nodes[1].Name != File || s.Nodes[1].Count != 5 || s.Relations[0].String() != "author:changes:file" || ds.Meta.TimeUnit != dataset.Seconds || ds.Name() != "ds" {
		t.Errorf("%+v, %+v", s, ds.Meta)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "example.org") {
			t.Errorf("%s has the address of an author", f.Name())
		}
	}
	if _, err := Read(t.Context(), r.dir, dir, Options{Quiet: true}); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "choose another directory") {
		t.Errorf("over another dataset: %v", err)
	}
}

// A renamed file stays one node if renames are followed, also if two files exchange their names; by default each path is a file.
func TestRenames(t *testing.T) {
	r := newRepo(t)
	r.commit("a@example.org", "p", "r")
	r.clock += 60
	r.run("mv", "r", "s")
	r.run("commit", "-q", "-m", "move")
	r.commit("a@example.org", "r")
	got, said, err := r.read(Options{Renames: true})
	if err != nil {
		t.Fatal(err)
	}
	// What was r is s, and the new r is another file.
	if want := []string{"0>p@0", "0>s@0", "0>s@60", "0>r@120"}; !slices.Equal(got, want) || !strings.Contains(said, "renames are followed: a file keeps its node, and has its last path as id (1)") {
		t.Errorf("the events are %q, want %q; said %s", got, want, said)
	}
	if got, _, err = r.read(Options{}); err != nil || !slices.Equal(got, []string{"0>p@0", "0>r@0", "0>r@60", "0>s@60", "0>r@120"}) {
		t.Errorf("by paths the events are %q, %v", got, err)
	}
	b := &builder{o: Options{Renames: true}, authors: map[string]int32{}, files: map[string]int32{}, times: map[string]int64{}}
	for i, changes := range [][]change{{{'A', "", "p"}, {'A', "", "q"}}, {{'R', "p", "q"}, {'R', "q", "p"}}, {{'M', "", "p"}}, {{'R', "p", "q"}}} {
		if err := b.add(&commit{id: fmt.Sprint(i), time: int64(i), changes: changes}, nil, 10); err != nil {
			t.Fatal(err)
		}
	}
	d, err := b.dataset()
	if err != nil {
		t.Fatal(err)
	}
	_, dst, _ := d.Graph.EdgesAt(d.Events)
	if want := []int32{1, 2, 1, 2, 2, 2}; !slices.Equal(dst, want) || !slices.Equal(b.paths, []string{"q (earlier, file 0)", "q"}) {
		t.Errorf("the files are %v with the ids %q, want %v", dst, b.paths, want)
	}
}

// Clocks that go back, and times in the future or before 1970, are sorted and counted; committers' clocks can be taken instead.
func TestClocks(t *testing.T) {
	r := newRepo(t)
	r.commit("a@x", "one")
	r.clock -= 10_000
	r.commit("b@x", "two")
	r.clock += 90_000
	r.commit("a@x", "three")
	r.clock = 4_000_000_000 // the year 2096
	r.commit("a@x", "four")
	got, said, err := r.read(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"0>two@-9940", "1>one@0", "1>three@80120", "1>four@2300000000"}; !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
	for _, text := range []string{"commits are earlier than a parent of theirs by the author's clock; events are sorted by time (1 of 4)", "commits are in the future of this machine's clock (1 of 4)"} {
		if !strings.Contains(said, text) {
			t.Errorf("said %s, want %s", said, text)
		}
	}
	c := exec.Command("git", "-C", r.dir, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--amend", "--no-edit", "--date=2023-11-15T00:00:00Z")
	c.Env = append(os.Environ(), "GIT_COMMITTER_DATE=1800000000 +0000")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, _, err = r.read(Options{Committed: true}); err != nil || got[3] != "1>four@99999940" {
		t.Errorf("by the committer's clock the events are %q, %v", got, err)
	}
}

// A shallow clone, a bare one and a worktree are read; what a shallow clone seems to add at its end is left out.
func TestClones(t *testing.T) {
	r := newRepo(t)
	for i := range 5 {
		r.commit("a@x", fmt.Sprint("f", i))
	}
	whole, _, err := r.read(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"bare": {"--bare"}, "shallow": {"--depth=3"}, "plain": nil} {
		to := &repo{t, filepath.Join(t.TempDir(), name), 0}
		if out, err := exec.Command("git", append(append([]string{"clone", "-q"}, args...), "file://"+r.dir, to.dir)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got, said, err := to.read(Options{})
		want := whole
		if name == "shallow" {
			want = whole[3:]
			if !strings.Contains(said, "the clone is shallow") || !strings.Contains(said, "(1 of 3); git fetch --unshallow gets the rest") {
				t.Errorf("said %s", said)
			}
		}
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "0>")
			if got[i] != strings.TrimPrefix(want[i], "0>") {
				t.Errorf("%s: event %d is %s, want %s", name, i, got[i], want[i])
			}
		}
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %d events, want %d; %v", name, len(got), len(want), err)
		}
	}
	r.run("config", "uploadpack.allowFilter", "true")
	for filter, want := range map[string]string{"blob:none": "", "tree:0": "is a partial clone without the trees of its commits"} {
		to := &repo{t, filepath.Join(t.TempDir(), "partial"), 0}
		if out, err := exec.Command("git", "clone", "-q", "--no-checkout", "--filter="+filter, "file://"+r.dir, to.dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got, _, err := to.read(Options{})
		if want == "" && (err != nil || !slices.Equal(got, whole)) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: the events are %q, %v", filter, got, err)
		}
	}
	tree := &repo{t, filepath.Join(t.TempDir(), "tree"), 0}
	r.run("worktree", "add", "-q", tree.dir, "HEAD~1")
	if got, _, err := tree.read(Options{}); err != nil || len(got) != 4 {
		t.Errorf("of a worktree the events are %q, %v", got, err)
	}
}

// Nothing that a repository configures is run.
func TestNothingIsRun(t *testing.T) {
	r := newRepo(t)
	r.commit("a@x", "f", "g.txt")
	r.commit("a@x", "f", "g.txt")
	mark := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+mark+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"core.fsmonitor", "core.pager", "pager.log", "diff.external", "diff.evil.textconv", "diff.evil.command", "gpg.program", "core.sshCommand", "core.askPass", "core.alternateRefsCommand", "credential.helper", "core.editor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "uploadpack.packObjectsHook"} {
		r.run("config", name, script)
	}
	r.run("config", "log.showSignature", "true")
	r.run("config", "alias.log", "!"+script)
	r.run("config", "alias.rev-parse", "!"+script)
	hooks := filepath.Join(r.dir, ".git", "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"} {
		if err := os.WriteFile(filepath.Join(hooks, hook), []byte("#!/bin/sh\ntouch "+mark+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, ".git", "info", "attributes"), []byte("* diff=evil filter=evil\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_EXTERNAL_DIFF", script)
	t.Setenv("GIT_PAGER", script)
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "elsewhere"))
	for _, o := range []Options{{}, {Renames: true, Merges: true}} {
		if got, _, err := r.read(o); err != nil || len(got) != 4 {
			t.Errorf("the events are %q, %v", got, err)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("reading the history ran a program that the repository names")
	}
}

// What cannot be read is one sentence with the way out.
func TestHostileRepositories(t *testing.T) {
	empty, r := newRepo(t), newRepo(t)
	r.commit("a@x", "f")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	bare := newRepo(t)
	bare.commit("a@x")
	damaged := newRepo(t)
	damaged.commit("a@x", "f")
	damaged.commit("a@x", "g")
	tree := damaged.run("rev-parse", "HEAD~1^{tree}")
	if err := os.Remove(filepath.Join(damaged.dir, ".git", "objects", tree[:2], tree[2:])); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir  string
		o    Options
		want string
	}{
		"nothing there":   {filepath.Join(t.TempDir(), "no"), Options{}, "does not exist; give the directory of a clone"},
		"a file":          {file, Options{}, "is a file; give the directory of a clone"},
		"no repository":   {t.TempDir(), Options{}, "is no git repository; give the directory of a clone"},
		"an address":      {"https://example.org/x.git", Options{}, "is an address; clone the repository, and give the clone's directory"},
		"no commits":      {empty.dir, Options{}, "has no commits on its current branch"},
		"no files":        {bare.dir, Options{}, "no event is left of the 1 commit of"},
		"unknown branch":  {r.dir, Options{Ref: "nowhere"}, `has no branch, tag or commit "nowhere"; git branch --all lists the branches`},
		"a flag as a ref": {r.dir, Options{Ref: "--output=/tmp/x"}, "it is the name of a branch or a tag, or a commit"},
		"a range":         {r.dir, Options{Ref: "HEAD..HEAD"}, "it is the name of a branch or a tag, or a commit"},
		"no date":         {r.dir, Options{Since: "last year"}, `Since (--since) is "last year"; write a date such as 2024-05-01`},
		"all outside":     {r.dir, Options{Until: "1999-01-01"}, "no event is left of the 1 commit of"},
		"negative limit":  {r.dir, Options{MaxFiles: -1}, "MaxFiles (--max-files) is -1"},
		"a missing tree":  {damaged.dir, Options{}, "git failed on"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := (&repo{t, c.dir, 0}).read(c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, r.dir, filepath.Join(t.TempDir(), "ds"), Options{Quiet: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, _, err := r.read(Options{}); err == nil || !strings.Contains(err.Error(), "the command git is not on PATH; install git") {
		t.Errorf("without git: %v", err)
	}
}

// A repository of another owner is named with the command that allows to read it.
func TestDubiousOwnership(t *testing.T) {
	g := &git{"/srv/x"}
	err := g.failed(t.Context(), errors.New("exit status 128"), "fatal: detected dubious ownership in repository at '/srv/x'\nTo add an exception …")
	if err == nil || err.Error() != "history: git does not read /srv/x, because another user owns it; if you trust it: git config --global --add safe.directory /srv/x" {
		t.Error(err)
	}
}

// Output of git that is cut or is none is an error, and never a panic or an endless loop; whole output is read as it is.
func FuzzParseLog(f *testing.F) {
	id := strings.Repeat("a", 40)
	f.Add("M " + id + " 5 \x00a@b\x00\nA\x00path\x00R100\x00old\x00new\x00M " + id + " 6 " + id + "\x00a@b\x00")
	f.Add("M " + id + " 99999999999999999999 \x00a@b\x00")
	f.Add("M " + id + " \x00a@b\x00\nA\x00")
	f.Add("M x 5\x00")
	f.Add("A\x00path\x00")
	f.Add("M " + id + " 5 \x00a@b\x00\nQ\x00path\x00")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		err := parseLog(strings.NewReader(text), "M", func(c *commit) error {
			n++
			if !isHash(c.id) || c.undatable && c.time != 0 {
				t.Errorf("%+v", c)
			}
			for _, x := range c.changes {
				if !strings.ContainsRune("AMDTRCUX", rune(x.status)) {
					t.Errorf("%+v", x)
				}
			}
			return nil
		})
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Error(err)
		}
		if err == nil && n == 0 && text != "" {
			t.Error("something was read as nothing")
		}
	})
}

// A log that ends within a commit is said to be cut, and a path that looks like the line of a commit is a path.
func TestParseLog(t *testing.T) {
	id, other := strings.Repeat("a", 40), strings.Repeat("b", 64)
	var got []string
	whole := "M " + id + " 5 \x00A@B\x00\nA\x00M x\x00R100\x00old\x00new\x00M " + other + " -7 " + id + " " + id + "\x00\x00"
	visit := func(c *commit) error {
		got = append(got, fmt.Sprint(c.id[:1], c.time, c.author, len(c.parents), c.changes, c.undatable))
		return nil
	}
	if err := parseLog(strings.NewReader(whole), "M", visit); err != nil || !slices.Equal(got, []string{"a5a@b0 [{65  M x} {82 old new}] false", "b-72 [] false"}) {
		t.Errorf("%q, %v", got, err)
	}
	for cut := range len(whole) {
		if err := parseLog(strings.NewReader(whole[:cut]), "M", func(*commit) error { return nil }); err == nil && cut > 0 && whole[cut-1] != 0 {
			t.Errorf("the first %d bytes are read as a whole log", cut)
		}
	}
	stop := errors.New("stop")
	if err := parseLog(strings.NewReader(whole), "M", func(*commit) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}
