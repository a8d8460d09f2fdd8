package multigpu

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxLine is where a line without an end is cut.
const maxLine = 64 << 10

// readLines calls f for each line of r, without its end, until r ends. A last line without an end
// counts; a line longer than maxLine is passed in pieces.
func readLines(r io.Reader, f func(line string)) {
	br := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := br.ReadSlice('\n')
		if len(line) > 0 {
			f(strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// readEvents calls f for each whole line of r. An incomplete line of a worker that died is not an
// event.
func readEvents(r io.Reader, f func(line []byte)) {
	br := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := br.ReadBytes('\n')
		if err != nil {
			return
		}
		f(bytes.TrimSuffix(line, []byte("\n")))
	}
}

const (
	tailLines  = 100
	panicLines = 300
)

// tail keeps the end of a worker's stderr, and the output of the Go runtime from its first panic
// on: with many goroutines the reason is far above the end.
//
// These lines are held back until the cause of the worker's end is known. If they contain the
// cause, the error states it in one line, which hundreds of other lines would hide. If the worker
// still runs after holdFor, the lines only looked like a panic and are shown.
type tail struct {
	mu    sync.Mutex
	last  []string
	panic []string
	held  []string
	since time.Time // of the first of held
	free  bool      // lines are no longer held
}

// holdFor is how long the Go runtime may take to print all goroutines.
const holdFor = 2 * time.Second

// add takes a line and returns what may be shown now.
func (t *tail) add(line string) (show []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(line)
	switch {
	case t.free || len(t.panic) == 0:
		return []string{line}
	case t.since.IsZero():
		t.since = time.Now()
	case time.Since(t.since) > holdFor:
		return append(t.freed(), line)
	}
	t.held = append(t.held, line)
	return nil
}

// freed returns the held lines and stops holding; the caller holds mu.
func (t *tail) freed() []string {
	held := t.held
	t.held, t.free = nil, true
	return held
}

// release returns the lines that were held back.
func (t *tail) release() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.freed()
}

// keep notes a line; the caller holds mu.
func (t *tail) keep(line string) {
	if len(t.last) >= tailLines {
		t.last = append(t.last[:0], t.last[len(t.last)-tailLines+1:]...)
	}
	t.last = append(t.last, line)
	if n := len(t.panic); (n > 0 && n < panicLines) || (n == 0 && isPanic(line)) {
		t.panic = append(t.panic, line)
	}
}

func isPanic(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") ||
		strings.HasPrefix(line, "runtime: ") || strings.HasPrefix(line, "unexpected fault address") || signalLine.MatchString(line)
}

// signalLine is the start of the Go runtime's report of a signal that ended the process with status
// 2; signalNote is the line that names the signal within another report.
var (
	signalLine = regexp.MustCompile(`^(SIG[A-Z]+): (.+)$`)
	signalNote = regexp.MustCompile(`^\[signal (SIG[A-Z]+): ([^\]]+?)(?: code=.*)?\]`)
)

// reasonOf returns the reason for which the Go runtime ended a process that printed these lines.
func reasonOf(lines []string) string {
	first := lines[0]
	if m := signalLine.FindStringSubmatch(first); m != nil {
		return fmt.Sprintf("it was ended by the signal %s (%s)%s", m[1], m[2], sender(lines))
	}
	if outOfMemory.MatchString(first) {
		return "it ran out of memory; use a smaller model, smaller batches or fewer workers"
	}
	if strings.HasPrefix(first, "panic: ") {
		return first
	}
	for _, line := range lines[:min(len(lines), 6)] {
		if m := signalNote.FindStringSubmatch(line); m != nil {
			return fmt.Sprintf("%s, by the signal %s (%s)", first, m[1], m[2])
		}
	}
	return first
}

// outOfMemory matches the first line of the Go runtime's report that the system gave it no memory.
var outOfMemory = regexp.MustCompile(`^(runtime|fatal error): .*(out of memory|cannot allocate memory|failed to create new OS thread)`)

// sentFromOutside is the end of the reason for a signal of another process.
const sentFromOutside = ", which another process sent"

// sender describes whether a signal came from a process or from the program's own code.
func sender(lines []string) string {
	for _, line := range lines[:min(len(lines), 4)] {
		if _, code, ok := strings.Cut(line, " sigcode="); ok {
			switch code, _, _ = strings.Cut(code, " "); code {
			case "0":
				return sentFromOutside
			case "-6", "18446744073709551610":
				return ", which it sent itself: a library called abort"
			}
			return ", in code that is not Go, such as a library"
		}
	}
	return ""
}

func (t *tail) get() (last []string, reason, stack string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.panic) > 0 {
		reason, stack = reasonOf(t.panic), strings.Join(t.panic, "\n")
	}
	return slices.Clone(t.last), reason, stack
}
