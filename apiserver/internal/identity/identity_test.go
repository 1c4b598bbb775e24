package identity

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestName: the name is the one that kube-apiserver v1.37.2 had on a host called vm.
func TestName(t *testing.T) {
	if got := nameOn("vm"); got != "apiserver-wlv32tlttr4jl3gtroqexyxapa" {
		t.Error(got)
	}
}

// TestRegisterer: the label has the name's hash.
func TestRegisterer(t *testing.T) {
	registry := prometheus.NewRegistry()
	Registerer(registry).MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "reloads"}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	label := families[0].GetMetric()[0].GetLabel()[0]
	if label.GetName() != "apiserver_id_hash" || label.GetValue() != Hash(Name()) {
		t.Error(label)
	}
	if got := Hash("apiserver-wlv32tlttr4jl3gtroqexyxapa"); got != "sha256:73095bbbe8f317654631b5a70d7c53951e472e19c3daa5b71a50958a5e82991b" {
		t.Error(got)
	}
}
