package monitor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/graphnb/graphnb/gnb/monitor"
)

func ExampleWatch() {
	report, err := monitor.Watch(context.Background(), monitor.Options{
		Interval: 100 * time.Millisecond, Quiet: true,
		While: func(ctx context.Context) error { // what is watched, such as gnb.Train
			time.Sleep(time.Second)
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(len(report.Samples) > 0, report.Host.CPU.Max <= 1)
	// Output: true true
}
