package collective

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"testing"
)

// A frame and its body are read as they were written, and a frame cut at any byte is an error.
func TestFrameCut(t *testing.T) {
	f := frame{kind: frameEnter, machine: 3, group: 1 << 63, seq: 7, head: []byte("what the ranks call"), body: 5}
	b := append(f.appendTo(nil), "a sum"...)
	for n := range b {
		r := bytes.NewReader(b[:n])
		got, err := readFrame(r)
		if err == nil {
			_, err = readBody(r, got.body, 0)
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	r := bytes.NewReader(b)
	got, err := readFrame(r)
	if err != nil || got.kind != f.kind || got.machine != 3 || got.group != f.group || got.seq != 7 || !bytes.Equal(got.head, f.head) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if body, err := readBody(r, got.body, 0); err != nil || string(body) != "a sum" {
		t.Errorf("body %q, %v", body, err)
	}
}

// A body of about the size of an earlier one is read without growing its memory, and one that ends early, or is larger, as
// before.
func TestBodyLikeTheLast(t *testing.T) {
	body := make([]byte, 3<<20)
	for i := range body {
		body[i] = byte(i % 251)
	}
	for before, most := range map[uint64]float64{0: 9, 1 << 20: 9, uint64(len(body)): 1, 1 << 40: 1} {
		var got []byte
		var err error
		r := bytes.NewReader(nil)
		allocs := testing.AllocsPerRun(3, func() {
			r.Reset(body)
			got, err = readBody(r, uint64(len(body)), before)
		})
		if err != nil || !bytes.Equal(got, body) || allocs > most {
			t.Errorf("after one of %d bytes: %d bytes, %v, %v allocations", before, len(got), err, allocs)
		}
		if _, err := readBody(bytes.NewReader(body), uint64(len(body))+1, min(before, 4<<20)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a body that ends early, after one of %d bytes: %v", before, err)
		}
	}
}

// A body that claims to be huge takes at most a few times the memory of the bytes received.
func TestBodyMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readBody(bytes.NewReader(make([]byte, 3<<20)), math.MaxInt64, 0)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 24<<20 {
		t.Errorf("reading 3 MB allocated %d bytes", took)
	}
}

func TestUnpack(t *testing.T) {
	want := [][]byte{[]byte("one"), {}, []byte("three")}
	b := joined(packed(want))
	got, err := unpack(b, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("message %d is %q", i, got[i])
		}
	}
	for name, f := range map[string]func() ([][]byte, error){
		"cut":           func() ([][]byte, error) { return unpack(b[:len(b)-1], 3) },
		"lengths cut":   func() ([][]byte, error) { return unpack(b[:20], 3) },
		"too long":      func() ([][]byte, error) { return unpack(append(b[:len(b):len(b)], 0), 3) },
		"fewer":         func() ([][]byte, error) { return unpack(b, 2) },
		"a huge length": func() ([][]byte, error) { return unpack(bytes.Repeat([]byte{0xff}, 32), 3) },
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzFrame reads arbitrary bytes as another machine's message: a frame, the contents of its head,
// and its body.
func FuzzFrame(f *testing.F) {
	h := headers{first: []byte("first"), odd: 1, other: []byte("other")}
	enter := frame{kind: frameEnter, machine: 1, seq: 1, head: h.encode(), body: 40}
	body := joined(packed([][]byte{[]byte("abc"), nil, []byte("0123456789")}))
	f.Add(append(enter.appendTo(nil), body...))
	f.Add(enter.appendTo(nil)[:50])
	data := frame{kind: frameData, body: math.MaxUint64}
	f.Add(data.appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		got, err := readFrame(r)
		if err != nil {
			return
		}
		if len(got.head) > maxHead || got.body > maxBody {
			t.Fatalf("a head of %d bytes, a body of %d", len(got.head), got.body)
		}
		if h, err := decodeHeaders(got.head); err == nil {
			d := difference{rank: h.odd, first: h.first, other: h.other}
			_ = d.mismatch().Error()
		}
		data, err := readBody(r, got.body, 0)
		if err != nil {
			return
		}
		for count := range 5 {
			if messages, err := unpack(data, count); err == nil && sizeOf(messages)+8*count != len(data) {
				t.Fatalf("%d messages of %d bytes in %d bytes", count, sizeOf(messages), len(data))
			}
		}
	})
}
