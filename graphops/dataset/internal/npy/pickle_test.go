package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// plain converts a value to Go values, for comparison.
func plain(t testing.TB, v Value) any {
	t.Helper()
	switch v.Kind() {
	case None:
		return nil
	case Bool:
		return v.w == boolWord(true)
	case Int:
		x, _ := v.Int()
		return x
	case Float:
		x, _ := v.Float()
		return x
	case Bytes:
		s, _ := v.Text()
		return append([]byte{}, s...)
	case Text:
		s, _ := v.Text()
		return string(s)
	case Tuple, List:
		out := []any{}
		for i := range v.Len() {
			out = append(out, plain(t, v.At(i)))
		}
		return out
	case Dict:
		out := map[any]any{}
		for k, x := range v.Pairs() {
			out[plain(t, k)] = plain(t, x)
		}
		return out
	case NDArray:
		a, ok := v.Array()
		if !ok {
			t.Fatal("the array has no state")
		}
		out := []any{a.Describe(), a.Fortran}
		switch {
		case a.Type.Kind == 'O':
			return append(out, plain(t, a.Objects))
		case a.Type.Whole():
			xs := make([]int64, a.Count())
			a.Type.Ints(xs, a.Data)
			return append(out, xs)
		case a.Type.Number():
			xs := make([]float32, a.Count())
			a.Type.Floats(xs, a.Data)
			return append(out, xs)
		}
		return append(out, string(bytes.ReplaceAll(a.Data, []byte{0}, nil)))
	case CSRMatrix:
		m, err := v.CSR()
		if err != nil {
			t.Fatal(err)
		}
		return []any{m.Rows, m.Cols, m.Indptr.Describe(), m.Indices.Describe(), m.Data.Describe()}
	}
	return v.Kind()
}

// values holds the expected values of testdata/make.py.
var values = map[any]any{
	"whole":  []any{int64(0), int64(-1), int64(255), int64(65536), int64(-1 << 31), int64(1 << 40), int64(-1 << 62), int64(1<<63 - 1)},
	"other":  []any{nil, true, false, 1.5, "é€", []byte("\x00\xff\n"), "a\\b\nc"},
	"tuples": []any{[]any{}, []any{int64(1)}, []any{int64(1), int64(2)}, []any{int64(1), int64(2), int64(3)}, []any{int64(1), int64(2), int64(3), int64(4)}},
	"shared": []any{[]any{int64(7)}, []any{int64(7)}},
	"graph": map[any]any{
		int64(0): []any{int64(1), int64(2)}, int64(1): []any{int64(0)}, int64(2): []any{int64(0)},
	},
	"csr":     []any{int64(2), int64(4), "int32 [3]", "int32 [3]", "float32 [3]"},
	"int64":   []any{"int64 [2, 3]", false, []int64{0, 1, 2, 3, 4, 5}},
	"fortran": []any{"int32 [2, 3]", true, []int64{0, 3, 1, 4, 2, 5}},
	"big":     []any{"float64 [2]", false, []float32{1.5, -2}},
	"bool":    []any{"bool [2]", false, []int64{1, 0}},
	"text":    []any{"U2 [2]", false, "xyz"},
	"objects": []any{"object [3]", false, []any{"a", nil, []any{int64(1)}}},
	"empty":   []any{"float32 [0, 3]", false, []float32{}},
	"scalars": []any{2.5, int64(-7), true},
}

func read(t testing.TB, protocol int) []byte {
	t.Helper()
	in, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("values.p%d.pickle", protocol)))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestProtocols(t *testing.T) {
	for p := 2; p <= 5; p++ {
		v, err := DecodePickle(read(t, p))
		if err != nil {
			t.Fatalf("protocol %d: %v", p, err)
		}
		got, ok := plain(t, v).(map[any]any)
		if !ok || len(got) != len(values) {
			t.Fatalf("protocol %d: %d values, want %d", p, len(got), len(values))
		}
		for name, want := range values {
			if !reflect.DeepEqual(got[name], want) {
				t.Errorf("protocol %d: %s is %v, want %v", p, name, got[name], want)
			}
		}
	}
}

// Python 2's cPickle wrote arrays with str in place of bytes, as in Planetoid's files.
func TestPython2(t *testing.T) {
	in := "\x80\x02cscipy.sparse.csr\ncsr_matrix\nq\x01)\x81q\x02}q\x03(U\x06formatq\x04U\x03csrU\x06_shapeq\x05K\x02M\x04\x00\x86" +
		"U\x06indptrq\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\x09" +
		"(K\x01K\x03\x85cnumpy\ndtype\nq\nU\x02i4K\x00K\x01\x87Rq\x0b(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" +
		"T\x0c\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00tb" +
		"U\x07indicesh\x07h\x08K\x00\x85U\x01b\x87R(K\x01K\x03\x85h\x0b\x89U\x0c\x00\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00tb" +
		"U\x04datah\x06ub."
	v, err := DecodePickle([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	// data is the string "indptr" here, not an array.
	if _, err := v.CSR(); err == nil || !strings.Contains(err.Error(), `"data" of the CSR matrix is bytes`) {
		t.Errorf("a matrix whose data is a string gave %v", err)
	}
	v, err = DecodePickle([]byte(strings.Replace(in, "U\x04datah\x06", "U\x04datah\x09", 1)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := v.CSR()
	if err != nil {
		t.Fatal(err)
	}
	xs := make([]int64, 3)
	m.Indices.Type.Ints(xs, m.Indices.Data)
	if m.Rows != 2 || m.Cols != 4 || !reflect.DeepEqual(xs, []int64{0, 3, 1}) {
		t.Errorf("the matrix is [%d, %d] with the columns %v", m.Rows, m.Cols, xs)
	}
}

// Each pickle is refused with an error that names the opcode or the name, and its byte offset.
var hostile = []struct{ name, in, want string }{
	{"os.system", "cos\nsystem\n(S'touch /tmp/x'\ntR.", `at byte 0: it names "system" of the module "os"`},
	{"posix.system by protocol 4", "\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.", `at byte 17: it names "system" of the module "posix"`},
	{"builtins.eval", "\x80\x03cbuiltins\neval\nX\x04\x00\x00\x001+1\n\x85R.", `at byte 2: it names "eval" of the module "builtins"`},
	{"__builtin__.eval", "c__builtin__\neval\n(S'1'\ntR.", `at byte 0: it names "eval"`},
	{"getattr", "cbuiltins\ngetattr\n.", `it names "getattr"`},
	{"a dotted name", "\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.", "it names"},
	{"a path through a known module", "cnumpy.core\nmultiarray._reconstruct\n.", "it names"},
	{"numpy.load", "cnumpy\nload\n.", `it names "load" of the module "numpy"`},
	{"INST", "(U\x02idios\nsystem\n.", "INST, which calls a class"},
	{"OBJ", "(cos\nsystem\nS'id'\no.", "it names"},
	{"OBJ of a known name", "(cnumpy\ndtype\nU\x02i4o.", "OBJ, which calls a class"},
	{"NEWOBJ_EX", "\x80\x04cscipy.sparse.csr\ncsr_matrix\n)}\x92.", "NEWOBJ_EX"},
	{"PERSID", "Pabc\n.", "PERSID"},
	{"BINPERSID", "NQ.", "BINPERSID"},
	{"EXT1", "\x82\x01.", "EXT1"},
	{"NEXT_BUFFER", "\x80\x05\x97.", "NEXT_BUFFER"},
	{"a call of what is no name", "U\x02id)R.", "it calls bytes with a tuple"},
	{"a call of a list", "])R.", "it calls a list"},
	{"a call with no tuple", "cbuiltins\nlist\n]R.", "with a list"},
	{"the array type called as a function", "cnumpy\nndarray\n(K\x05tR.", "calls numpy.ndarray with 1 arguments"},
	{"list of an argument", "cbuiltins\nlist\n(U\x02abtR.", "calls __builtin__.list with 1 arguments"},
	{"int of a string", "cbuiltins\nint\n(U\x0299tR.", `it names "int"`},
	{"NEWOBJ of an array", "cnumpy\nndarray\n)\x81.", "calls numpy.ndarray"},
	{"_reconstructor of another class", "ccopy_reg\n_reconstructor\n(cnumpy\nndarray\nc__builtin__\nobject\nNtR.", `it names "_reconstructor"`},
	{"_reconstruct of another type", "cnumpy.core.multiarray\n_reconstruct\n(cbuiltins\nlist\n)U\x01btR.", "_reconstruct with 3 arguments"},
	{"encode by another codec", "c_codecs\nencode\n(X\x01\x00\x00\x00aU\x03hextR.", `"latin1" only`},
	{"BUILD of a dict", "}}b.", "BUILD sets the state of a dict"},
	{"BUILD of a name", "cbuiltins\nlist\n}b.", "BUILD sets the state of the name"},
	{"a dtype of records", "cnumpy\ndtype\n(U\x02i4K\x00K\x01tR(K\x03U\x01<N(U\x01atNK\x00K\x00K\x00tb.", "describes records"},
	{"a dtype that is unknown", "cnumpy\ndtype\n(U\x02V9K\x00K\x01tR.", "is not one that is read"},
	{"a dtype of 2^30 characters", "cnumpy\ndtype\n(U\x0bU1073741824K\x00K\x01tR.", "is not one that is read"},
	{"memo that does not exist", "h\x05.", "memo entry 5, which does not exist"},
	{"memo between others", "Nr\x09\x00\x00\x000h\x05.", "POP"},
	{"memo unset", "Nr\x09\x00\x00\x00h\x05.", "memo entry 5, which does not exist"},
	{"memo of 2^32", "Nr\xff\xff\xff\xff.", "more than 3 times its 7 bytes"},
	{"memo of nothing", "q\x00.", "needs 1 values"},
	{"memo by a negative number", "Np-1\n.", "'p' is of protocol 0"},
	{"a string beyond the end", "T\xff\xff\xff\x7fabc", "claims 2147483647 bytes where 3 follow"},
	{"a string of 2^63 bytes", "\x8e\xff\xff\xff\xff\xff\xff\xff\xffabc", "claims 18446744073709551615 bytes"},
	{"a number of 2 GiB", "\x8b\xff\xff\xff\x7fabc", "a whole number of 2147483647 bytes"},
	{"a number of 9 bytes", "\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01.", "a whole number of 9 bytes"},
	{"a frame beyond the end", "\x80\x04\x95\xff\x00\x00\x00\x00\x00\x00\x00N.", "claims a frame of 255 bytes"},
	{"protocol 6", "\x80\x06N.", "protocol 6"},
	{"nothing", "", "it ends here"},
	{"no value", ".", "0 values"},
	{"two values", "NN.", "2 values"},
	{"an open mark", "N(.", "1 open marks"},
	{"values taken below a mark", "]N(a.", "needs 1 values on the stack, which has 0"},
	{"no mark", "NNt.", "needs a mark"},
	{"more after the end", "N.N", "1 bytes follow"},
	{"an odd dict", "}(NNNu.", "a key without a value"},
	{"append to a tuple", ")Na.", "adds to a tuple"},
	{"append to a dict", "}Na.", "adds to a dict"},
	{"what is not an opcode", "\xff.", "0xff is not an opcode"},
	{"bad UTF-8", "X\x02\x00\x00\x00\xff\xfe.", "not valid UTF-8"},
	{"a string without quotes", "Sabc\n.", "'S' is of protocol 0"},
	{"a bad escape", "S'\\xzz'\n.", "'S' is of protocol 0"},
	{"an endless line", "Sabc", "'S' is of protocol 0"},
	{"'I' is of protocol 0", "I12x\n.", "'I' is of protocol 0"},
	{"no number", "Fx\n.", "'F' is of protocol 0"},
	{"a name of two lists", "]]\x93.", "needs the names"},
}

// array returns a pickle of an array of the given shape, by opcodes, with its elements.
func array(shape, dtype, elements string) string {
	return "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR(K\x01(" + shape +
		"tcnumpy\ndtype\n(U" + string(rune(len(dtype))) + dtype + "K\x00K\x01tR\x89" + elements + "tb."
}

func TestHostile(t *testing.T) {
	cases := append(hostile[:len(hostile):len(hostile)], []struct{ name, in, want string }{
		{"an array of 2^40 elements", array("\x8a\x06\x00\x00\x00\x00\x00\x01", "f4", "U\x04abcd"), "claims float32 [1099511627776], but holds 4 bytes"},
		{"an array of 2^80 elements", array("\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\x01", "f4", "U\x04abcd"), "but holds 4 bytes"},
		{"an array of a negative size", array("J\xff\xff\xff\xff", "f4", "U\x04abcd"), "dimension 0 of an array"},
		{"an array of 33 dimensions", array(strings.Repeat("K\x01", 33), "f4", "U\x04abcd"), "33 dimensions"},
		{"an array of text", array("K\x04", "i1", "X\x04\x00\x00\x00abcd"), "are a string, not bytes"},
		{"objects fewer than the shape", array("K\x02", "O8", "]"), "its list has another length"},
		{"a big array of objects", array("\x8a\x06\x00\x00\x00\x00\x00\x01", "O8", "]"), "its list has another length"},
	}...)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodePickle([]byte(c.in))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("the error is %v, want one with %q", err, c.want)
			}
			if e, ok := err.(*PickleError); !ok || e.Pos < 0 || e.Pos > len(c.in) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error %q names no byte offset or has several lines", err)
			}
		})
	}
}

func TestTruncated(t *testing.T) {
	for p := 2; p <= 5; p++ {
		in := read(t, p)
		for n := range in {
			if _, err := DecodePickle(in[:n]); err == nil {
				t.Fatalf("protocol %d: the first %d of %d bytes are read without an error", p, n, len(in))
			}
		}
	}
}

// allocated returns how many bytes f allocates in total.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Without the limit on memory, each pickle would allocate 8 to 100 times its size.
func TestMemory(t *testing.T) {
	const n = 4 << 20
	for name, in := range map[string][]byte{
		"lists":       bytes.Repeat([]byte("]"), n),
		"marks":       bytes.Repeat([]byte("("), n),
		"nones":       bytes.Repeat([]byte("N"), n),
		"nested":      bytes.Repeat([]byte("]a"), n/2),
		"tuples":      append([]byte("N"), bytes.Repeat([]byte("\x85"), n)...),
		"memo":        append([]byte("]q\x00"), bytes.Repeat([]byte("h\x00"), n/2)...),
		"floats":      bytes.Repeat([]byte("G12345678"), n/9),
		"strings":     bytes.Repeat([]byte("U\x00"), n/2),
		"appends":     append([]byte("]"), bytes.Repeat([]byte("Na"), n/2)...),
		"dicts":       bytes.Repeat([]byte("}NNs"), n/4),
		"doubling":    append([]byte("]q\x00"), bytes.Repeat([]byte("(h\x00h\x00h\x00h\x00e"), n/10)...),
		"arrays":      append([]byte("cnumpy.core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\n)U\x01b\x87q\x01R"), bytes.Repeat([]byte("h\x00h\x01R"), n/5)...),
		"dtypes":      append([]byte("cnumpy\ndtype\nq\x00U\x02i4\x85q\x01R"), bytes.Repeat([]byte("h\x00h\x01R"), n/5)...),
		"memo far on": append([]byte("N"), binary.LittleEndian.AppendUint32([]byte("r"), 1<<30)...),
	} {
		got := allocated(func() {
			if _, err := DecodePickle(in); err == nil {
				t.Errorf("%s: no error", name)
			}
		})
		if limit := uint64(budgetTimes*len(in)+budgetBase) + 64<<10; got > limit {
			t.Errorf("%s: %d bytes are allocated for a pickle of %d; the limit is %d", name, got, len(in), limit)
		}
	}
}

// PubMed's graph has 19,717 nodes and 88,676 edge endpoints, and cPickle memoises each list. Among
// Planetoid's files, its values take the most memory relative to its size.
func TestBudgetSuffices(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, nodes := range []int{100, 2000, 19717, 200000} {
		var in bytes.Buffer
		in.WriteString("\x80\x02ccollections\ndefaultdict\nq\x01c__builtin__\nlist\nq\x02\x85Rq\x03(")
		for v := range nodes {
			if v%1000 == 0 && v > 0 {
				in.WriteString("u(")
			}
			number(&in, v)
			in.WriteString("]r")
			_ = binary.Write(&in, binary.LittleEndian, uint32(v+4))
			in.WriteString("(")
			for range 4 + rng.IntN(2) {
				number(&in, rng.IntN(nodes))
			}
			in.WriteString("e")
		}
		in.WriteString("u.")
		v, err := DecodePickle(in.Bytes())
		if err != nil {
			t.Fatalf("%d nodes: %v", nodes, err)
		}
		if v.Kind() != Dict || v.Len() != nodes {
			t.Errorf("%d nodes: %v of %d", nodes, v.Kind(), v.Len())
		}
	}
}

func number(to *bytes.Buffer, x int) {
	if x < 1<<16 {
		to.Write([]byte{'M', byte(x), byte(x >> 8)})
		return
	}
	to.WriteByte('J')
	_ = binary.Write(to, binary.LittleEndian, uint32(x))
}

func TestSelfReference(t *testing.T) {
	v, err := DecodePickle([]byte("]q\x00h\x00a."))
	if err != nil || v.Len() != 1 || v.At(0).Kind() != List || v.At(0).At(0).Len() != 1 {
		t.Errorf("a list that contains itself gave %v %v", v.Kind(), err)
	}
}

func TestNames(t *testing.T) {
	names := PickleNames()
	if len(names) != len(globals) || !strings.Contains(strings.Join(names, ","), "numpy dtype,") {
		t.Errorf("the names are %v", names)
	}
	for _, name := range names {
		if module, _, _ := strings.Cut(name, " "); !strings.HasPrefix(module, "numpy") && !strings.HasPrefix(module, "scipy.sparse") &&
			module != "collections" && module != "builtins" && module != "__builtin__" && module != "_codecs" && module != "copy_reg" && module != "copyreg" {
			t.Errorf("%q belongs to a module that arrays do not need", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for p := 2; p <= 5; p++ {
		f.Add(read(f, p))
	}
	for _, c := range hostile {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := DecodePickle(in)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("the error %q is not one line", err)
			}
			return
		}
		// Every call that a caller may make on the value must work.
		_, _ = v.Int()
		_, _ = v.Text()
		_, _ = v.CSR()
		_, _ = v.Get("indptr")
		if v.Kind() == List || v.Kind() == Tuple {
			for i := range v.Len() {
				_ = v.At(i).Kind().String()
			}
		}
		if a, ok := v.Array(); ok && a.Type.Number() {
			a.Type.Floats(make([]float32, a.Count()), a.Data)
		}
	})
}
