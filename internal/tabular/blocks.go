package tabular

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
	BlockBytes = 1 << 18  // of text that one thread parses at a time
	maxLine    = 64 << 20 // the longest line accepted, in bytes
)

// Block holds whole lines of a text.
type Block struct {
	Text []byte
	Line int64 // number of the first line, from 1
}

// EachBlock cuts the text of f into blocks of whole lines, parses them on the given number of
// threads and hands the results to collect, in the order of the text and on the caller's goroutine.
// parse returns what is wrong with a line without the file's name, as an error of atLine. collect
// owns each result.
//
// Cost: the text is read and decompressed by one goroutine; at most threads+2
// blocks are in memory.
func EachBlock[T any](ctx context.Context, f *File, threads int, parse func(b Block) (T, error), collect func(T) error) error {
	threads = parallel.Threads(threads)
	ctx, cancel := context.WithCancel(ctx)
	type result struct {
		value T
		err   error
	}
	type job struct {
		Block
		done chan result
	}
	var (
		wg      sync.WaitGroup
		order   = make(chan *job, threads)
		work    = make(chan *job)
		buffers = sync.Pool{New: func() any { return make([]byte, 0, BlockBytes) }}
		readErr error
	)
	wg.Go(func() {
		defer close(order)
		defer close(work)
		readErr = cutBlocks(f, func() []byte { return buffers.Get().([]byte)[:0] }, func(b Block) bool {
			j := &job{Block: b, done: make(chan result, 1)}
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
				v, err := parse(j.Block)
				if cap(j.Text) <= 2*BlockBytes {
					buffers.Put(j.Text) //nolint:staticcheck // a slice header a block of text
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
					return f.Wrong("%w", r.err)
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
func cutBlocks(f *File, buffer func() []byte, emit func(Block) bool) error {
	line := int64(1)
	buf := buffer()
	for {
		if len(buf) == cap(buf) {
			if len(buf) >= maxLine {
				return f.Wrong("line %d is longer than %s; a list of numbers has no such lines", line, phrase.Bytes(maxLine))
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
				emit(Block{buf, line})
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
		b := Block{buf[:end], line}
		line += int64(bytes.Count(b.Text, []byte{'\n'}))
		if !emit(b) {
			return nil
		}
		buf = rest
	}
}

// Lines calls visit for every line of the block, without its line break, until a call fails.
func (b Block) Lines(visit func(line []byte, number int64) error) error {
	text, number := b.Text, b.Line
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
