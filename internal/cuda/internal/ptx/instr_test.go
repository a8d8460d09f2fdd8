package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
)

// instrKernel is the test kernel. Its registers are %h (16 bits), %r (32), %l (64) and %p
// (predicates). Registers 1 to 3 hold the three inputs; predicate 1 to 3 is true if its input is
// odd. Register 0 is the result.
const instrKernel = `.version 7.8
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 x1, .param .u64 x2, .param .u64 x3)
{
	.reg .pred %%p<5>; .reg .b16 %%h<5>; .reg .b32 %%r<5>; .reg .b64 %%l<5>; .reg .b64 %%rd<3>; .reg .b32 %%t<3>;
	ld.param.u64 %%rd0, [out];
	ld.param.u64 %%l1, [x1]; ld.param.u64 %%l2, [x2]; ld.param.u64 %%l3, [x3];
	cvt.u32.u64 %%r1, %%l1; cvt.u32.u64 %%r2, %%l2; cvt.u32.u64 %%r3, %%l3;
	cvt.u16.u64 %%h1, %%l1; cvt.u16.u64 %%h2, %%l2; cvt.u16.u64 %%h3, %%l3;
	and.b32 %%t0, %%r1, 1; setp.eq.s32 %%p1, %%t0, 1;
	and.b32 %%t0, %%r2, 1; setp.eq.s32 %%p2, %%t0, 1;
	and.b32 %%t0, %%r3, 1; setp.eq.s32 %%p3, %%t0, 1;
	%s
	%s
	st.global.u64 [%%rd0], %%rd1;
	ret;
}
`

func bf(x float32) uint64  { return uint64(math.Float32bits(x)) }
func bd(x float64) uint64  { return math.Float64bits(x) }
func neg(x int64) uint64   { return uint64(x) }
func neg32(x int32) uint64 { return uint64(uint32(x)) }

// runInstr runs code on inputs and returns the 64 bits of its result register.
func runInstr(code string, in [3]uint64) (uint64, error) {
	result := ""
	switch {
	case strings.Contains(code, "%h0"):
		result = "cvt.u64.u16 %rd1, %h0;"
	case strings.Contains(code, "%r0"):
		result = "cvt.u64.u32 %rd1, %r0;"
	case strings.Contains(code, "%l0"):
		result = "mov.u64 %rd1, %l0;"
	case strings.Contains(code, "%p0"):
		result = "selp.u64 %rd1, 1, 0, %p0;"
	}
	if strings.Contains(code, "%p4") { // a second result, as bit 32
		result += " selp.u64 %rd2, 4294967296, 0, %p4; or.b64 %rd1, %rd1, %rd2;"
	}
	m, err := Parse("test.ptx", fmt.Sprintf(instrKernel, code, result))
	if err != nil {
		return 0, err
	}
	k, err := m.Kernel("k")
	if err != nil {
		return 0, err
	}
	vm := NewMachine(NewMemory(0, 1<<20))
	out, err := vm.Memory.Alloc(8)
	if err != nil {
		return 0, err
	}
	if err := vm.Launch(k, D(1), D(1), 0, out, in[0], in[1], in[2]); err != nil {
		return 0, err
	}
	var b [8]byte
	err = vm.Memory.Read(out, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

func TestInstructions(t *testing.T) {
	inf, nanBits := float32(math.Inf(1)), uint64(0x7fc00000)
	for _, c := range []struct {
		code string
		in   [3]uint64
		want uint64
	}{
		// Integers.
		{"add.s32 %r0, %r1, %r2;", [3]uint64{0xffffffff, 2}, 1},
		{"add.s64 %l0, %l1, -1;", [3]uint64{0}, neg(-1)},
		{"add.s16 %h0, %h1, %h2;", [3]uint64{0xffff, 2}, 1},
		{"add.sat.s32 %r0, %r1, %r2;", [3]uint64{0x7fffffff, 1}, 0x7fffffff},
		{"sub.sat.s32 %r0, %r1, %r2;", [3]uint64{0x80000000, 1}, 0x80000000},
		{"sub.s32 %r0, %r1, %r2;", [3]uint64{1, 2}, 0xffffffff},
		{"sub.s64 %l0, %l1, %l2;", [3]uint64{1, 2}, neg(-1)},
		{"sub.u16 %h0, %h1, %h2;", [3]uint64{1, 2}, 0xffff},
		{"mul.lo.s32 %r0, %r1, %r2;", [3]uint64{neg32(-3), 5}, neg32(-15)},
		{"mul.lo.s64 %l0, %l1, %l2;", [3]uint64{neg(-3), 5}, neg(-15)},
		{"mul.lo.s16 %h0, %h1, %h2;", [3]uint64{300, 300}, 90000 & 0xffff},
		{"mul.hi.u32 %r0, %r1, %r2;", [3]uint64{0xD2511F53, 0xfedcba98}, 0xD2511F53 * 0xfedcba98 >> 32},
		{"mul.hi.s32 %r0, %r1, %r2;", [3]uint64{neg32(-2), 3}, 0xffffffff},
		{"mul.hi.u64 %l0, %l1, %l2;", [3]uint64{1 << 63, 6}, 3},
		{"mul.hi.s64 %l0, %l1, %l2;", [3]uint64{neg(-2), 3}, neg(-1)},
		{"mul.hi.s64 %l0, %l1, %l2;", [3]uint64{neg(-1 << 62), neg(-8)}, 2},
		{"mul.hi.u16 %h0, %h1, %h2;", [3]uint64{0x8000, 6}, 3},
		{"mul.wide.u32 %l0, %r1, %r2;", [3]uint64{0xffffffff, 0xffffffff}, 0xfffffffe00000001},
		{"mul.wide.s32 %l0, %r1, %r2;", [3]uint64{neg32(-2), 3}, neg(-6)},
		{"mul.wide.s16 %r0, %h1, %h2;", [3]uint64{0xfffe, 3}, neg32(-6)},
		{"mul.wide.u16 %r0, %h1, %h2;", [3]uint64{0xfffe, 3}, 0x2fffa},
		{"mad.lo.s32 %r0, %r1, %r2, %r3;", [3]uint64{neg32(-2), 3, 1}, neg32(-5)},
		{"mad.lo.s64 %l0, %l1, %l2, %l3;", [3]uint64{neg(-2), 3, 1}, neg(-5)},
		{"mad.wide.s32 %l0, %r1, %r2, %l3;", [3]uint64{neg32(-2), 3, 1 << 40}, 1<<40 - 6},
		{"mad.wide.u32 %l0, %r1, %r2, %l3;", [3]uint64{0xffffffff, 2, 1}, 0x1ffffffff},
		{"mad.hi.u32 %r0, %r1, %r2, %r3;", [3]uint64{1 << 31, 4, 5}, 7},
		{"mad.lo.u16 %h0, %h1, %h2, %h3;", [3]uint64{0xffff, 2, 1}, 0xffff},
		{"div.s32 %r0, %r1, %r2;", [3]uint64{neg32(-7), 2}, neg32(-3)},
		{"div.u32 %r0, %r1, %r2;", [3]uint64{0xfffffff9, 2}, 0x7ffffffc},
		{"div.s64 %l0, %l1, %l2;", [3]uint64{neg(-7), 2}, neg(-3)},
		{"div.s32 %r0, %r1, %r2;", [3]uint64{1 << 31, neg32(-1)}, 1 << 31},
		{"rem.s32 %r0, %r1, %r2;", [3]uint64{neg32(-7), 2}, neg32(-1)},
		{"rem.u64 %l0, %l1, %l2;", [3]uint64{neg(-7), 10}, 9},
		{"min.s32 %r0, %r1, %r2;", [3]uint64{neg32(-1), 1}, neg32(-1)},
		{"min.u32 %r0, %r1, %r2;", [3]uint64{neg32(-1), 1}, 1},
		{"max.s64 %l0, %l1, %l2;", [3]uint64{neg(-1), 1}, 1},
		{"max.u64 %l0, %l1, %l2;", [3]uint64{neg(-1), 1}, neg(-1)},
		{"min.s16 %h0, %h1, %h2;", [3]uint64{0xffff, 1}, 0xffff},
		{"abs.s32 %r0, %r1;", [3]uint64{neg32(-5)}, 5},
		{"abs.s64 %l0, %l1;", [3]uint64{neg(-5)}, 5},
		{"neg.s32 %r0, %r1;", [3]uint64{5}, neg32(-5)},
		{"neg.s16 %h0, %h1;", [3]uint64{5}, 0xfffb},
		// Carries.
		{"add.cc.u32 %r0, %r1, %r2; addc.u32 %r0, %r3, 0;", [3]uint64{0xffffffff, 1, 7}, 8},
		{"add.cc.u64 %l0, %l1, %l2; addc.u64 %l0, %l3, 0;", [3]uint64{neg(-1), 1, 7}, 8},
		{"sub.cc.u32 %r0, %r1, %r2; subc.u32 %r0, %r3, 0;", [3]uint64{0, 1, 7}, 6},
		{"sub.cc.u32 %r0, %r1, %r2; subc.u32 %r0, %r3, 0;", [3]uint64{1, 1, 7}, 7},
		{"mad.lo.cc.u32 %r0, %r1, %r2, %r3; madc.hi.u32 %r0, %r1, %r2, 0;", [3]uint64{0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff},
		// Bits.
		{"and.b32 %r0, %r1, %r2;", [3]uint64{12, 10}, 8},
		{"or.b64 %l0, %l1, %l2;", [3]uint64{12, 10}, 14},
		{"xor.b16 %h0, %h1, %h2;", [3]uint64{12, 10}, 6},
		{"and.pred %p0, %p1, %p2;", [3]uint64{1, 0}, 0},
		{"or.pred %p0, %p1, %p2;", [3]uint64{1, 0}, 1},
		{"not.pred %p0, %p1;", [3]uint64{1}, 0},
		{"not.b32 %r0, %r1;", [3]uint64{5}, 0xfffffffa},
		{"cnot.b32 %r0, %r1;", [3]uint64{0}, 1},
		{"shl.b32 %r0, %r1, %r2;", [3]uint64{3, 31}, 1 << 31},
		{"shl.b32 %r0, %r1, %r2;", [3]uint64{3, 32}, 0},
		{"shl.b64 %l0, %l1, %r2;", [3]uint64{3, 40}, 3 << 40},
		{"shl.b16 %h0, %h1, %r2;", [3]uint64{0xffff, 8}, 0xff00},
		{"shr.u32 %r0, %r1, %r2;", [3]uint64{1 << 31, 33}, 0},
		{"shr.s32 %r0, %r1, %r2;", [3]uint64{1 << 31, 33}, 0xffffffff},
		{"shr.s64 %l0, %l1, %r2;", [3]uint64{1 << 63, 63}, neg(-1)},
		{"shr.u64 %l0, %l1, %r2;", [3]uint64{1 << 63, 63}, 1},
		{"shr.s16 %h0, %h1, %r2;", [3]uint64{0x8000, 4}, 0xf800},
		{"shr.u16 %h0, %h1, %r2;", [3]uint64{0x8000, 4}, 0x0800},
		{"popc.b32 %r0, %r1;", [3]uint64{0xf0f0}, 8},
		{"popc.b64 %r0, %l1;", [3]uint64{neg(-1)}, 64},
		{"clz.b32 %r0, %r1;", [3]uint64{1}, 31},
		{"clz.b32 %r0, %r1;", [3]uint64{0}, 32},
		{"clz.b64 %r0, %l1;", [3]uint64{1}, 63},
		{"brev.b32 %r0, %r1;", [3]uint64{1}, 1 << 31},
		{"brev.b64 %l0, %l1;", [3]uint64{2}, 1 << 62},
		{"bfind.u32 %r0, %r1;", [3]uint64{0x100}, 8},
		{"bfind.u32 %r0, %r1;", [3]uint64{0}, 0xffffffff},
		{"bfind.s32 %r0, %r1;", [3]uint64{neg32(-2)}, 0},
		{"bfind.shiftamt.u32 %r0, %r1;", [3]uint64{0x100}, 23},
		{"bfe.u32 %r0, %r1, %r2, %r3;", [3]uint64{0xabcd1234, 8, 12}, 0xd12},
		{"bfe.s32 %r0, %r1, %r2, %r3;", [3]uint64{0xabcd1234, 8, 8}, 0x12},
		{"bfe.s32 %r0, %r1, %r2, %r3;", [3]uint64{0xabcd1234, 16, 8}, 0xffffffcd},
		{"bfe.u32 %r0, %r1, %r2, %r3;", [3]uint64{0xabcd1234, 28, 12}, 0xa},
		{"bfe.s64 %l0, %l1, %r2, %r3;", [3]uint64{1 << 63, 60, 8}, neg(-8)},
		{"bfi.b32 %r0, %r1, %r2, 8, 4;", [3]uint64{0xfff5, 0xffffffff}, 0xfffff5ff},
		{"bfi.b64 %l0, %l1, %l2, 60, 8;", [3]uint64{0x12, 1}, 0x2<<60 | 1},
		{"lop3.b32 %r0, %r1, %r2, %r3, 0x96;", [3]uint64{0x0f0f, 0x00ff, 0x3333}, 0x0f0f ^ 0x00ff ^ 0x3333},
		{"lop3.b32 %r0, %r1, %r2, %r3, 0xEA;", [3]uint64{0xff00, 0xf0f0, 0x1}, 0xff00&0xf0f0 | 1},
		{"lop3.b32 %r0, %r1, %r2, %r3, 0x1B;", [3]uint64{0xff00ff00, 0xf0f0f0f0, 0xcccccccc}, lop(0x1b, 0xff00ff00, 0xf0f0f0f0, 0xcccccccc)},
		{"shf.l.wrap.b32 %r0, %r1, %r2, %r3;", [3]uint64{0x80000001, 0x2, 33}, 0x5},
		{"shf.r.wrap.b32 %r0, %r1, %r2, %r3;", [3]uint64{0x80000001, 0x3, 4}, 0x38000000},
		{"shf.l.clamp.b32 %r0, %r1, %r2, %r3;", [3]uint64{0x80000001, 0x2, 50}, 0x80000001},
		{"shf.r.clamp.b32 %r0, %r1, %r2, %r3;", [3]uint64{0x80000001, 0x2, 50}, 0x2},
		{"prmt.b32 %r0, %r1, %r2, 0x7531;", [3]uint64{0x33221100, 0x77665544}, 0x77553311},
		{"prmt.b32 %r0, %r1, %r2, 0x0c8;", [3]uint64{0x000000f0, 0x00000070}, 0xf0f0_00ff},
		{"prmt.b32.f4e %r0, %r1, %r2, 1;", [3]uint64{0x33221100, 0x77665544}, 0x44332211},
		{"prmt.b32.b4e %r0, %r1, %r2, 0;", [3]uint64{0x33221100, 0x77665544}, 0x55667700},
		{"prmt.b32.rc8 %r0, %r1, %r2, 2;", [3]uint64{0x33221100, 0}, 0x22222222},
		{"prmt.b32.ecl %r0, %r1, %r2, 1;", [3]uint64{0x33221100, 0}, 0x33221111},
		{"prmt.b32.ecr %r0, %r1, %r2, 2;", [3]uint64{0x33221100, 0}, 0x22221100},
		{"prmt.b32.rc16 %r0, %r1, %r2, 1;", [3]uint64{0x33221100, 0}, 0x33223322},
		// Moves.
		{"mov.b64 %l0, {%r1, %r2};", [3]uint64{1, 2}, 2<<32 | 1},
		{"{ .reg .b32 %q; mov.b64 {%q, %r0}, %l1; }", [3]uint64{7<<32 | 1}, 7},
		{"mov.b32 %r0, {%h1, %h2};", [3]uint64{1, 2}, 2<<16 | 1},
		{"mov.b32 {_, %h0}, %r1;", [3]uint64{0x12345678}, 0x1234},
		{"mov.pred %p0, %p1;", [3]uint64{1}, 1},
		{"selp.b32 %r0, %r1, %r2, %p3;", [3]uint64{5, 6, 1}, 5},
		{"selp.s64 %l0, %l1, -1, %p3;", [3]uint64{5, 6, 0}, neg(-1)},
		{"mov.u32 %r0, %ntid.x;", [3]uint64{}, 1},
		{"mov.u32 %r0, %lanemask_ge;", [3]uint64{}, 0xffffffff},
		{"mov.u32 %r0, %lanemask_gt;", [3]uint64{}, 0xfffffffe},
		{"mov.u32 %r0, WARP_SZ;", [3]uint64{}, 32},
		// Comparisons.
		{"setp.lt.s32 %p0, %r1, %r2;", [3]uint64{neg32(-1), 1}, 1},
		{"setp.lt.u32 %p0, %r1, %r2;", [3]uint64{neg32(-1), 1}, 0},
		{"setp.lo.s32 %p0, %r1, %r2;", [3]uint64{neg32(-1), 1}, 0},
		{"setp.hs.u32 %p0, %r1, %r2;", [3]uint64{neg32(-1), 1}, 1},
		{"setp.ge.s64 %p0, %l1, %l2;", [3]uint64{neg(-1), 1}, 0},
		{"setp.ge.u64 %p0, %l1, %l2;", [3]uint64{neg(-1), 1}, 1},
		{"setp.ne.s16 %p0, %h1, %h2;", [3]uint64{0xffff, 0xffff}, 0},
		{"setp.gt.s16 %p0, %h1, %h2;", [3]uint64{0xffff, 1}, 0},
		{"setp.lt.f32 %p0, %r1, %r2;", [3]uint64{bf(1), nanBits}, 0},
		{"setp.ltu.f32 %p0, %r1, %r2;", [3]uint64{bf(1), nanBits}, 1},
		{"setp.neu.f32 %p0, %r1, %r1;", [3]uint64{nanBits}, 1},
		{"setp.eq.f32 %p0, %r1, %r2;", [3]uint64{bf(0), 1 << 31}, 1},
		{"setp.num.f32 %p0, %r1, %r2;", [3]uint64{bf(1), nanBits}, 0},
		{"setp.nan.f64 %p0, %l1, %l2;", [3]uint64{bd(1), bd(math.NaN())}, 1},
		{"setp.gt.f64 %p0, %l1, %l2;", [3]uint64{bd(2), bd(1)}, 1},
		{"setp.gt.f16 %p0, %h1, %h2;", [3]uint64{0x4000, 0xbc00}, 1},
		{"setp.eq.ftz.f32 %p0, %r1, 0f00000000;", [3]uint64{1}, 1},
		{"setp.eq.f32 %p0, %r1, 0f00000000;", [3]uint64{1}, 0},
		{"setp.lt.and.s32 %p0|%p4, %r1, %r2, %p3;", [3]uint64{1, 2, 1}, 1},
		{"setp.gt.and.s32 %p0|%p4, %r1, %r2, %p3;", [3]uint64{1, 2, 1}, 1 << 32},
		{"setp.gt.or.s32 %p0, %r1, %r2, !%p3;", [3]uint64{1, 2, 0}, 1},
		{"setp.gt.xor.s32 %p0, %r1, %r2, %p3;", [3]uint64{2, 1, 1}, 0},
		{"set.lt.u32.s32 %r0, %r1, %r2;", [3]uint64{1, 2}, 0xffffffff},
		{"set.lt.f32.s32 %r0, %r1, %r2;", [3]uint64{1, 2}, bf(1)},
		// Guards.
		{"mov.u32 %r0, 1; @%p1 mov.u32 %r0, 2;", [3]uint64{1}, 2},
		{"mov.u32 %r0, 1; @!%p1 mov.u32 %r0, 2;", [3]uint64{1}, 1},
		{"mov.u32 %r0, 1; @%p1 bra $A; mov.u32 %r0, 2; $A:", [3]uint64{1}, 1},
		{"$T: .branchtargets $A, $B; brx.idx %r1, $T; $A: mov.u32 %r0, 1; bra.uni $C; $B: mov.u32 %r0, 2; $C:", [3]uint64{1}, 2},
		// f32.
		{"add.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(0x1p-24)}, bf(1)},
		{"add.rn.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(0x1.8p-24)}, bf(1 + 0x1p-23)},
		{"add.rz.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(0x1.8p-24)}, bf(1)},
		{"add.rp.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(0x1p-60)}, bf(1 + 0x1p-23)},
		{"add.rm.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(-0x1p-60)}, bf(1 - 0x1p-24)},
		{"add.rm.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(-1)}, 1 << 31},
		{"add.rp.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(-1)}, 0},
		{"add.rz.f32 %r0, %r1, %r2;", [3]uint64{bf(math.MaxFloat32), bf(math.MaxFloat32)}, bf(math.MaxFloat32)},
		{"add.f32 %r0, %r1, %r2;", [3]uint64{bf(inf), bf(-inf)}, 0x7fffffff},
		{"add.sat.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(1)}, bf(1)},
		{"add.sat.f32 %r0, %r1, %r2;", [3]uint64{bf(1), nanBits}, 0},
		{"sub.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(3)}, bf(-2)},
		{"sub.rz.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(0x1p-60)}, bf(1 - 0x1p-24)},
		{"mul.f32 %r0, %r1, %r2;", [3]uint64{bf(3), bf(1.0 / 3)}, bf(1)},
		{"mul.rm.f32 %r0, %r1, %r2;", [3]uint64{bf(-1.1), bf(1.1)}, bf(math.Nextafter32(-1.21, -2))},
		{"mul.ftz.f32 %r0, %r1, %r2;", [3]uint64{bf(0x1p-100), bf(-0x1p-30)}, 1 << 31},
		{"mul.f32 %r0, %r1, %r2;", [3]uint64{bf(0x1p-100), bf(-0x1p-30)}, bf(-0x1p-130)},
		// The rounded product is 1 + 2^-11; only a fused multiply-add keeps the 2^-24 that rounding
		// drops.
		{"fma.rn.f32 %r0, %r1, %r2, %r3;", [3]uint64{bf(1 + 0x1p-12), bf(1 + 0x1p-12), bf(-1 - 0x1p-11)}, bf(0x1p-24)},
		// The exact sum, 1 + 2^-24 + 2^-47, is just above the middle between two f32 numbers.
		{"fma.rn.f32 %r0, %r1, %r2, %r3;", [3]uint64{bf(0x1p-24), bf(1 + 0x1p-23), bf(1)}, bf(1 + 0x1p-23)},
		{"fma.rn.f32 %r0, %r1, %r2, %r3;", [3]uint64{bf(0x1p-75), bf(0x1p-75), bf(1 + 0x1p-23)}, bf(1 + 0x1p-23)},
		{"fma.rm.f32 %r0, %r1, %r2, %r3;", [3]uint64{bf(0x1p-75), bf(-0x1p-75), bf(1)}, bf(1 - 0x1p-24)},
		{"fma.rz.f32 %r0, %r1, %r2, %r3;", [3]uint64{bf(0x1p-75), bf(0x1p-75), bf(1)}, bf(1)},
		{"fma.rp.f32 %r0, %r1, %r2, %r3;", [3]uint64{bf(0x1p-75), bf(0x1p-75), bf(1)}, bf(1 + 0x1p-23)},
		{"fma.rn.ftz.f32 %r0, %r1, %r2, %r3;", [3]uint64{bf(1), bf(0x1p-130), bf(0)}, 0},
		{"div.rn.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(3)}, bf(1.0 / 3)},
		{"div.rz.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(3)}, 0x3eaaaaaa},
		{"div.rp.f32 %r0, %r1, %r2;", [3]uint64{bf(-1), bf(3)}, 0xbeaaaaaa},
		{"div.full.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(4)}, bf(.25)},
		{"div.approx.ftz.f32 %r0, %r1, %r2;", [3]uint64{bf(1), bf(0)}, bf(inf)},
		{"rcp.rn.f32 %r0, %r1;", [3]uint64{bf(3)}, bf(1.0 / 3)},
		{"rcp.approx.ftz.f32 %r0, %r1;", [3]uint64{bf(8)}, bf(.125)},
		{"sqrt.rn.f32 %r0, %r1;", [3]uint64{bf(2)}, bf(float32(math.Sqrt2))},
		{"sqrt.rz.f32 %r0, %r1;", [3]uint64{bf(2)}, 0x3fb504f3},
		{"sqrt.rp.f32 %r0, %r1;", [3]uint64{bf(2)}, 0x3fb504f4},
		{"sqrt.approx.f32 %r0, %r1;", [3]uint64{bf(-1)}, 0x7fffffff},
		{"rsqrt.approx.f32 %r0, %r1;", [3]uint64{bf(4)}, bf(.5)},
		{"ex2.approx.f32 %r0, %r1;", [3]uint64{bf(-3)}, bf(.125)},
		{"ex2.approx.ftz.f32 %r0, %r1;", [3]uint64{bf(-130)}, 0},
		{"lg2.approx.f32 %r0, %r1;", [3]uint64{bf(8)}, bf(3)},
		{"lg2.approx.f32 %r0, %r1;", [3]uint64{bf(0)}, bf(-inf)},
		{"sin.approx.f32 %r0, %r1;", [3]uint64{bf(0)}, 0},
		{"cos.approx.f32 %r0, %r1;", [3]uint64{bf(0)}, bf(1)},
		{"tanh.approx.f32 %r0, %r1;", [3]uint64{bf(inf)}, bf(1)},
		{"abs.f32 %r0, %r1;", [3]uint64{bf(-2)}, bf(2)},
		{"neg.f32 %r0, %r1;", [3]uint64{bf(0)}, 1 << 31},
		{"neg.ftz.f32 %r0, %r1;", [3]uint64{1}, 1 << 31},
		{"min.f32 %r0, %r1, %r2;", [3]uint64{bf(1), nanBits}, bf(1)},
		{"min.NaN.f32 %r0, %r1, %r2;", [3]uint64{bf(1), nanBits}, 0x7fffffff},
		{"max.f32 %r0, %r1, %r2;", [3]uint64{1 << 31, 0}, 0},
		{"min.f32 %r0, %r1, %r2;", [3]uint64{1 << 31, 0}, 1 << 31},
		{"max.f32 %r0, %r1, %r2;", [3]uint64{nanBits, nanBits}, 0x7fffffff},
		{"copysign.f32 %r0, %r1, %r2;", [3]uint64{bf(-1), bf(2)}, bf(-2)},
		// f64 and f16.
		{"add.f64 %l0, %l1, 0d3FF0000000000000;", [3]uint64{bd(.5)}, bd(1.5)},
		{"mul.rn.f64 %l0, %l1, %l2;", [3]uint64{bd(.1), bd(3)}, bd(0.30000000000000004)},
		{"fma.rn.f64 %l0, %l1, %l2, %l3;", [3]uint64{bd(1 + 0x1p-30), bd(1 + 0x1p-30), bd(-1 - 0x1p-29)}, bd(0x1p-60)},
		{"div.rn.f64 %l0, %l1, %l2;", [3]uint64{bd(1), bd(8)}, bd(.125)},
		{"sqrt.rn.f64 %l0, %l1;", [3]uint64{bd(2)}, bd(math.Sqrt2)},
		{"max.f64 %l0, %l1, %l2;", [3]uint64{bd(1), bd(2)}, bd(2)},
		{"add.f16 %h0, %h1, %h2;", [3]uint64{0x3c00, 0x1000}, 0x3c00},                 // 1 + 2^-11: a tie
		{"add.f16 %h0, %h1, %h2;", [3]uint64{0x3c01, 0x1000}, 0x3c02},                 // the other tie
		{"add.rn.f16 %h0, %h1, %h2;", [3]uint64{0x7bff, 0x7bff}, 0x7c00},              // overflow
		{"mul.f16 %h0, %h1, %h2;", [3]uint64{0x0001, 0x3800}, 0},                      // half the smallest number: a tie, rounded to 0
		{"mul.f16 %h0, %h1, %h2;", [3]uint64{0x0003, 0x3800}, 0x0002},                 // 1.5 times the smallest number: a tie, rounded to 2
		{"fma.rn.f16 %h0, %h1, %h2, %h3;", [3]uint64{0x3c01, 0x3c01, 0xbc02}, 0x0010}, // 2^-20
		{"add.f16x2 %r0, %r1, %r2;", [3]uint64{0x40003c00, 0xc0003c00}, 0x00004000},
		{"neg.f16 %h0, %h1;", [3]uint64{0x3c00}, 0xbc00},
		// Conversions.
		{"cvt.s64.s32 %l0, %r1;", [3]uint64{neg32(-2)}, neg(-2)},
		{"cvt.u64.u32 %l0, %r1;", [3]uint64{neg32(-2)}, 0xfffffffe},
		{"cvt.u32.u64 %r0, %l1;", [3]uint64{1<<40 | 3}, 3},
		{"cvt.s32.s8 %r0, %r1;", [3]uint64{0x80}, 0xffffff80},
		{"cvt.u32.u8 %r0, %r1;", [3]uint64{0x180}, 0x80},
		{"cvt.s16.s8 %h0, %r1;", [3]uint64{0x80}, 0xff80},
		{"cvt.u16.u32 %h0, %r1;", [3]uint64{0x12345}, 0x2345},
		{"cvt.s8.s32 %r0, %r1;", [3]uint64{0x1ff}, 0xffffffff},
		{"cvt.u8.u32 %r0, %r1;", [3]uint64{0x1ff}, 0xff},
		{"cvt.sat.u8.s32 %r0, %r1;", [3]uint64{neg32(-1)}, 0},
		{"cvt.sat.s8.s32 %r0, %r1;", [3]uint64{300}, 127},
		{"cvt.sat.s32.u64 %r0, %l1;", [3]uint64{1 << 63}, 0x7fffffff},
		{"cvt.sat.u32.s64 %r0, %l1;", [3]uint64{1 << 40}, 0xffffffff},
		{"cvt.rn.f32.s32 %r0, %r1;", [3]uint64{neg32(-7)}, bf(-7)},
		{"cvt.rn.f32.u32 %r0, %r1;", [3]uint64{0xffffffff}, bf(0x1p32)},
		{"cvt.rz.f32.u32 %r0, %r1;", [3]uint64{0xffffffff}, bf(0xffffff00)},
		{"cvt.rn.f32.u64 %r0, %l1;", [3]uint64{1<<40 + 1<<16 + 1}, bf(1<<40 + 1<<17)},
		{"cvt.rp.f32.s64 %r0, %l1;", [3]uint64{neg(-(1<<62 + 1))}, bf(-0x1p62)},
		{"cvt.rm.f32.s64 %r0, %l1;", [3]uint64{neg(-(1<<62 + 1))}, bf(math.Nextafter32(-0x1p62, -inf))},
		{"cvt.rn.f64.s64 %l0, %l1;", [3]uint64{neg(-7)}, bd(-7)},
		{"cvt.rzi.s32.f32 %r0, %r1;", [3]uint64{bf(-1.9)}, neg32(-1)},
		{"cvt.rni.s32.f32 %r0, %r1;", [3]uint64{bf(2.5)}, 2},
		{"cvt.rmi.s32.f32 %r0, %r1;", [3]uint64{bf(-1.1)}, neg32(-2)},
		{"cvt.rpi.s64.f32 %l0, %r1;", [3]uint64{bf(-1.1)}, neg(-1)},
		{"cvt.rzi.u32.f32 %r0, %r1;", [3]uint64{bf(-5)}, 0},
		{"cvt.rzi.u32.f32 %r0, %r1;", [3]uint64{bf(1e20)}, 0xffffffff},
		{"cvt.rzi.s32.f32 %r0, %r1;", [3]uint64{bf(1e20)}, 0x7fffffff},
		{"cvt.rzi.s32.f32 %r0, %r1;", [3]uint64{nanBits}, 0},
		{"cvt.rzi.u64.f64 %l0, %l1;", [3]uint64{bd(0x1p63)}, 1 << 63},
		{"cvt.rzi.s64.f64 %l0, %l1;", [3]uint64{bd(-0x1p63)}, 1 << 63},
		{"cvt.rni.f32.f32 %r0, %r1;", [3]uint64{bf(-2.5)}, bf(-2)},
		{"cvt.rmi.f32.f32 %r0, %r1;", [3]uint64{bf(-2.5)}, bf(-3)},
		{"cvt.sat.f32.f32 %r0, %r1;", [3]uint64{bf(1.5)}, bf(1)},
		{"cvt.f64.f32 %l0, %r1;", [3]uint64{bf(1.5)}, bd(1.5)},
		{"cvt.rn.f32.f64 %r0, %l1;", [3]uint64{bd(.1)}, bf(.1)},
		{"cvt.rz.f32.f64 %r0, %l1;", [3]uint64{bd(.1)}, 0x3dcccccc},
		{"cvt.rn.f16.f32 %h0, %r1;", [3]uint64{bf(1.0009765625 + 0.00048828125)}, 0x3c02},
		{"cvt.rn.f16.f32 %h0, %r1;", [3]uint64{bf(65520)}, 0x7c00},
		{"cvt.rz.f16.f32 %h0, %r1;", [3]uint64{bf(65520)}, 0x7bff},
		{"cvt.rn.f16.f32 %h0, %r1;", [3]uint64{bf(-0x1p-24)}, 0x8001},
		{"cvt.rp.f16.f32 %h0, %r1;", [3]uint64{bf(0x1p-40)}, 0x0001},
		{"cvt.rn.f16.f32 %h0, %r1;", [3]uint64{nanBits}, 0x7fff},
		{"cvt.f32.f16 %r0, %h1;", [3]uint64{0x0001}, bf(0x1p-24)},
		{"cvt.f32.f16 %r0, %h1;", [3]uint64{0xfc00}, bf(-inf)},
		{"cvt.rn.f16.s32 %h0, %r1;", [3]uint64{2049}, 0x6800},
		{"cvt.rzi.s32.f16 %r0, %h1;", [3]uint64{0xc100}, neg32(-2)},
	} {
		got, err := runInstr(c.code, c.in)
		if err != nil {
			t.Errorf("%s: %v", c.code, err)
		} else if got != c.want {
			t.Errorf("%s of %#x gives %#x, not %#x", c.code, c.in, got, c.want)
		}
	}
}

func lop(table int, a, b, c uint32) uint64 {
	v := uint64(0)
	for i := range 32 {
		at := a>>i&1<<2 | b>>i&1<<1 | c>>i&1
		v |= uint64(table>>at&1) << i
	}
	return v
}
