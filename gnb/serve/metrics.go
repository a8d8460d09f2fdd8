package serve

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
)

// counters are a server's metrics.
type counters struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec // by method and status
	seconds  *prometheus.HistogramVec
	bytes    *prometheus.CounterVec // sent, by method
	refused  prometheus.Counter
	panics   prometheus.Counter
}

func newCounters(s *Server) *counters {
	c := &counters{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gnb_serve_requests_total", Help: "Requests answered, by method and gRPC status."}, []string{"method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gnb_serve_request_seconds", Help: "Time from a request to the end of its answer.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"method"}),
		bytes:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gnb_serve_sent_bytes_total", Help: "Bytes of answers, by method."}, []string{"method"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "gnb_serve_refused_total", Help: "Requests without the token, or for another dataset."}),
		panics:  prometheus.NewCounter(prometheus.CounterOpts{Name: "gnb_serve_panics_total", Help: "Requests that ended in a panic."}),
	}
	busy := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gnb_serve_busy", Help: "Requests being answered."}, func() float64 { return float64(len(s.calls)) })
	c.registry.MustRegister(c.requests, c.seconds, c.bytes, c.refused, c.panics, busy,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return c
}

func (c *counters) handler() http.Handler {
	return promhttp.HandlerFor(c.registry, promhttp.HandlerOpts{Registry: c.registry})
}

func (c *counters) done(method string, code codes.Code, d time.Duration, sent int64) {
	c.requests.WithLabelValues(method, code.String()).Inc()
	c.seconds.WithLabelValues(method).Observe(d.Seconds())
	c.bytes.WithLabelValues(method).Add(float64(sent))
}
