package serve

import "time"

// SetProvenWithin sets how long a connection may be open without a request that the server answers, and returns a function
// that sets it back.
func SetProvenWithin(d time.Duration) func() {
	old := provenWithin
	provenWithin = d
	return func() { provenWithin = old }
}
