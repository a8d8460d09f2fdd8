package get

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Limits of an archive. Lists of numbers as text compress to a tenth; an archive that expands far
// more was made to fill the disk.
const (
	maxUnzipRatio   = 30
	minUnzipLimit   = 1 << 20
	maxUnzipEntries = 10_000
)

// unzip unpacks the top-level folder of an archive into dir and ignores the archive's other
// entries. The folder appears only when it is complete; an existing one is an error. unzip refuses
// entries that are neither files nor folders, names that lead outside dir, and archives that expand
// too much.
func unzip(ctx context.Context, archive, folder, dir string, progress func(done, total int64)) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("unpacking %s: "+format, append([]any{archive}, args...)...)
	}
	info, err := os.Stat(archive)
	if err != nil {
		return err
	}
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fail("%w", err)
	}
	defer z.Close()
	if len(z.File) > maxUnzipEntries {
		return fail("it has %d entries; at most %d are taken", len(z.File), maxUnzipEntries)
	}
	limit := max(minUnzipLimit, maxUnzipRatio*info.Size())
	var total int64
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, "/")
		switch {
		case !filepath.IsLocal(name) || strings.Contains(name, `\`):
			return fail("entry %q leads out of the archive's folder", f.Name)
		case !f.Mode().IsRegular() && !f.Mode().IsDir():
			return fail("entry %q is neither a file nor a folder", f.Name)
		case f.UncompressedSize64 > uint64(limit) || total+int64(f.UncompressedSize64) > limit:
			return fail("its %d bytes would become more than %d", info.Size(), limit)
		}
		total += int64(f.UncompressedSize64)
	}
	tmp, err := atomicfile.NewDir(dir, filepath.Base(archive))
	if err != nil {
		return err
	}
	defer tmp.Remove()
	var done int64
	for _, f := range z.File {
		if !strings.HasPrefix(f.Name, folder+"/") {
			continue
		}
		path := filepath.Join(tmp.Path, f.Name)
		if f.Mode().IsDir() {
			if err := os.MkdirAll(path, 0o777); err != nil {
				return fail("%w", err)
			}
			continue
		}
		err := unzipFile(ctx, f, path, func(n int64) { progress(done+n, total) })
		if err != nil {
			return fail("entry %q: %w", f.Name, err)
		}
		done += int64(f.UncompressedSize64)
	}
	unpacked, to := filepath.Join(tmp.Path, folder), filepath.Join(dir, folder)
	if _, err := os.Stat(unpacked); err != nil {
		return fail("it does not hold %s/", folder)
	}
	if _, err := os.Lstat(to); err == nil {
		return fail("%w: %s; remove it", fs.ErrExist, to)
	}
	if err := os.Rename(unpacked, to); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

func unzipFile(ctx context.Context, f *zip.File, path string, progress func(done int64)) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := w.Close(); err == nil {
			err = cerr
		}
	}()
	// Copied in pieces; the reader fails if the entry's size or checksum differs from its header.
	for done := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(w, r, 1<<22)
		done += n
		progress(done)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
