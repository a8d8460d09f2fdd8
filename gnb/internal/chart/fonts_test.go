package chart

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"
	"unicode"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

var update = flag.Bool("update", false, "write the compressed fonts and the compressed script")

// The fonts are those of the module go-fonts/liberation without what is never drawn.
func TestFonts(t *testing.T) {
	for _, f := range []struct {
		file        string
		packed, ttf []byte
	}{{"fonts/regular.ttf.zlib", regular, liberationsansregular.TTF}, {"fonts/bold.ttf.zlib", bold, liberationsansbold.TTF}} {
		want := slim(t, f.ttf, family)
		if *update {
			if err := os.WriteFile(f.file, pack(t, want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := unpack(f.packed)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s holds %d bytes that differ from the font (%v); go test -update writes them anew", f.file, len(got), err)
			continue
		}
		equalFonts(t, got, f.ttf)
	}
}

// pack is the inverse of unpack.
func pack(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, zlib.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// slim returns a TrueType font under another name and without what package sfnt never reads: the instructions that fit
// its outlines to a grid of pixels, the outlines of glyphs that no character leads to, the names of its glyphs, and
// tables. Pairs of letters keep their distances in the table "kern".
func slim(t *testing.T, ttf []byte, name string) []byte {
	be := binary.BigEndian
	tables := map[string][]byte{}
	for i := range int(be.Uint16(ttf[4:])) {
		e := ttf[12+16*i:]
		tables[string(e[:4])] = slices.Clone(ttf[be.Uint32(e[8:]):][:be.Uint32(e[12:])])
	}
	var glyf, loca []byte
	old := tables["loca"] // with offsets of 32 bits: the table "head" says so
	outline := func(i int) []byte {
		return tables["glyf"][be.Uint32(old[4*i:]):be.Uint32(old[4*i+4:])]
	}
	drawn := reachable(t, ttf, outline)
	for i := range len(old)/4 - 1 {
		loca = be.AppendUint32(loca, uint32(len(glyf)))
		if !drawn[i] {
			continue
		}
		glyph := outline(i)
		if len(glyph) > 0 && int16(be.Uint16(glyph)) >= 0 { // a glyph of its own outlines, not composed of others
			ends := 10 + 2*int(be.Uint16(glyph))
			after := ends + 2 + int(be.Uint16(glyph[ends:]))
			glyph = slices.Concat(glyph[:ends], []byte{0, 0}, glyph[after:])
		}
		glyf = append(glyf, glyph...)
		for len(glyf)%4 != 0 {
			glyf = append(glyf, 0)
		}
	}
	loca = be.AppendUint32(loca, uint32(len(glyf)))
	post := slices.Clone(tables["post"][:32])
	be.PutUint32(post, 0x30000) // without names of glyphs
	// The table "name" has one record: the name of the font's family, in UTF-16.
	names := []byte{0, 0, 0, 1, 0, 18, 0, 3, 0, 1, 4, 9, 0, 1, 0, byte(2 * len(name)), 0, 0}
	for _, c := range name {
		names = append(names, 0, byte(c))
	}
	kept := map[string][]byte{"glyf": glyf, "loca": loca, "post": post, "name": names}
	for _, t := range []string{"OS/2", "cmap", "head", "hhea", "hmtx", "kern", "maxp"} {
		kept[t] = tables[t]
	}
	sorted := slices.Sorted(maps.Keys(kept))
	n := len(sorted)
	font := []byte{0, 1, 0, 0, 0, byte(n), 0, 128, 0, 3, 0, byte(16*n - 128)}
	offset := len(font) + 16*n
	var body []byte
	for _, t := range sorted {
		data := kept[t]
		length := len(data)
		for len(data)%4 != 0 {
			data = append(data, 0)
		}
		sum := uint32(0)
		for i := 0; i < len(data); i += 4 {
			sum += be.Uint32(data[i:])
		}
		font = append(font, t...)
		font = be.AppendUint32(be.AppendUint32(be.AppendUint32(font, sum), uint32(offset+len(body))), uint32(length))
		body = append(body, data...)
	}
	return append(font, body...)
}

// reachable returns the glyphs to which characters lead, those that are parts of them, and the one for the other characters.
func reachable(t *testing.T, ttf []byte, outline func(i int) []byte) map[int]bool {
	t.Helper()
	font, err := sfnt.Parse(ttf)
	if err != nil {
		t.Fatal(err)
	}
	var buf sfnt.Buffer
	be, reached := binary.BigEndian, map[int]bool{0: true}
	list := []int{0}
	for c := rune(1); c <= unicode.MaxRune; c++ {
		i, err := font.GlyphIndex(&buf, c)
		if err != nil {
			t.Fatal(err)
		}
		if !reached[int(i)] {
			reached[int(i)] = true
			list = append(list, int(i))
		}
	}
	for n := 0; n < len(list); n++ {
		glyph := outline(list[n])
		if len(glyph) == 0 || int16(be.Uint16(glyph)) >= 0 {
			continue
		}
		const words, scale, more, twoScales, matrix = 1, 8, 0x20, 0x40, 0x80
		for at, flags := 10, uint16(more); flags&more != 0; {
			flags = be.Uint16(glyph[at:])
			if part := int(be.Uint16(glyph[at+2:])); !reached[part] {
				reached[part] = true
				list = append(list, part)
			}
			at += 6
			for bit, bytes := range map[uint16]int{words: 2, scale: 2, twoScales: 4, matrix: 8} {
				if flags&bit != 0 {
					at += bytes
				}
			}
		}
	}
	return reached
}

// equalFonts checks that a font draws and spaces every character of the Basic Multilingual Plane, and every pair of
// ASCII characters, as another does.
func equalFonts(t *testing.T, got, want []byte) {
	t.Helper()
	a, err := sfnt.Parse(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := sfnt.Parse(want)
	if err != nil {
		t.Fatal(err)
	}
	const size = fixed.Int26_6(37 << 6)
	var buf, buf2 sfnt.Buffer
	glyphs := 0
	for c := rune(1); c < 1<<16; c++ {
		i, err1 := a.GlyphIndex(&buf, c)
		j, err2 := b.GlyphIndex(&buf2, c)
		if i != j || err1 != nil || err2 != nil {
			t.Fatalf("%q is glyph %d, not %d (%v, %v)", c, i, j, err1, err2)
		}
		if i == 0 {
			continue
		}
		glyphs++
		s, err1 := a.LoadGlyph(&buf, i, size, nil)
		r, err2 := b.LoadGlyph(&buf2, j, size, nil)
		if err1 != nil || err2 != nil || !slices.Equal(s, r) {
			t.Fatalf("%q has another outline (%v, %v)", c, err1, err2)
		}
		x, err1 := a.GlyphAdvance(&buf, i, size, 0)
		y, err2 := b.GlyphAdvance(&buf2, j, size, 0)
		if x != y || err1 != nil || err2 != nil {
			t.Fatalf("%q is %v wide, not %v (%v, %v)", c, x, y, err1, err2)
		}
	}
	if glyphs < 1000 {
		t.Errorf("the font has only %d characters", glyphs)
	}
	pairs := 0
	for c := ' '; c <= '~'; c++ {
		for d := ' '; d <= '~'; d++ {
			i, _ := a.GlyphIndex(&buf, c)
			j, _ := a.GlyphIndex(&buf, d)
			x, err := a.Kern(&buf, i, j, size, 0)
			y, _ := b.Kern(&buf2, i, j, size, 0) // an error if it has no such pair
			if x != y || err != nil {
				t.Errorf("%q and %q are moved by %v, not %v (%v)", c, d, x, y, err)
			}
			if x != 0 {
				pairs++
			}
		}
	}
	if pairs == 0 {
		t.Error("no pair of characters is moved")
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
