package screentest

import (
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// Hostile are names that someone else may have put into a run, a dataset, a table or an answer of a server.
var Hostile = map[string]string{
	"script":       `<script>alert(1)</script>`,
	"double quote": `"><img src=x onerror="alert(1)">`,
	"single quote": `'><img src=x onerror='alert(1)'>`,
	"attribute":    `" onmouseover="alert(1)" x="' onmouseover='alert(1)' x='`,
	"closing tags": `</td></tr></table></div></svg></text><iframe src="javascript:alert(1)">`,
	"comment":      `<!--`,
	"CDATA":        `]]><![CDATA[<script>alert(1)</script>`,
	"entity":       `&lt;script&gt;&#39;&#x27;`,
	"style":        `red;background:url(https://evil.example/)`,
	"JSON":         `"}]}'><script>alert(1)</script>`,
	"control":      "a\x00\x1b[31mb\x07\u202e",
	"not UTF-8":    "a\xff\xfe<b>",
}

// Poison puts text into every string that v, a pointer, leads to.
func Poison(v any, text string) { poison(reflect.ValueOf(v), text) }

func poison(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			poison(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				poison(v.Field(i), text)
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // a picture
		}
		for i := range v.Len() {
			poison(v.Index(i), text)
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(text)
		}
	}
}

// CheckSVG checks that a drawing is well formed and neither runs a script nor loads anything.
func CheckSVG(t *testing.T, s string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(s))
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("the drawing is broken: %v", err)
			return
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "script", "iframe", "image", "img", "a", "use", "foreignObject", "animate", "set":
			t.Errorf("element <%s> in a drawing", e.Name.Local)
		}
		for _, a := range e.Attr {
			if n := strings.ToLower(a.Name.Local); strings.HasPrefix(n, "on") || n == "href" || n != "xmlns" && a.Name.Space != "xmlns" && strings.Contains(a.Value, "://") {
				t.Errorf("attribute %s=%q of <%s> in a drawing", a.Name.Local, a.Value, e.Name.Local)
			}
		}
	}
}
