package dataset

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/mapped"
)

// A packed dataset consists of the files of a directory, one after the other:
//
//	"GNBPACK1"  magic
//	u64         length of the table, little-endian
//	table       JSON: [{"name": …, "offset": …, "size": …}, …]
//	sections    each at its offset, counted from the first multiple of 64 after
//	            the table; offsets are multiples of 64
//
// In memory ([Dataset.Share]) each section starts on its own page, and spaces pad the table, so
// that a device can register the pages of one array without those of another.
const (
	packMagic    = "GNBPACK1"
	maxPackTable = 1 << 20
)

type packEntry struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
}

func aligned(n int64) int64 { return upTo(npy.Align, n) }

// upTo returns the first multiple of a power of two that is at least n.
func upTo(align, n int64) int64 { return (n + align - 1) &^ (align - 1) }

// Pack writes d as one file, which [OpenFD] opens.
func (d *Dataset) Pack(w io.Writer) error { return d.pack(w, npy.Align) }

// pack puts each section at a multiple of align in the file.
func (d *Dataset) pack(w io.Writer, align int64) error {
	fail := func(err error) error { return fmt.Errorf("dataset: packing %s: %w", d.Name(), err) }
	if d.Meta.Parts != nil {
		return fail(errors.New("it is divided into parts, which lie in its directory, and was changed in memory: divide the changed dataset instead"))
	}
	parts, meta, err := d.sections()
	if err != nil {
		return fail(err)
	}
	about, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return fail(err)
	}
	parts = append(parts, section{name: MetadataFile, head: append(about, '\n')})
	table := make([]packEntry, len(parts))
	var end int64
	for i, part := range parts {
		table[i] = packEntry{Name: part.name, Offset: end, Size: part.size()}
		end = upTo(align, end+part.size())
	}
	text, err := json.Marshal(table)
	if err != nil {
		return fail(err)
	}
	end = 16 + int64(len(text))
	text = append(text, bytes.Repeat([]byte(" "), int(upTo(align, end)-aligned(end)))...)
	head := append([]byte(packMagic), binary.LittleEndian.AppendUint64(nil, uint64(len(text)))...)
	head = append(head, text...)
	// The values may lie in mapped files.
	err = mapped.Guard(func() error {
		if err := writePadded(w, npy.Align, head); err != nil {
			return err
		}
		for _, part := range parts {
			if err := writePadded(w, align, part.head, part.body); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fail(err)
	}
	return nil
}

// writePadded writes the pieces, and zeros up to a multiple of align.
func writePadded(w io.Writer, align int64, pieces ...[]byte) error {
	var n int64
	for _, p := range pieces {
		n += int64(len(p))
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	_, err := w.Write(make([]byte, upTo(align, n)-n))
	return err
}

// OpenFD maps a packed dataset, such as the memfd of [Dataset.Share] that a worker process
// inherited. It copies nothing. The caller keeps the file and may close it at once; closing the
// dataset unmaps it.
func OpenFD(f *os.File) (*Dataset, error) {
	m, err := mapped.FromFD(f, f.Name())
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	var d *Dataset
	err = mapped.Guard(func() error {
		src, err := parsePack(m.Name(), m.Bytes())
		if err != nil {
			return err
		}
		d, err = load(src)
		return err
	})
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	d.closer = []io.Closer{m}
	return d, nil
}

// packed is a source whose sections are in one mapped file.
type packed struct {
	name     string
	sections map[string][]byte
}

func (p *packed) open(name string) ([]byte, string, error) {
	data, ok := p.sections[name]
	if !ok {
		return nil, p.name + ":" + name, fs.ErrNotExist
	}
	return data, p.name + ":" + name, nil
}

// parsePack finds the sections. The data must begin at a multiple of 64.
func parsePack(name string, data []byte) (*packed, error) {
	if len(data) < 16 || string(data[:8]) != packMagic {
		return nil, readError(name, "it is not a packed dataset: it does not begin with %s", packMagic)
	}
	length := binary.LittleEndian.Uint64(data[8:])
	if length > maxPackTable || length > uint64(len(data)-16) {
		return nil, readError(name, "its table claims %d bytes, but the file has %d", length, len(data))
	}
	var table []packEntry
	if err := json.Unmarshal(data[16:16+length], &table); err != nil {
		return nil, readError(name, "its table is malformed: %w", err)
	}
	rest := data[min(aligned(int64(16+length)), int64(len(data))):]
	p := &packed{name: name, sections: map[string][]byte{}}
	for _, e := range table {
		_, twice := p.sections[e.Name]
		switch {
		case e.Offset < 0 || e.Offset%npy.Align != 0 || e.Size < 0 || e.Size > int64(len(rest)) || e.Offset > int64(len(rest))-e.Size:
			return nil, readError(name, "section %q claims %d bytes at %d, but there are %d", e.Name, e.Size, e.Offset, len(rest))
		case twice:
			return nil, readError(name, "section %q is listed twice", e.Name)
		}
		p.sections[e.Name] = rest[e.Offset : e.Offset+e.Size : e.Offset+e.Size]
	}
	return p, nil
}
