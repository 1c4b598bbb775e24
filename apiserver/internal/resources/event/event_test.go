package event

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
)

func fromYAML(t *testing.T, text string) *core.Event {
	t.Helper()
	e := new(core.Event)
	if err := yaml.UnmarshalStrict([]byte(text), e); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return e
}

func TestValidate(t *testing.T) {
	const new = "eventTime: '2030-01-01T00:00:00.000000Z', reportingComponent: kubelet, reportingInstance: n1, action: A, reason: R, type: Normal"
	for text, want := range map[string]string{
		"{metadata: {namespace: a}, involvedObject: {namespace: a}}":                      "",
		"{metadata: {namespace: a}, involvedObject: {namespace: b}}":                      `involvedObject.namespace: Invalid value: "b": does not match event.namespace`,
		"{metadata: {namespace: default}, involvedObject: {kind: Node}}":                  "",
		"{metadata: {namespace: kube-system}, involvedObject: {kind: Node}}":              `involvedObject.namespace: Invalid value: "": does not match event.namespace`,
		"{metadata: {namespace: kube-system}, involvedObject: {kind: Node}, " + new + "}": "",
		"{metadata: {namespace: a}, involvedObject: {kind: Node}}":                        `involvedObject.namespace: Invalid value: "": does not match event.namespace`,
		"{metadata: {namespace: a}, involvedObject: {namespace: a}, " + new + "}":         "",
		"{metadata: {namespace: a}, involvedObject: {namespace: b}, " + new + "}":         "",
		"{metadata: {namespace: a}, involvedObject: {namespace: a}, eventTime: '2030-01-01T00:00:00.000000Z', reportingComponent: k, reportingInstance: " +
			"n, reason: R, type: Normal}": "action: Required value",
	} {
		got := ""
		if err := validate(fromYAML(t, text), "reportingComponent").ToAggregate(); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s\n  got: %s\n want: %s", text, got, want)
		}
	}
}

// TestValidateChange: through events.k8s.io only an event's series can be
// changed.
func TestValidateChange(t *testing.T) {
	const old = "{metadata: {namespace: a}, involvedObject: {namespace: a}, eventTime: '2030-01-01T00:00:00.000001Z', reportingComponent: kubelet, " +
		"reportingInstance: n1, action: A, reason: R, type: Normal, message: m}"
	for change, want := range map[string]string{
		"{}": "",
		"{series: {count: 2, lastObservedTime: '2030-01-01T00:01:00.000000Z'}}": "",
		"{series: {count: 1}}":                       "[series.count: Invalid value: \"\": should be at least 2, series.lastObservedTime: Required value]",
		"{note: x}":                                  `message: Invalid value: "x": field is immutable`,
		"{deprecatedCount: 2}":                       `count: Invalid value: 2: field is immutable`,
		"{reason: S, type: Warning}":                 `[reason: Invalid value: "S": field is immutable, type: Invalid value: "Warning": field is immutable]`,
		"{reportingController: ''}":                  `[reportingController: Required value, reportingController: Invalid value: "": name part must be non-empty, `,
		"{metadata: {finalizers: [a]}}":              `metadata.finalizers[0]: Invalid value: "a": name is neither a standard finalizer`,
		"{eventTime: '2030-01-01T00:00:00.000002Z'}": "eventTime: Invalid value: ",
	} {
		e := fromCore(fromYAML(t, old))
		if err := yaml.Unmarshal([]byte(change), e); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := validateUpdate(e, fromYAML(t, old)).ToAggregate(); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s\n  got: %s\n want: %s", change, got, want)
		}
	}
}

func TestColumns(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 10, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"{metadata: {name: e}, type: Normal, reason: Pulled, message: ' done ', count: 3, firstTimestamp: '2030-01-01T00:00:00Z', lastTimestamp: " +
			"'2030-01-01T00:09:00Z', source: {component: kubelet, host: n1}, involvedObject: {kind: Pod, name: web, fieldPath: 'spec.containers{a}'}}": "[60s Normal Pulled pod/web spec.containers{a} kubelet, n1 done 10m 3 e]",
		"{metadata: {name: e}, type: Warning, reason: R, message: m, eventTime: '2030-01-01T00:08:00.000000Z', reportingComponent: sched, reportingInstance: s1, " +
			"involvedObject: {kind: Pod, name: web}}": "[2m Warning R pod/web  sched, s1 m 2m 1 e]",
		"{metadata: {name: e}, involvedObject: {kind: Node}}": "[<unknown>   node    <unknown> 1 e]",
	} {
		cells := row(fromYAML(t, text), now)
		if len(cells) != len(columns()) {
			t.Fatalf("%d cells in %d columns", len(cells), len(columns()))
		}
		if got := fmt.Sprint(cells); got != want {
			t.Errorf("row is %s\n    want %s", got, want)
		}
	}
	series := fromYAML(t, "{series: {count: 7, lastObservedTime: '2030-01-01T00:09:30.000000Z'}, eventTime: '2030-01-01T00:00:00.000000Z'}")
	if got := fmt.Sprint(row(series, now)[0], " ", row(series, now)[8]); got != "30s 7" {
		t.Errorf("a series is shown as %s", got)
	}
}

func TestFields(t *testing.T) {
	e := &core.Event{ReportingController: "sched", ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: core.ObjectReference{Kind: "Pod", UID: "u"}}
	set := selectable(e)
	if set["source"] != "sched" || set["involvedObject.uid"] != "u" || set["involvedObject.kind"] != "Pod" {
		t.Errorf("selectable fields are %v", set)
	}
}
