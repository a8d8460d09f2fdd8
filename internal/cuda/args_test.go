package cuda

import (
	"math"
	"testing"
)

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		name string
		arg  any
		typ  paramType
		bits uint64
		ok   bool
	}{
		{"pointer", Ptr(0x7f0000001000), ".u64", 0x7f0000001000, true},
		{"pointer in 32 bits", Ptr(8), ".u32", 8, false},
		{"buffer", &Buffer{Ptr: 512}, ".u64", 512, true},
		{"int", -1, ".u64", math.MaxUint64, true},
		{"int in 32 bits", -1, ".u32", math.MaxUint64, true},
		{"int too large", 1 << 33, ".u32", 0, false},
		{"int32 is widened with its sign", int32(-2), ".s64", ^uint64(1), true},
		{"uint32", uint32(math.MaxUint32), ".u64", math.MaxUint32, true},
		{"uint64 too large", uint64(1 << 32), ".b32", 0, false},
		{"float", float32(1), ".f32", 0x3f800000, true},
		{"float for an integer", float32(1), ".u32", 0, false},
		{"double for a float", float64(1), ".f32", 0, false},
		{"double", float64(1), ".f64", 0x3ff0000000000000, true},
		{"integer for a float", 1, ".f32", 0, false},
		{"string", "x", ".u64", 0, false},
		{"structure", 1, ".align", 0, false},
	} {
		bits, ok := argument(c.arg, c.typ)
		if ok != c.ok || ok && bits != c.bits {
			t.Errorf("%s: %#x, %v", c.name, bits, ok)
		}
	}
}

func TestParseEntries(t *testing.T) {
	got, err := parseEntries(".version 7.8\n.visible .entry add_f32(\n\t.param .u64 add_f32_param_0,\n\t.param .f32 add_f32_param_1\n)\n.maxntid 256\n{ ret; }\n.entry none()\n{ ret; }\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].name != "add_f32" || len(got[0].params) != 2 || got[0].params[1] != ".f32" || got[1].name != "none" || len(got[1].params) != 0 {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"", ".entry x(", ".entry x(.u64 y)"} {
		if _, err := parseEntries(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
