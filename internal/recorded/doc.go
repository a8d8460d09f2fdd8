// Package recorded tests that the command trains the same weights as an earlier version.
//
// testdata/weights.json holds digests of the weights of runs, including trials of sweeps, and
// testdata/run is the directory of an interrupted run of that version. The tests repeat the runs,
// compare the digests, and read and resume the directory. A change of layout, names or structure
// must not change a single bit of them.
//
// A commit that intentionally changes results records new digests, and says so in its message:
//
//	go test ./internal/recorded -run Record$ -update [-gnb PATH]
//
// PATH is the executable to record; the default is built from this checkout.
package recorded
