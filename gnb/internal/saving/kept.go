package saving

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
)

// Kept holds the program's named variables that are part of every checkpoint.
type Kept struct {
	vars map[string]any
	// saved are the values of the checkpoint that the run resumed from: those of variables
	// that the program has not declared yet stay in later checkpoints.
	saved map[string]json.RawMessage
}

// Len is the number of variables.
func (k *Kept) Len() int { return len(k.vars) }

// Has reports whether the checkpoint that the run resumed from has a variable.
func (k *Kept) Has(name string) bool {
	_, ok := k.saved[name]
	return ok
}

// Drop forgets the value of a variable that the program has not declared, so that later checkpoints lack it.
func (k *Kept) Drop(name string) { delete(k.saved, name) }

// Add adds the variable that v points to and, in a resumed run, sets it to the checkpoint's value. at
// is the source line, for errors.
func (k *Kept) Add(name string, v any, at string) error {
	if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("gnb: Keep got a %T as %q, at %s; it takes a pointer to the variable, such as &best", v, name, at)
	}
	if _, ok := k.vars[name]; ok {
		return fmt.Errorf("gnb: Keep was called twice with the name %q, the second time at %s", name, at)
	}
	t := reflect.TypeOf(v).Elem()
	if why := unkeepable(t, typeName(t), map[reflect.Type]bool{}); why != "" {
		return fmt.Errorf("gnb: Keep got a %T as %q, at %s, which cannot be written into a checkpoint whole: %s", v, name, at, why)
	}
	for _, number := range []float64{0.5, math.NaN()} { // by package json, and by package gob
		filled := reflect.New(t)
		fill(filled.Elem(), number, 0)
		if err := survives(filled, typeName(t)); err != nil {
			return fmt.Errorf("gnb: Keep got a %T as %q, at %s, which cannot be written into a checkpoint whole: %w", v, name, at, err)
		}
	}
	if raw, ok := k.saved[name]; ok {
		if err := decodeKept(raw, v); err != nil {
			return fmt.Errorf("gnb: the checkpoint's value of %q does not fit %T: %w; keep what the run kept, or start anew (Resume: gnb.Never)", name, v, err)
		}
	}
	if _, err := whole(v); err != nil { // fail now instead of at a checkpoint
		return fmt.Errorf("gnb: Keep got a %T as %q, at %s, which cannot be written into a checkpoint: %w", v, name, at, err)
	}
	if k.vars == nil {
		k.vars = map[string]any{}
	}
	k.vars[name] = v
	return nil
}

// Values returns the variables' current values.
func (k *Kept) Values() (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	maps.Copy(out, k.saved)
	for name, v := range k.vars {
		raw, err := whole(v)
		if err != nil {
			return nil, fmt.Errorf("gnb: what Keep holds as %q cannot be written into a checkpoint: %w", name, err)
		}
		out[name] = raw
	}
	return out, nil
}

// keptGob holds values that JSON cannot represent: NaN and infinities.
type keptGob struct {
	Gob []byte `json:"gnb.gob"`
}

func encodeKept(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if _, ok := errors.AsType[*json.UnsupportedValueError](err); !ok {
		return raw, err
	}
	var b bytes.Buffer
	if gob.NewEncoder(&b).Encode(v) != nil {
		return nil, err
	}
	return json.Marshal(keptGob{b.Bytes()})
}

// isGob reports whether a value was written by package gob.
func isGob(raw json.RawMessage) bool { return bytes.HasPrefix(raw, []byte(`{"gnb.gob":`)) }

// decodeKept sets the variable that v points to. Both formats leave out zeros, and leave alone what they do not
// mention, so they decode into a zero value. A value that cannot be decoded changes nothing.
func decodeKept(raw json.RawMessage, v any) error {
	to := reflect.ValueOf(v).Elem()
	fresh := reflect.New(to.Type())
	var err error
	var k keptGob
	if isGob(raw) && json.Unmarshal(raw, &k) == nil {
		err = gob.NewDecoder(bytes.NewReader(k.Gob)).Decode(fresh.Interface())
	} else {
		err = json.Unmarshal(raw, fresh.Interface())
	}
	if err == nil {
		to.Set(fresh.Elem())
	}
	return err
}

// whole encodes the variable that v points to. It returns an error if its value would be another one when it is read, which its
// type allows only if a place in it takes values of any type, or if package gob writes it.
func whole(v any) (json.RawMessage, error) {
	raw, err := encodeKept(v)
	if p := reflect.ValueOf(v); err == nil && (isGob(raw) || free(p.Type().Elem(), map[reflect.Type]bool{})) {
		err = readsBack(raw, p, typeName(p.Type().Elem()))
	}
	return raw, err
}
