package daemon

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const processStartMetric = "process_start_time_seconds"

// NewProcessStart is when the process started, as NewRegistry has it, for what is scraped by
// itself and has counters: by it, one tells a program that was restarted.
func NewProcessStart() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: processStartMetric, Help: "Start time of the process since unix epoch in seconds.",
	}, processStart)
}

// processStart asks the collector of all figures of the process, so that there is one time
// everywhere; 0 if the kernel does not say.
var processStart = sync.OnceValue(func() float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, _ := registry.Gather() // of those that failed it has no figures
	for _, family := range families {
		if family.GetName() == processStartMetric {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return 0
})
