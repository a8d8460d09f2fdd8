package chart

import (
	"bytes"
	"compress/zlib"
	"flag"
	"os"
	"testing"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
)

var update = flag.Bool("update", false, "write the compressed fonts")

// The fonts are those of the module go-fonts/liberation, to the bit.
func TestFonts(t *testing.T) {
	for _, f := range []struct {
		file        string
		packed, ttf []byte
	}{{"fonts/regular.ttf.zlib", regular, liberationsansregular.TTF}, {"fonts/bold.ttf.zlib", bold, liberationsansbold.TTF}} {
		if *update {
			var b bytes.Buffer
			z, err := zlib.NewWriterLevel(&b, zlib.BestCompression)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := z.Write(f.ttf); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(f.file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := unpack(f.packed); err != nil || !bytes.Equal(got, f.ttf) {
			t.Errorf("%s holds %d bytes that differ from the font (%v); go test -update writes them anew", f.file, len(got), err)
		}
	}
}

// BenchmarkUnpack measures the part of the first drawing that unpacks the fonts.
func BenchmarkUnpack(b *testing.B) {
	for b.Loop() {
		for _, packed := range [][]byte{regular, bold} {
			if _, err := unpack(packed); err != nil {
				b.Fatal(err)
			}
		}
	}
}
