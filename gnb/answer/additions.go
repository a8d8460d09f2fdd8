package answer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/internal/filelock"
)

// InMemory is the value of [Options].Additions that keeps additions until the server ends.
const InMemory = "memory"

// log are the additions of a server, and the file that keeps them. Who has its turn may use it.
type log struct {
	turn  chan struct{} // holds one value while nobody has the turn
	all   []predict.Additions
	file  *os.File // nil without one
	path  string
	saved int   // the number of additions in the file
	end   int64 // of the last of them
}

// header is the first line of a file of additions: what they were added to.
type header struct {
	Additions int    `json:"graphnb_additions"` // the version of the format
	Dataset   string `json:"dataset"`
	Nodes     int    `json:"nodes"`
	Edges     int64  `json:"edges"`
}

func headerOf(p *predict.Predictor) header {
	name, nodes, edges := p.Graph()
	return header{1, name, nodes, edges}
}

// take waits for the turn.
func (l *log) take(ctx context.Context) (leave func(), err error) {
	select {
	case <-l.turn:
		return func() { l.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// kept keeps nodes and edges.
func (s *Server) kept(ctx context.Context, body io.Reader) (any, error) {
	var q predict.Additions
	if err := read(body, &q); err != nil {
		return nil, err
	}
	if n := len(q.Nodes) + len(q.Edges); n > s.o.MaxNodes {
		return nil, s.count(n, "nodes and edges")
	}
	next, err := s.log.take(ctx)
	if err != nil {
		return nil, err
	}
	defer next()
	a, err := alone(ctx, s, func(p *predict.Predictor) (*predict.Added, error) { return p.Add(ctx, q) })
	if err != nil {
		return nil, err
	}
	s.log.all = append(s.log.all, q)
	saved := s.o.Additions != InMemory
	if saved {
		if err := s.log.save(); err != nil {
			return nil, fmt.Errorf("answer: the additions are part of the answers until the server ends, and are not in %s yet: %w; the next addition tries again", s.log.path, err)
		}
	}
	return struct {
		*predict.Added
		Saved bool `json:"saved"`
	}{a, saved}, nil
}

// save writes the additions that are not in the file yet. What fails leaves nothing behind in it.
func (l *log) save() error {
	if l.file == nil {
		return predict.ErrClosed
	}
	for l.saved < len(l.all) {
		if err := l.line(l.all[l.saved]); err != nil {
			return err
		}
		l.saved++
	}
	return nil
}

// line writes a value behind the last one.
func (l *log) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	n, err := l.file.WriteAt(append(text, '\n'), l.end)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return errors.Join(err, l.file.Truncate(l.end))
	}
	l.end += int64(n)
	return nil
}

// open reads the additions of a file, and makes a file that is not there.
func (l *log) open(path string, of header) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("answer: the file of additions: %w", err)
	}
	l.file, l.path = f, path
	switch err := filelock.LockFile(f); {
	case errors.Is(err, filelock.ErrLocked):
		return fmt.Errorf("answer: another server writes its additions into %s; give each server a file of its own", path)
	case err != nil && !errors.Is(err, filelock.ErrNoLocks):
		return fmt.Errorf("answer: the file of additions: %w", err)
	}
	in := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		whole := err == nil
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && n > 1:
			return nil
		case errors.Is(err, io.EOF) && len(line) == 0:
			if err := l.line(of); err != nil {
				return fmt.Errorf("answer: the file of additions: %w", err)
			}
			return nil
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("answer: the file of additions: %w", err)
		}
		if n == 1 {
			var was header
			if err := json.Unmarshal(line, &was); err != nil || was.Additions != 1 || !whole {
				return fmt.Errorf("answer: %s is no file of additions: its first line does not say what they were added to, as %s does; take another file", path, mustJSON(of))
			}
			if was.Nodes != of.Nodes || was.Edges != of.Edges {
				return fmt.Errorf("answer: the additions of %s are to %s with %d nodes and %d edges, and the server answers on %s with %d and %d; take another file, or the dataset of the additions", path, was.Dataset, was.Nodes, was.Edges, of.Dataset, of.Nodes, of.Edges)
			}
			l.end = int64(len(line))
			continue
		}
		var a predict.Additions
		err = json.Unmarshal(line, &a)
		if err != nil && !whole { // a server was killed while it wrote: nobody was told that it is kept
			if err := f.Truncate(l.end); err != nil {
				return fmt.Errorf("answer: the file of additions: %w", err)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("answer: line %d of %s is no addition: %w; take another file, or mend it", n, path, err)
		}
		l.all = append(l.all, a)
		if !whole { // all of it but the end of the line
			if err := l.save(); err != nil {
				return fmt.Errorf("answer: the file of additions: %w", err)
			}
			return nil
		}
		l.end, l.saved = l.end+int64(len(line)), l.saved+1
	}
}

func mustJSON(v any) []byte {
	text, _ := json.Marshal(v) // of fields that JSON has
	return text
}

// replay makes all additions so far in a predictor that has none.
func (l *log) replay(ctx context.Context, p *predict.Predictor) error {
	if len(l.all) == 0 {
		return nil
	}
	if _, err := p.AddAll(ctx, l.all); err != nil {
		return fmt.Errorf("answer: the additions kept so far: %w", err)
	}
	return nil
}

// Close releases the file of Options.Additions. The predictor stays open.
func (s *Server) Close() error {
	<-s.log.turn
	defer func() { s.log.turn <- struct{}{} }()
	if s.log.file == nil {
		return nil
	}
	err := filelock.Unlock(s.log.file)
	s.log.file = nil
	if errors.Is(err, filelock.ErrNoLocks) {
		return nil
	}
	return err
}
