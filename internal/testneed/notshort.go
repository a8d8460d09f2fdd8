package testneed

import "testing"

// underRace reports whether the race detector is compiled in.
var underRace bool

// UnderRace reports whether the race detector, which needs additional memory, is compiled in.
func UnderRace() bool { return underRace }

// NotShort skips the test with -short, with the reason why it is not a quick test. Under the race
// detector the test runs nevertheless: these runs are always short, and leave out only the tests
// that ask testing.Short themselves.
func NotShort(t testing.TB, why string) {
	t.Helper()
	if testing.Short() && !underRace {
		t.Skip(why)
	}
}
