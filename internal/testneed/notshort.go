package testneed

import (
	"testing"

	"github.com/graphnb/graphnb/internal/envknob"
)

// underRace reports whether the race detector is compiled in.
var underRace bool

// UnderRace reports whether the race detector, which needs additional memory, is compiled in.
func UnderRace() bool { return underRace }

// NotShort skips the test with -short, with the reason why it is not a quick test. "make race" is -short too;
// GNB_RACE=all, which "make soak" sets, runs the test under the race detector nevertheless.
func NotShort(t testing.TB, why string) {
	t.Helper()
	if testing.Short() && !(underRace && envknob.Race.Get() == "all") {
		t.Skip(why)
	}
}

// Raced is [NotShort] for a test that also runs in "make race", because goroutines or workers share data in it in
// a way that no quick test covers.
func Raced(t testing.TB, why string) {
	t.Helper()
	if testing.Short() && !underRace {
		t.Skip(why)
	}
}

// NotUnderRace skips a quick test that the race detector makes slow, and in which it finds nothing that it does not
// find in others.
func NotUnderRace(t testing.TB, why string) {
	t.Helper()
	if underRace {
		t.Skip(why)
	}
}
