package saving

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

type flat struct {
	Count int
	On    bool `json:",omitempty"`
}

type nested struct {
	flat
	List  []flat
	Named map[string]*flat
	When  time.Time
	Next  *nested
	Rate  float32
}

type (
	hidden struct{ A, b int } //nolint:unused // unexported fields are what the test is about
	inside struct{ X []hidden }
	tagged struct {
		A int `json:"-"`
	}
	onlyOut  struct{ a int } //nolint:unused // encoded by its method
	One      struct{ X int }
	Two      struct{ X int }
	twoNames struct {
		One
		Two
	}
	swallowed struct { // the method of the embedded type is the struct's
		time.Time
		More int
	}
	pointing struct{ P *float64 }
)

func (onlyOut) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

// A kept variable has the checkpoint's value and nothing of the value that it had when Keep was called.
func TestKeptReplaces(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for name, c := range map[string]struct{ saved, before any }{
		"zero fields":        {flat{}, flat{5, true}},
		"omitted fields":     {flat{Count: 1}, flat{5, true}},
		"removed keys":       {map[string]int{"a": 1}, map[string]int{"a": 5, "b": 6}},
		"an empty map":       {map[string]int{}, map[string]int{"a": 5}},
		"a nil map":          {map[string]int(nil), map[string]int{"a": 5}},
		"a shorter slice":    {[]flat{{}}, []flat{{1, true}, {2, true}}},
		"a nil slice":        {[]int(nil), []int{1}},
		"a nil pointer":      {nested{}, nested{Next: &nested{}}},
		"a pointer":          {nested{Named: map[string]*flat{"a": {}}}, nested{Named: map[string]*flat{"a": {5, true}, "b": {}}}},
		"nested":             {nested{flat: flat{Count: 1}, When: at, Rate: 0.1}, nested{flat: flat{2, true}, List: []flat{{}}}},
		"infinite":           {map[string]float64{"a": math.Inf(1)}, map[string]float64{"b": 1}},
		"infinite and zeros": {[]float64{math.Inf(-1), 0, math.NaN()}, []float64{1, 1, 1, 1}},
		"an array":           {[3]int{0, 1, 0}, [3]int{5, 5, 5}},
		"anything":           {map[string]any{"a": "x", "b": 1.5, "c": nil}, map[string]any{"d": true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t.TempDir(), 0)
			saved := reflect.New(reflect.TypeOf(c.saved))
			saved.Elem().Set(reflect.ValueOf(c.saved))
			if err := r.Kept.Add("x", saved.Interface(), "a.go:1"); err != nil {
				t.Fatal(err)
			}
			if err := r.Save(); err != nil {
				t.Fatal(err)
			}
			again, _ := resume(t, r.saved[0])
			now := reflect.New(reflect.TypeOf(c.before))
			now.Elem().Set(reflect.ValueOf(c.before))
			if err := again.Kept.Add("x", now.Interface(), "a.go:1"); err != nil {
				t.Fatal(err)
			}
			if where := differs(saved.Elem(), now.Elem(), "x"); where != "" {
				t.Errorf("%v resumed as %v: %s differs", c.saved, now.Elem(), where)
			}
		})
	}
}

// Keep refuses a type of which a part would be lost, before the part is set, and names it.
func TestKeptRefusesWhatIsLost(t *testing.T) {
	var i any = 5
	var e error
	zero := 0.0
	for name, c := range map[string]struct {
		v    any
		want string
	}{
		"an unexported field":         {&hidden{}, "hidden.b"},
		"within a slice":              {&inside{}, "inside.X.b"},
		"within a map":                {&map[string]hidden{}, "b is unexported"},
		"behind a pointer":            {func() **hidden { p := &hidden{}; return &p }(), "hidden.b"},
		"a field without a name":      {&tagged{}, "tagged.A"},
		"no method to read it":        {&onlyOut{}, "lacks UnmarshalJSON"},
		"two fields of one name":      {&twoNames{}, "twoNames.One"},
		"a field behind a method":     {&swallowed{More: 1}, "swallowed"},
		"an interface with methods":   {&e, "interface"},
		"a function":                  {new(func()), "no form in a file"},
		"a channel in a struct":       {&struct{ C chan int }{}, "no form in a file"},
		"a complex number":            {new(complex128), "no form in a file"},
		"a whole number as anything":  {&i, "another value"},
		"a whole number in a map":     {&map[string]any{"a": 1}, "[a]"},
		"a pointer to 0 beside a NaN": {&[]pointing{{P: &zero}, {P: ptr(math.NaN())}}, "another value"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t.TempDir(), 0)
			if err := r.Kept.Add("x", c.v, "a.go:1"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "a.go:1") {
				t.Errorf("Keep gave %v, want an error with %q", err, c.want)
			}
		})
	}
}

// A value of any type that becomes one that cannot be read again is an error when it is saved, not when it is read.
func TestKeptChangesToWhatIsLost(t *testing.T) {
	r := newRun(t.TempDir(), 0)
	v := map[string]any{}
	if err := r.Kept.Add("x", &v, "a.go:1"); err != nil {
		t.Fatal(err)
	}
	v["a"] = flat{1, true}
	if err := r.Save(); err == nil || !strings.Contains(err.Error(), "another value") {
		t.Errorf("saving gave %v", err)
	}
}

// A value that cannot be decoded leaves the variable as it was.
func TestKeptLeavesWhatDoesNotFit(t *testing.T) {
	v := map[string]int{"a": 1}
	if err := decodeKept(json.RawMessage(`{"b":"text"}`), &v); err == nil || len(v) != 1 || v["a"] != 1 {
		t.Errorf("%v, %v", v, err)
	}
}

func ptr(x float64) *float64 { return &x }
