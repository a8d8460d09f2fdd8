package nn

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Resetter is a layer that initialises its own parameters. [Params.Init] calls Reset with a
// function that draws a parameter from U(±bound), or sets it to zero for bound 0; Reset may also
// write to a parameter's W itself. A layer's Reset is called after those of the layers within it.
type Resetter interface {
	Reset(init func(p *Param, bound float64))
}

// Collect finds all parameters of a model, moves their values into one flat buffer, in the order in
// which they are found, and names them.
//
// model is a pointer to a struct. Collect searches its exported fields: parameters (*Param, Param),
// layers (structs and pointers to them), interfaces holding those, slices, arrays, and maps with
// string or integer keys in ascending order. A parameter's name is the path to it, joined by dots:
// a field adds its name in snake_case, an element its index or key, an embedded struct nothing. So
// Convs[0].LinL.Weight is convs.0.lin_l.weight. A tag on the field changes this:
//
//	Lin  *nn.Linear `nn:"fc"`            // the name fc
//	Cls  *nn.Linear `nn:"cls,optional"`  // nil is no error
//	Bias *nn.Param  `nn:"bias,vector"`   // its shape in files is [n], not [1, n]
//	Old  *nn.Linear `nn:"-"`             // not part of the model
//
// A parameter with a FileShape has that shape in files. A parameter that is Fixed (see [NewFixed])
// is saved with the others, but is not part of the flat buffer and has no gradient.
//
// A parameter reached twice is one parameter under its first name. Collect returns an error for a
// nil layer that is not optional, parameters that only an unexported field leads to, two parameters
// with one name, W of a wrong length, and a model without parameters, unless it has a method NoParams() bool
// that returns true.
//
// Collect gives every Param new memory and a gradient, so the result of an earlier Collect of the
// same model is no longer connected to the model.
func Collect(model any) (*Params, error) {
	c, err := collect(model)
	if err != nil {
		return nil, err
	}
	return newParams(c)
}

// Count returns the number of weights that [Collect] would find in a model, trained or not, without
// copying them.
func Count(model any) (int64, error) {
	c, err := collect(model)
	if err != nil {
		return 0, err
	}
	n := int64(0)
	for _, e := range append(c.list, c.fixed...) {
		n += int64(e.Rows) * int64(e.Cols)
	}
	return n, nil
}

func collect(model any) (*collector, error) {
	c := &collector{
		entries: map[*Param]*Entry{}, names: map[string]*Entry{},
		seen: map[visit]string{}, hiddenSeen: map[visit]bool{},
	}
	v := reflect.ValueOf(model)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("nn: Collect: the model is nil; create it first")
	}
	if err := c.walk(v, site{goPath: v.Type().String()}); err != nil {
		return nil, fmt.Errorf("nn: Collect: %w", err)
	}
	for _, h := range c.hidden {
		if c.entries[h.p] == nil {
			return nil, fmt.Errorf("nn: Collect: %s", h.why)
		}
	}
	if n, ok := model.(interface{ NoParams() bool }); len(c.list)+len(c.fixed) == 0 && !(ok && n.NoParams()) {
		return nil, fmt.Errorf("nn: Collect: %s has no parameters; only exported fields are searched for layers", v.Type())
	}
	return c, nil
}

type collector struct {
	list    []*Entry
	fixed   []*Entry
	entries map[*Param]*Entry
	names   map[string]*Entry
	seen    map[visit]string // pointers followed, with the name of the first path
	aliases []alias
	resets  []Resetter

	hidden     []hiddenParam
	hiddenSeen map[visit]bool
}

// visit is a pointer that was followed. The type tells a struct from its first field.
type visit struct {
	ptr uintptr
	typ reflect.Type
}

// alias says that the parameter (or prefix) named from is already known as to.
type alias struct{ from, to string }

// hiddenParam is a parameter on a path that is not followed, with the reason.
type hiddenParam struct {
	p   *Param
	why string
}

// site is the current position of the search.
type site struct {
	name   string // of parameters: "convs.0"
	goPath string // of the Go value: "*main.net.Convs[0]"
	opts   fieldOptions
	elem   bool // an element of a slice, array or map
}

func (s site) child(name, goPath string, o fieldOptions) site {
	if s.name != "" && name != "" {
		name = s.name + "." + name
	}
	return site{name: cmp.Or(name, s.name), goPath: s.goPath + goPath, opts: o}
}

type fieldOptions struct{ optional, vector bool }

var paramType = reflect.TypeFor[Param]()

func (c *collector) walk(v reflect.Value, at site) error {
	t := v.Type()
	if !mayHold(t, true) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			if at.opts.optional || !mayHold(t, false) {
				return nil
			}
			return fmt.Errorf("%s (a %s) is nil; create it first, or tag the field `nn:\"name,optional\"`", at.goPath, t)
		}
		if t.Elem() == paramType {
			return c.add(v.Interface().(*Param), at)
		}
		key := visit{v.Pointer(), t}
		if first, ok := c.seen[key]; ok {
			c.alias(at.name, first)
			return nil
		}
		c.seen[key] = at.name
		return c.walk(v.Elem(), at)
	case reflect.Interface:
		if v.IsNil() {
			if at.elem && !at.opts.optional {
				return fmt.Errorf("%s (a %s) is nil; create it first, or tag the field `nn:\"name,optional\"`", at.goPath, t)
			}
			return nil
		}
		return c.walk(v.Elem(), at)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			e := at.child(strconv.Itoa(i), fmt.Sprintf("[%d]", i), at.opts)
			e.elem = true
			if err := c.walk(v.Index(i), e); err != nil {
				return err
			}
		}
	case reflect.Map:
		return c.walkMap(v, at)
	case reflect.Struct:
		return c.walkStruct(v, at)
	}
	return nil
}

func (c *collector) walkMap(v reflect.Value, at site) error {
	keys := v.MapKeys()
	switch k := v.Type().Key().Kind(); {
	case k == reflect.String:
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	case reflect.Int <= k && k <= reflect.Int64:
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.Int(), b.Int()) })
	case reflect.Uint <= k && k <= reflect.Uintptr:
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.Uint(), b.Uint()) })
	default:
		c.scanHidden(v, fmt.Sprintf("%s is a map with keys of type %s, which cannot name its parameters; use strings or integers", at.goPath, v.Type().Key()))
		return nil
	}
	for _, k := range keys {
		e := at.child(fmt.Sprint(k), fmt.Sprintf("[%v]", k), at.opts)
		e.elem = true
		if err := c.walk(v.MapIndex(k), e); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) walkStruct(v reflect.Value, at site) error {
	t := v.Type()
	if t == paramType {
		if !v.CanAddr() {
			return fmt.Errorf("%s is a copy of a parameter; hold a *nn.Param, or give Collect a pointer to the model", at.goPath)
		}
		return c.add(v.Addr().Interface().(*Param), at)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, err := parseTag(f)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", at.goPath, f.Name, err)
		}
		if name == "-" {
			continue
		}
		sub := at.child(name, "."+f.Name, opts)
		if !f.IsExported() && !(f.Anonymous && structLike(f.Type)) {
			c.scanHidden(v.Field(i), sub.goPath+" leads to parameters but is not exported, so they would not be trained; export the field, or tag it `nn:\"-\"`")
			continue
		}
		if err := c.walk(v.Field(i), sub); err != nil {
			return err
		}
	}
	if v.CanAddr() {
		v = v.Addr()
	}
	if v.CanInterface() {
		if r, ok := v.Interface().(Resetter); ok {
			c.resets = append(c.resets, r)
		}
	}
	return nil
}

func structLike(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

// parseTag returns a field's part of the name: "" for an embedded struct without a tag, "-" for a
// field to skip.
func parseTag(f reflect.StructField) (name string, o fieldOptions, err error) {
	name, rest, more := strings.Cut(f.Tag.Get("nn"), ",")
	for more {
		var opt string
		opt, rest, more = strings.Cut(rest, ",")
		switch opt {
		case "optional":
			o.optional = true
		case "vector":
			o.vector = true
		default:
			return "", o, fmt.Errorf("the tag `nn:%q` has an unknown option %q; the options are optional and vector", f.Tag.Get("nn"), opt)
		}
	}
	if name == "" && !(f.Anonymous && structLike(f.Type) && f.Type != reflect.PointerTo(paramType) && f.Type != paramType) {
		name = snakeCase(f.Name)
	}
	return name, o, nil
}

// add records a parameter, or another name for it.
func (c *collector) add(p *Param, at site) error {
	if e, ok := c.entries[p]; ok {
		c.alias(at.name, e.Name)
		return nil
	}
	name := cmp.Or(at.name, "weight")
	if other, ok := c.names[name]; ok {
		return fmt.Errorf("%s and %s both have the name %q; give one of them a tag `nn:\"other_name\"`", other.goPath, at.goPath, name)
	}
	if p.Rows < 0 || p.Cols < 0 {
		return fmt.Errorf("%s is [%d,%d]; a parameter has no negative sizes", at.goPath, p.Rows, p.Cols)
	}
	if len(p.W) != 0 && len(p.W) != p.Rows*p.Cols {
		return fmt.Errorf("%s is [%d,%d] but its W has %d elements; leave W nil or make it with nn.NewParam", at.goPath, p.Rows, p.Cols, len(p.W))
	}
	e := &Entry{Param: p, shape: []int{p.Rows, p.Cols}, goPath: at.goPath, ordinal: len(c.list)}
	if p.FileShape != nil {
		n := 1
		for _, d := range p.FileShape {
			n *= d
		}
		if n != p.Rows*p.Cols {
			return fmt.Errorf("%s is [%d,%d] but its FileShape is %v, which has a different number of elements", at.goPath, p.Rows, p.Cols, p.FileShape)
		}
		e.shape = slices.Clone(p.FileShape)
	} else if at.opts.vector {
		if p.Rows != 1 && p.Cols != 1 {
			return fmt.Errorf("%s is [%d,%d] but its tag says vector; a vector has one row or one column", at.goPath, p.Rows, p.Cols)
		}
		e.shape = []int{p.Rows * p.Cols}
	}
	p.Name = name
	c.entries[p], c.names[name] = e, e
	if p.Fixed {
		// Fixed parameters have ordinals of their own, so that they do not change the draws of the
		// others.
		e.ordinal = 1<<19 + len(c.fixed)
		c.fixed = append(c.fixed, e)
	} else {
		c.list = append(c.list, e)
	}
	return nil
}

func (c *collector) alias(from, to string) {
	if from != to {
		c.aliases = append(c.aliases, alias{from, to})
	}
}

// scanHidden records all parameters that v leads to. They are an error, with the reason why, only
// if no exported path leads to them.
func (c *collector) scanHidden(v reflect.Value, why string) {
	t := v.Type()
	if !mayHold(t, true) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		key := visit{v.Pointer(), t}
		if c.hiddenSeen[key] {
			return
		}
		c.hiddenSeen[key] = true
		c.scanHidden(v.Elem(), why)
	case reflect.Interface:
		if !v.IsNil() {
			c.scanHidden(v.Elem(), why)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			c.scanHidden(v.Index(i), why)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			c.scanHidden(it.Value(), why)
		}
	case reflect.Struct:
		if t == paramType {
			if v.CanAddr() {
				c.hidden = append(c.hidden, hiddenParam{(*Param)(v.Addr().UnsafePointer()), why})
			} else {
				c.hidden = append(c.hidden, hiddenParam{nil, why})
			}
			return
		}
		for i := range t.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("nn"), ","); name != "-" {
				c.scanHidden(v.Field(i), why)
			}
		}
	}
}

// opaque types refer to parameters without owning them.
var opaque = map[reflect.Type]bool{
	reflect.TypeFor[Tensor](): true,
	reflect.TypeFor[Fwd]():    true,
	reflect.TypeFor[Params](): true,
	reflect.TypeFor[Entry]():  true,
	reflect.TypeFor[Block]():  true,
}

// mayHold reports whether a value of type t can lead to a parameter; interfaces says whether an
// interface on the way counts as able to.
func mayHold(t reflect.Type, interfaces bool) bool {
	known := map[reflect.Type]bool{t: true}
	for queue := []reflect.Type{t}; len(queue) > 0; queue = queue[1:] {
		t := queue[0]
		if t == paramType {
			return true
		}
		if opaque[t] {
			continue
		}
		visit := func(u reflect.Type) {
			if !known[u] {
				known[u] = true
				queue = append(queue, u)
			}
		}
		switch t.Kind() {
		case reflect.Interface:
			if interfaces {
				return true
			}
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			visit(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				visit(t.Field(i).Type)
			}
		}
	}
	return false
}

// snakeCase is LinL → lin_l, HTTPServer → http_server, BatchNorm1 → batch_norm1.
func snakeCase(s string) string {
	var b strings.Builder
	r := []rune(s)
	for i, c := range r {
		if unicode.IsUpper(c) && i > 0 && r[i-1] != '_' &&
			(!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
