package safetensors

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
)

// A file of [WriteFile] is sealed: its metadata has a SHA-256 of the whole file, computed with
// zeros in place of the sum itself. A second key says that there is a sum, so that a file whose
// first key is damaged does not pass for an unsealed one.
const (
	keySum    = "gnb_sha256"
	keySealed = "gnb_sealed"

	sumStart = `"` + keySum + `":"`
)

var noSum = strings.Repeat("0", 2*sha256.Size)

// ErrDamaged matches the error for a file that has changed since it was written.
var ErrDamaged = errors.New("the file is damaged")

// Sealed reports whether a file with this metadata has a checksum, which [ReadFile] has compared.
// Files of other programs have none.
func Sealed(meta map[string]string) bool { return meta[keySealed] != "" }

// SumIn returns the checksum in metadata, "" if there is none.
func SumIn(meta map[string]string) string { return meta[keySum] }

// Sum returns the checksum in a file's metadata, "" if there is none. It reads only the header.
func Sum(path string) (string, error) {
	f, size, err := open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, meta, _, err := readHeader(f, size, float32Only)
	if err != nil {
		return "", fmt.Errorf("%s: safetensors: %w", path, err)
	}
	return meta[keySum], nil
}

// seal returns the header of a sealed file.
func seal(tensors []Tensor, meta map[string]string) ([]byte, error) {
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]string{}
	}
	meta[keySealed], meta[keySum] = "1", noSum
	header, err := encodeHeader(tensors, meta)
	if err != nil {
		return nil, err
	}
	sum, err := sumOf(header, tensors)
	if err != nil {
		return nil, err
	}
	copy(placeOfSum(header), sum)
	return header, nil
}

// placeOfSum returns the part of a header that holds the sum, nil if there is none. Other names and
// values of the metadata cannot match it, because their quotes are escaped.
func placeOfSum(header []byte) []byte {
	i := bytes.Index(header, []byte(sumStart))
	if i < 0 || i+len(sumStart)+len(noSum) > len(header) {
		return nil
	}
	i += len(sumStart)
	return header[i : i+len(noSum)]
}

// sumOf returns the sum of a file whose header has zeros in the sum's place.
func sumOf(header []byte, tensors []Tensor) (string, error) {
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header))))
	h.Write(header)
	for _, t := range tensors {
		if err := writeFloats(h, t.F32); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// verify compares the sum of a sealed file. tensors are in the order of the file.
func verify(r io.ReaderAt, tensors []Tensor, meta map[string]string) error {
	if meta[keySum] == "" && meta[keySealed] == "" {
		return nil
	}
	var length [8]byte
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > math.MaxInt32 {
		return fmt.Errorf("%w: its header has %d bytes", ErrDamaged, n)
	}
	header := make([]byte, n)
	if _, err := r.ReadAt(header, 8); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	place := placeOfSum(header)
	if place == nil {
		return fmt.Errorf("%w: its %s cannot be found", ErrDamaged, keySum)
	}
	said := string(place)
	copy(place, noSum)
	sum, err := sumOf(header, tensors)
	if err != nil {
		return err
	}
	if sum != said {
		return fmt.Errorf("%w: its SHA-256 is %.12s… and should be %.12q…", ErrDamaged, sum, said)
	}
	return nil
}
