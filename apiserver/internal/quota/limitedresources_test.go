package quota

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/core"
)

// listed are the quotas of every namespace.
type listed []*corev1.ResourceQuota

func (l listed) In(context.Context, string) ([]*corev1.ResourceQuota, error) { return l, nil }
func (listed) Forget(string)                                                 {}

// TestLimited: a limited resource may be used only if a quota covers it. The
// words are upstream's.
func TestLimited(t *testing.T) {
	cluster := []LimitedResource{
		{Resource: "pods", MatchContains: []string{"pods"}},
		{APIGroup: "apps", Resource: "pods", MatchContains: []string{"cpu"}},
		{Resource: "pods", MatchScopes: []corev1.ScopedResourceSelectorRequirement{{ScopeName: "PriorityClass", Operator: "In", Values: []string{"high"}}}},
	}
	const both, one = `insufficient quota to consume: count/pods,pods`, `insufficient quota to consume: count/pods`
	const scope = `insufficient quota to match these scopes: [{PriorityClass In [high]}]`
	plain, high := read[core.Pod](t, "spec: {containers: [{name: c}]}"), read[core.Pod](t, "spec: {priorityClassName: high, containers: [{name: c}]}")
	for name, c := range map[string]struct {
		limited []LimitedResource
		obj     core.Object
		quotas  string
		want    string
	}{
		"nothing is":         {nil, plain, "", ""},
		"no quota":           {cluster, plain, "", both},
		"of something else":  {cluster, plain, "hard: {secrets: 1}", both},
		"of a part":          {cluster, plain, "hard: {pods: 1}", one},
		"all":                {cluster, plain, "hard: {pods: 1, count/pods: 1}", ""},
		"all of other pods":  {cluster, plain, "hard: {pods: 1, count/pods: 1}\nscopes: [Terminating]", both},
		"scope":              {cluster[2:], high, "", scope},
		"scope of a quota":   {cluster[2:], high, "scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}", ""},
		"scope of others":    {cluster[2:], plain, "", ""},
		"another resource's": {cluster[:2], &core.Secret{}, "", ""},
	} {
		var quotas listed
		if c.quotas != "" {
			quotas = listed{{Spec: *read[corev1.ResourceQuotaSpec](t, c.quotas)}}
		}
		of := pods
		if _, ok := c.obj.(*core.Pod); !ok {
			of.Resource = "secrets"
		}
		change := Change{Resource: of, New: c.obj, LimitedResources: c.limited}
		u := NewUsage(Options{Quotas: quotas, Clock: clocktesting.NewFakePassiveClock(now)})
		_, err := u.chargesFor(change, quotas)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	unbounded := NewUsage(Options{Quotas: listed(nil), Clock: clocktesting.NewFakePassiveClock(now)})
	if err := unbounded.Reserve(t.Context(), Change{Resource: pods, New: plain, LimitedResources: cluster}); err == nil {
		t.Error("taken where there is no quota")
	}
	resized := Change{Resource: pods, New: plain, Old: plain, LimitedResources: cluster}
	if _, err := NewUsage(Options{Clock: clocktesting.NewFakePassiveClock(now)}).chargesFor(resized, nil); err != nil {
		t.Errorf("a change that uses no more: %v", err)
	}
}
