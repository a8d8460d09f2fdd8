package gnb

import (
	"time"

	"github.com/graphnb/graphnb/gnb/live"
)

// LongReport is the report of n samples, one a second.
func LongReport(n int) *MonitorReport {
	m := &monitored{sink: live.NewMonitor(live.Options{Quiet: true})}
	for i := range n {
		m.add(MonitorSample{Time: time.Unix(int64(i), 0), Host: MonitorHost{CPU: MonitorValue(i%100) / 100}})
	}
	_ = m.sink.Close(m.picture(live.Done))
	return &m.report
}
