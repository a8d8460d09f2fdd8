package ptx

import (
	"bytes"
	"strings"
	"testing"
)

func TestMemory(t *testing.T) {
	m := NewMemory(0, 1000)
	says := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	a, err := m.Alloc(600)
	ok(err)
	_, err = m.Alloc(500)
	says(err, "out of memory: 500 bytes asked for, 600 of 1000 are in use")
	_, err = m.Alloc(0)
	says(err, "an allocation of 0 bytes")
	b, err := m.Alloc(400)
	ok(err)
	if a%256 != 0 || b%256 != 0 || m.Used() != 1000 || m.Live() != 2 {
		t.Errorf("%#x, %#x: %d bytes in %d allocations", a, b, m.Used(), m.Live())
	}
	buf := make([]byte, 4)
	says(m.Read(a+8, buf), "byte 0 of them was never written")
	ok(m.Write(a+8, []byte{1, 2, 3, 4}))
	ok(m.Read(a+8, buf))
	ok(m.Fill(a+12, []byte{5, 6}, 4))
	ok(m.Copy(b, a+8, 9)) // the last byte is unwritten, and its copy too
	got := make([]byte, 8)
	ok(m.Read(b, got))
	if !bytes.Equal(got, []byte{1, 2, 3, 4, 5, 6, 5, 6}) {
		t.Error(got)
	}
	says(m.Read(b+8, got[:1]), "was never written")
	says(m.Fill(a, []byte{1, 2}, 3), "a fill of 3 bytes with a pattern of 2")
	says(m.Write(a+598, buf), "of which 2 are in the allocation of 600 bytes")
	says(m.Write(a+600, buf), "0 bytes past the end of the allocation of 600 bytes")
	raw, err := m.Bytes(b+8, 4)
	ok(err)
	raw[0] = 9
	ok(m.Read(b+8, got[:1]))
	if got[0] != 9 {
		t.Error("Bytes returns a copy of the memory")
	}
	ok(m.Forget(b+8, 1))
	says(m.Read(b+8, got[:1]), "was never written")
	if base, size, found := m.Range(a + 599); base != a || size != 600 || !found {
		t.Error(base, size, found)
	}
	says(m.Free(a+1), "which no allocation begins with")
	ok(m.Free(a))
	says(m.Free(a), "which no allocation begins with")
	says(m.Write(a+3, buf), "byte 3 of an allocation of 600 bytes that was freed")
	c, err := m.Alloc(600)
	ok(err)
	if c == a {
		t.Error("a freed address is allocated again")
	}

	other := NewMemory(1, 100)
	d, err := other.Alloc(16)
	ok(err)
	says(m.Write(d, buf), "in no allocation of this device")
	ok(other.CopyFrom(d, m, b, 8))
	ok(other.Read(d, got))
	if got[4] != 5 {
		t.Error(got)
	}

	host := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	h, err := m.Map(host, false)
	ok(err)
	_, err = m.Map(host[2:4], false)
	says(err, "is mapped already")
	ok(m.Write(h+1, []byte{9}))
	if host[1] != 9 {
		t.Error("mapped memory is a copy")
	}
	says(m.Free(h), "which no allocation begins with")
	ok(m.Unmap(h))
	says(m.Unmap(h), "no memory of the host is mapped")
	if m.Used() != 1000 {
		t.Errorf("%d bytes are in use", m.Used())
	}
}

// Host memory may begin at any address. Race detection goes by the address of an access, not by its
// offset in the memory.
func TestMapUnaligned(t *testing.T) {
	b := newBench(t, Order{})
	host := make([]byte, 300)
	addr, err := b.Memory.Map(host[3:], false)
	if err != nil {
		t.Fatal(err)
	}
	at := (addr + 3) &^ 3
	if err := b.launch("two_blocks", D(1), D(32), 0, at); err != nil {
		t.Fatal(err)
	}
	if i := 3 + int(at-addr) + 4*31; host[i] != 31 {
		t.Errorf("the last word is %d", host[i])
	}
	if err := b.launch("two_writers", D(1), D(64), 0, at); err == nil || !strings.Contains(err.Error(), "race") {
		t.Error("no race was found in host memory:", err)
	}
}

func TestStats(t *testing.T) {
	b := newBench(t, Order{})
	if err := b.launch("add_one", D(1), D(32), 0, b.room(128), b.words(make([]uint32, 32)...), int64(32)); err != nil {
		t.Fatal(err)
	}
	if s := b.Stats(); s.Loaded != 128 || s.Stored != 128 || s.Instructions < 32*8 {
		t.Errorf("%+v", s)
	}
}
