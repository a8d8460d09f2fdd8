package npy

import "unicode/utf8"

// latin1 builds _codecs.encode(text, "latin1"): Python 3 writes bytes this way in protocol 2, which
// has no opcode for bytes.
func (d *decoder) latin1(text, codec word) (word, error) {
	name, _ := d.text(codec)
	if text.kind() != Text || string(name) != "latin1" && string(name) != "latin-1" {
		return 0, d.errorf("_codecs.encode is read with a string and \"latin1\" only")
	}
	s, _ := d.text(text)
	n := utf8.RuneCount(s)
	if err := d.charge(n); err != nil {
		return 0, err
	}
	out := make([]byte, 0, n)
	for _, r := range string(s) {
		if r > 255 {
			return 0, d.errorf("a string that should be Latin-1 has the character %q", r)
		}
		out = append(out, byte(r))
	}
	return d.textWord(tagBytes, out)
}
