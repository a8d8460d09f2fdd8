// This file reads .gz and .xz files from untrusted sources: it bounds memory, returns
// errors instead of panicking, and accepts the zeros that tapes append.

package tabular

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz"

	"github.com/graphnb/graphnb/internal/phrase"
)

// gzipReader reads the members of a gzip file in sequence, and accepts the zeros that tapes and
// block devices append to the last member, as gzip does.
type gzipReader struct {
	br *bufio.Reader // input of gz, which reads no further than the end of a member
	gz *gzip.Reader
}

// newGzip reads a .gz file of one or more members.
func newGzip(br *bufio.Reader) (io.Reader, error) {
	gz, err := gzip.NewReader(br)
	if err != nil {
		return nil, err
	}
	gz.Multistream(false)
	return &gzipReader{br, gz}, nil
}

func (g *gzipReader) Read(b []byte) (int, error) {
	for {
		n, err := g.gz.Read(b)
		if !errors.Is(err, io.EOF) || n > 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return n, err
		}
		zeros := int64(0)
		for {
			c, err := g.br.ReadByte()
			if errors.Is(err, io.EOF) {
				return 0, io.EOF
			}
			if err != nil {
				return 0, err
			}
			if c != 0 {
				break
			}
			zeros++
		}
		if err := g.br.UnreadByte(); err != nil {
			return 0, err
		}
		head, _ := g.br.Peek(2)
		if string(head) != "\x1f\x8b" {
			return 0, fmt.Errorf("after its compressed data and %d zeros come bytes that are not gzip data: something was appended to the file; fetch it again", zeros)
		}
		if err := g.gz.Reset(g.br); err != nil {
			return 0, err
		}
		g.gz.Multistream(false)
	}
}

// maxDictionary is the dictionary size of xz -9.
const maxDictionary = 64 << 20

// newXZ reads an .xz file of one or more streams. It checks the memory that the header demands
// before allocating it.
func newXZ(br *bufio.Reader) (io.Reader, error) {
	size, err := xzDictionary(br)
	if err != nil {
		return nil, err
	}
	if size > maxDictionary {
		return nil, fmt.Errorf("it needs a dictionary of %s, and the limit is %s: run xz -dk on it and convert the result", phrase.Bytes(size), phrase.Bytes(maxDictionary))
	}
	r, err := xz.ReaderConfig{DictCap: 1 << 16}.NewReader(br)
	if err != nil {
		return nil, err
	}
	return steady{r}, nil
}

// xzDictionary returns the size of the dictionary that the first block demands, 0 if there is no
// block (https://tukaani.org/xz/xz-file-format.txt, sections 2.1.1, 3.1 and 5.3.1).
func xzDictionary(br *bufio.Reader) (int64, error) {
	const start = 12 // size of the stream header
	head, err := br.Peek(start + 64)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if len(head) <= start+1 || head[start] == 0 {
		return 0, nil
	}
	flags, at := head[start+1], start+2
	number := func() (n uint64) {
		for shift := 0; shift < 63 && at < len(head); shift += 7 {
			c := head[at]
			at++
			n |= uint64(c&0x7f) << shift
			if c < 0x80 {
				break
			}
		}
		return n
	}
	for _, has := range []byte{0x40, 0x80} { // the flags of the compressed and the uncompressed size
		if flags&has != 0 {
			number()
		}
	}
	if id, props := number(), number(); id != 0x21 || props != 1 || at >= len(head) {
		return 0, errors.New("it uses filters other than LZMA2: run xz -dk on it and convert the result")
	}
	bits := int64(head[at] & 0x3f)
	if bits > 40 {
		return 0, errors.New("its header is damaged: the size of its dictionary is invalid")
	}
	return (2 | bits&1) << (bits/2 + 11), nil
}

// steady turns a decompressor's panic into an error.
type steady struct{ r io.Reader }

func (s steady) Read(b []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("its compressed data is damaged (%v)", r)
		}
	}()
	return s.r.Read(b)
}
