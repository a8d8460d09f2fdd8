// Package recorded compares what the command trains today with what an earlier version trained.
//
// testdata/weights.json holds digests of the weights of runs, sweeps' trials included, and
// testdata/run is the directory of an interrupted run, as that version left it. The tests repeat
// the runs, compare the digests, and read and resume the directory. A change of layout, names or
// structure must not change a single bit of them.
//
// A change that is meant to alter results records new digests, and says so in its commit:
//
//	go test ./internal/recorded -run Record$ -update [-gnb PATH]
//
// PATH is the executable to record; the default is built from this checkout.
package recorded
