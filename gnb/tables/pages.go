package tables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

const (
	// pageBytes is the size of a page that every file may have, and pageRatio bounds how far larger ones expand: memory is
	// at most pageBytes for each column, or pageRatio times the file.
	pageBytes, pageRatio = 16 << 20, 1 << 10
	// rowsFree is the number of rows that every file may have, and rowsPerByte bounds those of larger tables.
	rowsFree, rowsPerByte = 1 << 20, 1 << 10
	// batchBytes is what the values of a batch take in memory, about.
	batchBytes = 64 << 20
	// maxHeader bounds the header of a page, which may have the least and the greatest value.
	maxHeader = 1 << 20
)

// checkPages walks over the headers of a column chunk's pages, and refuses sizes for which the library would allocate more
// than a multiple of the file: it believes every one. It returns how many bytes a value can take in memory, about: the
// longest of a dictionary, or the mean of a page.
func checkPages(f io.ReaderAt, chunk *metadata.ColumnChunkMetaData, size int64) (widest int64, err error) {
	from, to, err := chunkOf(chunk, size)
	if err != nil {
		return 0, err
	}
	for from < to {
		h, n, err := readPageHeader(f, from, to)
		if err != nil {
			return 0, err
		}
		switch {
		case h.packed < 0 || h.plain < 0 || h.values < 0 || h.packed > to-from-n:
			return 0, errDamaged
		case h.plain > pageBytes && h.plain > pageRatio*h.packed:
			return 0, fmt.Errorf("a page of %d bytes says that it has %d, more than %d times as many, when decompressed: it is damaged, or made to exhaust the memory", h.packed, h.plain, pageRatio)
		case h.dictionary && h.values > h.plain:
			return 0, errDamaged
		}
		wide := h.plain / max(1, h.values)
		if h.dictionary && chunk.Type() == parquet.Types.ByteArray {
			if wide, err = longest(f, from+n, h, chunk.Compression()); err != nil {
				return 0, err
			}
		}
		widest = max(widest, wide)
		from += n + h.packed
	}
	return widest, nil
}

// longest returns the length of the longest value of a dictionary of texts.
func longest(f io.ReaderAt, at int64, h pageHeader, by compress.Compression) (int64, error) {
	b := make([]byte, h.packed)
	if _, err := f.ReadAt(b, at); err != nil {
		return 0, err
	}
	if by != compress.Codecs.Uncompressed {
		codec, err := compress.GetCodec(by)
		if err != nil {
			return 0, err
		}
		b = codec.Decode(make([]byte, h.plain), b)
	}
	most := int64(0)
	for range h.values {
		if len(b) < 4 {
			return 0, errDamaged
		}
		n := int64(binary.LittleEndian.Uint32(b))
		if b = b[4:]; n > int64(len(b)) {
			return 0, errDamaged
		}
		b, most = b[n:], max(most, n)
	}
	return most, nil
}

// checkRows refuses more rows than a file of a size can have.
func checkRows(rows, size int64) error {
	if rows < 0 || rows > rowsFree && (rows-rowsFree)/rowsPerByte > size {
		return fmt.Errorf("it says that it has %d rows, in %d bytes: it is damaged, or made to exhaust the memory", rows, size)
	}
	return nil
}

// chunkOf returns where a column chunk lies in a file of a size.
func chunkOf(chunk *metadata.ColumnChunkMetaData, size int64) (from, to int64, err error) {
	from = chunk.DataPageOffset()
	if chunk.HasDictionaryPage() && chunk.DictionaryPageOffset() > 0 {
		from = min(from, chunk.DictionaryPageOffset())
	}
	n := chunk.TotalCompressedSize()
	if from < 0 || n < 0 || from > size || n > size-from {
		return 0, 0, fmt.Errorf("its footer says that a column ends after byte %d, and it has %d bytes: it is damaged", from+n, size)
	}
	return from, from + n, nil
}

// pageHeader is what a page's header says of sizes.
type pageHeader struct {
	plain, packed int64 // bytes without and with compression
	values        int64
	dictionary    bool
}

// readPageHeader reads the header at a position, and returns its length.
func readPageHeader(f io.ReaderAt, from, to int64) (h pageHeader, n int64, err error) {
	for have := int64(256); ; have *= 8 {
		b := make([]byte, min(have, to-from))
		if _, err := f.ReadAt(b, from); err != nil {
			return h, 0, err
		}
		t := thrift{b: b}
		h = pageHeader{}
		err := t.structure(func(field int, kind byte) error {
			switch {
			case field == 1 && kind == thriftI32:
				x, err := t.zigzag()
				h.dictionary = x == 2
				return err
			case field == 2 && kind == thriftI32:
				h.plain, err = t.zigzag()
				return err
			case field == 3 && kind == thriftI32:
				h.packed, err = t.zigzag()
				return err
			case (field == 5 || field == 7 || field == 8) && kind == thriftStruct:
				return t.structure(func(field int, kind byte) error {
					if field != 1 || kind != thriftI32 {
						return t.skip(kind, 0)
					}
					h.values, err = t.zigzag()
					return err
				})
			}
			return t.skip(kind, 0)
		})
		switch {
		case err == nil:
			return h, int64(t.at), nil
		case !errors.Is(err, io.ErrUnexpectedEOF):
			return h, 0, err
		case int64(len(b)) == to-from || have >= maxHeader:
			return h, 0, errDamaged
		}
	}
}

// thrift reads the compact protocol of Apache Thrift, as far as a page's header needs it.
type thrift struct {
	b  []byte
	at int
}

// Types of fields in the compact protocol.
const (
	thriftTrue, thriftFalse, thriftByte, thriftI16, thriftI32, thriftI64 = 1, 2, 3, 4, 5, 6
	thriftDouble, thriftBinary, thriftList, thriftSet, thriftMap         = 7, 8, 9, 10, 11
	thriftStruct                                                         = 12
)

func (t *thrift) byte() (byte, error) {
	if t.at >= len(t.b) {
		return 0, io.ErrUnexpectedEOF
	}
	t.at++
	return t.b[t.at-1], nil
}

func (t *thrift) uvarint() (uint64, error) {
	x, n := binary.Uvarint(t.b[t.at:])
	switch {
	case n == 0:
		return 0, io.ErrUnexpectedEOF
	case n < 0:
		return 0, errDamaged
	}
	t.at += n
	return x, nil
}

func (t *thrift) zigzag() (int64, error) {
	x, err := t.uvarint()
	return int64(x>>1) ^ -int64(x&1), err
}

// structure calls visit for each field, which reads its value.
func (t *thrift) structure(visit func(field int, kind byte) error) error {
	field := 0
	for {
		b, err := t.byte()
		if err != nil || b == 0 {
			return err
		}
		if delta := int(b >> 4); delta > 0 {
			field += delta
		} else {
			x, err := t.zigzag()
			if err != nil {
				return err
			}
			field = int(x)
		}
		if err := visit(field, b&15); err != nil {
			return err
		}
	}
}

// skip reads over a value.
func (t *thrift) skip(kind byte, depth int) error {
	if depth > maxNesting {
		return errDamaged
	}
	switch kind {
	case thriftTrue, thriftFalse:
		return nil
	case thriftByte:
		_, err := t.byte()
		return err
	case thriftI16, thriftI32, thriftI64:
		_, err := t.uvarint()
		return err
	case thriftDouble:
		return t.forward(8)
	case thriftBinary:
		n, err := t.uvarint()
		if err != nil {
			return err
		}
		return t.forward(n)
	case thriftStruct:
		return t.structure(func(_ int, kind byte) error { return t.skip(kind, depth+1) })
	}
	return errDamaged // a page's header has no lists, sets and maps
}

func (t *thrift) forward(n uint64) error {
	if n > uint64(len(t.b)-t.at) {
		if n > maxHeader {
			return errDamaged
		}
		return io.ErrUnexpectedEOF
	}
	t.at += int(n)
	return nil
}
