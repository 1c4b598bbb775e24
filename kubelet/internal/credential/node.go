package credential

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distribution/reference"
	"github.com/prometheus/client_golang/prometheus"
	kubeletv1 "k8s.io/kubelet/config/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/daemon"
)

// NodeCredentials holds the node's own credentials for registries, independent of the pod.
// It is safe for concurrent use.
type NodeCredentials struct {
	files   *Files
	plugins []*plugin

	failures  *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

// Options of New.
type Options struct {
	Files    *Files
	Plugins  []kubeletv1.CredentialProvider // see Load
	BinDir   string                         // where the plugins' programs are
	Accounts ServiceAccounts                // nil without an API server
	Clock    clock.PassiveClock
	Registry prometheus.Registerer
}

// New returns what the node's files and plugins know.
func New(o Options) *NodeCredentials {
	const subsystem = "kubelet_credential_provider_plugin"
	n := &NodeCredentials{
		files: o.Files,
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: subsystem, Name: "errors_total", Help: "Number of errors from credential provider plugin",
		}, []string{"plugin_name"}),
		durations: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem,
			Name:      "duration",
			Help:      "Duration of execution in seconds for credential provider plugin",
			Buckets:   prometheus.DefBuckets,
		}, []string{"plugin_name"}),
	}
	o.Registry.MustRegister(n.failures, n.durations)
	for _, p := range o.Plugins {
		n.plugins = append(n.plugins, newPlugin(p, o.BinDir, o.Accounts, o.Clock, n.observeRun))
	}
	return n
}

func (n *NodeCredentials) observeRun(plugin string, took time.Duration, err error) {
	n.durations.WithLabelValues(plugin).Observe(took.Seconds())
	if err != nil {
		n.failures.WithLabelValues(plugin).Inc()
	}
}

// Lookup returns the credentials for an image that a pod needs, in the order in which
// to try them. What can't be obtained is left out and reported in the error.
func (n *NodeCredentials) Lookup(ctx context.Context, pod *core.Pod, image string) ([]Credential, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil, err
	}
	var problems []error
	known, err := n.files.read()
	if err != nil {
		problems = append(problems, err)
	}
	fit := covering(named.Name(), known)
	for _, p := range n.plugins {
		more, err := p.lookup(ctx, pod, named.Name())
		if err != nil {
			problems = append(problems, fmt.Errorf("credential provider %s: %w", p.Name, err))
		}
		fit = append(fit, more...)
	}
	return fit, errors.Join(problems...)
}
