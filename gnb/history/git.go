package history

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// git runs the command git on one repository.
type git struct{ dir string }

// quiet are settings that keep git from running anything that the repository configures, and from changing what it prints.
var quiet = []string{
	"core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "core.askPass=", "core.sshCommand=false", "credential.helper=",
	"protocol.allow=never", "gpg.program=false", "log.showSignature=false", "log.showRoot=true", "log.follow=false", "log.diffMerges=separate",
	"diff.external=", "diff.orderFile=/dev/null", "diff.ignoreSubmodules=none", "color.ui=false", "core.commitGraph=true",
	"diff.renameLimit=2000", "log.excludeDecoration=", "i18n.logOutputEncoding=UTF-8",
}

// command is git with arguments that this package has made.
func (g *git) command(ctx context.Context, args ...string) *exec.Cmd {
	all := []string{"--no-pager", "--no-optional-locks", "--no-replace-objects", "-C", g.dir}
	for _, s := range quiet {
		all = append(all, "-c", s)
	}
	c := exec.CommandContext(ctx, "git", append(all, args...)...)
	// Variables that choose another repository, or programs to run, are those of the caller's shell and not of this one.
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !strings.HasPrefix(name, "GIT_") || name == "GIT_CONFIG_GLOBAL" || name == "GIT_CONFIG_SYSTEM" || name == "GIT_CONFIG_NOSYSTEM" || name == "GIT_CEILING_DIRECTORIES" {
			c.Env = append(c.Env, kv)
		}
	}
	c.Env = append(c.Env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat")
	return c
}

// openGit finds the repository that a directory is, or is in.
func openGit(ctx context.Context, dir string) (*git, error) {
	if strings.Contains(dir, "://") || strings.HasPrefix(dir, "git@") {
		return nil, fault("%s is an address; clone the repository, and give the clone's directory", dir)
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault("%s does not exist; give the directory of a clone of the repository", dir)
	case err != nil:
		return nil, fault("%w", err)
	case !info.IsDir():
		return nil, fault("%s is a file; give the directory of a clone of the repository", dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault("%w", err)
	}
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fault("the command git is not on PATH; install git")
	}
	g := &git{abs}
	_, err = g.output(ctx, "rev-parse", "--git-dir")
	return g, err
}

// output returns what git prints, without the last line break.
func (g *git) output(ctx context.Context, args ...string) (string, error) {
	c := g.command(ctx, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &limited{&out, 1 << 20}, &limited{&errs, 1 << 14}
	if err := c.Run(); err != nil {
		return "", g.failed(ctx, err, errs.String())
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// limited keeps the first bytes that are written.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	k := min(len(p), l.left)
	l.to.Write(p[:k])
	l.left -= k
	return len(p), nil
}

// failed is the error of a git that ended with err, and said text.
func (g *git) failed(ctx context.Context, err error, text string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	first := lines[max(0, slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "fatal: ") || strings.HasPrefix(l, "error: ") }))]
	first = strings.TrimPrefix(strings.TrimPrefix(first, "fatal: "), "error: ")
	switch {
	case strings.Contains(text, "dubious ownership"):
		return fault("git does not read %s, because another user owns it; if you trust it: git config --global --add safe.directory %s", g.dir, g.dir)
	case strings.Contains(text, "not a git repository"):
		return fault("%s is no git repository; give the directory of a clone", g.dir)
	case strings.Contains(text, "promisor") || strings.Contains(text, "lazy fetch") || strings.Contains(text, "could not fetch"):
		return fault("%s is a partial clone without the trees of its commits (%s), and nothing is downloaded here; clone it without --filter=tree", g.dir, first)
	case first == "":
		return fault("git failed on %s: %w", g.dir, err)
	}
	return fault("git failed on %s: %s", g.dir, first)
}

// resolve returns the commit that a ref names.
func (g *git) resolve(ctx context.Context, ref string) (string, error) {
	if strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, "\x00\n \t") || strings.Contains(ref, "..") {
		return "", fault("Ref (--ref) is %q; it is the name of a branch or a tag, or a commit", ref)
	}
	head, err := g.output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	switch {
	case err == nil && isHash(head):
		return head, nil
	case ref == "HEAD":
		return "", fault("%s has no commits on its current branch; commit something, or name another branch (Ref, --ref)", g.dir)
	}
	return "", fault("%s has no branch, tag or commit %q; git branch --all lists the branches", g.dir, ref)
}

func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && (len(s) == 40 || len(s) == 64)
}

// shallow returns the commits whose parents a shallow clone lacks; nil for a whole one.
func (g *git) shallow(ctx context.Context) (map[string]bool, error) {
	is, err := g.output(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil || is != "true" {
		return nil, err
	}
	path, err := g.output(ctx, "rev-parse", "--git-path", "shallow")
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(g.dir, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault("%w", err)
	}
	all := map[string]bool{}
	for _, line := range strings.Fields(string(text)) {
		all[line] = true
	}
	return all, nil
}

// count returns the number of commits that log visits.
func (g *git) count(ctx context.Context, head string, merges bool) (int64, error) {
	args := []string{"rev-list", "--count"}
	if !merges {
		args = append(args, "--no-merges")
	}
	text, err := g.output(ctx, append(args, "--end-of-options", head, "--")...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fault("git counts %q commits of %s", text, g.dir)
	}
	return n, nil
}

// log visits the ancestors of a commit, ancestors first.
func (g *git) log(ctx context.Context, head string, o Options, visit func(*commit) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A mark that no path can contain by chance or design begins the line of a commit.
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return fault("%w", err)
	}
	mark := hex.EncodeToString(raw[:])
	when := "%at"
	if o.Committed {
		when = "%ct"
	}
	args := []string{"log", "-z", "--reverse", "--topo-order", "--root", "--name-status", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-color", "--no-decorate", "--no-notes", "--format=tformat:" + mark + " %H " + when + " %P%x00%aE"}
	if o.Merges {
		args = append(args, "--diff-merges=first-parent")
	} else {
		args = append(args, "--no-merges")
	}
	if o.Renames {
		args = append(args, "--find-renames")
	} else {
		args = append(args, "--no-renames")
	}
	c := g.command(ctx, append(args, "--end-of-options", head, "--")...)
	var errs bytes.Buffer
	c.Stderr = &limited{&errs, 1 << 14}
	out, err := c.StdoutPipe()
	if err != nil {
		return fault("%w", err)
	}
	if err := c.Start(); err != nil {
		return fault("starting git: %w", err)
	}
	parsed := parseLog(out, mark, visit)
	if parsed != nil {
		cancel() // git may still write
	}
	ended := c.Wait()
	switch {
	case context.Cause(ctx) != nil && parsed == nil:
		return ctx.Err()
	case parsed != nil && !errors.Is(parsed, errCut):
		return parsed
	case ended != nil:
		return g.failed(ctx, ended, errs.String())
	}
	return parsed
}

// errCut is the error of a log that ends within a commit.
var errCut = errors.New("history: git's output ends within a commit")

// maxPath bounds a path, or an author's address.
const maxPath = 1 << 20

// parseLog reads what git log prints: parts that end with a zero byte. A commit begins with a part of the mark, its id, its time and its parents; its
// author follows, and then for each file the status and the path, or two paths of a renamed or copied one.
func parseLog(r io.Reader, mark string, visit func(*commit) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 1<<16), maxPath)
	in.Split(func(data []byte, end bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, 0); i >= 0 {
			return i + 1, data[:i], nil
		}
		if end && len(data) > 0 {
			return 0, nil, errCut
		}
		return 0, nil, nil
	})
	next := func() (string, error) {
		if !in.Scan() {
			err := in.Err()
			switch {
			case errors.Is(err, bufio.ErrTooLong):
				return "", fault("a path of the repository has more than %d bytes", maxPath)
			case err == nil:
				err = errCut
			}
			return "", err
		}
		return in.Text(), nil
	}
	var c *commit
	for in.Scan() {
		text := in.Text()
		if head, ok := strings.CutPrefix(text, mark+" "); ok {
			if c != nil {
				if err := visit(c); err != nil {
					return err
				}
			}
			fields := strings.Split(head, " ")
			if len(fields) < 2 || !isHash(fields[0]) {
				return fault("git prints a commit as %.80q", head)
			}
			c = &commit{id: fields[0], parents: slices.DeleteFunc(fields[2:], func(p string) bool { return p == "" })}
			t, err := strconv.ParseInt(fields[1], 10, 64)
			if c.time = t; err != nil || t > 1<<53 || t < -(1<<53) {
				c.time, c.undatable = 0, true
			}
			if c.author, err = next(); err != nil {
				return err
			}
			c.author = strings.ToLower(c.author)
			continue
		}
		if c == nil {
			return fault("git prints %.80q before the first commit", text)
		}
		status := strings.TrimPrefix(text, "\n")
		if status == "" {
			continue
		}
		x := change{status: status[0]}
		if !strings.ContainsRune("AMDTRCUX", rune(x.status)) {
			return fault("git prints the status %.20q of a file", status)
		}
		var err error
		if x.status == 'R' || x.status == 'C' {
			if x.from, err = next(); err != nil {
				return err
			}
		}
		if x.path, err = next(); err != nil {
			return err
		}
		c.changes = append(c.changes, x)
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fault("a path of the repository has more than %d bytes", maxPath)
	case err != nil:
		return fmt.Errorf("history: reading git's output: %w", err)
	}
	if c != nil {
		return visit(c)
	}
	return nil
}
