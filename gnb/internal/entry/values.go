package entry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
)

// Values encodes values of interface types as JSON: by the names under which a program declares their types.
type Values struct {
	Registry[func() any]
	How   string     // the function that declares a type, for errors
	mu    sync.Mutex // of names
	names map[reflect.Type]string
}

// Name says that values of a type are encoded under a name, which Add has declared;
// the first name of a type stays.
func (v *Values) Name(name string, of reflect.Type) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.names == nil {
		v.names = map[reflect.Type]string{}
	}
	if _, has := v.names[of]; !has {
		v.names[of] = name
	}
}

// encoded is a value with the name of its type.
type encoded struct {
	Type  string
	Value json.RawMessage
}

// Encode returns the JSON of a value, nil for nil. It fails for a value of a type that is not declared, and for
// one that would lose a part.
func (v *Values) Encode(x any) (json.RawMessage, error) {
	if x == nil {
		return nil, nil
	}
	v.mu.Lock()
	name, ok := v.names[reflect.TypeOf(x)]
	v.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("gnb: a %s of type %T has no name by which workers make it; declare the type by %s, or make the %[1]s in the program", v.Kind, x, v.How)
	}
	raw, err := json.Marshal(x)
	if err != nil {
		return nil, fmt.Errorf("gnb: the %s %s cannot be sent to workers: %w", v.Kind, name, err)
	}
	back, err := v.decode(name, raw)
	if err != nil {
		return nil, err
	}
	// Addressable values, so that methods with pointer receivers are found.
	a, b := reflect.New(reflect.TypeOf(x)).Elem(), reflect.New(reflect.TypeOf(x)).Elem()
	a.Set(reflect.ValueOf(x))
	b.Set(reflect.ValueOf(back))
	if why := lost(a, b, name); why != "" {
		return nil, fmt.Errorf("gnb: the %s %s does not reach workers whole, since it travels as JSON: %s", v.Kind, name, why)
	}
	return json.Marshal(encoded{name, raw})
}

// Decode returns the value of a JSON of Encode, nil for nothing.
func (v *Values) Decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	var e encoded
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, fmt.Errorf("gnb: a %s cannot be read: %w", v.Kind, err)
	}
	return v.decode(e.Type, e.Value)
}

func (v *Values) decode(name string, raw json.RawMessage) (any, error) {
	build, err := v.Get(name)
	if err != nil {
		return nil, err
	}
	p := reflect.New(reflect.TypeOf(build()))
	p.Elem().Set(reflect.ValueOf(build()))
	if err := json.Unmarshal(raw, p.Interface()); err != nil {
		return nil, fmt.Errorf("gnb: the %s %s cannot be read by workers: %w", v.Kind, name, err)
	}
	return p.Elem().Interface(), nil
}
