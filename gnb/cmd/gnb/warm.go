package main

import (
	"context"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/internal/machine"
)

const (
	// warmFor bounds the time of the answers before the first request.
	warmFor = 40 * time.Millisecond
	// warmNodes is the largest number of nodes of one of them: as many requests as may wait after a moment.
	warmNodes = 64
	// populateShare is the reciprocal of the share of free memory up to which a dataset's files are read into it.
	populateShare = 2
)

// warm answers for nodes before the first request, calls at a time, so that working memory exists when many requests come at once. Nodes
// that cannot be answered are left out.
func warm(ctx context.Context, p *predict.Predictor, ds *gnb.Dataset, calls int) {
	if ds.Nodes() == 0 {
		return
	}
	until := time.Now().Add(warmFor)
	within, end := context.WithDeadline(ctx, until)
	defer end()
	var all sync.WaitGroup
	for c := range calls {
		all.Go(func() {
			for n := 1; n <= warmNodes && time.Now().Before(until); n *= 4 {
				nodes := make([]int32, n)
				for i := range nodes {
					nodes[i] = int32((int64(i*calls+c) * int64(ds.Nodes()) / int64(calls*n)))
				}
				_, _ = p.Numbered(within, nodes...)
			}
		})
	}
	all.Wait()
}

// populate reads a dataset's files into memory behind the first requests, if memory is free. The function that it returns ends and awaits it.
func populate(ctx context.Context, ds *gnb.Dataset) (end func()) {
	m, err := machine.ReadMemory()
	if err != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ds.Populate(ctx, m.Free/populateShare)
	}()
	return func() { cancel(); <-ended }
}
