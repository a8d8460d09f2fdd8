package onhosts

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/setup"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// Serve is "gnb on-host", which is not listed: "gnb launch" starts it on each host.
var Serve = cli.Command{Name: cluster.OnHost, Run: serve}

// Times of a host's ranks. Tests shorten them.
var (
	// othersEnd is how long ranks may take to end by themselves after one has failed: they name it first.
	othersEnd = 15 * time.Second
	// killAfter is how long ranks may take to end after SIGTERM. A run has 50 s to write its checkpoint.
	killAfter = 60 * time.Second
)

func serve(ctx context.Context, _ []string, out *cli.Output) error {
	if err := greet(out.Stdout); err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil //nolint:nilerr // the launcher starts nothing, or has ended
	}
	var o orders
	if err := json.Unmarshal(line, &o); err != nil || len(o.Args) == 0 {
		return fmt.Errorf("the launcher's orders are not those of this version (%w)", err)
	}
	if err := enter(o, out); err != nil {
		return err
	}
	ranks, err := startRanks(o)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the launcher ends it, or has ended
		end()
	}()
	if status := waitFor(ctx, o, ranks); status != 0 {
		return cli.ExitStatus(status)
	}
	return nil
}

// greet writes the greeting.
func greet(to io.Writer) error {
	g := greeting{Version: setup.Release(), Build: cluster.Build(), Address: ownAddress()}
	var err error
	if g.Port, err = freePort(); err != nil {
		return err
	}
	b, err := json.Marshal(g)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "\n%s%s\n", marker, b) // a login script may have left a line without an end
	return err
}

// freePort is a port at which nothing listens, below those that Linux gives to outgoing connections: rank 0 listens there
// later.
func freePort() (port int, err error) {
	for range 100 {
		port = 20000 + rand.IntN(12000)
		var l net.Listener
		if l, err = net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("finding a free port: %w", err)
}

// ownAddress is the address by which the launcher has reached this host, or else the first one that other hosts may reach.
func ownAddress() string {
	if f := strings.Fields(os.Getenv("SSH_CONNECTION")); len(f) == 4 { // client's address and port, server's address and port
		if ip := net.ParseIP(f[2]); ip != nil && !ip.IsLoopback() {
			return f[2]
		}
	}
	list, _ := net.InterfaceAddrs() // none on an error
	for _, v4 := range []bool{true, false} {
		for _, a := range list {
			if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() && (n.IP.To4() != nil) == v4 {
				return n.IP.String()
			}
		}
	}
	return "127.0.0.1"
}

// enter goes to the folder in which the launcher was started, if this host has it. Rank 0 writes the run there.
func enter(o orders, out *cli.Output) error {
	err := os.Chdir(o.Dir)
	switch {
	case err == nil:
		return nil
	case o.First == 0:
		return fmt.Errorf("gnb launch was started in %s, and rank 0 runs there: %w; make the folder on this host, or start in one that it has", o.Dir, err)
	}
	out.Logf("there is no folder %s on this host, so its ranks run in the home folder", o.Dir)
	return nil
}

// startRanks starts the ranks of this host.
func startRanks(o orders) (ranks []*exec.Cmd, err error) {
	program, args := o.Args[0], o.Args[1:]
	if !isProgram(program) { // a command of gnb
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
		args = o.Args
	}
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if !slices.Contains([]string{envknob.TokenFile.Name, envknob.Rendezvous.Name, envknob.Insecure.Name}, name) {
			env = append(env, e)
		}
	}
	set := func(name, value string) { env = append(env, name+"="+value) }
	set(envknob.Launcher.Name, "torchrun") // whose variables these are
	set(envknob.Token.Name, o.Token)
	if o.Rendezvous != "" {
		set(envknob.Rendezvous.Name, o.Rendezvous)
	}
	set("MASTER_ADDR", o.Address)
	set("MASTER_PORT", strconv.Itoa(o.Port))
	set("TORCHELASTIC_RUN_ID", o.Job)
	set("WORLD_SIZE", strconv.Itoa(o.World))
	set("LOCAL_WORLD_SIZE", strconv.Itoa(o.Ranks))
	for i := range o.Ranks {
		c := exec.Command(program, args...)
		c.Env = append(slices.Clip(env), "RANK="+strconv.Itoa(o.First+i), "LOCAL_RANK="+strconv.Itoa(i))
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		machine.OwnGroup(c) // with what it starts
		if err := c.Start(); err != nil {
			for _, r := range ranks {
				machine.KillGroup(r)
				_ = r.Wait()
			}
			return nil, fmt.Errorf("starting rank %d: %w", o.First+i, err)
		}
		ranks = append(ranks, c)
	}
	return ranks, nil
}

// isProgram reports whether a word is a program's path, not a command of gnb.
func isProgram(word string) bool { return strings.ContainsRune(word, '/') }

// waitFor waits for the ranks of this host, and returns their status. It ends them when ctx ends, or after one has failed:
// first their programs, which end their own workers, and then what these have left behind.
func waitFor(ctx context.Context, o orders, ranks []*exec.Cmd) int {
	type end struct{ i, status int }
	ends := make(chan end, len(ranks))
	var groups sync.WaitGroup
	defer groups.Wait()
	for i, c := range ranks {
		groups.Go(func() {
			_ = c.Wait() // the state says it
			ends <- end{i, exitStatus(c.ProcessState)}
			endGroup(c)
		})
	}
	statuses := make([]int, len(ranks))
	rank0 := -1
	var late, kill <-chan time.Time
	asked := ctx.Done()
	ask := func() {
		if asked == nil {
			return
		}
		asked, late, kill = nil, nil, time.After(killAfter)
		for _, c := range ranks {
			_ = c.Process.Signal(syscall.SIGTERM) // one that has ended gets none
		}
	}
	for left := len(ranks); left > 0; {
		select {
		case e := <-ends:
			left--
			statuses[e.i] = e.status
			if asked == nil {
				continue
			}
			if o.First+e.i == 0 {
				rank0 = e.status // by itself
			}
			if e.status != 0 && late == nil {
				late = time.After(othersEnd)
			}
		case <-asked:
			ask()
		case <-late:
			ask()
		case <-kill:
			kill = time.After(time.Second)
			for _, c := range ranks {
				if c.Process.Signal(syscall.Signal(0)) == nil { // or another process may have its number
					machine.KillGroup(c)
				}
			}
		}
	}
	return matters(rank0, statuses)
}

// exitStatus is the status of a process as a shell gives it.
func exitStatus(s *os.ProcessState) int {
	if s == nil {
		return 1
	}
	if w, ok := s.Sys().(interface {
		Signaled() bool
		Signal() syscall.Signal
	}); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}
