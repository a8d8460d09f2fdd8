package runfile

import (
	"encoding/json"
	"strings"
)

// Flatten puts the values of a decoded JSON object into out, as text, under their names joined by
// dots: name.outer.inner.
func Flatten(name string, v any, out map[string]string) {
	m, ok := v.(map[string]any)
	if !ok {
		b, err := json.Marshal(v)
		if err == nil {
			out[name] = strings.Trim(string(b), `"`)
		}
		return
	}
	for k, x := range m {
		Flatten(name+"."+k, x, out)
	}
}
