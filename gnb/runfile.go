package gnb

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// The files of a run and of a sweep that are read back have checksums, and are text all the same.
// Each JSON file ends with
//
//	  "gnb_sealed": 1,
//	  "gnb_sha256": "…"
//	}
//
// which is the SHA-256 of the file with zeros in its own place. Each line of metrics.jsonl and
// trials.jsonl ends with ,"sum":"…"} of eight digits: the CRC-32C of the line as it is without.
// What has no checksum, as files of earlier versions have none, is read as it is; who edits a file
// by hand leaves out both of its last two keys.

// The names of a run's files.
const (
	configFile  = "config.json"
	resultFile  = "result.json"
	metricsFile = "metrics.jsonl"
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

// sealJSON is v as an indented JSON object with a checksum.
func sealJSON(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	end, some := bytes.CutSuffix(b, []byte("\n}"))
	if !some {
		return nil, fmt.Errorf("%T is no object with fields", v)
	}
	b = append(append(append(end, sealBefore...), noSum...), sealAfter...)
	sum := sha256.Sum256(b)
	hex.Encode(b[len(b)-len(sealAfter)-sumDigits:], sum[:])
	return b, nil
}

// errEdited says that a file's checksum does not hold.
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

// writeJSON writes a file of the run's directory, durably, with a checksum.
func writeJSON(path string, v any) error {
	b, err := sealJSON(v)
	if err != nil {
		return err
	}
	err = atomicfile.Replaceable(path)
	if err == nil {
		err = atomicfile.WriteFile(path, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("gnb: writing a file of the run: %w; make room there, or set RunDir or GNB_RUNS to another place", err)
	}
	return nil
}

// readJSON reads what writeJSON has written. Nothing is taken from a file that is damaged. The
// error of a file that is not there matches [os.ErrNotExist].
func readJSON(path string, v any) error {
	b, err := atomicfile.ReadFile(path, maxJSON)
	if err != nil {
		return err
	}
	if err = checkSeal(b); err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("gnb: %s is damaged: %w", path, err)
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

// appendSummed appends a JSON object, without white space around it, as a line with a checksum.
func appendSummed(to, object []byte) []byte {
	object = bytes.TrimRight(object, "\n")
	to = append(to, object[:len(object)-1]...)
	return fmt.Appendf(to, "%s%08x%s\n", lineBefore, crc32.Checksum(object, castagnoli), lineAfter)
}

// summed says whether a line has a checksum that holds.
func summed(line []byte) bool {
	object, ok := checkLine(line)
	return ok && len(object) < len(line)
}

// checkLine is a line's JSON object, and whether its checksum holds where it has one.
func checkLine(line []byte) (object []byte, ok bool) {
	line = bytes.TrimRight(line, "\n")
	at := len(line) - lineSum
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(lineBefore)) || !bytes.HasSuffix(line, []byte(lineAfter)) {
		return line, true
	}
	object = append(bytes.Clone(line[:at]), '}')
	return object, fmt.Sprintf("%08x", crc32.Checksum(object, castagnoli)) == string(line[at+len(lineBefore):len(line)-len(lineAfter)])
}

// damagedLines says that lines of a file are not as they were written, and were left out.
type damagedLines struct {
	path  string
	count int
}

func (e *damagedLines) Error() string {
	return fmt.Sprintf("gnb: %s of %s damaged and left out", counted(e.count, "line"), e.path+map[bool]string{true: " is", false: " are"}[e.count == 1])
}

// maxLine bounds the length of a line: the options of a trial, or the steps of 40 ms.
const maxLine = 64 << 20

// readLines calls take for each whole line of a file from an offset on, as a JSON object; what
// take refuses counts as damaged. It returns where to go on, behind the last whole line. A file
// that is not there has no lines. Where lines were left out, the error is a [damagedLines] and
// all others have been read.
func readLines(path string, from int64, take func(object []byte) bool) (next int64, err error) {
	file, err := atomicfile.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return from, nil
	}
	if err == nil {
		defer file.Close()
		_, err = file.Seek(from, io.SeekStart)
	}
	bad := &damagedLines{path: path}
	for r := bufio.NewReaderSize(file, 1<<16); err == nil; {
		var line []byte
		if line, err = readLine(r); err != nil {
			// A line that is not whole has not been written to its end, unless it is.
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
