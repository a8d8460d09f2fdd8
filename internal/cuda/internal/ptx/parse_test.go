package ptx

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The interpreter can parse every kernel that programs carry.
func TestParseKernels(t *testing.T) {
	files, err := filepath.Glob("../../kernels/*.ptx")
	if err != nil || len(files) == 0 {
		t.Fatal("no kernels", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(filepath.Base(file), string(src))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(src), ".entry "); len(m.Kernels()) != n {
			t.Errorf("%s has %d kernels, but Parse found %d", file, n, len(m.Kernels()))
		}
	}
}

// The parser skips nothing: each statement that it does not support is an error that names the
// line.
func TestParseErrors(t *testing.T) {
	in := func(body string) string {
		return ".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 x)\n{\n.reg .b32 %r<4>; .reg .pred %p<2>; .reg .b64 %l<2>; .reg .f32 %f<2>;\n" + body + "\nret;\n}\n"
	}
	for _, c := range []struct{ what, src, says string }{
		{"an unknown instruction", in("fly.u32 %r0, %r1;"), "line 7: fly.u32: the instruction is not known"},
		{"an unknown modifier", in("add.sideways.u32 %r0, %r1, %r2;"), "the modifier .sideways is not known"},
		{"a modifier of other types", in("add.ftz.u32 %r0, %r1, %r2;"), "line 7: add.ftz.u32: a modifier of floating-point"},
		{"an undeclared register", in("add.u32 %r9, %r1, %r2;"), "line 7: register %r9 is not declared"},
		{"a register of another size", in("add.u64 %l0, %r1, %l1;"), "operand 1 has 32 bits, not 64"},
		{"a result in a special register", in("mov.u32 %tid.x, 1;"), "%tid.x cannot be written"},
		{"a result in a number", in("mov.u32 7, %r1;"), "a result goes to a register"},
		{"a missing label", in("bra $nowhere;"), `label "$nowhere" is nowhere`},
		{"a missing operand", in("add.u32 %r0, %r1;"), "2 operands"},
		{"a missing comma", in("add.u32 %r0 %r1, %r2;"), `"%r1" where "," should be`},
		{"a missing semicolon", in("add.u32 %r0, %r1, %r2"), `"ret" where "," should be`},
		{"a call", in("call f;"), "calls are not interpreted"},
		{"a clock", in("mov.u32 %r0, %clock;"), "does not have"},
		{"a missing variable", in("ld.global.u32 %r0, [table];"), "the name table is not declared"},
		{"a place beyond a parameter", in("ld.param.u64 %l0, [x+8];"), "8 bytes at 8 of parameter x"},
		{"a guard that is not a predicate", in("@%r0 ret;"), "the guard is not a predicate"},
		{"a vector too long", in("ld.global.v2.u32 {%r0, %r1, %r2}, [%l0];"), "3 values"},
		{"part of a block's barrier", in("bar.sync 0, 64;"), "barriers of a part of a block"},
		{"rounding of f64", in(".reg .f64 %d<3>;\nadd.rz.f64 %d0, %d1, %d2;"), "line 8"},
		{"an end in the body", ".version 7.8\n.visible .entry k()\n{\n", "the file ends in the body of kernel k"},
		{"addresses of 32 bits", ".address_size 32", "compile for 64"},
		{"a wild directive", ".version 7.8\n.texref t;", `line 2: ".texref" is not known here`},
		{"a comment without an end", "\n/* so", "line 2: a comment has no end"},
		{"binary", "\x00", "has no place in PTX"},
		{"a kernel twice", in("") + ".visible .entry k()\n{\nret;\n}", "kernel k is there twice"},
		{"a huge number", in("mov.u32 %r0, 99999999999999999999;"), "is not a number"},
	} {
		_, err := Parse("test.ptx", c.src)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one with %q", c.what, err, c.says)
		}
	}
	m, err := Parse("test.ptx", in(""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Kernel("j"); err == nil || !strings.Contains(err.Error(), `test.ptx has no kernel "j"`) {
		t.Error(err)
	}
}

// The parser returns on any input, and a kernel that it accepts either runs or ends with a Fault.
func FuzzParse(f *testing.F) {
	src, err := os.ReadFile("testdata/faults.ptx")
	if err != nil {
		f.Fatal(err)
	}
	// Each kernel is a seed of its own, because small inputs mutate faster.
	for _, kernel := range strings.SplitAfter(string(src), "\n}\n") {
		f.Add(kernel)
	}
	f.Add(".version 7.8\n.visible .entry k(.param .align 4 .b8 p[8])\n{\n.reg .b32 %r<4>;\nld.param.v2.u32 {%r0,%r1}, [p];\nlop3.b32 %r1, %r0, 3, -1, 0x96;\n@%p1 bra L;\nL: ret;\n}")
	f.Fuzz(func(t *testing.T, src string) {
		m, err := Parse("fuzz.ptx", src)
		if err != nil {
			return
		}
		for _, k := range m.Kernels() {
			if k.slots > 1<<12 || k.Shared > 1<<16 || k.local > 1<<16 {
				continue
			}
			vm := NewMachine(NewMemory(0, 1<<20))
			vm.Limit = 1 << 12
			err := vm.LaunchRaw(k, D(2), D(min(k.MaxThreads, 40)), 64, make([]byte, k.ParamBytes()))
			var fault *Fault
			if err != nil && !errors.As(err, &fault) {
				t.Fatalf("%T: %v", err, err)
			}
		}
	})
}
