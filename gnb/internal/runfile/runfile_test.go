package runfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type point struct{ X, Y int }

// A flipped bit anywhere in a JSON file is detected; a file without a checksum is accepted.
func TestJSONIsSealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), Config)
	if err := WriteJSON("runs", path, point{3, 4}); err != nil {
		t.Fatal(err)
	}
	var p point
	if err := ReadJSON("runs", path, &p); err != nil || p != (point{3, 4}) {
		t.Fatalf("%v, %v", p, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		var p point
		if err := ReadJSON("runs", path, &p); err == nil || p != (point{}) || !strings.Contains(err.Error(), "damaged") {
			t.Fatalf("bit %d of byte %d: %v, %v", bit%8, bit/8, p, err)
		}
	}
	if err := os.WriteFile(path, []byte(`{"X": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ReadJSON("runs", path, &p); err != nil || p.X != 1 {
		t.Errorf("reading a file without a checksum gave %v, %v", p, err)
	}
	if err := ReadJSON("runs", path+"x", &p); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// Damaged lines are skipped and counted. A line that is not completely written is left for the next
// call.
func TestLinesAreSummed(t *testing.T) {
	path := filepath.Join(t.TempDir(), Metrics)
	a, b := AppendLine(nil, []byte(`{"a":1}`)), AppendLine(nil, []byte(`{"b":2}`))
	bad := bytes.Replace(b, []byte("2"), []byte("3"), 1)
	if err := os.WriteFile(path, bytes.Join([][]byte{a, bad, []byte("{\"old\":1}\n"), b, a[:5]}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	next, err := ReadLines(path, 0, func(object []byte) bool { got = append(got, string(object)); return true })
	if want := `{"a":1} {"old":1} {"b":2}`; strings.Join(got, " ") != want {
		t.Errorf("read %v, want %s", got, want)
	}
	if err == nil || IgnoreDamage(err) != nil || !strings.Contains(err.Error(), "1 line of "+path+" is damaged") {
		t.Errorf("the error is %v", err)
	}
	info, statErr := os.Stat(path)
	if statErr != nil || next != info.Size()-5 {
		t.Errorf("the next read begins at %d (%v)", next, statErr)
	}
	if next, err = ReadLines(path, next, func([]byte) bool { t.Error("a line was read twice"); return true }); err != nil || next != info.Size()-5 {
		t.Errorf("at the end of the file: %d, %v", next, err)
	}
	if _, err := ReadLines(path+"x", 0, nil); err != nil {
		t.Errorf("no file: %v", err)
	}
}
