package rollout

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(content, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestStatus(t *testing.T) {
	const deployment = "{kind: Deployment, metadata: {name: d, generation: 2}, spec: {replicas: 3}, status: "
	const set = "{kind: StatefulSet, metadata: {name: s, generation: 1}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate"
	const daemons = "{kind: DaemonSet, metadata: {name: set, generation: 1}, spec: {updateStrategy: {type: RollingUpdate}}, status: "
	for _, c := range []struct {
		object, want string
		done         bool
	}{
		{deployment + "{observedGeneration: 1}}", "Waiting for deployment spec update to be observed...", false},
		{deployment + "{observedGeneration: 2, updatedReplicas: 1}}", `Waiting for deployment "d" rollout to finish: 1 out of 3 new replicas have been updated...`,
			false},
		{deployment + "{observedGeneration: 2, updatedReplicas: 3, replicas: 4}}",
			`Waiting for deployment "d" rollout to finish: 1 old replicas are pending termination...`, false},
		{deployment + "{observedGeneration: 2, updatedReplicas: 3, replicas: 3, availableReplicas: 2}}",
			`Waiting for deployment "d" rollout to finish: 2 of 3 updated replicas are available...`, false},
		{deployment + "{observedGeneration: 2, updatedReplicas: 3, replicas: 3, availableReplicas: 3}}", `deployment "d" successfully rolled out`, true},
		{deployment +
			"{observedGeneration: 2, updatedReplicas: 3, replicas: 3, availableReplicas: 3, conditions: [{type: Progressing, reason: NewReplicaSetAvailable}, {type: " +
			"Other, reason: ProgressDeadlineExceeded}]}}",
			`deployment "d" successfully rolled out`, true},
		{strings.Replace(set, "generation: 1", "generation: 2", 1) + "}}, status: {observedGeneration: 1, readyReplicas: 3}}",
			"Waiting for statefulset spec update to be observed...", false},
		{set + "}}, status: {observedGeneration: 0}}", "Waiting for statefulset spec update to be observed...", false},
		{strings.Replace(set, "generation: 1", "generation: 2", 1) +
			"}}, status: {observedGeneration: 1, readyReplicas: 3, currentReplicas: 3, updateRevision: b, currentRevision: b}}",
			"Waiting for statefulset spec update to be observed...", false},
		{set + "}}, status: {observedGeneration: 1, readyReplicas: 1}}", "Waiting for 2 pods to be ready...", false},
		{set + ", rollingUpdate: {partition: 1}}}, status: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 1}}",
			"Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...", false},
		{set + ", rollingUpdate: {partition: 1}}}, status: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 2}}",
			"partitioned roll out complete: 2 new pods have been updated...", true},
		{set + ", rollingUpdate: {partition: 0}}}, status: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 1}}",
			"Waiting for partitioned roll out to finish: 1 out of 3 new pods have been updated...", false},
		{set + ", rollingUpdate: {partition: 0}}}, status: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 3, updateRevision: b, currentRevision: a}}",
			"partitioned roll out complete: 3 new pods have been updated...", true},
		{set + "}}, status: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 1, updateRevision: b, currentRevision: a}}",
			"waiting for statefulset rolling update to complete 1 pods at revision b...", false},
		{set + "}}, status: {observedGeneration: 1, readyReplicas: 3, currentReplicas: 3, updateRevision: b, currentRevision: b}}",
			"statefulset rolling update complete 3 pods at revision b...", true},
		{daemons + "{observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 1}}",
			`Waiting for daemon set "set" rollout to finish: 1 out of 2 new pods have been updated...`, false},
		{daemons + "{observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}", `daemon set "set" successfully rolled out`,
			true},
	} {
		got, done, err := Status(object(t, c.object), 0)
		if err != nil || got != c.want+"\n" || done != c.done {
			t.Errorf("%s:\ngot  %t %q, %v\nwant %t %q", c.object, done, got, err, c.done, c.want)
		}
	}
	_, _, err := Status(object(t, deployment+"{observedGeneration: 2, conditions: [{type: Progressing, reason: ProgressDeadlineExceeded}]}}"), 0)
	if err == nil || err.Error() != `deployment "d" exceeded its progress deadline` {
		t.Errorf("a rollout that was given up: %v", err)
	}
	const second = "{kind: Deployment, metadata: {name: d, annotations: {deployment.kubernetes.io/revision: '2'}}, spec: {replicas: 0}, status: {}}"
	if got, done, err := Status(object(t, second), 2); err != nil || !done {
		t.Errorf("the revision asked for: %q, %t, %v", got, done, err)
	}
	if _, _, err := Status(object(t, second), 1); err == nil || err.Error() != "desired revision (1) is different from the running revision (2)" {
		t.Errorf("another revision: %v", err)
	}
	if _, _, err := Status(object(t, deployment+"{}}"), 1); err == nil || err.Error() != "desired revision (1) is different from the running revision (0)" {
		t.Errorf("no revision: %v", err)
	}
	odd := object(t, strings.Replace(second, "'2'", "x", 1))
	if _, _, err := Status(odd, 1); err == nil || !strings.Contains(err.Error(), `cannot get the revision of deployment "d"`) {
		t.Errorf("a revision that is no number: %v", err)
	}
	if _, _, err := Status(object(t, "{kind: Pod}"), 0); err == nil {
		t.Error("pods are not rolled out")
	}
}

func TestRevisions(t *testing.T) {
	owner := object(t,
		"{kind: Deployment, metadata: {name: d, uid: u, annotations: {deployment.kubernetes.io/revision: '10', kubernetes.io/change-cause: why10, mine: now, "+
			"kubectl.kubernetes.io/last-applied-configuration: '{}'}}, spec: {template: {metadata: {labels: {a: b}}, spec: {x: new}}}}")
	kept := func(number, value, uid string) unstructured.Unstructured {
		return *object(t, "{kind: ReplicaSet, metadata: {name: r"+number+", annotations: {deployment.kubernetes.io/revision: '"+number+
			"', deployment.kubernetes.io/desired-replicas: '3', kubernetes.io/change-cause: why"+number+
			"}, ownerReferences: [{uid: "+uid+", controller: true}]}, spec: {template: {metadata: {labels: {a: b, pod-template-hash: h}}, spec: {x: "+value+"}}}}")
	}
	all, err := Revisions(owner, []unstructured.Unstructured{kept("10", "new", "u"), kept("2", "old", "u"), kept("3", "other", "somebody else's")})
	if err != nil || len(all) != 2 || all[0].Number != 2 || all[1].Number != 10 || all[0].Cause != "why2" || all[0].Current || !all[1].Current {
		t.Fatalf("revisions %+v, %v", all, err)
	}
	before, err := Choose("Deployment", "d", all, 0)
	if err != nil || before.Number != 2 || strings.Contains(string(before.Patch), "pod-template-hash") || !before.Replace {
		t.Errorf("the one before: %+v, %v", before, err)
	}
	own := kept("4", "own", "u")
	delete(own.Object["metadata"].(map[string]any)["annotations"].(map[string]any), "kubernetes.io/change-cause")
	own.Object["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)["annotations"] = map[string]any{"kubernetes.io/change-cause": "its own"}
	if all, err := Revisions(owner, []unstructured.Unstructured{own}); err != nil || all[0].Cause != "its own" {
		t.Errorf("why, by the template: %+v, %v", all, err)
	}
	unset := kept("5", "none", "u")
	unset.SetAnnotations(nil)
	if all, err := Revisions(owner, []unstructured.Unstructured{unset}); err != nil || len(all) != 1 || all[0].Number != 0 {
		t.Errorf("a set without annotations: %+v, %v", all, err)
	}
	// An undo brings back why the template was as it was, and leaves what is of now.
	var patch []struct {
		Path  string
		Value map[string]any
	}
	if err := json.Unmarshal(before.Patch, &patch); err != nil || len(patch) != 2 || patch[1].Path != "/metadata/annotations" || !maps.Equal(patch[1].Value,
		map[string]any{"kubernetes.io/change-cause": "why2", "deployment.kubernetes.io/revision": "10", "kubectl.kubernetes.io/last-applied-configuration": "{}"}) {
		t.Errorf("the patch: %s, %v", before.Patch, err)
	}
	var text strings.Builder
	if err := PrintTemplate(&text, before); err != nil || !strings.Contains(text.String(), "  Annotations:\tkubernetes.io/change-cause: why2\n") {
		t.Errorf("the template: %q, %v", text.String(), err)
	}
	before.Cause = ""
	text.Reset()
	if err := PrintTemplate(&text, before); err != nil || strings.Contains(text.String(), "Annotations") {
		t.Errorf("the template without a cause: %q, %v", text.String(), err)
	}
	for kind, head := range map[string]string{"Deployment": "Pod Template:\n", "DaemonSet": "will roll back to Pod Template:\n"} {
		if text, err := Preview(kind, before); err != nil || !strings.HasPrefix(text, head) {
			t.Errorf("%s: the preview %q, %v", kind, text, err)
		}
	}
	if _, err := Choose("Deployment", "d", all, 7); err == nil || err.Error() != "unable to find specified revision 7 in history" {
		t.Errorf("a missing revision: %v", err)
	}
	if _, err := Choose("Deployment", "d", all[:1], 0); err == nil || err.Error() != `no rollout history found for deployment "d"` {
		t.Errorf("the first one: %v", err)
	}
}

// A revision's template is shown with why somebody made it, and what an undo would bring
// back in kubectl's words for the kind.
func TestTemplates(t *testing.T) {
	revision := func(cause, annotations string) Revision {
		return Revision{Cause: cause, template: object(t, "{metadata: {labels: {a: b}"+annotations+"}, spec: {containers: [{name: c, image: i}]}}").Object}
	}
	for _, test := range []struct {
		revision Revision
		want     string
	}{
		{revision("", ""), ""},
		{revision("why", ""), "  Annotations:\tkubernetes.io/change-cause: why\n"},
		{revision("why", ", annotations: {b: c}"), "  Annotations:\tb: c\n\tkubernetes.io/change-cause: why\n"},
		{revision("", ", annotations: {b: c}"), "  Annotations:\tb: c\n"},
	} {
		var text strings.Builder
		if err := PrintTemplate(&text, test.revision); err != nil {
			t.Fatal(err)
		}
		if want := "Pod Template:\n  Labels:\ta=b\n" + test.want + "  Containers:\n   c:\n"; !strings.HasPrefix(text.String(), want) {
			t.Errorf("got %q, want it to begin with %q", text.String(), want)
		}
	}
	for kind, want := range map[string]string{"Deployment": "Pod Template:\n", "DaemonSet": "will roll back to Pod Template:\n"} {
		if text, err := Preview(kind, revision("why", "")); err != nil || !strings.HasPrefix(text, want) || strings.Contains(text, "why") {
			t.Errorf("of a %s: %q, %v", kind, text, err)
		}
	}
}

// A daemon set's revision is a patch that replaces the template; what it makes of the set
// has the template alone, without the directive.
func TestControllerRevisions(t *testing.T) {
	owner := object(t, "{kind: DaemonSet, metadata: {name: d, uid: u}, spec: {x: y, template: {spec: {a: new}}}}")
	kept := func(number, value string) unstructured.Unstructured {
		return *object(t, "{kind: ControllerRevision, revision: "+number+", metadata: {name: r"+number+
			", ownerReferences: [{uid: u, controller: true}]}, data: {spec: {template: {$patch: replace, spec: {a: "+value+"}}}}}")
	}
	all, err := Revisions(owner, []unstructured.Unstructured{kept("2", "new"), kept("1", "old")})
	if err != nil || len(all) != 2 || all[0].Number != 1 || all[0].Current || !all[1].Current || all[0].Replace {
		t.Fatalf("revisions %+v, %v", all, err)
	}
	if got, want := string(all[0].Patch), `{"spec":{"template":{"$patch":"replace","spec":{"a":"old"}}}}`; got != want {
		t.Errorf("the patch is %s, want %s", got, want)
	}
	if want := object(t, "{kind: DaemonSet, metadata: {name: d, uid: u}, spec: {x: y, template: {spec: {a: old}}}}"); !reflect.DeepEqual(all[0].Object, want) {
		t.Errorf("it makes %v, want %v", all[0].Object, want)
	}
}
