package resourcequota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, text string) *corev1.ResourceQuota {
	t.Helper()
	q := &corev1.ResourceQuota{}
	if err := yaml.UnmarshalStrict([]byte(text), q); err != nil {
		t.Fatal(err)
	}
	return q
}

// TestValidate compares the answers for resource quotas with upstream 1.37's.
func TestValidate(t *testing.T) {
	selects := func(requirement string) string {
		return "{hard: {pods: 1}, scopeSelector: {matchExpressions: [" + requirement + "]}}"
	}
	for spec, want := range map[string]string{
		"{}":                                   "",
		"{hard: {bogus: 1}}":                   `[spec.hard[bogus]: Invalid value: "bogus": must be a standard resource type or fully qualified, spec.hard[bogus]: Invalid value: "bogus": must be a standard resource for quota]`,
		"{hard: {storage: 1}}":                 `spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota`,
		"{hard: {limits.hugepages-2Mi: 1}}":    `[spec.hard[limits.hugepages-2Mi]: Invalid value: "limits.hugepages-2Mi": must be a standard resource type or fully qualified, spec.hard[limits.hugepages-2Mi]: Invalid value: "limits.hugepages-2Mi": must be a standard resource for quota]`,
		"{hard: {cpu: -1}}":                    `spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0`,
		"{hard: {pods: 1.5}}":                  `spec.hard[pods]: Invalid value: "1500m": must be an integer`,
		"{hard: {count/foo.example.com: 1.5}}": `spec.hard[count/foo.example.com]: Invalid value: "1500m": must be an integer`,
		"{hard: {services.nodeports: 1.5}}":    `spec.hard[services.nodeports]: Invalid value: "1500m": must be an integer`,
		"{hard: {example.com/gpu: 1, limits.example.com/gpu: 1, kubernetes.io/foo: 1, hugepages-2Mi: 1, requests.hugepages-2Mi: 1}}": "",
		"{hard: {memory: 99999999999999999999999999}}":                                                                                   "",
		"{hard: {gold.storageclass.storage.k8s.io/requests.storage: 1Gi}}":                                                               "",
		"{hard: {pods: 1}, scopes: [Foo]}":                                                                                               `spec.scopes: Invalid value: ["Foo"]: unsupported scope`,
		"{hard: {pods: 1}, scopes: [BestEffort, NotBestEffort]}":                                                                         `spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes`,
		"{hard: {pods: 1}, scopes: [Terminating, NotTerminating]}":                                                                       `spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes`,
		"{hard: {pods: 1}, scopes: [Terminating, Terminating]}":                                                                          "",
		"{hard: {cpu: 1}, scopes: [BestEffort]}":                                                                                         `spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource`,
		"{hard: {cpu: 1, secrets: 1}, scopes: [Terminating]}":                                                                            `spec.scopes: Invalid value: ["Terminating"]: unsupported scope applied to resource`,
		"{hard: {pods: 1, count/pods: 1}, scopes: [BestEffort]}":                                                                         "",
		"{hard: {pods: 1}, scopes: [BestEffort], scopeSelector: {matchExpressions: [{scopeName: NotBestEffort, operator: Exists}]}}":     "",
		"{hard: {persistentvolumeclaims: 1}, scopeSelector: {matchExpressions: [{scopeName: VolumeAttributesClass, operator: Exists}]}}": "",
		selects("{scopeName: PriorityClass, operator: In}"):                                                                              "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
		selects("{scopeName: PriorityClass, operator: Exists, values: [a]}"):                                                             "spec.scopeSelector.matchExpressions.values: Invalid value: [\"a\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
		selects("{scopeName: PriorityClass, operator: Foo}"):                                                                             `spec.scopeSelector.matchExpressions.operator: Invalid value: "Foo": not a valid selector operator`,
		selects("{scopeName: Terminating, operator: In, values: [a]}"):                                                                   `spec.scopeSelector.matchExpressions.operator: Invalid value: "In": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity`,
		selects("{scopeName: Bar, operator: Exists}"):                                                                                    `spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Bar": unsupported scope`,
		selects(""): "",
	} {
		got := ""
		if errs := validate(t.Context(), read(t, "spec: "+spec)); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != want {
			t.Errorf("%s:\n  got: %s\n want: %s", spec, got, want)
		}
	}
}

func TestChanges(t *testing.T) {
	old, now := read(t, "spec: {scopes: [Terminating]}"), read(t, "spec: {scopes: [NotTerminating]}")
	if errs := validateUpdate(t.Context(), now, old); errs.ToAggregate().Error() != `spec.scopes: Invalid value: ["NotTerminating"]: field is immutable` {
		t.Error(errs)
	}
	for status, want := range map[string]string{
		"{hard: {pods: -3}}":  `status.hard[pods]: Invalid value: "-3": must be greater than or equal to 0`,
		"{used: {pods: 1.5}}": `status.used[pods]: Invalid value: "1500m": must be an integer`,
	} {
		if errs := validateStatus(t.Context(), read(t, "status: "+status), old); errs.ToAggregate().Error() != want {
			t.Errorf("%s: %v", status, errs)
		}
	}
}

func TestUsage(t *testing.T) {
	requests, limits := usage(read(t, "status: {hard: {pods: 5, limits.cpu: 2, cpu: 1}, used: {pods: 2}}"))
	if requests != "cpu: 0/1, pods: 2/5" || limits != "limits.cpu: 0/2" {
		t.Errorf("%q, %q", requests, limits)
	}
}
