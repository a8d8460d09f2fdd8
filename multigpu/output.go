package multigpu

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
)

// maxLine is where a line without an end is cut.
const maxLine = 64 << 10

// readLines calls f for each line of r, without its end, until r ends. A last
// line without an end counts; one longer than maxLine comes in pieces.
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

// readEvents calls f for each whole line of r. What a worker was writing when it
// died is no event.
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

// tail keeps the end of a worker's stderr, and what the Go runtime said from
// its first panic on: with many goroutines the reason is far above the end.
type tail struct {
	mu    sync.Mutex
	last  []string
	panic []string
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
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
		strings.HasPrefix(line, "runtime: ") || strings.HasPrefix(line, "unexpected fault address")
}

func (t *tail) get() (last []string, reason, stack string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.panic) > 0 {
		reason, stack = t.panic[0], strings.Join(t.panic, "\n")
	}
	return slices.Clone(t.last), reason, stack
}
