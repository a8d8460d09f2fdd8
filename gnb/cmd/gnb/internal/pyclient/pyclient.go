// Package pyclient writes a Python module that asks a model server, from the server's OpenAPI document: a method for each call, types for
// what it takes and returns, and an exception for errors. The module needs nothing but Python's own library, from 3.10 on.
package pyclient

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// schema is what this package reads of a schema.
type schema struct {
	Ref         string          `json:"$ref"`
	Type        json.RawMessage `json:"type"` // a word, or a list of words
	Items       *schema         `json:"items"`
	Properties  properties      `json:"properties"`
	Required    []string        `json:"required"`
	Enum        []string        `json:"enum"`
	OneOf       []*schema       `json:"oneOf"`
	Additional  json.RawMessage `json:"additionalProperties"` // a schema, or false
	Description string          `json:"description"`
}

// properties are properties in the order of the document.
type properties []property

type property struct {
	name string
	of   *schema
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *properties) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		x := property{name: name.(string)}
		if err := d.Decode(&x.of); err != nil {
			return err
		}
		*p = append(*p, x)
	}
	return nil
}

type body map[string]struct{ Schema *schema }

type operation struct {
	ID         string `json:"operationId"`
	Summary    string
	Parameters []struct {
		Name, In, Description string
		Required              bool
		Schema                *schema
	}
	RequestBody *struct{ Content body }
	Responses   map[string]struct{ Content body }

	method, path string
}

type document struct {
	Info       struct{ Title, Version, Description string }
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Schemas map[string]*schema }
}

//go:embed client.py
var runtime string

// Module returns the Python module of an OpenAPI document.
func Module(openAPI []byte) (string, error) {
	var d document
	if err := json.Unmarshal(openAPI, &d); err != nil {
		return "", fmt.Errorf("the OpenAPI document: %w", err)
	}
	g := &generator{d: &d, defined: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		if err := g.define(name, d.Components.Schemas[name]); err != nil {
			return "", err
		}
	}
	all, err := d.operations()
	if err != nil {
		return "", err
	}
	for _, o := range all {
		if err := g.call(o); err != nil {
			return "", fmt.Errorf("%s %s: %w", o.method, o.path, err)
		}
	}
	kinds := "str"
	if e := d.Components.Schemas["Error"]; e != nil {
		for _, p := range e.Properties {
			if p.name == "kind" && len(p.of.Enum) > 0 {
				kinds = literal(p.of.Enum)
			}
		}
	}
	return strings.NewReplacer("# TYPES\n", g.types.String(), "    # CALLS\n", g.calls.String(), "KINDS", kinds, "TITLE", d.Info.Title).Replace(runtime), nil
}

// operations are the calls in the order of paths and methods.
func (d *document) operations() (all []operation, err error) {
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			raw, ok := d.Paths[path][strings.ToLower(method)]
			if !ok {
				continue
			}
			o := operation{method: method, path: path}
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			if o.ID == "" {
				return nil, fmt.Errorf("%s %s has no operationId, which names its method", method, path)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

type generator struct {
	d            *document
	defined      map[string]bool
	types, calls strings.Builder
}

// define writes the type of a schema.
func (g *generator) define(name string, s *schema) error {
	if g.defined[name] {
		return fmt.Errorf("two types would have the name %s", name)
	}
	g.defined[name] = true
	if len(s.Properties) == 0 {
		of, err := g.typeOf(s)
		if err == nil {
			fmt.Fprintf(&g.types, "%s = %s\n\n\n", name, of)
		}
		return err
	}
	// Keys can be words of the language, which names of class attributes cannot; so keys are strings.
	var parts [2]strings.Builder
	for _, p := range s.Properties {
		of, err := g.typeOf(p.of)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", name, p.name, err)
		}
		part := &parts[0]
		if !slices.Contains(s.Required, p.name) {
			part = &parts[1]
		}
		fmt.Fprintf(part, "    %q: %q,\n", p.name, of)
	}
	bases := ""
	for i, kind := range []string{"Required", "Optional"} {
		if parts[i].Len() > 0 {
			total := ""
			if i == 1 {
				total = ", total=False"
			}
			fmt.Fprintf(&g.types, "_%s%s = TypedDict(\"_%s%s\", {\n%s}%s)\n\n\n", name, kind, name, kind, &parts[i], total)
			bases += fmt.Sprintf("_%s%s, ", name, kind)
		}
	}
	fmt.Fprintf(&g.types, "class %s(%s):\n    pass\n\n\n", name, strings.TrimSuffix(bases, ", "))
	return nil
}

func literal(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + w + "'"
	}
	return "Literal[" + strings.Join(quoted, ", ") + "]"
}

// typeOf is the Python type of a schema's values.
func (g *generator) typeOf(s *schema) (string, error) {
	switch {
	case s == nil:
		return "Any", nil
	case s.Ref != "":
		name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/")
		if !ok || g.d.Components.Schemas[name] == nil {
			return "", fmt.Errorf("it refers to %s, which the document does not have", s.Ref)
		}
		return name, nil
	case len(s.Enum) > 0:
		return literal(s.Enum), nil
	case len(s.OneOf) > 0:
		var all []string
		for _, x := range s.OneOf {
			of, err := g.typeOf(x)
			if err != nil {
				return "", err
			}
			all = append(all, of)
		}
		return strings.Join(all, " | "), nil
	}
	var words []string
	if len(s.Type) > 0 && json.Unmarshal(s.Type, &words) != nil {
		words = []string{""}
		if err := json.Unmarshal(s.Type, &words[0]); err != nil {
			return "", err
		}
	}
	var all []string
	for _, w := range words {
		switch w {
		case "string":
			all = append(all, "str")
		case "integer":
			all = append(all, "int")
		case "number":
			all = append(all, "float")
		case "boolean":
			all = append(all, "bool")
		case "null":
			all = append(all, "None")
		case "array":
			of, err := g.typeOf(s.Items)
			if err != nil {
				return "", err
			}
			all = append(all, "list["+of+"]")
		case "object":
			of := "Any"
			if len(s.Additional) > 0 && s.Additional[0] == '{' {
				var x schema
				if err := json.Unmarshal(s.Additional, &x); err != nil {
					return "", err
				}
				var err error
				if of, err = g.typeOf(&x); err != nil {
					return "", err
				}
			}
			all = append(all, "dict[str, "+of+"]")
		default:
			return "", fmt.Errorf("the type %q is none that clients know", w)
		}
	}
	if len(all) == 0 {
		return "Any", nil
	}
	return strings.Join(all, " | "), nil
}

// argument is an argument of a call.
type argument struct{ name, key, of string }

// call writes the method of a call.
func (g *generator) call(o operation) error {
	var required, optional []argument // in the document's order
	where := map[string][]string{}    // by place, the items of a dict
	path := fmt.Sprintf("%q", o.path)
	add := func(place, key string, needed bool, s *schema) error {
		of, err := g.typeOf(s)
		if err != nil {
			return err
		}
		a := argument{word(key), key, of}
		if needed {
			required = append(required, a)
		} else {
			optional = append(optional, a)
		}
		where[place] = append(where[place], fmt.Sprintf("%q: %s", key, a.name))
		return nil
	}
	for _, p := range o.Parameters {
		if err := add(p.In, p.Name, p.Required, p.Schema); err != nil {
			return err
		}
		if p.In == "path" {
			path = strings.Replace(path, "{"+p.Name+"}", `" + urllib.parse.quote(str(`+word(p.Name)+`), safe="") + "`, 1)
		} else if p.In != "query" {
			return fmt.Errorf("its parameter %s is in %q", p.Name, p.In)
		}
	}
	sent := "None"
	if o.RequestBody != nil {
		s, err := g.json(o.RequestBody.Content)
		if err != nil {
			return err
		}
		for _, p := range s.Properties {
			if err := add("body", p.name, slices.Contains(s.Required, p.name), p.of); err != nil {
				return err
			}
		}
		sent = "_some({" + strings.Join(where["body"], ", ") + "})"
	}
	query := "None"
	if len(where["query"]) > 0 {
		query = "_some({" + strings.Join(where["query"], ", ") + "})"
	}
	returns, text := "str", true
	if content := o.Responses["200"].Content; content["application/json"].Schema != nil {
		text = false
		s := content["application/json"].Schema
		if s.Ref == "" && len(s.Properties) > 0 {
			returns = strings.ToUpper(o.ID[:1]) + o.ID[1:] + "Result"
			if err := g.define(returns, s); err != nil {
				return err
			}
		} else {
			var err error
			if returns, err = g.typeOf(s); err != nil {
				return err
			}
		}
	}
	signature := "self"
	for _, a := range required {
		signature += fmt.Sprintf(", %s: %s", a.name, a.of)
	}
	for _, a := range optional {
		signature += fmt.Sprintf(", %s: %s | None = None", a.name, strings.TrimSuffix(a.of, " | None"))
	}
	ask := fmt.Sprintf("self._ask(%q, %s, %s, %s)", o.method, path, query, sent)
	if text {
		ask = strings.TrimSuffix(ask, ")") + ", text=True)"
	}
	fmt.Fprintf(&g.calls, "    def %s(%s) -> %s:\n        \"\"\"%s\"\"\"\n        result: %s = %s\n        return result\n\n", snake(o.ID), signature, returns, sentence(o), returns, ask)
	return nil
}

// json is the schema of a JSON body, with its reference followed.
func (g *generator) json(content body) (*schema, error) {
	s := content["application/json"].Schema
	if s == nil {
		return nil, fmt.Errorf("its body is not JSON")
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		if s = g.d.Components.Schemas[name]; s == nil {
			return nil, fmt.Errorf("it refers to %s, which the document does not have", name)
		}
	}
	return s, nil
}

// sentence is the documentation of a call.
func sentence(o operation) string {
	text := strings.NewReplacer(`\`, `\\`, `"""`, "'''").Replace(o.Summary)
	if text == "" {
		text = o.method + " " + o.path
	}
	return strings.ToUpper(text[:1]) + text[1:] + fmt.Sprintf(" (%s %s).", o.method, o.path)
}

// snake writes a name as Python's are.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return word(b.String())
}

// reserved are the words of Python that no argument or method can be called.
var reserved = strings.Fields("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return self try while with yield")

// word is a name that is no word of Python.
func word(name string) string {
	if slices.Contains(reserved, name) {
		return name + "_"
	}
	return strings.ReplaceAll(name, "-", "_")
}
