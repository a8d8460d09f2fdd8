package onhosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// folderCopy is a folder that is copied to the hosts before the start.
type folderCopy struct {
	dir   string
	leave [][]string // by host, the names of folders in it that the host does not get
}

// copies checks the folders of --copy. Of a dataset in parts, a host gets only the parts that its ranks have.
func (l *launcher) copies(dirs []string) (all []folderCopy, err error) {
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(abs)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--copy %s: %w", dir, err)
		case !info.IsDir():
			return nil, cli.Usagef("--copy %s: it is no folder", dir)
		}
		c := folderCopy{dir: abs, leave: make([][]string, len(l.hosts))}
		if err := c.divide(l.hosts); err != nil {
			return nil, fmt.Errorf("--copy %s: %w", dir, err)
		}
		all = append(all, c)
	}
	if len(all) > 0 {
		if _, err := exec.LookPath("rsync"); err != nil {
			return nil, errors.New("--copy needs rsync, which is not on PATH; install it here and on the hosts, or copy the folders yourself")
		}
	}
	return all, nil
}

// divide finds out which parts each host gets, if the folder is a dataset in parts.
func (c *folderCopy) divide(hosts []host) error {
	if _, err := os.Stat(filepath.Join(c.dir, dataset.MetadataFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ds, err := dataset.Open(c.dir)
	if err != nil {
		return err
	}
	defer ds.Close()
	if !divided.Is(ds) || ds.Meta.Parts.Servers != "" {
		return nil
	}
	parts, first := ds.Meta.Parts.Count, 0
	for i, h := range hosts {
		for p := range parts {
			part := dataset.PartDir(c.dir, p)
			if r := divided.RankOf(p, parts, world(hosts)); r < first || r >= first+h.ranks {
				c.leave[i] = append(c.leave[i], filepath.Base(part))
			} else if _, err := os.Stat(part); err != nil {
				return fmt.Errorf("%s needs part %d: %w", h.name, p, err)
			}
		}
		first += h.ranks
	}
	return nil
}

// copy copies a folder to all hosts at the same time, by rsync over the same ssh. It returns the exit status too.
func (l *launcher) copy(ctx context.Context, c folderCopy) (status int, err error) {
	errs, statuses := make([]error, len(l.hosts)), make([]int, len(l.hosts))
	var group sync.WaitGroup
	for i, h := range l.hosts {
		group.Go(func() {
			var out bytes.Buffer
			cmd := exec.CommandContext(ctx, "rsync", l.rsync(c, i, h)...)
			machine.OwnGroup(cmd)
			cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, lingers
			cmd.Cancel = func() error {
				machine.KillGroup(cmd)
				return nil
			}
			if err := cmd.Run(); err != nil {
				lines := strings.Split(strings.TrimSpace(phrase.Clean(out.String())), "\n")
				errs[i] = fmt.Errorf("copying %s to %s: rsync: %w (%s)", c.dir, h.name, err, lines[len(lines)-1])
				statuses[i] = statusOfRsync(exitStatus(cmd.ProcessState))
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return multigpu.ExitResumable, errInterrupted
	}
	return matters(-1, statuses), errors.Join(errs...)
}

// statusOfRsync is the exit status after rsync has failed.
func statusOfRsync(status int) int {
	switch status {
	case 12, 30, 35, 255: // the connection has ended or gives no data, or ssh has failed
		return multigpu.ExitLost
	}
	return 1
}

// rsync returns the arguments with which rsync copies a folder to a host.
func (l *launcher) rsync(c folderCopy, i int, h host) []string {
	args := []string{"-a", "-e", strings.Join(l.ssh, " "), "--rsync-path", "mkdir -p " + phrase.ShellQuoted(c.dir) + " && rsync"}
	if strings.ContainsFunc(c.dir, special) {
		args = append(args, "-s") // or rsync before 3.2.4 gives the path to the host's shell as it is; rsync before 3 has no -s
	}
	for _, name := range c.leave[i] {
		args = append(args, "--exclude=/"+name)
	}
	to := h.name
	if strings.Contains(to, ":") { // an address of IPv6
		to = "[" + to + "]"
	}
	return append(args, "--", c.dir+"/", to+":"+c.dir+"/")
}

// special reports whether a character of a path may mean something to a shell.
func special(r rune) bool {
	return r < utf8.RuneSelf && !strings.ContainsRune("/._-+,:@%=", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}
