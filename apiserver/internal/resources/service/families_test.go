package service

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/field"
)

const (
	four, six = corev1.IPv4Protocol, corev1.IPv6Protocol
)

// TestFamilies: the IP families of a service, for the families of the cluster,
// as kube-apiserver answers, word for word.
func TestFamilies(t *testing.T) {
	const (
		single   = "SingleStack"
		headless = "clusterIP: None, selector: {a: b}"
		both     = "ipFamilies: [IPv4, IPv6]"
		multiple = "must be 'RequireDualStack' or 'PreferDualStack' when multiple "
		notDual  = `spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`
	)
	one, two := []corev1.IPFamily{four}, []corev1.IPFamily{four, six}
	for _, test := range []struct {
		have []corev1.IPFamily
		spec string // of the service, without its ports
		want string // families and policy, or errors
	}{
		{one, "", "[IPv4] SingleStack"},
		{one, "ipFamilyPolicy: PreferDualStack", "[IPv4] PreferDualStack"},
		{one, "ipFamilyPolicy: RequireDualStack", notDual},
		{one, "ipFamilies: [IPv6]", `spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`},
		{one, "ipFamilies: [IPv6], ipFamilyPolicy: RequireDualStack", "[" + notDual + `, spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster]`},
		{one, "clusterIP: 'fd00::7'", `spec.clusterIPs[0]: Invalid value: ["fd00::7"]: IPv6 is not configured on this cluster`},
		{one, "clusterIP: 'fd00::7', ipFamilyPolicy: RequireDualStack", `spec.clusterIPs[0]: Invalid value: ["fd00::7"]: IPv6 is not configured on this cluster`},
		{one, "clusterIP: None", "[IPv4 IPv6] RequireDualStack"},
		{one, "clusterIP: None, ipFamilyPolicy: PreferDualStack", "[IPv4 IPv6] PreferDualStack"},
		{one, "clusterIP: None, ipFamilies: [IPv6], ipFamilyPolicy: SingleStack", "[IPv6] SingleStack"},
		{one, headless, "[IPv4] SingleStack"},
		{one, headless + ", ipFamilyPolicy: RequireDualStack", notDual},

		{two, "", "[IPv4] SingleStack"},
		{[]corev1.IPFamily{six, four}, "", "[IPv6] SingleStack"},
		{[]corev1.IPFamily{six, four}, "ipFamilyPolicy: PreferDualStack", "[IPv6 IPv4] PreferDualStack"},
		{two, "ipFamilies: [IPv6]", "[IPv6] SingleStack"},
		{two, "ipFamilies: [IPv6], ipFamilyPolicy: PreferDualStack", "[IPv6 IPv4] PreferDualStack"},
		{two, "clusterIP: 'fd00::7'", "[IPv6] SingleStack"},
		{two, "clusterIP: 'fd00::7', ipFamilyPolicy: RequireDualStack", "[IPv6 IPv4] RequireDualStack"},
		{two, "clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7, 'fd00::7'], ipFamilyPolicy: PreferDualStack", "[IPv4 IPv6] PreferDualStack"},
		{two, "clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7, 'fd00::7']", `spec.ipFamilyPolicy: Invalid value: "SingleStack": ` + multiple +
			"cluster IPs are specified"},
		{two, both, `spec.ipFamilyPolicy: Invalid value: "SingleStack": ` + multiple + "IP families are specified"},
		{two, both + ", ipFamilyPolicy: RequireDualStack", "[IPv4 IPv6] RequireDualStack"},
		{two, headless, "[IPv4] SingleStack"},
		{two, headless + ", ipFamilyPolicy: PreferDualStack", "[IPv4 IPv6] PreferDualStack"},
		{two, "type: ExternalName, externalName: a.b", "[] "},

		{two, "ipFamilies: [IPv6], clusterIP: 10.0.0.7", `spec.clusterIPs[0]: Invalid value: "10.0.0.7": expected an IPv6 value as indicated by ` +
			"`ipFamilies[0]`"},
		{two, "clusterIPs: [10.0.0.7]", `spec.clusterIPs: Invalid value: ["10.0.0.7"]: must be empty when ` + "`clusterIP`" + ` is not specified`},
		{two, "clusterIP: None, clusterIPs: [None, None]",
			`[spec.clusterIPs: Invalid value: ["None","None"]: 'None' must be the first and only value, spec.clusterIPs[1]: Invalid value: "None": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)]`},
		{two, "ipFamilyPolicy: Foo", `spec.ipFamilyPolicy: Unsupported value: "Foo": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"`},
		{two, "type: ExternalName, externalName: a.b, ipFamilies: [IPv4], ipFamilyPolicy: " + single,
			`[spec.ipFamilies: Forbidden: may not be set for ExternalName services, spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services]`},
	} {
		s := made(t, test.spec)
		if got := families(s, validate(s), test.have); got != test.want {
			t.Errorf("%v %s:\n  got: %s\n want: %s", test.have, test.spec, got, test.want)
		}
	}
}

// TestFamiliesChange: a dual-stack service becomes single-stack, and the other
// way round, by its policy.
func TestFamiliesChange(t *testing.T) {
	const (
		old  = "clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack"
		dual = "clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7, 'fd00::7'], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: PreferDualStack"
	)
	change := func(from, word, to string) string { return strings.Replace(from, word, to, 1) }
	for _, test := range []struct{ old, now, want string }{
		{old, change(old, "SingleStack", "PreferDualStack"), "[IPv4 IPv6] PreferDualStack [10.0.0.7]"},
		{old, "ipFamilyPolicy: RequireDualStack", "[IPv4 IPv6] RequireDualStack [10.0.0.7]"},
		{old, change(old, "10.0.0.7,", "'fd00::9',"), `spec.clusterIPs[0]: Invalid value: "fd00::9": expected an IPv4 value as indicated by ` + "`ipFamilies[0]`"},
		{old, change(old, "10.0.0.7,", "None,"), `spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set`},
		{old, "type: ExternalName, externalName: a.b", "[]  []"},
		{old, old + ", type: ExternalName, externalName: a.b", "[]  []"},
		{"type: ExternalName, externalName: a.b", "type: ExternalName, externalName: a.b, clusterIP: None",
			"spec.clusterIPs: Forbidden: may not be set for ExternalName services"},
		{dual, "", "[IPv4 IPv6] PreferDualStack [10.0.0.7 fd00::7]"},
		{dual, change(dual, "PreferDualStack", "SingleStack"), "[IPv4] SingleStack [10.0.0.7]"},
		{dual, "ipFamilyPolicy: SingleStack", "[IPv4] SingleStack [10.0.0.7]"},
		{dual, change(dual, "[IPv4, IPv6]", "[IPv4]"),
			`spec.ipFamilyPolicy: Invalid value: "PreferDualStack": must be 'SingleStack' to release the secondary IP family`},
		{dual, change(dual, "10.0.0.7,", "None,"),
			`spec.ipFamilyPolicy: Invalid value: "PreferDualStack": must be 'SingleStack' to release the secondary cluster IP`},
		{dual, change(dual, "'fd00::7'", "'fd00::9'"), `spec.clusterIPs[1]: Invalid value: ["10.0.0.7","fd00::9"]: may not change once set`},
		{"type: ExternalName, externalName: a.b", "ipFamilyPolicy: RequireDualStack", "[IPv4 IPv6] RequireDualStack []"},
	} {
		before, now := made(t, test.old), made(t, test.now)
		prepareForUpdate(context.Background(), now, before)
		got := families(now, validateUpdate(context.Background(), now, before), []corev1.IPFamily{four, six})
		if strings.HasPrefix(got, "[IP") || strings.HasPrefix(got, "[] ") {
			got = fmt.Sprint(got, " ", now.Spec.ClusterIPs)
		}
		if got != test.want {
			t.Errorf("%s, then %s:\n  got: %s\n want: %s", test.old, test.now, got, test.want)
		}
	}
}

// made is a service as a client sends it, with defaults.
func made(t *testing.T, spec string) *corev1.Service {
	t.Helper()
	s := &corev1.Service{}
	if err := yaml.Unmarshal([]byte("spec: {"+spec+"}"), s); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	setDefaults(s)
	syncClusterIPs(&s.Spec)
	return s
}

func families(s *corev1.Service, errs field.ErrorList, have []corev1.IPFamily) string {
	if len(errs) == 0 {
		errs = setFamilies(&s.Spec, have)
	}
	if err := errs.ToAggregate(); err != nil {
		return err.Error()
	}
	policy := ""
	if s.Spec.IPFamilyPolicy != nil {
		policy = string(*s.Spec.IPFamilyPolicy)
	}
	return fmt.Sprint(s.Spec.IPFamilies, " ", policy)
}
