package phrase

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 999: "999 B", 1000: "1.0 KiB", 1023: "1.0 KiB", 1024: "1.0 KiB", 1536: "1.5 KiB",
		10 << 10: "10.0 KiB", 999 << 10: "999 KiB", 1000 << 10: "1.0 MiB", 412 << 20: "412 MiB", 57 << 30: "57.0 GiB",
		1 << 50: "1.0 PiB", math.MaxInt64: "8192 PiB", -2048: "-2.0 KiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"512": 512, "512B": 512, "20GB": 20 << 30, "20GiB": 20 << 30, "20 gib": 20 << 30, "20g": 20 << 30, "1.5 KiB": 1536, " 300MB ": 300 << 20, "2T": 2 << 40,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GB", "0", "-1GB", "1e30GB", "NaN", "Inf", "1 XB", "12 MiBB", "1GBGB", "0x10", "1_000", "8388608TiB"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}

// ParseBytes reads the output of Bytes, to the precision of the digits written.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1<<52).Draw(t, "n")
		back, err := ParseBytes(Bytes(n))
		if err != nil || math.Abs(float64(back-n)) > 0.06*float64(n) {
			t.Fatalf("%d is written as %q and read as %d, %v", n, Bytes(n), back, err)
		}
	})
}
