package live

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
		{number(0), "0"},
		{number(7), "7"},
		{number(1.234), "1.23"},
		{number(56.78), "56.8"},
		{number(999.4), "999"},
		{number(999.6), "1.00 k"},
		{number(41234), "41.2 k"},
		{number(412345), "412 k"},
		{number(1.27e6), "1.27 M"},
		{number(math.NaN()), "–"},
		{value(0.41234), "0.412"},
		{value(12.345), "12.35"},
		{value(1234.5), "1234.5"},
		{value(0.00012), "1.20e-04"},
		{value(0), "0"},
		{value(math.NaN()), "NaN"},
		{value(math.Inf(-1)), "-Inf"},
		{phrase.Bytes(999), "999 B"},
		{phrase.Bytes(1024), "1.0 KiB"},
		{phrase.Bytes(100 << 20), "100 MiB"},
		{phrase.Bytes(5 << 40), "5.0 TiB"},
		{clock(12 * time.Second), "00:12"},
		{clock(-time.Second), "00:00"},
		{clock(3723 * time.Second), "1:02:03"},
		{clock(50 * time.Hour), "2d 02:00 h"},
		{elapsed(1234 * time.Millisecond), "1.2 s"},
		{elapsed(75 * time.Second), "01:15"},
		{percent(0.999), "99 %"},
		{percent(math.NaN()), "0 %"},
		{of(3, 20), "3/20"},
		{of(3, 0), "3"},
		{chart.Grouped(1234567), "1,234,567"},
		{chart.Grouped(-123456), "-123,456"},
		{chart.Grouped(123), "123"},
		{plural(1, "step"), "1 step"},
		{fit("accuracy", 4), "acc…"},
		{fit("日本語", 5), "日本…"},
		{fit("x", 0), ""},
		{clean("10%\r50%\r100%\r"), "100%"},
		{clean("a\tb\x07\x1b[1;31mred\x1b[0m \x1b]0;title\x07end"), "a    bred end"},
		{clean("\x1b"), ""},
		{oneLine("a\nb\n"), "a b"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestProgressOfRun(t *testing.T) {
	for _, c := range []struct {
		s     Snapshot
		want  float64
		known bool
	}{
		{Snapshot{}, 0, false},
		{Snapshot{State: Done}, 1, true},
		{Snapshot{Epochs: 4}, 0, true},
		{Snapshot{Epoch: 2, Epochs: 4, Step: 5, Steps: 10}, 0.375, true},
		{Snapshot{Epoch: 4, Epochs: 4, Step: 10, Steps: 10}, 1, true},
		{Snapshot{Epoch: 9, Epochs: 4}, 1, true},
		{Snapshot{Step: 5, Steps: 10}, 0.5, true},
	} {
		if got, known := c.s.progress(); got != c.want || known != c.known {
			t.Errorf("%+v: %g %v, want %g %v", c.s, got, known, c.want, c.known)
		}
	}
}

func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := rapid.String().Draw(t, "s"), rapid.IntRange(0, 40).Draw(t, "w")
		if got := fit(clean(s), w); width(got) > w {
			t.Fatalf("%q has %d columns, want %d", got, width(got), w)
		}
	})
}
