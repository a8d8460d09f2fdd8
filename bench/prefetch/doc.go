// Package prefetch has a benchmark of runs whose features come from another machine ahead of use. It compares the time of
// a step over two hosts (1 Gbit/s, 1 ms of delay) with the larger of two other times: that of a step of the same run with
// all rows here, and that of the rows on the wire; both with the all-reduce's own time over these hosts.
//
//	GNB_BENCH_PREFETCH_OUT=bench/results/prefetch.json go test -run '^$' -bench . -benchtime 1x -timeout 1h -v ./bench/prefetch
package prefetch
