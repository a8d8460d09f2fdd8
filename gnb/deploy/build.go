package deploy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
)

// BuildOptions configure [Build]. The zero value is a good default.
type BuildOptions struct {
	// Program is the gnb program to copy; "" means the running one, which must be gnb. One for another architecture runs there.
	Program string
	// Fanout is [Table].Fanout.
	Fanout string
	// Progress receives the bytes written, and their total.
	Progress func(done, total int64)
}

// Built says what [Build] wrote.
type Built struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// Program is the size of the program, without the model.
	Program int64 `json:"program_bytes"`
	// Loader is the loader that the program needs; "" for a static program, which runs on any system of its architecture and in an empty
	// container.
	Loader string `json:"loader,omitempty"`
}

// Build writes an app: a copy of a gnb program with an exported directory (see [Export]) behind it. It replaces a file of that name when the
// new one is complete. It refuses a directory that is not an exported one, and a program that is not ELF.
func Build(ctx context.Context, dir, to string, o BuildOptions) (b *Built, err error) {
	entry.Enter()
	fail := func(err error) error { return fmt.Errorf("deploy: building %s: %w", to, err) }
	run, err := runs.Open(dir)
	if err != nil {
		return nil, fail(err)
	}
	if !IsExported(run) {
		return nil, fail(fmt.Errorf("%s is a run's directory and not an exported one; export the run first (deploy.Export, gnb export-model)", dir))
	}
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return nil, fail(err)
		}
	}
	program, err := mapped.Open(o.Program)
	if err != nil {
		return nil, fail(err)
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	b = &Built{Path: to}
	err = mapped.Guard(func() error {
		var end int64
		if end, err = programEnd(bytes.NewReader(program.Bytes())); err != nil {
			return fmt.Errorf("%s: %w; apps are for Linux and other systems with such programs", o.Program, err)
		}
		// An app is a program with a model, which another one replaces.
		if b.Program = min(end, int64(len(program.Bytes()))); b.Program < end {
			return fmt.Errorf("%s is cut: it has %d bytes of %d", o.Program, len(program.Bytes()), end)
		}
		if b.Loader, err = interpreter(o.Program); err != nil {
			return err
		}
		return build(ctx, b, run, program.Bytes()[:b.Program], dir, o)
	})
	if err != nil {
		return nil, fail(err)
	}
	return b, nil
}

// build writes the app.
func build(ctx context.Context, b *Built, run *runs.Run, program []byte, dir string, o BuildOptions) (err error) {
	found, err := filesIn(dir, "")
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(x, y File) int { return cmp.Compare(x.Bytes, y.Bytes) })
	var all []*mapped.File
	defer func() {
		for _, m := range all {
			err = errors.Join(err, m.Close())
		}
	}()
	t := Table{Run: run.Config.ID, Made: time.Now().UTC().Truncate(time.Second), Fanout: o.Fanout}
	sum, _ := sumOf(ctx, program, 0)
	t.Program = AppFile{Name: "the program", Size: int64(len(program)), Sum: sum}
	for _, f := range found {
		m, err := mapped.Open(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			return err
		}
		all = append(all, m)
		sum, ok := sumOf(ctx, m.Bytes(), 0)
		if !ok {
			return ctx.Err()
		}
		t.Files = append(t.Files, &AppFile{Name: f.Name, Size: int64(len(m.Bytes())), Sum: sum})
	}
	// The table has places, and its length moves them: one that is long enough for any is padded.
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	length := len(text) + 20*len(t.Files)
	head := upTo(int64(len(program)))
	at := upTo(head + appHeader + int64(length))
	for _, f := range t.Files {
		f.Offset = at
		at = upTo(at + f.Size)
	}
	b.Bytes = at
	if text, err = json.Marshal(t); err != nil {
		return err
	}
	if len(text) > length || length > maxTable {
		return fmt.Errorf("its table of %d files is too long", len(t.Files))
	}
	text = append(text, strings.Repeat(" ", length-len(text))...)
	header := append([]byte(appMagic), binary.LittleEndian.AppendUint64(nil, uint64(b.Bytes))...)
	header = binary.LittleEndian.AppendUint64(header, uint64(length))
	header = binary.LittleEndian.AppendUint32(header, crc32.Checksum(text, castagnoli))
	header = append(binary.LittleEndian.AppendUint32(header, 0), text...)
	if err := atomicfile.Replaceable(b.Path); err != nil {
		return err
	}
	return atomicfile.WriteWith(b.Path, 0o755, func(w io.Writer) error {
		out := &padded{w: w, ctx: ctx, total: b.Bytes, report: o.Progress}
		for _, piece := range [][]byte{program, header} {
			if err := out.write(piece); err != nil {
				return err
			}
		}
		for _, m := range all {
			if err := out.write(m.Bytes()); err != nil {
				return err
			}
		}
		return nil
	})
}

// padded writes pieces, each from a multiple of appAlign on.
type padded struct {
	w           io.Writer
	ctx         context.Context
	done, total int64
	report      func(done, total int64)
}

func (p *padded) write(piece []byte) error {
	pad := upTo(int64(len(piece))) - int64(len(piece))
	for part := range slices.Chunk(piece, 16<<20) {
		if err := p.put(part); err != nil {
			return err
		}
	}
	return p.put(make([]byte, pad))
}

func (p *padded) put(part []byte) error {
	if _, err := p.w.Write(part); err != nil {
		return err
	}
	if p.done += int64(len(part)); p.report != nil {
		p.report(p.done, p.total)
	}
	return p.ctx.Err()
}
