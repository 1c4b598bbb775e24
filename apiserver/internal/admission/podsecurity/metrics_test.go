package podsecurity

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// TestMetrics compares the counters with those of upstream 1.37 after the same requests.
func TestMetrics(t *testing.T) {
	namespaces := spaces{
		"free": nil, "strict": known["strict"], "wrong": known["wrong"], "exempt": nil, "audited": {label + "audit": "restricted"},
		"next": {label + "enforce": "baseline", label + "enforce-version": "v1.99"},
	}
	registry := prometheus.NewRegistry()
	p, err := New(namespaces, manyPods{}, configuration.Files{Name: []byte(part)}, registry, testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(namespace, user string, object, old core.Object, subresource string) {
		t.Helper()
		a := &admission.Attributes{Operation: admission.Create, Namespace: namespace, Subresource: subresource, Object: object, User: &request.User{Username: user}}
		if old != nil {
			a.Operation, a.OldObject = admission.Update, old
		}
		_, _ = asked(t, p, a)
	}
	one := podOf(t, ordinary)
	relabelled := one.DeepCopy()
	relabelled.Labels = map[string]string{"a": "b"}
	template := &appsv1.Deployment{}
	template.Spec.Template.Spec = one.Spec

	ask("free", "", podOf(t, privileged), nil, "")
	ask("free", "", relabelled, one, "")       // counted: all that the namespace allows is known before the pod
	ask("free", "", relabelled, one, "status") // not counted
	ask("strict", "", relabelled, one, "")     // not counted: it does not become less secure
	ask("strict", "", podOf(t, ordinary), nil, "")
	ask("strict", "", podOf(t, privileged), nil, "")
	ask("strict", "", template, nil, "")
	ask("strict", "jane", one, nil, "")
	ask("exempt", "", template, nil, "")
	ask("wrong", "", podOf(t, careful), nil, "")
	ask("next", "", one, nil, "")
	ask("audited", "", template, nil, "")
	ask("strict", "", podOf(t, strings.Replace(privileged, "{", "{runtimeClassName: vm, ", 1)), nil, "")
	want := `
		# HELP pod_security_evaluations_total Policies evaluated for requests, by what was decided.
		# TYPE pod_security_evaluations_total counter
		pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="baseline",policy_version="future",request_operation="create",resource="pod",subresource=""} 1
		pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="baseline",policy_version="latest",request_operation="create",resource="pod",subresource=""} 1
		pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="privileged",policy_version="latest",request_operation="create",resource="pod",subresource=""} 1
		pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="privileged",policy_version="latest",request_operation="update",resource="pod",subresource=""} 1
		pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="restricted",policy_version="latest",request_operation="create",resource="pod",subresource=""} 1
		pod_security_evaluations_total{decision="deny",mode="audit",policy_level="restricted",policy_version="latest",request_operation="create",resource="controller",subresource=""} 1
		pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="baseline",policy_version="latest",request_operation="create",resource="pod",subresource=""} 1
		pod_security_evaluations_total{decision="deny",mode="warn",policy_level="restricted",policy_version="latest",request_operation="create",resource="controller",subresource=""} 1
		pod_security_evaluations_total{decision="deny",mode="warn",policy_level="restricted",policy_version="latest",request_operation="create",resource="pod",subresource=""} 1
		# HELP pod_security_exemptions_total Requests that were exempt from Pod Security.
		# TYPE pod_security_exemptions_total counter
		pod_security_exemptions_total{request_operation="create",resource="controller",subresource=""} 1
		pod_security_exemptions_total{request_operation="create",resource="pod",subresource=""} 2
		pod_security_exemptions_total{request_operation="update",resource="controller",subresource=""} 0
		pod_security_exemptions_total{request_operation="update",resource="pod",subresource=""} 0
		# HELP pod_security_errors_total Requests that could not be evaluated as their namespace asks; those that are not fatal were held to the level restricted.
		# TYPE pod_security_errors_total counter
		pod_security_errors_total{fatal="false",request_operation="create",resource="pod",subresource=""} 1
	`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
