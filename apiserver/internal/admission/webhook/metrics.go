package webhook

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"kctl/apiserver/internal/admission"
)

// metrics are upstream's names.
type metrics struct {
	duration *prometheus.HistogramVec
	requests *prometheus.CounterVec
	open     *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	const namespace, subsystem = "apiserver", "admission"
	return &metrics{
		duration: register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "webhook_admission_duration_seconds",
			Help:    "Admission webhook latency, by name and type (mutating or validating) and operation.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25},
		}, []string{"name", "type", "operation", "rejected"})),
		requests: register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "webhook_request_total",
			Help: "Calls of admission webhooks, by name, type, operation, the code that they answered, and whether they refused. 600 is for a call that failed.",
		}, []string{"name", "type", "operation", "code", "rejected"})),
		open: register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "webhook_fail_open_count",
			Help: "Requests that passed without an admission webhook that could not be asked.",
		}, []string{"name", "type"})),
	}
}

// register takes what is there already: both plugins count in the same.
func register[C prometheus.Collector](registry prometheus.Registerer, c C) C {
	var there prometheus.AlreadyRegisteredError
	if err := registry.Register(c); errors.As(err, &there) {
		return there.ExistingCollector.(C)
	}
	return c
}

// callFailed is the code of a call that got no answer; upstream's.
const callFailed = 600

// called counts a call; response is nil where it failed.
func (m *metrics) called(kind, hook string, operation admission.Operation, took time.Duration, response *admissionv1.AdmissionResponse) {
	code, rejected := callFailed, true
	if response != nil {
		code, rejected = 200, !response.Allowed
		if rejected {
			code = 400
			if response.Result != nil && response.Result.Code >= 400 && response.Result.Code < 600 {
				code = int(response.Result.Code)
			}
		}
	}
	refused := strconv.FormatBool(rejected)
	m.duration.WithLabelValues(hook, kind, string(operation), refused).Observe(took.Seconds())
	m.requests.WithLabelValues(hook, kind, string(operation), strconv.Itoa(code), refused).Inc()
}

func (m *metrics) failedOpen(kind, hook string) { m.open.WithLabelValues(hook, kind).Inc() }
