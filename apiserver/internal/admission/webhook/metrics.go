package webhook

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/daemon"
)

// metrics are upstream's names.
type metrics struct {
	duration *prometheus.HistogramVec
	requests *prometheus.CounterVec
	rejected *prometheus.CounterVec
	failOpen *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	const namespace, subsystem = "apiserver", "admission"
	return &metrics{
		duration: register(registry, daemon.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "webhook_admission_duration_seconds",
			Help:    "Admission webhook latency, by name and type (admit or validating) and operation.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25},
		}, []string{"name", "type", "operation", "rejected"})),
		requests: register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "webhook_request_total",
			Help: "Calls of admission webhooks, by name, type, operation, the code that they answered, and whether they refused. 503 is " +
				"for a call that got no answer.",
		}, []string{"name", "type", "operation", "code", "rejected"})),
		rejected: register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "webhook_rejection_count",
			Help: "Requests that an admission webhook refused (no_error), or that were refused because it could not be asked " +
				"(calling_webhook_error), with the code of its answer.",
		}, []string{"name", "type", "operation", "error_type", "rejection_code"})),
		failOpen: register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "webhook_fail_open_count",
			Help: "Requests that passed without an admission webhook that could not be asked.",
		}, []string{"name", "type"})),
	}
}

// register returns an already registered metric: both plugins share them.
func register[C prometheus.Collector](registry prometheus.Registerer, c C) C {
	var there prometheus.AlreadyRegisteredError
	if err := registry.Register(c); errors.As(err, &there) {
		return there.ExistingCollector.(C)
	}
	return c
}

// maxCode bounds how many codes webhooks can invent; upstream's.
const maxCode = 600

// observeCall counts a call. One that failed refuses the request unless the webhook fails
// open; its code is that of the answer, if there was one.
func (m *metrics) observeCall(kind string, i *invocation, took time.Duration, response *admissionv1.AdmissionResponse, err error) {
	kind, operation := typeOf(kind), string(i.request.Operation)
	code, rejected, why := 200, !i.failOpen, "no_error"
	var answer apierrors.APIStatus
	switch {
	case errors.As(err, &answer):
		code, why = int(answer.Status().Code), "calling_webhook_error"
	case err != nil:
		code, why = http.StatusServiceUnavailable, "calling_webhook_error"
	default:
		rejected = !response.Allowed
		if rejected {
			code = 400
			if response.Result != nil && response.Result.Code >= 400 && response.Result.Code < 600 {
				code = int(response.Result.Code)
			}
		}
	}
	refused := strconv.FormatBool(rejected)
	m.duration.WithLabelValues(i.name, kind, operation, refused).Observe(took.Seconds())
	m.requests.WithLabelValues(i.name, kind, operation, strconv.Itoa(code), refused).Inc()
	if rejected && !errors.Is(err, context.Canceled) { // by the client
		m.rejected.WithLabelValues(i.name, kind, operation, why, strconv.Itoa(min(code, maxCode))).Inc()
	}
}

func (m *metrics) countFailOpen(kind, hook string) {
	m.failOpen.WithLabelValues(hook, typeOf(kind)).Inc()
}

// typeOf is upstream's label for a kind of webhook: "admit", the step, for
// mutating ones, but "validating" for the others.
func typeOf(kind string) string {
	if kind == mutatingKind {
		return "admit"
	}
	return kind
}
