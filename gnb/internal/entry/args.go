package entry

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EncodeArgs returns a program's argument as JSON for its workers. If a part would be lost or
// changed, the error names the field.
func EncodeArgs[A any](program string, args A) (json.RawMessage, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("gnb: the arguments of program %q cannot be sent to workers: %w; keep to fields that encoding/json can encode", program, err)
	}
	var back A
	if err := json.Unmarshal(raw, &back); err != nil {
		return nil, fmt.Errorf("gnb: the arguments of program %q cannot be read back by workers: %w; keep to types that encoding/json decodes as it encodes them", program, err)
	}
	// Addressable values, so that methods with pointer receivers are found.
	name := reflect.TypeFor[A]().Name()
	if name == "" {
		name = "the argument"
	}
	if why := lost(reflect.ValueOf(&args).Elem(), reflect.ValueOf(&back).Elem(), name); why != "" {
		return nil, fmt.Errorf("gnb: the arguments of program %q do not reach workers whole, since they travel as JSON: %s", program, why)
	}
	return raw, nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// lost describes the part of v that is missing in back, which was decoded from v's JSON; "" if
// none is. Empty slices and maps count as equal to nil, and numbers in interfaces as equal to
// float64.
func lost(v, back reflect.Value, at string) string {
	differs := func() string { return fmt.Sprintf("%s would be another value there", at) }
	t := v.Type()
	if t.Kind() != reflect.Pointer && (t.Implements(jsonMarshaler) || t.Implements(textMarshaler) || reflect.PointerTo(t).Implements(jsonMarshaler) || reflect.PointerTo(t).Implements(textMarshaler)) ||
		t.Kind() == reflect.Interface {
		if sameJSON(v, back) {
			return ""
		}
		return differs()
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if why := lostField(f, v.Field(i), back.Field(i), at+"."+f.Name); why != "" {
				return why
			}
		}
		return ""
	case reflect.Pointer:
		if v.IsNil() || back.IsNil() {
			if v.IsNil() == back.IsNil() {
				return ""
			}
			return differs()
		}
		return lost(v.Elem(), back.Elem(), at)
	case reflect.Slice, reflect.Array:
		if v.Len() != back.Len() {
			return differs()
		}
		for i := range v.Len() {
			if why := lost(v.Index(i), back.Index(i), fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
		return ""
	case reflect.Map:
		if v.Len() != back.Len() {
			return differs()
		}
		for it := v.MapRange(); it.Next(); {
			b := back.MapIndex(it.Key())
			if !b.IsValid() {
				return fmt.Sprintf("%s would lack the key %v", at, it.Key())
			}
			if why := lost(it.Value(), b, fmt.Sprintf("%s[%v]", at, it.Key())); why != "" {
				return why
			}
		}
		return ""
	}
	if !v.Equal(back) {
		return differs()
	}
	return ""
}

// lostField is lost for a field of a struct.
func lostField(f reflect.StructField, v, back reflect.Value, at string) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case !f.IsExported() && !f.Anonymous:
		if v.IsZero() {
			return ""
		}
		return fmt.Sprintf("field %s is unexported and would be zero there; name it %s, or leave it out", at, exported(f.Name))
	case f.Tag.Get("json") == "-":
		if v.IsZero() {
			return ""
		}
		return fmt.Sprintf("field %s has the tag `json:\"-\"` and would be zero there; remove the tag, or leave the field out", at)
	case !f.IsExported() && f.Type.Kind() != reflect.Struct: // an embedded type that encoding/json ignores
		if v.IsZero() {
			return ""
		}
		return fmt.Sprintf("the embedded field %s is unexported and would be zero there; give it a name", at)
	}
	why := lost(v, back, "field "+strings.TrimPrefix(at, "field "))
	if why != "" && name != "" && strings.HasSuffix(why, "would be another value there") {
		why += fmt.Sprintf(" (its tag is `json:%q`)", f.Tag.Get("json"))
	}
	return why
}

// exported returns a name with a capital first letter.
func exported(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(r)) + name[n:]
}

// sameJSON reports whether two values encode to the same JSON. A value of an unexported embedded
// struct cannot be encoded, and counts as the same.
func sameJSON(a, b reflect.Value) bool {
	if !a.CanInterface() || !b.CanInterface() {
		return true
	}
	x, err := json.Marshal(a.Interface())
	y, err2 := json.Marshal(b.Interface())
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// StringsIn returns all strings in JSON arguments.
func StringsIn(args json.RawMessage) map[string]bool {
	out := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out[v] = true
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	var v any
	if json.Unmarshal(args, &v) == nil {
		walk(v)
	}
	return out
}
