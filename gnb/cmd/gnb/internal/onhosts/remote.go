package onhosts

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// remote is the process of ssh for a host.
type remote struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	greets   chan struct{} // closed when the host has greeted, after greeting is set
	greeting greeting
	ended    chan struct{} // closed when the process has ended, after status is set
	status   int

	mu   sync.Mutex
	last string // line of standard error
}

// lingers is how long processes that ssh has left behind may hold its output open.
const lingers = 5 * time.Second

// start starts gnb on a host: the program of this one's path or, if there is none, the one on PATH.
func (l *launcher) start(i int, h host, exe string) (*remote, error) {
	const script = `if [ -x "$0" ]; then exec "$0" "$@"; else exec gnb "$@"; fi`
	command := "sh -c " + phrase.ShellQuoted(script) + " " + phrase.ShellQuoted(exe) + " " + Serve.Name
	r := &remote{cmd: exec.Command(l.ssh[0], append(l.ssh[1:len(l.ssh):len(l.ssh)], h.name, command)...), greets: make(chan struct{}), ended: make(chan struct{})}
	machine.OwnGroup(r.cmd) // Ctrl-C is for the launcher
	r.cmd.WaitDelay = lingers
	name := h.name + ": "
	plain := i == 0 && l.json
	stdout := &lines{line: func(line string) {
		if text, ok := strings.CutPrefix(line, marker); ok && !r.greeted() {
			if json.Unmarshal([]byte(text), &r.greeting) == nil {
				close(r.greets)
				return
			}
		}
		switch {
		case line == "" && !r.greeted(): // the line end before the greeting
		case l.out.JSON:
			l.out.Event("output", map[string]string{"host": h.name, "text": phrase.Clean(line)})
		case !r.greeted(): // no output of the command
			l.out.Logf("%s%s", name, line)
		case plain:
			l.out.Printf("%s\n", line)
		default:
			l.out.Printf("%s%s\n", name, line)
		}
	}}
	stderr := &lines{line: func(line string) {
		r.mu.Lock()
		if strings.TrimSpace(line) != "" {
			r.last = strings.TrimSpace(phrase.Clean(line))
		}
		r.mu.Unlock()
		l.out.Logf("%s%s", name, line)
	}}
	r.cmd.Stdout, r.cmd.Stderr = stdout, stderr
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = r.cmd.Wait() // the state says it
		stdout.end()
		stderr.end()
		r.status = exitStatus(r.cmd.ProcessState)
		close(r.ended)
	}()
	return r, nil
}

func (r *remote) greeted() bool { return isClosed(r.greets) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// order sends the host its orders. The token is in them: no command line has it.
func (r *remote) order(o orders) {
	b, err := json.Marshal(o)
	if err == nil {
		_, err = r.in.Write(append(b, '\n'))
	}
	if err != nil {
		_ = r.in.Close() // the process has ended, or ends now
	}
}

// lastWords is the last line of standard error.
func (r *remote) lastWords() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// kill ends the process of ssh, and what it has started on this machine. The host's ranks end because their standard input
// does.
func (r *remote) kill() {
	_ = r.in.Close() // it may have ended
	if isClosed(r.ended) {
		return
	}
	machine.KillGroup(r.cmd)
	<-r.ended
}

// mostLine is the longest line of output that is not cut in two.
const mostLine = 64 << 10

// lines is a writer that hands on lines.
type lines struct {
	mu   sync.Mutex
	rest []byte
	line func(line string)
}

func (w *lines) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 && len(w.rest) < mostLine {
			return len(b), nil
		}
		if i < 0 {
			w.line(string(w.rest))
			w.rest = w.rest[:0]
			continue
		}
		w.line(strings.TrimSuffix(string(w.rest[:i]), "\r"))
		w.rest = w.rest[i+1:]
	}
}

// end hands on a last line without an end.
func (w *lines) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		w.line(string(w.rest))
		w.rest = nil
	}
}
