package saving

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// Add adds the variable that v points to and, in a resumed run, sets it to the checkpoint's value. at
// is the source line, for errors.
func (k *Kept) Add(name string, v any, at string) error {
	if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("gnb: Keep got a %T as %q, at %s; it takes a pointer to the variable, such as &best", v, name, at)
	}
	if _, ok := k.vars[name]; ok {
		return fmt.Errorf("gnb: Keep was called twice with the name %q, the second time at %s", name, at)
	}
	if raw, ok := k.saved[name]; ok {
		if err := decodeKept(raw, v); err != nil {
			return fmt.Errorf("gnb: the checkpoint's value of %q does not fit %T: %w; keep what the run kept, or start anew (Resume: gnb.Never)", name, v, err)
		}
	}
	if _, err := encodeKept(v); err != nil { // fail now instead of at a checkpoint
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
		raw, err := encodeKept(v)
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

func decodeKept(raw json.RawMessage, v any) error {
	var k keptGob
	if bytes.HasPrefix(raw, []byte(`{"gnb.gob":`)) && json.Unmarshal(raw, &k) == nil {
		// gob omits zero values, so set the variable to zero first.
		p := reflect.ValueOf(v).Elem()
		p.SetZero()
		return gob.NewDecoder(bytes.NewReader(k.Gob)).Decode(v)
	}
	return json.Unmarshal(raw, v)
}
