package bootstrap

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Joining again with another flag than the first time is an error, because the kubelet would
// start from what the first one wrote.
func TestKeptConfigurationIsNotContradicted(t *testing.T) {
	server := meet(t, true, time.Hour, http.NotFound)
	first := Options{
		Discovery: Discovery{Server: server.address(), Hashes: []string{server.hash}}, Token: NewToken().String(), NodeName: "n", Now: time.Now(),
		Node:          Node{Dir: t.TempDir(), RootDir: t.TempDir(), Runtime: "unix:///first", Port: 10250},
		ClusterDomain: "cluster.local", Ignore: []string{"all"},
	}
	if _, err := Join(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	other := func(o *Options) {
		o.Runtime, o.Port, o.ClusterDNS, o.ClusterDomain, o.ServerTLS = "unix:///second", 10251, []string{"10.0.0.10"}, "local", true
	}
	for _, test := range []struct {
		given  []string
		change func(o *Options)
		want   []string // of the error; none: joins
	}{
		{nil, func(*Options) {}, nil},
		{[]string{"cri-socket", "kubelet-port"}, func(*Options) {}, nil},
		{nil, other, nil}, // the defaults of another release
		{[]string{"cri-socket"}, other,
			[]string{`kubelet.yaml exists from an earlier join with containerRuntimeEndpoint: "unix:///first", which differs from --cri-socket="unix:///second"`,
				"kctl reset"}},
		{[]string{"kubelet-port"}, other, []string{"with port: 10250, which differs from --kubelet-port=10251"}},
		{[]string{"cluster-dns", "cluster-domain"}, other, []string{`with no clusterDNS, which differs from --cluster-dns=["10.0.0.10"]`,
			`which differs from --cluster-domain="local"`}},
		{[]string{"server-tls-bootstrap"}, other, []string{"with serverTLSBootstrap: false, which differs from --server-tls-bootstrap=true"}},
	} {
		again := first
		test.change(&again)
		again.Given = func(flag string) bool { return slices.Contains(test.given, flag) }
		_, err := Join(t.Context(), again)
		if len(test.want) == 0 && err != nil {
			t.Errorf("%q: %v", test.given, err)
		}
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", test.given, err, want)
			}
		}
	}
	// Somebody has left out what is usual anyway.
	if err := os.WriteFile(first.configFile(), []byte("kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shorter := first
	shorter.Given = func(flag string) bool { return flag == "kubelet-port" || flag == "server-tls-bootstrap" }
	if _, err := Join(t.Context(), shorter); err != nil {
		t.Errorf("with what is usual: %v", err)
	}
	if err := os.WriteFile(first.configFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(t.Context(), first); err == nil || !strings.Contains(err.Error(), first.configFile()) {
		t.Errorf("a configuration that nobody can read: %v", err)
	}
}
