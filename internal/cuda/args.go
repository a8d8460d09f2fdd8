package cuda

import "math"

// argument returns an argument's bits, the low ones first, and reports whether they fit a parameter
// of type t.
func argument(a any, t paramType) (bits uint64, ok bool) {
	switch v := a.(type) {
	case float32:
		return uint64(math.Float32bits(v)), t == ".f32"
	case float64:
		return math.Float64bits(v), t == ".f64"
	}
	size := map[paramType]int{".u64": 8, ".s64": 8, ".b64": 8, ".u32": 4, ".s32": 4, ".b32": 4}[t]
	switch v := a.(type) {
	case Ptr:
		return uint64(v), size == 8
	case *Buffer:
		return uint64(v.Ptr), size == 8
	case uint64:
		return v, size == 8 || size == 4 && v <= math.MaxUint32
	case uint32:
		return uint64(v), size != 0
	case int:
		return uint64(v), size == 8 || size == 4 && v >= math.MinInt32 && v <= math.MaxUint32
	case int64:
		return uint64(v), size == 8 || size == 4 && v >= math.MinInt32 && v <= math.MaxUint32
	case int32:
		return uint64(int64(v)), size != 0
	}
	return 0, false
}
