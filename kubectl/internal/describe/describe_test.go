package describe

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kctl/kubectl/internal/golden"
	"kctl/proto/core"
)

var now = time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC)

// compare compares what describe writes with a golden file.
func compare(t *testing.T, name string, describe func(w *bytes.Buffer) error) {
	t.Helper()
	var out bytes.Buffer
	if err := describe(&out); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, name, out.String())
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatal(err)
	}
}

func someEvents(t *testing.T) []core.Event {
	t.Helper()
	var events []core.Event
	read(t, "events.yaml", &events)
	return events
}

func TestPod(t *testing.T) {
	pod := &core.Pod{}
	read(t, "pod.yaml", pod)
	compare(t, "pod", func(w *bytes.Buffer) error { return Pod(w, pod, someEvents(t), now) })
	compare(t, "pod-bare", func(w *bytes.Buffer) error {
		return Pod(w, &core.Pod{ObjectMeta: pod.ObjectMeta}, []core.Event{}, now)
	})
}

// What few pods have.
func TestPodWithMore(t *testing.T) {
	pod := &core.Pod{}
	read(t, "pod-more.yaml", pod)
	compare(t, "pod-more", func(w *bytes.Buffer) error { return Pod(w, pod, []core.Event{}, now) })
}

// Kinds of volumes that few have now.
func TestOldVolumes(t *testing.T) {
	pod := &core.Pod{}
	read(t, "volumes-old.yaml", pod)
	compare(t, "volumes-old", func(w *bytes.Buffer) error { return Pod(w, pod, []core.Event{}, now) })
}

// Persistent volumes of these kinds have secrets with namespaces.
func TestOldPersistentVolumes(t *testing.T) {
	var sources []corev1.PersistentVolumeSource
	read(t, "volumes-old-persistent.yaml", &sources)
	compare(t, "volumes-old-persistent", func(w *bytes.Buffer) error {
		p := newPage(w, now)
		for i := range sources {
			p.persistentSource(&sources[i])
		}
		return p.done()
	})
}

func TestNode(t *testing.T) {
	node, pod, sidecar := &core.Node{}, core.Pod{}, core.Pod{}
	read(t, "node.yaml", node)
	read(t, "pod.yaml", &pod)
	read(t, "sidecar.yaml", &sidecar)
	compare(t, "node", func(w *bytes.Buffer) error {
		return Node(w, NodeFacts{Node: node, Pods: []core.Pod{pod, sidecar}, Events: []core.Event{}}, now)
	})
}

func TestOthers(t *testing.T) {
	object := &unstructured.Unstructured{}
	read(t, "thing.yaml", &object.Object)
	compare(t, "thing", func(w *bytes.Buffer) error { return Generic(w, object, []core.Event{}, now) })
	secret := &core.Secret{}
	read(t, "secret.yaml", secret)
	compare(t, "secret", func(w *bytes.Buffer) error { return Secret(w, secret, now) })
}

func TestKnown(t *testing.T) {
	for name, around := range map[string]Around{"request": {}, "service": {Endpoints: Endpoints{"http": {"a:1"}}}} {
		object := &unstructured.Unstructured{}
		read(t, name+".yaml", &object.Object)
		compare(t, name, func(w *bytes.Buffer) error {
			_, err := Known(w, object, around, []core.Event{}, now)
			return err
		})
	}
}

// As kubectl, which sorts labels with their values ("-" comes before "="), and says of what
// nobody has used that 0 of it is used.
func TestKnownAsKubectl(t *testing.T) {
	for want, object := range map[string]map[string]any{
		"a-b=2,a=1":         {"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"selector": map[string]any{"a": "1", "a-b": "2"}}},
		"pods      0     3": {"apiVersion": "v1", "kind": "ResourceQuota", "status": map[string]any{"hard": map[string]any{"pods": "3"}}},
	} {
		var out bytes.Buffer
		if _, err := Known(&out, &unstructured.Unstructured{Object: object}, Around{}, nil, now); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: %v\n%s\nwants %q", object["kind"], err, &out, want)
		}
	}
}

// Of many endpoints three are named. None of those that were looked for differs from none
// that nothing looked for.
func TestEndpoints(t *testing.T) {
	e := Endpoints{"": {"a:1", "b:1", "c:1"}, "web": {"a:2", "b:2", "c:2", "d:2", "e:2"}}
	for port, want := range map[string]string{"": "a:1,b:1,c:1", "web": "a:2,b:2,c:2 + 2 more...", "none": ""} {
		if got := e.Of(port); got != want {
			t.Errorf("port %q: %q, want %q", port, got, want)
		}
	}
	if got := Endpoints(nil).Of("web"); got != "<none>" {
		t.Errorf("without slices: %q", got)
	}
}

// A template by itself has its values behind tabs: nothing lines them up, so that what is
// before a tab shows.
func TestPodTemplate(t *testing.T) {
	template := &corev1.PodTemplateSpec{}
	read(t, "template.yaml", template)
	compare(t, "template", func(w *bytes.Buffer) error { return PodTemplate(w, template) })
}
