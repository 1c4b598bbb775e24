package dns

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

func TestOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("# node\nnameserver 192.0.2.1\nsearch example.org .\noptions timeout:1 ndots:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := &Configurer{ResolvConf: path, Servers: []string{"10.0.0.10"}, Domain: "cluster.local"}
	own := &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.10", "10.0.0.11"}, Searches: []string{"a.b"},
		Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr.To("1")}, {Name: "edns0"}}}
	for _, c := range []struct {
		name       string
		configurer *Configurer
		spec       core.PodSpec
		want       string
	}{
		{"cluster first", cluster, core.PodSpec{DNSPolicy: corev1.DNSClusterFirst}, "10.0.0.10|ns.svc.cluster.local svc.cluster.local cluster.local example.org|ndots:5"},
		{"host network", cluster, core.PodSpec{DNSPolicy: corev1.DNSClusterFirst, HostNetwork: true}, "192.0.2.1|example.org|timeout:1 ndots:2"},
		{"cluster first with host network", cluster, core.PodSpec{DNSPolicy: corev1.DNSClusterFirstWithHostNet, HostNetwork: true}, "10.0.0.10|ns.svc.cluster.local svc.cluster.local cluster.local example.org|ndots:5"},
		{"default", cluster, core.PodSpec{DNSPolicy: corev1.DNSDefault}, "192.0.2.1|example.org|timeout:1 ndots:2"},
		{"none, own", cluster, core.PodSpec{DNSPolicy: corev1.DNSNone, DNSConfig: own}, "10.0.0.10 10.0.0.11|a.b|ndots:1 edns0"},
		{"default and own", cluster, core.PodSpec{DNSPolicy: corev1.DNSDefault, DNSConfig: own}, "192.0.2.1 10.0.0.10 10.0.0.11|example.org a.b|timeout:1 ndots:1 edns0"},
		{"no cluster servers", &Configurer{ResolvConf: path}, core.PodSpec{DNSPolicy: corev1.DNSClusterFirst}, "192.0.2.1|example.org|timeout:1 ndots:2"},
	} {
		got, err := c.configurer.Of(&core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: c.spec})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		text := strings.Join(got.Servers, " ") + "|" + strings.Join(got.Searches, " ") + "|" + strings.Join(got.Options, " ")
		if text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
	if _, err := (&Configurer{ResolvConf: "/does/not/exist"}).Of(&core.Pod{}); err == nil {
		t.Error("a missing resolv.conf is silently none")
	}
}
