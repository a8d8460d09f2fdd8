package machine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
)

// Protocol is the version of the helper's output. It changes if the meaning of a field changes, not
// if a field is added.
const Protocol = 1

// HelperArgs returns the arguments of the helper.
func HelperArgs(interval time.Duration) []string {
	return []string{"monitor", "--json", "--helper", "--interval=" + interval.String()}
}

// Hello is the helper's first line, with "event":"hello".
type Hello struct {
	Protocol int `json:"protocol"`
}

// Reading is each other line, with "event":"gpus".
type Reading struct {
	Driver string `json:"driver"` // its version
	GPUs   []GPU  `json:"gpus"`
	// Note says why there are no GPUs, and Final that there will be none.
	Note  string `json:"note,omitempty"`
	Final bool   `json:"final,omitempty"`
}

// message is a line.
type message struct {
	Event string `json:"event"`
	Error string `json:"error"`
	Hello
	Reading
}

// Starting is the note while the driver has not answered yet.
const Starting = "asking NVIDIA's driver for GPUs"

// findHelper returns the path of the helper program.
func findHelper() (string, error) {
	file, err := FindCommand()
	switch {
	case errors.Is(err, ErrNoCommand):
		return "", fmt.Errorf(`GPUs are not shown: %w, which asks NVIDIA's driver; "go install ./gnb/cmd/gnb" in a checkout of GraphNB builds it (with a C compiler), or set %s to its file`, err, envknob.Helper)
	case err != nil:
		return "", fmt.Errorf("GPUs are not shown: %w", err)
	}
	return file, nil
}

// helper keeps a helper process running and holds its latest reading.
type helper struct {
	file     string
	interval time.Duration
	pause    time.Duration // before the first restart; doubles with each further one
	quiet    time.Duration // a helper that is silent for this long is ended
	longest  int           // bytes of a line; one that writes a longer one is ended

	mu     sync.Mutex
	latest Reading
	at     time.Time // of latest
}

// maxPause is the longest pause before a helper is restarted.
const maxPause = 30 * time.Second

func newHelper(file string, interval time.Duration) *helper {
	return &helper{
		file: file, interval: interval, pause: time.Second, quiet: 10*time.Second + 3*interval, longest: 4 << 20,
		latest: Reading{Note: Starting}, at: time.Now(),
	}
}

func (h *helper) put(r Reading) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest, h.at = r, time.Now()
}

// reading returns the latest reading; in an old one, the GPUs' figures are replaced by unknown.
func (h *helper) reading() Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.latest
	if age := time.Since(h.at); len(r.GPUs) > 0 && age > h.interval*3+time.Second {
		gpus := make([]GPU, len(r.GPUs))
		for i, g := range r.GPUs {
			gpus[i] = Blank(g.Index)
			gpus[i].Name, gpus[i].UUID, gpus[i].Bus = g.Name, g.UUID, g.Bus
			gpus[i].Error = fmt.Sprintf("no reading for %.0f s", age.Seconds())
		}
		r.GPUs = gpus
	}
	return r
}

// errFinal stops restarting the helper; the latest reading gives the reason.
var errFinal = errors.New("no GPUs")

// run keeps a helper running until ctx is done. When it returns, no helper process is left.
func (h *helper) run(ctx context.Context) {
	pause := h.pause
	for {
		start := time.Now()
		err := h.once(ctx)
		if ctx.Err() != nil || errors.Is(err, errFinal) {
			return
		}
		if time.Since(start) > maxPause {
			pause = h.pause // it has worked for some time
		}
		h.mu.Lock()
		last := h.latest.GPUs
		h.mu.Unlock()
		r := Reading{Note: fmt.Sprintf("GPUs are not read: %v; trying again in %v", err, pause)}
		for _, g := range last { // the GPUs exist, but their figures are unknown
			b := Blank(g.Index)
			b.Name, b.UUID, b.Bus, b.Error = g.Name, g.UUID, g.Bus, "not read"
			r.GPUs = append(r.GPUs, b)
		}
		h.put(r)
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		pause = min(2*pause, maxPause)
	}
}

// once runs one helper to its end.
func (h *helper) once(ctx context.Context) error {
	c := exec.Command(h.file, HelperArgs(h.interval)...)
	c.Env = helperEnv(os.Environ())
	stderr := &head{limit: 4 << 10}
	c.Stderr = stderr
	OwnGroup(c) // the program handles ^C, and the helper ends with the program
	// Its standard input closes when this process ends, for whatever reason; the helper then ends
	// too.
	in, err := c.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", h.file, err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", h.file, err)
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", h.file, err)
	}
	heard, ended := make(chan error, 1), make(chan error, 1)
	alive := make(chan struct{}, 1)
	go func() {
		if err := h.listen(out, alive); err != nil {
			heard <- err
		}
		_, _ = io.Copy(io.Discard, out)
		ended <- c.Wait()
	}()
	quiet := time.NewTimer(h.quiet)
	defer quiet.Stop()
	for {
		select {
		case err := <-heard: // it is no longer needed
			stop(c, in, ended, time.Second)
			return err
		case err := <-ended:
			select {
			case said := <-heard: // before it ended
				return said
			default:
			}
			return h.why(err, stderr.text())
		case <-alive:
			quiet.Reset(h.quiet)
		case <-quiet.C:
			stop(c, in, ended, 0)
			return fmt.Errorf("%s wrote nothing for %v and was ended", h.file, h.quiet)
		case <-ctx.Done():
			stop(c, in, ended, time.Second)
			return ctx.Err()
		}
	}
}

// stop ends a helper by closing its input, or else by force. It does not wait for a process that
// hangs in the driver: that one ends when the driver returns.
func stop(c *exec.Cmd, in io.Closer, ended <-chan error, patience time.Duration) {
	_ = in.Close()
	for _, kill := range []bool{false, true} {
		if kill {
			KillGroup(c)
			patience = time.Second
		}
		t := time.NewTimer(patience)
		select {
		case <-ended:
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// listen reads the helper's lines until they end, or until a line says that no more will follow.
func (h *helper) listen(out io.Reader, alive chan<- struct{}) error {
	lines := bufio.NewReader(out)
	greeted := false
	for {
		line, err := readLine(lines, h.longest)
		switch {
		case errors.Is(err, errLong):
			return fmt.Errorf("%s wrote %w, which is not a reading of GPUs; set %s to the gnb of this release", h.file, err, envknob.Helper)
		case err != nil:
			return nil // the process's exit says more about the cause
		}
		select {
		case alive <- struct{}{}:
		default:
		}
		var m message
		switch err := json.Unmarshal(line, &m); {
		case err != nil || m.Event == "":
			return h.final(fmt.Sprintf("%s is not GraphNB's gnb: it wrote %.60q; set %s to the right one", h.file, line, envknob.Helper))
		case m.Event == "error":
			return nil // as it does on standard error
		case m.Event == "hello" && m.Protocol != Protocol:
			return h.final(fmt.Sprintf(`%s is of another version: it speaks protocol %d, and this library %d; build both from the same release ("gnb install" does)`, h.file, m.Protocol, Protocol))
		case m.Event == "hello":
			greeted = true
		case !greeted:
			return h.final(fmt.Sprintf(`%s is of another version: it began with %q; build both from the same release ("gnb install" does)`, h.file, m.Event))
		case m.Event == "gpus":
			h.put(m.Reading)
			if m.Final {
				return errFinal
			}
		}
	}
}

// final stores permanently why there are no GPUs.
func (h *helper) final(why string) error {
	h.put(Reading{Note: "GPUs are not shown: " + why, Final: true})
	return errFinal
}

// readLine returns a line without its end, at most limit bytes.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > limit:
			return nil, fmt.Errorf("%w of more than %d bytes", errLong, limit)
		}
	}
}

var errLong = errors.New("a line")

// why returns the reason why a helper ended.
func (h *helper) why(err error, stderr string) error {
	first, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	switch {
	case strings.Contains(stderr, "there is no command"), strings.Contains(stderr, "flag provided but not defined"):
		return h.final(fmt.Sprintf(`%s is an older release, which does not read GPUs; build it anew ("gnb install" does)`, h.file))
	case strings.Contains(stderr, "signal arrived during cgo execution"), strings.HasPrefix(first, "SIG"), strings.HasPrefix(first, "fatal error"):
		return fmt.Errorf("NVIDIA's library crashed the process that asks it (%.80s)", first)
	case first != "":
		return fmt.Errorf("%.200s", first)
	case err != nil:
		return fmt.Errorf("%s ended: %w", h.file, err)
	}
	return fmt.Errorf("%s ended", h.file)
}

// helperEnv returns the environment without the variables that turn a process into a worker or a
// notebook's cell.
func helperEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		return strings.HasPrefix(e, envknob.Worker.Name+"=") || strings.HasPrefix(e, "GONB_")
	})
}

// head keeps the beginning of its input.
type head struct {
	mu    sync.Mutex
	b     bytes.Buffer
	limit int
}

func (w *head) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p[:min(len(p), w.limit-w.b.Len())])
	return len(p), nil
}

func (w *head) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}
