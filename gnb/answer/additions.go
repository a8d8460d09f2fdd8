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

// kept keeps nodes and edges.
func (s *Server) kept(ctx context.Context, body io.Reader) (any, error) {
	var q predict.Additions
	if err := read(body, &q); err != nil {
		return nil, err
	}
	if n := len(q.Nodes) + len(q.Edges); n > s.o.MaxNodes {
		return nil, s.count(n, "nodes and edges")
	}
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	s.adds.Lock()
	defer s.adds.Unlock()
	end, err := s.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var a *predict.Added
	if err := s.with(func(p *predict.Predictor) (err error) {
		a, err = p.Add(ctx, q)
		return err
	}); err != nil {
		return nil, err
	}
	s.log = append(s.log, q)
	saved := s.o.Additions != InMemory
	if saved {
		err := predict.ErrClosed
		if s.file != nil {
			err = appendLine(s.file, q)
		}
		if err != nil {
			return nil, fmt.Errorf("answer: the additions are part of the answers until the server ends, and are not in %s: %w", s.o.Additions, err)
		}
	}
	return struct {
		*predict.Added
		Saved bool `json:"saved"`
	}{a, saved}, nil
}

// appendLine writes additions behind those of a file.
func appendLine(f *os.File, a predict.Additions) error {
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// readAdditions makes the additions of Options.Additions, if it is a file that exists. A last line without an end is one that a server
// was writing when it was killed: nobody was told that it is kept, and it is left out of the file.
func (s *Server) readAdditions(ctx context.Context) error {
	path := s.o.Additions
	if path == "" || path == InMemory {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("answer: the file of additions: %w", err)
	}
	s.file = f
	switch err := filelock.LockFile(f); {
	case errors.Is(err, filelock.ErrLocked):
		return fmt.Errorf("answer: another server writes its additions into %s; give each server a file of its own", path)
	case err != nil && !errors.Is(err, filelock.ErrNoLocks):
		return fmt.Errorf("answer: the file of additions: %w", err)
	}
	in, end := bufio.NewReaderSize(f, 1<<16), int64(0)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				if err := f.Truncate(end); err != nil {
					return fmt.Errorf("answer: the file of additions: %w", err)
				}
			}
			break
		}
		if err != nil {
			return fmt.Errorf("answer: the file of additions: %w", err)
		}
		end += int64(len(line))
		var a predict.Additions
		if err := json.Unmarshal(line, &a); err != nil {
			return fmt.Errorf("answer: line %d of %s is no addition: %w; take another file, or mend it", n, path, err)
		}
		s.log = append(s.log, a)
	}
	if _, err := f.Seek(end, io.SeekStart); err != nil {
		return fmt.Errorf("answer: the file of additions: %w", err)
	}
	return s.replay(ctx, s.predictor())
}

// replay makes all additions so far in a predictor that has none.
func (s *Server) replay(ctx context.Context, p *predict.Predictor) error {
	for i, a := range s.log {
		if _, err := p.Add(ctx, a); err != nil {
			return fmt.Errorf("answer: addition %d of those kept so far: %w", i+1, err)
		}
	}
	return nil
}

// Close releases the file of Options.Additions. The predictor stays open.
func (s *Server) Close() error {
	s.adds.Lock()
	defer s.adds.Unlock()
	if s.file == nil {
		return nil
	}
	err := filelock.Unlock(s.file)
	s.file = nil
	if errors.Is(err, filelock.ErrNoLocks) {
		return nil
	}
	return err
}
