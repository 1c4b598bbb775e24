package hosts

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

func TestHostname(t *testing.T) {
	yes, override, longest := true, "other", strings.Repeat("o", 64)
	long := strings.Repeat("a", 62) + "-bcd"
	for _, c := range []struct {
		name      string
		spec      core.PodSpec
		want, err string
	}{
		{"p", core.PodSpec{}, "p", ""},
		{long, core.PodSpec{}, strings.Repeat("a", 62), ""},
		{"p", core.PodSpec{Hostname: "h"}, "h", ""},
		{"p", core.PodSpec{Subdomain: "sub"}, "p", ""},
		{"p", core.PodSpec{Subdomain: "sub", SetHostnameAsFQDN: &yes}, "p.sub.ns.svc.c.test", ""},
		{"p", core.PodSpec{SetHostnameAsFQDN: &yes}, "p", ""},
		{long, core.PodSpec{Subdomain: "sub", SetHostnameAsFQDN: &yes}, "", "FQDN " + strings.Repeat("a", 62) +
			".sub.ns.svc.c.test is too long (64 characters is the max, 80 characters requested)"},
		{"p", core.PodSpec{HostnameOverride: &override}, "other", ""},
		{"p", core.PodSpec{HostnameOverride: &longest}, longest, ""},
		{"p", core.PodSpec{HostnameOverride: &override, Hostname: "h", Subdomain: "sub"}, "other", ""},
	} {
		got, err := Name(&core.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.name, Namespace: "ns"}, Spec: c.spec}, "c.test")
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s %+v: %q, %v", c.name, c.spec, got, err)
		}
	}
}

func TestHostsFile(t *testing.T) {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}}
	pod.Spec.Subdomain = "sub"
	pod.Spec.HostAliases = []corev1.HostAlias{{IP: "1.2.3.4", Hostnames: []string{"a", "b"}}}
	got, err := content("", pod, []string{"10.0.0.2", "fd00::2"})
	want := managedHosts + "10.0.0.2\tp.sub.ns.svc.cluster.local\tp\nfd00::2\tp.sub.ns.svc.cluster.local\tp\n" +
		"\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n"
	if err != nil || string(got) != want {
		t.Errorf("hosts = %q, %v", got, err)
	}
	override := "other.test"
	pod.Spec.HostnameOverride = &override
	if got, err = content("", pod, []string{"10.0.0.2"}); err != nil || !strings.HasPrefix(string(got), managedHosts+"10.0.0.2\tother.test\n") {
		t.Errorf("hosts with an override = %q, %v", got, err)
	}
	pod.Spec.HostNetwork = true
	node, err := os.ReadFile(Path)
	if err != nil {
		t.Skipf("this machine has no %s: %v", Path, err)
	}
	if got, err = content("", pod, nil); err != nil || !strings.Contains(string(got), string(node)) || !strings.HasSuffix(string(got), "1.2.3.4\ta\tb\n") {
		t.Errorf("hosts of a pod in the host's network = %q, %v", got, err)
	}
}
