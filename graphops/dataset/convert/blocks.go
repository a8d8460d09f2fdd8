package convert

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/graphnb/graphnb/internal/phrase"

	"github.com/graphnb/graphnb/internal/parallel"
)

const (
	blockBytes = 1 << 18  // of text that one thread parses at a time
	maxLine    = 64 << 20 // the longest line accepted, in bytes
)

// block holds whole lines of a text.
type block struct {
	text []byte
	line int64 // number of the first line, from 1
}

// eachBlock cuts the text of f into blocks of whole lines, parses them on the given number of
// threads and hands the results to collect, in the order of the text and on the caller's goroutine.
// parse returns what is wrong with a line without the file's name, as an error of atLine. collect
// owns each result.
//
// Cost: the text is read and decompressed by one goroutine; at most threads+2
// blocks are in memory.
func eachBlock[T any](ctx context.Context, f *file, threads int, parse func(b block) (T, error), collect func(T) error) error {
	threads = parallel.Threads(threads)
	ctx, cancel := context.WithCancel(ctx)
	type result struct {
		value T
		err   error
	}
	type job struct {
		block
		done chan result
	}
	var (
		wg      sync.WaitGroup
		order   = make(chan *job, threads)
		work    = make(chan *job)
		buffers = sync.Pool{New: func() any { return make([]byte, 0, blockBytes) }}
		readErr error
	)
	wg.Go(func() {
		defer close(order)
		defer close(work)
		readErr = cutBlocks(f, func() []byte { return buffers.Get().([]byte)[:0] }, func(b block) bool {
			j := &job{block: b, done: make(chan result, 1)}
			select {
			case order <- j:
			case <-ctx.Done():
				return false
			}
			select {
			case work <- j:
			case <-ctx.Done():
				return false
			}
			return true
		})
	})
	for range threads {
		wg.Go(func() {
			for j := range work {
				v, err := parse(j.block)
				if cap(j.text) <= 2*blockBytes {
					buffers.Put(j.text) //nolint:staticcheck // a slice header a block of text
				}
				j.done <- result{v, err}
			}
		})
	}
	err := func() error {
		for j := range order {
			select {
			case r := <-j.done:
				if r.err != nil {
					return f.wrong("%w", r.err)
				}
				if err := collect(r.value); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return ctx.Err()
	}()
	cancel()
	wg.Wait()
	if err != nil {
		return err
	}
	return readErr
}

// cutBlocks reads f to its end and passes blocks of whole lines to emit until emit returns false.
// The receiver owns a block's buffer.
func cutBlocks(f *file, buffer func() []byte, emit func(block) bool) error {
	line := int64(1)
	buf := buffer()
	for {
		if len(buf) == cap(buf) {
			if len(buf) >= maxLine {
				return f.wrong("line %d is longer than %s; a list of numbers has no such lines", line, phrase.Bytes(maxLine))
			}
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil {
			if len(buf) > 0 {
				emit(block{buf, line})
			}
			return nil
		}
		if len(buf) < cap(buf) {
			continue
		}
		end := bytes.LastIndexByte(buf, '\n') + 1
		if end == 0 {
			continue
		}
		rest := append(buffer(), buf[end:]...)
		b := block{buf[:end], line}
		line += int64(bytes.Count(b.text, []byte{'\n'}))
		if !emit(b) {
			return nil
		}
		buf = rest
	}
}

// lines calls visit for every line of the block, without its line break, until a call fails.
func (b block) lines(visit func(line []byte, number int64) error) error {
	text, number := b.text, b.line
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		if len(line) > 0 && line[len(line)-1] == '\r' {
			line = line[:len(line)-1]
		}
		if err := visit(line, number); err != nil {
			return err
		}
		number++
	}
	return nil
}
