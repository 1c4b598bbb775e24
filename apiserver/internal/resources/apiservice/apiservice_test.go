package apiservice

import (
	"reflect"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"
)

const label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric " +
	"character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

// TestValidate: refusals are upstream's, word for word, except for the last.
func TestValidate(t *testing.T) {
	const name, good = "{metadata: {name: v1.a.example.com}, spec: {group: a.example.com, version: v1, ", "groupPriorityMinimum: 1, versionPriority: 1"
	for text, want := range map[string]string{
		name + good + "}}": "",
		name + "caBundle: YWJj, service: {name: a_b, namespace: b}, groupPriorityMinimum: 20000, versionPriority: 1000}}": "",
		"{metadata: {name: v1.}, spec: {version: v1, " + good + "}}":                                                      "",
		"{metadata: {name: v1.a.example.com}}": "[metadata.name: Invalid value: \"v1.a.example.com\": must be `spec.version+\".\"+spec.group`: \".\", " +
			"spec.group: Required value: only v1 may have an empty group and it better be legacy kube, spec.version: Invalid value: \"\": " + label + ", " +
			"spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000, spec.versionPriority: Invalid value: 0: must be " +
			"positive and less than 1000]",
		name + "groupPriorityMinimum: 20001, versionPriority: 1001}}": "[spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000, " +
			"spec.versionPriority: Invalid value: 1001: must be positive and less than 1000]",
		name + "insecureSkipTLSVerify: true, caBundle: YWJj, " + good +
			"}}": "[spec.caBundle: Invalid value: \"3 bytes\": local APIServices may not have a caBundle, " +
			"spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify]",
		name + "service: {}, " + good + "}}": "[spec.service.namespace: Required value, spec.service.name: Required value]",
		name + "service: {name: a, namespace: b, port: 70000}, insecureSkipTLSVerify: true, caBundle: YWJj, " + good +
			"}}": "[spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive, " +
			"spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present]",
		"{metadata: {name: v1.apps}, spec: {group: apps, version: v1, service: {name: a, namespace: b}, " + good +
			"}}": "spec.service: Forbidden: apps/v1 is built into this server, and not served by others",
	} {
		s := service(t, text)
		got := ""
		if err := validate(s).ToAggregate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n     %s\nwant %s", text, got, want)
		}
	}
	s := service(t, "{status: {conditions: [{type: Any, status: Perhaps}]}}")
	if got, want := validateStatus(s).ToAggregate().Error(),
		`status.conditions[0].status: Unsupported value: "Perhaps": supported values: "True", "False", "Unknown"`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func service(t *testing.T, text string) *APIService {
	t.Helper()
	s := new(APIService)
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	Strategy(clock.RealClock{}).Default(s)
	return s
}

func TestRow(t *testing.T) {
	row := Strategy(clock.RealClock{}).Read.Row
	for text, want := range map[string][]any{
		"{metadata: {name: v1.a}}": {"v1.a", "Local", "Unknown", "<unknown>"},
		"{metadata: {name: v1.a}, spec: {service: {name: a, namespace: b}}, status: {conditions: [{type: Available, status: 'False', reason: ServiceNotFound}]}}": {"v1.a", "b/a", "False (ServiceNotFound)", "<unknown>"},
		"{metadata: {name: v1.a}, status: {conditions: [{type: Available, status: 'True', reason: Local}]}}":                                                      {"v1.a", "Local", "True", "<unknown>"},
	} {
		if got := row(service(t, text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestSetCondition: the transition time changes with the status, not with the
// reason.
func TestSetCondition(t *testing.T) {
	s := new(APIService)
	first := time.Unix(1000, 0)
	SetCondition(s, Condition{Type: "Available", Status: "False", Reason: "A"}, first)
	SetCondition(s, Condition{Type: "Available", Status: "False", Reason: "B"}, first.Add(time.Hour))
	if c := s.Status.Conditions[0]; !c.LastTransitionTime.Time.Equal(first) || c.Reason != "B" || IsAvailable(s) {
		t.Errorf("%+v", c)
	}
	SetCondition(s, Condition{Type: "Available", Status: "True", Reason: "Passed"}, first.Add(time.Hour))
	if c := s.Status.Conditions[0]; len(s.Status.Conditions) != 1 || !c.LastTransitionTime.Time.Equal(first.Add(time.Hour)) || !IsAvailable(s) {
		t.Errorf("%+v", s.Status.Conditions)
	}
}
