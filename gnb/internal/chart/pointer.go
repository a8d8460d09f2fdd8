package chart

import (
	_ "embed" // for pointer.js
	"encoding/base64"
	"strings"
	"sync"

	"github.com/graphnb/graphnb/internal/phrase"
)

//go:embed pointer.js
var source string

// Script returns the element with the script that makes charts of a trusted notebook answer to the pointer: a constant,
// without the comments and the indents of pointer.js. It finds elements with the attribute of [Attr]. A notebook that is not
// trusted loses it, and shows the picture alone.
var Script = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString("<script>")
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("</script>")
	return b.String()
})

// Attr returns the attribute of an element with the charts (see [AreasJSON]) of a picture. key names the picture among
// those of the page: what a reader has chosen, for example a zoom, outlives an update of the picture with that key; "" has the
// picture's own data as its key. It is "" if charts is.
func Attr(key, charts string) string {
	if charts == "" {
		return ""
	}
	return `data-gnb='` + inQuotes(charts) + `' data-gnb-key="` + phrase.HTML(key) + `"`
}

// inQuotes returns text for an attribute between single quotes. Its double quotes, of which JSON is full, stay one byte.
func inQuotes(s string) string {
	if !strings.ContainsAny(s, "'<>&") { // JSON of this package has none
		return s
	}
	return strings.ReplaceAll(phrase.HTML(s), "&#34;", `"`) // an ampersand of s itself is &amp; there
}

// Pointer returns HTML, to be shown after a picture, that makes its charts answer to the pointer; "" if areas is.
func Pointer(key, areas string) string {
	if areas == "" {
		return ""
	}
	return "<span " + Attr(key, areas) + "></span>" + Script()
}

// Tail returns the end of a PNG in base64, which differs from that of any other picture: it has the checksums of the pixels.
func Tail(png []byte) string {
	const chars = 48
	s := base64.StdEncoding.EncodeToString(png)
	return s[max(len(s)-chars, 0):]
}
