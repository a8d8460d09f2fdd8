// Package runfile reads and writes the files of a run and of a sweep with checksums that reveal
// damage: JSON files with a checksum, and logs with a checksum on every line. They remain plain
// text.
//
// Each JSON file ends with
//
//	  "gnb_sealed": 1,
//	  "gnb_sha256": "…"
//	}
//
// The second value is the SHA-256 of the file with zeros in place of the digest. Each line of
// metrics.jsonl and trials.jsonl ends with ,"sum":"…"}, eight hexadecimal digits: the CRC-32C of
// the line without that part. A file or line without a checksum is read unchecked; older versions
// wrote such files. To edit a file by hand, delete its last two keys.
package runfile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

// The names of a run's files, and of the file that marks a sweep's directory.
const (
	Config  = "config.json"
	Result  = "result.json"
	Metrics = "metrics.jsonl"
	Sweep   = "sweep.json"
)

const (
	sealSum    = "gnb_sha256"
	sealBefore = ",\n  \"gnb_sealed\": 1,\n  \"" + sealSum + "\": \""
	sealAfter  = "\"\n}\n"
	sumDigits  = 2 * sha256.Size
)

var noSum = bytes.Repeat([]byte("0"), sumDigits)

// maxJSON bounds the size of a run's or sweep's JSON file.
const maxJSON = 64 << 20

// sealJSON returns v as an indented JSON object with a checksum.
func sealJSON(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	end, some := bytes.CutSuffix(b, []byte("\n}"))
	if !some {
		return nil, fmt.Errorf("%T is not an object with fields", v)
	}
	b = append(append(append(end, sealBefore...), noSum...), sealAfter...)
	sum := sha256.Sum256(b)
	hex.Encode(b[len(b)-len(sealAfter)-sumDigits:], sum[:])
	return b, nil
}

// errEdited is the error of a file whose checksum does not match.
var errEdited = errors.New(`it is not as it was written (its checksum does not hold): put back a copy, or, if it was edited by hand, delete its lines "gnb_sealed" and "` + sealSum + `"`)

// checkSeal compares a JSON file's checksum, if it has one.
func checkSeal(b []byte) error {
	var has struct {
		Sealed json.RawMessage `json:"gnb_sealed"`
		Sum    json.RawMessage `json:"gnb_sha256"`
	}
	if err := json.Unmarshal(b, &has); err != nil {
		return err
	}
	if has.Sealed == nil && has.Sum == nil {
		return nil
	}
	at := len(b) - len(sealAfter) - sumDigits
	if at < 0 || !bytes.HasSuffix(b[:at], []byte(sealBefore)) || !bytes.HasSuffix(b, []byte(sealAfter)) {
		return errEdited
	}
	c := bytes.Clone(b)
	copy(c[at:], noSum)
	if sum := sha256.Sum256(c); hex.EncodeToString(sum[:]) != string(b[at:at+sumDigits]) {
		return errEdited
	}
	return nil
}

// WriteJSON writes v as an indented JSON object with a checksum, durably. room is the calling
// package, with which errors begin.
func WriteJSON(room, path string, v any) error {
	b, err := sealJSON(v)
	if err != nil {
		return err
	}
	err = atomicfile.Replaceable(path)
	if err == nil {
		err = atomicfile.WriteFile(path, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("%s: writing %s: %w; make room there, or set RunDir, Dir or GNB_RUNS to another place", room, filepath.Base(path), err)
	}
	return nil
}

// ReadJSON reads a file of WriteJSON into v. It fails if the file is damaged; that error begins with
// room, the calling package. An error of the file system has no such beginning; it matches
// [os.ErrNotExist] for a missing file.
func ReadJSON(room, path string, v any) error {
	b, err := atomicfile.ReadFile(path, maxJSON)
	if err != nil {
		return err
	}
	return ParseJSON(room, path, b, v)
}

// ParseJSON reads the content of a file of WriteJSON into v, as [ReadJSON] does; path is its name in the error.
func ParseJSON(room, path string, b []byte, v any) (err error) {
	if err = checkSeal(b); err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %s is damaged: %w", room, path, err)
	}
	return nil
}

// The checksum at the end of a line.
const (
	lineBefore = `,"sum":"`
	lineAfter  = "\"}"
	lineSum    = len(lineBefore) + 8 + len(lineAfter)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendLine appends a JSON object, without white space around it, to a log as a line with a checksum.
func AppendLine(to, object []byte) []byte {
	object = bytes.TrimRight(object, "\n")
	to = append(to, object[:len(object)-1]...)
	return fmt.Appendf(to, "%s%08x%s\n", lineBefore, crc32.Checksum(object, castagnoli), lineAfter)
}

// summed reports whether a line has a checksum that matches.
func summed(line []byte) bool {
	object, ok := checkLine(line)
	return ok && len(object) < len(line)
}

// checkLine returns a line's JSON object; ok is false if the line has a checksum that does not
// match.
func checkLine(line []byte) (object []byte, ok bool) {
	line = bytes.TrimRight(line, "\n")
	at := len(line) - lineSum
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(lineBefore)) || !bytes.HasSuffix(line, []byte(lineAfter)) {
		return line, true
	}
	object = append(bytes.Clone(line[:at]), '}')
	return object, fmt.Sprintf("%08x", crc32.Checksum(object, castagnoli)) == string(line[at+len(lineBefore):len(line)-len(lineAfter)])
}

// DamagedLines is the error of [ReadLines] for damaged lines: it skipped them and read all others.
type DamagedLines struct {
	path  string
	count int
}

func (e *DamagedLines) Error() string {
	return fmt.Sprintf("gnb: %s of %s damaged and left out", phrase.Count(e.count, "line"), e.path+map[bool]string{true: " is", false: " are"}[e.count == 1])
}

// IgnoreDamage returns nil for a [DamagedLines], and any other error unchanged.
func IgnoreDamage(err error) error {
	if _, some := errors.AsType[*DamagedLines](err); some {
		return nil
	}
	return err
}

// maxLine bounds the length of a line: the options of a trial, or the steps of 40 ms.
const maxLine = 64 << 20

// ReadLines calls take with each complete line of a file from an offset on, as a JSON object; a
// line that take refuses counts as damaged. It returns the offset after the last complete line,
// from which the next call continues. A missing file has no lines. If lines were damaged the error
// is a [DamagedLines], and all other lines have been read.
func ReadLines(path string, from int64, take func(object []byte) bool) (next int64, err error) {
	file, err := atomicfile.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return from, nil
	}
	if err == nil {
		defer file.Close()
		_, err = file.Seek(from, io.SeekStart)
	}
	bad := &DamagedLines{path: path}
	for r := bufio.NewReaderSize(file, 1<<16); err == nil; {
		var line []byte
		if line, err = readLine(r); err != nil {
			// A line without a newline is incomplete, unless its checksum matches.
			if n := len(line) - 1; n > 0 && summed(line[:n]) {
				bad.count++
			}
			break
		}
		from += int64(len(line))
		if object, ok := checkLine(line); !ok || !take(object) {
			bad.count++
		}
	}
	switch {
	case !errors.Is(err, io.EOF):
		return from, err
	case bad.count > 0:
		return from, bad
	}
	return from, nil
}

// ReadMetrics calls take with the events of the metrics in a run's directory from an offset on, for a
// growing file. Offset and error are those of [ReadLines].
func ReadMetrics[Event any](dir string, from int64, take func(Event)) (next int64, err error) {
	next, err = ReadLines(filepath.Join(dir, Metrics), from, func(object []byte) bool {
		var e Event
		if json.Unmarshal(object, &e) != nil {
			return false
		}
		take(e)
		return true
	})
	if IgnoreDamage(err) != nil {
		err = fmt.Errorf("runs: reading a run's metrics: %w", err)
	}
	return next, err
}

// readLine reads a line with its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("a line has more than %d bytes", maxLine)
		}
	}
}

// Absolute returns the absolute path, which is valid in other processes too.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Exists reports whether path exists.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Each calls f with the path of each entry of dir, in the order of names, until f or ctx fails. A dir
// that does not exist is empty. An error begins with room, the calling package, and calls the
// entries what, such as "runs".
func Each(ctx context.Context, room, dir, what string, f func(path string) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: listing %s: %w", room, what, err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// JobDir returns the folder of a run's job in a cluster: its script, program and output.
func JobDir(run string) string { return filepath.Join(run, "slurm") }

// MetaModel is the key in a weights file's metadata of the network as JSON.
const MetaModel = "gnb_model"
