package answer

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// counters are a server's metrics.
type counters struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec // by path and status
	seconds  *prometheus.HistogramVec
	joined   prometheus.Counter
	refused  prometheus.Counter
}

func newCounters(s *Server) *counters {
	c := &counters{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gnb_answer_requests_total", Help: "Requests answered, by call and HTTP status."}, []string{"call", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gnb_answer_request_seconds", Help: "Time from a request to its answer, with waiting.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"call"}),
		joined:  prometheus.NewCounter(prometheus.CounterOpts{Name: "gnb_answer_joined_total", Help: "Requests that were computed together with others."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "gnb_answer_refused_total", Help: "Requests without the token."}),
	}
	gauge := func(name, help string, of func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(of()) })
	}
	c.registry.MustRegister(c.requests, c.seconds, c.joined, c.refused,
		gauge("gnb_answer_busy", "Calls that are computed.", func() int { return len(s.slots) }),
		gauge("gnb_answer_open", "Requests that wait or are computed.", func() int { return len(s.queue) }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return c
}

func (c *counters) handler() http.Handler {
	return promhttp.HandlerFor(c.registry, promhttp.HandlerOpts{Registry: c.registry})
}

func (c *counters) done(call string, status int, d time.Duration) {
	c.requests.WithLabelValues(call, strconv.Itoa(status)).Inc()
	c.seconds.WithLabelValues(call).Observe(d.Seconds())
}
