package onhosts

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/setup"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// Launch is "gnb launch".
var Launch = cli.Command{Name: "launch", Summary: "start a command as ranks on several machines, by ssh", Run: launch}

const launchHelp = `
Starts the same command on each host by ssh, as one run: gnb launch --hosts a,b:2 -- train cora --run runs/first.
Rank 0 is on the first host. A word with a slash after -- is a program of your own instead of a command of gnb; end a shell
script with "exec PROGRAM", so that the program gets SIGTERM and its exit status counts. Output has its host's name in
front. Ctrl-C lets rank 0 write a checkpoint, and ends all. The exit status is that of the run: 1 after an
error of the program, 69 after a failure of a rank, a host or the network, 75 after an interruption; after the last two the
same command resumes the run.`

// Times of the launcher. Tests shorten them.
var (
	// answerWithin is how long a host may take to answer.
	answerWithin = 30 * time.Second
	// hostsEnd is how long the other hosts may take to end by themselves after one has failed, and endWithin how long
	// they may take once they are asked to.
	hostsEnd  = 20 * time.Second
	endWithin = 75 * time.Second
)

// defaultSSH never asks for a password: several hosts would ask at once.
const defaultSSH = "ssh -T -o BatchMode=yes"

// folders are the values of a flag that may be given several times.
type folders []string

func (f *folders) String() string { return strings.Join(*f, ",") }

func (f *folders) Set(s string) error {
	*f = append(*f, s)
	return nil
}

func launch(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("-- COMMAND …", launchHelp)
	list := fs.String("hosts", "", "`hosts` with their ranks: a,user@b:4 (default 1)")
	ssh := fs.String("ssh", "", "`program` with options, instead of GNB_SSH or ssh")
	var copied folders
	fs.Var(&copied, "copy", "`folder` to copy to the hosts before the start")
	words, err := out.Parse(fs, args, 1, -1)
	if err != nil && !slices.Contains(args, "--") && !errors.Is(err, flag.ErrHelp) {
		return cli.Usagef("%w; the command stands after --: gnb launch --hosts a,b -- train cora", err)
	}
	if err != nil {
		return err
	}
	if *list == "" {
		return cli.Usagef("it needs --hosts, such as --hosts a,b")
	}
	hosts, err := parseHosts(*list)
	if err != nil {
		return err
	}
	if world(hosts) == 1 {
		return cli.Usagef("--hosts %s is one rank, and there are no others to start; start the command itself: ssh %s gnb train …", *list, hosts[0].name)
	}
	l := &launcher{out: out, hosts: hosts, ssh: strings.Fields(cmp.Or(*ssh, envknob.SSH.Get(), defaultSSH)), json: slices.Contains(words, "--json") || slices.Contains(words, "-json")}
	if len(l.ssh) == 0 {
		return cli.Usagef("--ssh is empty; it is a program with its options, such as %q", defaultSSH)
	}
	copies, err := l.copies(copied)
	if err != nil {
		return err
	}
	if l.dir, err = os.Getwd(); err != nil {
		return err
	}
	status, err := l.run(ctx, words, copies)
	switch {
	case err != nil && status != 0:
		out.Fail(err)
		return cli.ExitStatus(status)
	case err != nil:
		return err
	}
	out.Result(map[string]any{"status": status})
	return nil
}

// launcher is one call of gnb launch.
type launcher struct {
	out   *cli.Output
	hosts []host
	ssh   []string // the program that reaches a host, with its options
	dir   string   // where it was started
	json  bool     // the command writes JSON lines, which rank 0's host prints without its name
}

// run runs a command on the hosts, and returns the exit status, with an error if it is not 0.
func (l *launcher) run(ctx context.Context, words []string, copies []folderCopy) (status int, err error) {
	remotes := make([]*remote, len(l.hosts))
	defer func() {
		for _, r := range remotes {
			if r != nil {
				_ = r.in.Close() // so that all end at the same time
			}
		}
		for _, r := range remotes {
			if r != nil {
				r.kill()
			}
		}
	}()
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	for i, h := range l.hosts {
		if remotes[i], err = l.start(i, h, exe); err != nil {
			return multigpu.ExitLost, fmt.Errorf("%s cannot be started: %w; install it, or name another program with --ssh or %s", l.ssh[0], err, envknob.SSH)
		}
	}
	if status, err := l.greeted(ctx, remotes, exe); err != nil {
		return status, err
	}
	for _, c := range copies {
		if status, err := l.copy(ctx, c); err != nil {
			return status, err
		}
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	first := remotes[0].greeting
	o := orders{
		Args: words, Dir: l.dir, World: world(l.hosts), Address: first.Address, Port: first.Port, Rendezvous: envknob.Rendezvous.Get(),
		Job: hex.EncodeToString(secret[:8]), Token: hex.EncodeToString(secret[8:]),
	}
	for i, r := range remotes {
		o.Ranks = l.hosts[i].ranks
		r.order(o)
		o.First += o.Ranks
	}
	return l.wait(ctx, remotes)
}

// greeted waits until each host has answered, and says which of them cannot take part.
func (l *launcher) greeted(ctx context.Context, remotes []*remote, exe string) (status int, err error) {
	late := time.After(answerWithin)
	bad := 0
	say := func(h host, as int, format string, args ...any) {
		bad++
		status = matters(-1, []int{status, as})
		l.out.Logf("%s: %s", h.name, fmt.Sprintf(format, args...))
	}
	var builds host // the first host that can take part
	build := ""
	timedOut := false
	for i, r := range remotes {
		if !timedOut {
			select {
			case <-ctx.Done():
				return multigpu.ExitResumable, errInterrupted
			case <-r.greets:
			case <-r.ended:
			case <-late:
				timedOut = true
			}
		}
		h, last := l.hosts[i], r.lastWords()
		switch {
		case r.greeted() && r.greeting.Version != setup.Release():
			say(h, 1, "it has gnb %s, and this machine has %s; copy %s there", r.greeting.Version, setup.Release(), exe)
		case r.greeted() && build != "" && r.greeting.Build != build:
			say(h, 1, "its gnb is another build than that of %s; copy one of them to the other", builds.name)
		case r.greeted():
			if build == "" {
				build, builds = r.greeting.Build, h
			}
		case !isClosed(r.ended):
			say(h, multigpu.ExitLost, "it has not answered for %v", answerWithin)
		case r.status == 126 || r.status == 127:
			say(h, 1, "it has no gnb, at %s or on PATH; copy it there (%s)", exe, last)
		case r.status == 255:
			say(h, multigpu.ExitLost, "%s cannot reach it: %s", filepath.Base(l.ssh[0]), last)
		default:
			say(h, 1, "its gnb cannot take part (status %d): %s", r.status, last)
		}
	}
	if bad == 0 {
		return 0, nil
	}
	return status, fmt.Errorf("%s of %d cannot take part, so nothing was started", phrase.Count(bad, "host"), len(l.hosts))
}

var errInterrupted = errors.New("interrupted")

// wait waits for all hosts, ends them when ctx ends or one has failed, and returns the status that matters.
func (l *launcher) wait(ctx context.Context, remotes []*remote) (status int, err error) {
	ends := make(chan int, len(remotes))
	for i, r := range remotes {
		go func() {
			<-r.ended
			ends <- i
		}()
	}
	statuses := make([]int, len(remotes))
	first, failed := -1, "" // the status of rank 0's host if it has ended by itself, and the host that failed first
	interrupted := false
	var late, kill <-chan time.Time
	asked := ctx.Done()
	ask := func() {
		asked, late, kill = nil, nil, time.After(endWithin)
		for _, r := range remotes {
			_ = r.in.Close() // one that has ended has closed it
		}
	}
	for left := len(remotes); left > 0; {
		select {
		case i := <-ends:
			left--
			statuses[i] = remotes[i].status
			if i == 0 && asked != nil {
				first = statuses[i]
			}
			if statuses[i] == 0 {
				continue
			}
			if failed == "" {
				failed = l.hosts[i].name
			}
			if s := statuses[i]; s > 128 && kill == nil {
				l.out.Logf("%s: the connection has ended (%s)", l.hosts[i].name, cmp.Or(remotes[i].lastWords(), "without a word"))
			}
			if late == nil && asked != nil {
				late = time.After(hostsEnd)
			}
		case <-asked:
			interrupted = true
			ask()
		case <-late:
			ask()
		case <-kill:
			kill = time.After(time.Second)
			for i, r := range remotes {
				if !isClosed(r.ended) {
					l.out.Logf("%s: its ranks have not ended for %v; they may still run there", l.hosts[i].name, endWithin)
					r.kill()
				}
			}
		}
	}
	if interrupted && statuses[0] == multigpu.ExitResumable {
		return statuses[0], errInterrupted
	}
	switch status = matters(first, statuses); {
	case status == 0: // perhaps before it noticed an interrupt
		return 0, nil
	case interrupted:
		return status, errInterrupted
	case status == multigpu.ExitResumable:
		return status, errors.New("the run was interrupted after a checkpoint; the same command resumes it")
	case status == multigpu.ExitLost:
		return status, fmt.Errorf("a rank, a host or the network failed (%s first); the same command resumes the run from its last checkpoint", failed)
	}
	return status, fmt.Errorf("the command ended with status %d (on %s first)", status, failed)
}
