package get

import (
	"crypto/sha1" //nolint:gosec // the names of git's objects are SHA-1
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// checksums holds the known checksums of a file, in hexadecimal.
type checksums struct {
	sha256 string
	// gitBlob is the name of the file's content in a git repository: the SHA-1 of
	// "blob SIZE\x00" and the content.
	gitBlob string
}

// known reports whether a checksum is known.
func (s checksums) known() bool { return s != checksums{} }

// verify compares the size and the checksums of a file with the expected ones. If they differ, the
// error wraps [errWrongFile].
func (o fetchOptions) verify(path string) error {
	f, err := atomicfile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if o.size > 0 && info.Size() != o.size {
		return fmt.Errorf("%s has %d bytes and should have %d: %w", path, info.Size(), o.size, errWrongFile)
	}
	type sum struct {
		name, want string
		h          hash.Hash
	}
	var sums []sum
	if o.sums.sha256 != "" {
		sums = append(sums, sum{"SHA-256", o.sums.sha256, sha256.New()})
	}
	if o.sums.gitBlob != "" {
		h := sha1.New() //nolint:gosec // the names of git's objects are SHA-1
		fmt.Fprintf(h, "blob %d\x00", info.Size())
		sums = append(sums, sum{"git blob", o.sums.gitBlob, h})
	}
	if len(sums) == 0 {
		return nil
	}
	var to []io.Writer
	for _, s := range sums {
		to = append(to, s.h)
	}
	if _, err := io.CopyBuffer(io.MultiWriter(to...), f, make([]byte, 1<<20)); err != nil {
		return err
	}
	for _, s := range sums {
		if got := hex.EncodeToString(s.h.Sum(nil)); !strings.EqualFold(got, s.want) {
			return fmt.Errorf("the %s of %s is %s and should be %s: %w", s.name, path, got, s.want, errWrongFile)
		}
	}
	return nil
}
