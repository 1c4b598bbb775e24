package dns

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

func TestOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("# node\nnameserver 192.0.2.1\nsearch example.org. .\noptions timeout:2 timeout:1\noptions ndots:2\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	cluster := &Configurer{ResolvConf: path, Servers: []string{"10.0.0.10"}, Domain: "cluster.local"}
	own := &corev1.PodDNSConfig{
		Nameservers: []string{"10.0.0.10", "10.0.0.11"},
		Searches:    []string{"a.b"},
		Options:     []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("1")}, {Name: "edns0"}},
	}
	var long []string // nine of 253 characters
	for i := range 9 {
		long = append(long, strings.Repeat(string(rune('a'+i)), 253))
	}
	for _, c := range []struct {
		name       string
		configurer *Configurer
		spec       core.PodSpec
		want       string
		warning    string
	}{
		{"cluster first", cluster, core.PodSpec{DNSPolicy: corev1.DNSClusterFirst},
			"10.0.0.10|ns.svc.cluster.local svc.cluster.local cluster.local example.org|ndots:5", ""},
		{"host network", cluster, core.PodSpec{DNSPolicy: corev1.DNSClusterFirst, HostNetwork: true}, "192.0.2.1|example.org|timeout:1 ndots:2", ""},
		{"cluster first with host network", cluster, core.PodSpec{DNSPolicy: corev1.DNSClusterFirstWithHostNet, HostNetwork: true},
			"10.0.0.10|ns.svc.cluster.local svc.cluster.local cluster.local example.org|ndots:5", ""},
		{"default", cluster, core.PodSpec{DNSPolicy: corev1.DNSDefault}, "192.0.2.1|example.org|timeout:1 ndots:2", ""},
		{"none, own", cluster, core.PodSpec{DNSPolicy: corev1.DNSNone, DNSConfig: own}, "10.0.0.10 10.0.0.11|a.b|ndots:1 edns0", ""},
		{"default and own", cluster, core.PodSpec{DNSPolicy: corev1.DNSDefault, DNSConfig: own},
			"192.0.2.1 10.0.0.10 10.0.0.11|example.org a.b|timeout:1 ndots:1 edns0", ""},
		{"no cluster servers", &Configurer{ResolvConf: path}, core.PodSpec{DNSPolicy: corev1.DNSClusterFirst}, "192.0.2.1|example.org|timeout:1 ndots:2",
			`MissingClusterDNS pod: "p_ns(uid)". kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`},
		{"no cluster servers, the host's network", &Configurer{ResolvConf: path}, core.PodSpec{DNSPolicy: corev1.DNSClusterFirst, HostNetwork: true},
			"192.0.2.1|example.org|timeout:1 ndots:2", ""},
		{"none of the node's", &Configurer{Servers: []string{"10.0.0.10"}, Domain: "cluster.local"}, core.PodSpec{DNSPolicy: corev1.DNSDefault}, "127.0.0.1|.|", ""},
		{"none of the node's, of both families", &Configurer{NodeIPs: func() []string { return []string{"fd00::1", "192.0.2.1"} }}, core.PodSpec{DNSPolicy: corev1.DNSDefault},
			"::1 127.0.0.1|.|", ""},
		{"none of the node's, cluster first", &Configurer{Servers: []string{"10.0.0.10"}, Domain: "cluster.local"}, core.PodSpec{DNSPolicy: corev1.DNSClusterFirst},
			"10.0.0.10|ns.svc.cluster.local svc.cluster.local cluster.local|ndots:5", ""},
		{"too many servers", cluster, core.PodSpec{DNSPolicy: corev1.DNSNone, DNSConfig: &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.1", "10.0.0.2",
			"10.0.0.2", "10.0.0.3", "10.0.0.4"}}}, "10.0.0.1 10.0.0.2 10.0.0.3||",
			"DNSConfigForming Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 10.0.0.1 10.0.0.2 10.0.0.3"},
		{"a search path too long", cluster, core.PodSpec{
			DNSPolicy: corev1.DNSNone,
			DNSConfig: &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.1"}, Searches: []string{"a.b", strings.Repeat("c", 254), "d"}},
		}, "10.0.0.1|a.b d|",
			"DNSConfigForming Search Line limits were exceeded, some search paths have been omitted, the applied search line is: a.b d"},
		{"search paths too long together", cluster, core.PodSpec{
			DNSPolicy: corev1.DNSNone, DNSConfig: &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.1"}, Searches: long},
		}, "10.0.0.1|" + strings.Join(long[:8], " ") + "|",
			"DNSConfigForming Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " + strings.Join(long[:8], " ")},
	} {
		warned := ""
		c.configurer.Warn = func(_ *core.Pod, reason, text string) { warned += reason + " " + text }
		got, err := c.configurer.ForPod(&core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid"}, Spec: c.spec})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		text := strings.Join(got.Servers, " ") + "|" + strings.Join(got.Searches, " ") + "|" + strings.Join(got.Options, " ")
		if text != c.want || warned != c.warning {
			t.Errorf("%s: %q and %q, want %q and %q", c.name, text, warned, c.want, c.warning)
		}
	}
	text := ""
	none := &Configurer{WarnNode: func(reason, said string) { text += reason + " " + said }}
	for _, policy := range []corev1.DNSPolicy{corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault} {
		if _, err := none.ForPod(&core.Pod{Spec: core.PodSpec{DNSPolicy: policy}}); err != nil {
			t.Error(err)
		}
	}
	const want = `MissingClusterDNS kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`
	if text != want {
		t.Errorf("of the node it is said, once: %q, want %q", text, want)
	}
	if _, err := (&Configurer{ResolvConf: "/does/not/exist"}).ForPod(&core.Pod{}); err == nil {
		t.Error("a missing resolv.conf is silently none")
	}
}

// A node says when it starts that its pods will not have all of its search paths.
func TestTheNodesSearchPathsAreChecked(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ searches, domain, want string }{
		"missing": {"", "cluster.local", "missing: no such file or directory"},
		"few":     {strings.Repeat(" a.b", 29), "cluster.local", ""},
		"many":    {strings.Repeat(" a.b", 30), "cluster.local", "contains search line consisting of more than 29 domains!"},
		"alone":   {strings.Repeat(" a.b", 32), "", ""},
		"long":    {" a.b " + strings.Repeat("c", 254), "", "contains a search path which length is more than allowed 253 chars!"},
		"large":   {strings.Repeat(" "+strings.Repeat("c", 253), 9), "", "contains search line which length is more than allowed 2048 chars!"},
	} {
		path := filepath.Join(dir, name)
		if name != "missing" {
			if err := os.WriteFile(path, []byte("search"+c.searches+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		said := ""
		checked := &Configurer{ResolvConf: path, Domain: c.domain, WarnNode: func(reason, text string) { said += reason + ": " + text }}
		checked.CheckNode()
		if (said == "") != (c.want == "") || !strings.HasSuffix(said, c.want) || said != "" && !strings.HasPrefix(said, "CheckLimitsForResolvConf: ") {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
	silent := &Configurer{WarnNode: func(reason, text string) { t.Error(reason, text) }}
	silent.CheckNode() // it has none
}
