package tables

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// timed are nodes a, b and edges a→b with times of a type.
func timed(t *testing.T, of arrow.DataType, times ...string) (dir string, f Files) {
	t.Helper()
	dir = t.TempDir()
	arrowTable(t, dir+"/nodes.arrow", col{"id", arrow.BinaryTypes.String, []string{"a", "b"}}, col{"f", arrow.PrimitiveTypes.Int64, []string{"1", "2"}})
	a, b := slices.Repeat([]string{"a"}, len(times)), slices.Repeat([]string{"b"}, len(times))
	arrowTable(t, dir+"/edges.arrow", col{"source", arrow.BinaryTypes.String, a}, col{"target", arrow.BinaryTypes.String, b}, col{"time", of, times})
	return dir, Of(dir+"/nodes.arrow", dir+"/edges.arrow")
}

func timesOf(ds *dataset.Dataset) string { return fmt.Sprint(ds.Graph.EdgeTimes) }

// Fractions of seconds are kept, in the coarsest unit that has all times of a column; the recipe has the unit.
func TestTimesKeepFractions(t *testing.T) {
	within := []string{"2023-11-14T22:13:20.1Z", "2023-11-14T22:13:20.2Z", "2023-11-14T22:13:20.9Z", "2023-11-14T22:13:21.5Z"}
	const ms = "[1700000000100 1700000000200 1700000000900 1700000001500]"
	for _, c := range []struct {
		name  string
		of    arrow.DataType
		times []string
		o     Options
		unit  string
		want  string
		note  string
	}{
		{"ms", arrow.FixedWidthTypes.Timestamp_ms, within, Options{}, "ms", ms, ""},
		{"us", arrow.FixedWidthTypes.Timestamp_us, within, Options{}, "ms", ms, ""},
		{"ns", arrow.FixedWidthTypes.Timestamp_ns, within, Options{}, "ms", ms, ""},
		{"whole seconds of ns", arrow.FixedWidthTypes.Timestamp_ns, []string{"2023-11-14T22:13:20Z", "1969-12-31T23:59:59Z"}, Options{}, "s", "[-1 1700000000]", ""},
		{"before 1970", arrow.FixedWidthTypes.Timestamp_us, []string{"1969-12-31T23:59:59.999999Z"}, Options{}, "us", "[-1]", ""},
		{"days", arrow.FixedWidthTypes.Date32, []string{"1970-01-02"}, Options{}, "s", "[86400]", ""},
		{"as given", arrow.FixedWidthTypes.Timestamp_ms, within, Options{TimeUnit: "ns"}, "ns", "[1700000000100000000 1700000000200000000 1700000000900000000 1700000001500000000]", ""},
		{"rounded as given", arrow.FixedWidthTypes.Timestamp_ms, within, Options{TimeUnit: "s"}, "s", "[1700000000 1700000001]", "times are rounded down to s, as TimeUnit says (4 of 4)"},
		{"whole numbers", arrow.PrimitiveTypes.Int64, []string{"1700000000100"}, Options{}, "", "[1700000000100]", ""},
		{"durations", arrow.FixedWidthTypes.Duration_ms, []string{"1500ms"}, Options{}, "ms", "[1500]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, f := timed(t, c.of, c.times...)
			notes := ""
			c.o.Note = func(s string) { notes += s }
			ds := read(t, dir+"/ds", f, c.o)
			r, err := ReadRecipe(ds.Dir())
			if err != nil {
				t.Fatal(err)
			}
			if unit := r.Edges[0].column(Time).Unit; timesOf(ds) != c.want || unit != c.unit {
				t.Errorf("the times are %s in %q, want %s in %q", timesOf(ds), unit, c.want, c.unit)
			}
			if !strings.Contains(notes, c.note) {
				t.Errorf("the notes are %q, want %q", notes, c.note)
			}
		})
	}
	t.Run("text", func(t *testing.T) {
		for layout, times := range map[string][2]string{"": {"2023-11-14 22:13:20.25", "2023-11-14 22:13:20.5"}, "2006-01-02T15h04m05": {"2023-11-14T22h13m20.25", "2023-11-14T22h13m20.5"}} {
			dir, f := pair(t, "id,f\na,1\nb,2\n", "source,target,time\na,b,"+times[0]+"\na,b,"+times[1]+"\n")
			o := Options{}
			if layout != "" {
				o.Layouts = map[string]string{"time": layout}
			}
			if ds := read(t, dir+"/ds", f, o); timesOf(ds) != "[1700000000250 1700000000500]" {
				t.Errorf("the times are %s", timesOf(ds))
			}
		}
	})
}

// Appended times are converted to the unit of the dataset's, and refused where that is not possible.
func TestAppendConvertsTimes(t *testing.T) {
	base := map[string][2]any{
		"dates":     {arrow.FixedWidthTypes.Timestamp_ms, []string{"2023-11-14T22:13:20.1Z"}},
		"seconds":   {arrow.FixedWidthTypes.Timestamp_ns, []string{"2023-11-14T22:13:20Z"}},
		"cut":       {arrow.FixedWidthTypes.Timestamp_ms, []string{"2023-11-14T22:13:20.1Z"}},
		"wholes":    {arrow.PrimitiveTypes.Int64, []string{"1700000000100"}},
		"durations": {arrow.FixedWidthTypes.Duration_ms, []string{"1500ms"}},
	}
	for _, c := range []struct {
		base  string
		of    arrow.DataType
		time  string
		want  string
		wrong string
	}{
		{"dates", arrow.FixedWidthTypes.Timestamp_ns, "2023-11-14T22:13:25.25Z", "[1700000000100 1700000005250]", ""},
		{"dates", arrow.FixedWidthTypes.Timestamp_s, "2023-11-14T22:13:25Z", "[1700000000100 1700000005000]", ""},
		{"dates", arrow.FixedWidthTypes.Timestamp_ns, "2023-11-14T22:13:25.2501Z", "", "finer than ms"},
		{"dates", arrow.PrimitiveTypes.Int64, "1700000005000", "", "has plain values, and the recipe has dates"},
		{"dates", arrow.FixedWidthTypes.Duration_s, "5s", "", "has durations or times of day, and the recipe has dates"},
		{"seconds", arrow.FixedWidthTypes.Timestamp_ms, "2023-11-14T22:13:25.5Z", "", "TimeUnit"},
		{"cut", arrow.FixedWidthTypes.Timestamp_ms, "2023-11-14T22:13:25.5Z", "[1700000000 1700000005]", ""},
		{"wholes", arrow.FixedWidthTypes.Timestamp_ms, "2023-11-14T22:13:25.5Z", "", "has dates, and the recipe has plain values"},
		{"wholes", arrow.PrimitiveTypes.Uint64, "18446744073709551615", "", "whole number of 64 bits"},
		{"wholes", arrow.PrimitiveTypes.Int32, "7", "[7 1700000000100]", ""},
		{"durations", arrow.FixedWidthTypes.Duration_s, "2s", "[1500 2000]", ""},
		{"durations", arrow.PrimitiveTypes.Int64, "2", "", "has plain values, and the recipe has durations"},
	} {
		t.Run(fmt.Sprintf("%s and %s %s", c.base, c.of, c.time), func(t *testing.T) {
			dir, f := timed(t, base[c.base][0].(arrow.DataType), base[c.base][1].([]string)...)
			ds := read(t, dir+"/ds", f, Options{TimeUnit: map[string]string{"cut": "s"}[c.base]})
			_, f = timed(t, c.of, c.time)
			got, err := Append(t.Context(), dir+"/more", ds, Files{Edges: f.Edges}, AppendOptions{Quiet: true})
			if c.wrong != "" {
				sentence(t, err, c.wrong)
				if strings.Contains(c.wrong, "recipe has") && !errors.Is(err, errTimes) {
					t.Errorf("the error is of another kind: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			if timesOf(got) != c.want {
				t.Errorf("the times are %s, want %s", timesOf(got), c.want)
			}
		})
	}
}

// A duration or a time of day is the same feature in any unit.
func TestDurationsAsFeatures(t *testing.T) {
	nodes := func(of arrow.DataType, first int, values ...string) (string, Files) {
		dir := t.TempDir()
		var ids []string
		for i := range values {
			ids = append(ids, fmt.Sprint("n", first+i))
		}
		arrowTable(t, dir+"/nodes.arrow", col{"id", arrow.BinaryTypes.String, ids}, col{"d", of, values})
		arrowTable(t, dir+"/edges.arrow", col{"source", arrow.BinaryTypes.String, ids[:1]}, col{"target", arrow.BinaryTypes.String, ids[:1]})
		return dir, Of(dir+"/nodes.arrow", dir+"/edges.arrow")
	}
	for name, c := range map[string]struct {
		first, later arrow.DataType
		a, b         []string
	}{
		"durations":    {arrow.FixedWidthTypes.Duration_s, arrow.FixedWidthTypes.Duration_ms, []string{"1s", "60s", "30s"}, []string{"60000ms", "", "1500ms"}},
		"times of day": {arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time32ms, []string{"00:00:01", "10:00:00", "23:59:59.5"}, []string{"10:00:00", "", "00:00:01"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, f := nodes(c.first, 0, c.a...)
			ds := read(t, dir+"/ds", f, Options{})
			_, f = nodes(c.later, 3, c.b...)
			got, err := Append(t.Context(), dir+"/more", ds, f, AppendOptions{Quiet: true})
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			x := got.Features.F32
			if x[3] != x[1] || math.Abs(float64(x[4])) > 1e-6 || name == "times of day" && x[5] != x[0] || name == "durations" && !(x[5] > x[0] && x[5] < x[2]) {
				t.Errorf("the features are %v", x)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		x        int64
		from, to unit
		want     int64
		exact    bool
		fits     bool
	}{
		{1500, millis, seconds, 1, false, true},
		{-1500, millis, seconds, -2, false, true},
		{-2000, millis, seconds, -2, true, true},
		{7, seconds, nanos, 7e9, true, true},
		{math.MaxInt64, seconds, nanos, 0, true, false},
		{math.MinInt64, nanos, seconds, -9223372037, false, true},
		{5, micros, micros, 5, true, true},
	} {
		y, exact, fits := c.from.in(c.x, c.to)
		if fits != c.fits || fits && (y != c.want || exact != c.exact) {
			t.Errorf("%d %s are %d %s (%v, %v)", c.x, c.from, y, c.to, exact, fits)
		}
	}
	for u := seconds; u <= nanos; u++ {
		for _, x := range []int64{0, -1, 1, math.MinInt64, math.MaxInt64, 1700000000123456789} {
			if y, exact, fits := countOf(u.time(x), u); fits && (y != x || !exact) {
				t.Errorf("%d %s become %d (%v)", x, u, y, exact)
			}
		}
	}
	if _, _, fits := countOf(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), nanos); fits {
		t.Error("the year 9999 fits in nanoseconds")
	}
}
