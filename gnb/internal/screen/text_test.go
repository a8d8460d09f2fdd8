package screen

import (
	"math"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"

	"pgregory.net/rapid"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Number(0), "0"},
		{Number(7), "7"},
		{Number(1.234), "1.23"},
		{Number(56.78), "56.8"},
		{Number(999.4), "999"},
		{Number(999.6), "1.00 k"},
		{Number(41234), "41.2 k"},
		{Number(412345), "412 k"},
		{Number(1.27e6), "1.27 M"},
		{Number(math.NaN()), "–"},
		{Value(0.41234), "0.412"},
		{Value(12.345), "12.35"},
		{Value(1234.5), "1234.5"},
		{Value(0.00012), "1.20e-04"},
		{Value(0), "0"},
		{Value(math.NaN()), "NaN"},
		{Value(math.Inf(-1)), "-Inf"},
		{phrase.Bytes(999), "999 B"},
		{phrase.Bytes(1024), "1.0 KiB"},
		{phrase.Bytes(100 << 20), "100 MiB"},
		{phrase.Bytes(5 << 40), "5.0 TiB"},
		{Clock(12 * time.Second), "00:12"},
		{Clock(-time.Second), "00:00"},
		{Clock(3723 * time.Second), "1:02:03"},
		{Clock(50 * time.Hour), "2d 02:00 h"},
		{Elapsed(1234 * time.Millisecond), "1.2 s"},
		{Elapsed(75 * time.Second), "01:15"},
		{Percent(0.999), "99 %"},
		{Percent(math.NaN()), "0 %"},
		{Of(3, 20), "3/20"},
		{Of(3, 0), "3"},
		{chart.Grouped(1234567), "1,234,567"},
		{chart.Grouped(-123456), "-123,456"},
		{chart.Grouped(123), "123"},
		{Plural(1, "step"), "1 step"},
		{Fit("accuracy", 4), "acc…"},
		{Fit("日本語", 5), "日本…"},
		{Fit("x", 0), ""},
		{phrase.CleanLine("10%\r50%\r100%\r"), "100%"},
		{phrase.CleanLine("a\tb\x07\x1b[1;31mred\x1b[0m \x1b]0;title\x07end"), "a    bred end"},
		{phrase.CleanLine("\x1b"), ""},
		{OneLine("a\nb\n"), "a b"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := rapid.String().Draw(t, "s"), rapid.IntRange(0, 40).Draw(t, "w")
		if got := Fit(phrase.CleanLine(s), w); Width(got) > w {
			t.Fatalf("%q has %d columns, want %d", got, Width(got), w)
		}
	})
}
