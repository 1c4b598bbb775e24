package aggregation

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kctl/apiserver/internal/resources/apiservice"
)

// metrics have upstream's names. They show the stored state of APIServices, so
// that all servers show the same.
type metrics struct {
	unavailable      *prometheus.GaugeVec
	unavailableTotal *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		unavailable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "aggregator_unavailable_apiservice",
			Help: "Gauge of APIServices which are marked as unavailable broken down by APIService name.",
		}, []string{"name"}),
		unavailableTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggregator_unavailable_apiservice_total",
			Help: "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
		}, []string{"name", "reason"}),
	}
	registry.MustRegister(m.unavailable, m.unavailableTotal)
	return m
}

// observeChange updates the metrics for one change of an APIService.
func (m *metrics) observeChange(old, now **apiservice.APIService) {
	if now == nil {
		m.unavailable.DeleteLabelValues((*old).Name)
		return
	}
	s := *now
	available := apiservice.IsAvailable(s)
	value := 1.0
	if available {
		value = 0
	}
	m.unavailable.WithLabelValues(s.Name).Set(value)
	if old != nil && apiservice.IsAvailable(*old) && !available {
		m.unavailableTotal.WithLabelValues(s.Name, reasonOf(s)).Inc()
	}
}

func reasonOf(s *apiservice.APIService) string {
	for _, c := range s.Status.Conditions {
		if c.Type == apiregistrationv1.Available {
			return cmp.Or(c.Reason, "UnknownReason")
		}
	}
	return "UnknownReason"
}
