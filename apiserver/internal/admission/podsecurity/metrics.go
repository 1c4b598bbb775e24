package podsecurity

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/pod-security-admission/api"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
	"kctl/proto/release"
)

// metrics are upstream's: what was evaluated and with which result, what was exempt, and
// what could not be evaluated as its namespace asks.
type metrics struct {
	evaluations, exemptions, errors *prometheus.CounterVec
	newest                          api.Version
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	newest, err := api.ParseVersion("v" + release.Kubernetes)
	if err != nil {
		return nil, err
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "pod_security", Name: name, Help: help},
			append(labels, "request_operation", "resource", "subresource"))
		registry.MustRegister(c)
		return c
	}
	m := &metrics{
		evaluations: counter("evaluations_total", "Policies evaluated for requests, by what was decided.",
			"decision", "policy_level", "policy_version", "mode"),
		exemptions: counter("exemptions_total", "Requests that were exempt from Pod Security."),
		errors: counter("errors_total",
			"Requests that could not be evaluated as their namespace asks; those that are not fatal were held to the level restricted.", "fatal"),
		newest: newest,
	}
	// These are shown from the start, so that rates of them are right.
	for _, operation := range []string{"create", "update"} {
		m.evaluations.WithLabelValues("allow", string(api.LevelPrivileged), api.VersionLatest, string(enforce), operation, "pod", "")
		m.exemptions.WithLabelValues(operation, "pod", "")
		m.exemptions.WithLabelValues(operation, "controller", "")
	}
	return m, nil
}

// mode is what a policy is evaluated for.
type mode string

const (
	enforce  mode = "enforce"
	auditing mode = "audit"
	warn     mode = "warn"
)

func (m *metrics) evaluated(a *admission.Attributes, of mode, level api.LevelVersion, allowed bool) {
	decision := "deny"
	if allowed {
		decision = "allow"
	}
	version := level.Version.String()
	switch {
	case level.Level == api.LevelPrivileged: // the same in every version
		version = api.LatestVersion().String()
	case !level.Version.Latest() && m.newest.Older(level.Version):
		version = "future"
	}
	m.evaluations.WithLabelValues(append([]string{decision, string(level.Level), version, string(of)}, requestLabels(a)...)...).Inc()
}

func (m *metrics) exempt(a *admission.Attributes) {
	m.exemptions.WithLabelValues(requestLabels(a)...).Inc()
}

func (m *metrics) failed(a *admission.Attributes, fatal bool) {
	m.errors.WithLabelValues(append([]string{strconv.FormatBool(fatal)}, requestLabels(a)...)...).Inc()
}

// requestLabels are the operation, what kind of resource it is about, and its subresource.
func requestLabels(a *admission.Attributes) []string {
	resource := "controller"
	if _, ok := a.Object.(*core.Pod); ok {
		resource = "pod"
	}
	return []string{strings.ToLower(string(a.Operation)), resource, a.Subresource}
}
