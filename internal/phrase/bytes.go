package phrase

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteUnits are binary: a MiB is 1024 KiB. Rates of copies and networks, in GB/s, are decimal, as
// manufacturers state them, and are outside this package.
var byteUnits = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}

// Bytes formats n in a binary unit, with a decimal if the value is below 100: "0 B", "999 B", "1.5
// KiB", "412 MiB".
func Bytes(n int64) string {
	if n > -1000 && n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	x, unit := float64(n), 0
	for math.Abs(x) >= 999.5 && unit < len(byteUnits)-1 {
		x, unit = x/1024, unit+1
	}
	digits := 1
	if math.Abs(x) >= 99.95 {
		digits = 0
	}
	return strconv.FormatFloat(x, 'f', digits, 64) + " " + byteUnits[unit]
}

// ParseBytes parses a text such as "512", "300MB", "1.5 GiB" or "20g" as a number of bytes: a
// number above 0 and a unit, B, K, M, G or T with or without "B" or "iB", in any case. All units
// are binary: 1 KB is 1024 bytes, as in the output of [Bytes] and in Linux's kB.
func ParseBytes(text string) (int64, error) {
	rest := strings.TrimSpace(text)
	digits := strings.TrimRight(rest, "KMGTPIBkmgtpib ")
	unit := strings.ToUpper(strings.TrimSpace(rest[len(digits):]))
	x, err := strconv.ParseFloat(digits, 64)
	scale := -1
	for i, name := range byteUnits {
		if unit == name[:1] || unit == strings.ToUpper(name) || i > 0 && unit == name[:1]+"B" {
			scale = i
		}
	}
	if unit == "" {
		scale = 0
	}
	n := x * math.Pow(1024, float64(max(scale, 0)))
	if err != nil || scale < 0 || !(n >= 1) || n >= math.MaxInt64 || strings.ContainsAny(digits, "xXpP_") {
		return 0, fmt.Errorf("%q is not a number of bytes above 0, such as 20GiB or 300MB", text)
	}
	return int64(n), nil
}
