package generate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"kctl/proto/core"
)

func TestRunPod(t *testing.T) {
	cases := []struct {
		name   string
		values Values
		want   string // YAML of the pod
	}{
		{
			name:   "the least",
			values: Values{"name": "web", "image": "nginx"},
			want: `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {run: web}}
spec:
  containers: [{name: web, image: nginx, resources: {}}]
  dnsPolicy: ClusterFirst
  restartPolicy: Always
status: {}`,
		},
		{
			name: "everything",
			values: Values{
				"name": "job", "image": "localhost:5000/a/b@sha256:" + strings.Repeat("0", 64),
				"image-pull-policy": "Never", "port": "80", "labels": []string{"a=b", "c=d"},
				"annotations": []string{"note=x=y,z"}, "env": []string{"A=1", "B=x,y", "EMPTY="},
				"args": []string{"sh", "-c", "true"}, "command": true, "stdin": true, "tty": true,
				"restart": "OnFailure", "serviceaccount": "me", "privileged": true,
				"requests": "cpu=100m,memory=1Gi", "limits": "cpu=1",
			},
			want: `
apiVersion: v1
kind: Pod
metadata: {name: job, labels: {a: b, c: d}, annotations: {note: "x=y,z"}}
spec:
  containers:
  - name: job
    image: localhost:5000/a/b@sha256:` + strings.Repeat("0", 64) + `
    imagePullPolicy: Never
    command: [sh, -c, "true"]
    ports: [{containerPort: 80}]
    env: [{name: A, value: "1"}, {name: B, value: "x,y"}, {name: EMPTY}]
    resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: "1"}}
    securityContext: {privileged: true}
    stdin: true
    stdinOnce: true
    tty: true
  dnsPolicy: ClusterFirst
  restartPolicy: OnFailure
  serviceAccountName: me
status: {}`,
		},
		{
			name:   "arguments, standard input left open",
			values: Values{"name": "x", "image": "x", "args": []string{"a"}, "stdin": true, "leave-stdin-open": true, "restart": "Never"},
			want: `
apiVersion: v1
kind: Pod
metadata: {name: x, labels: {run: x}}
spec:
  containers: [{name: x, image: x, args: [a], stdin: true, resources: {}}]
  dnsPolicy: ClusterFirst
  restartPolicy: Never
status: {}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g, err := Lookup(RunPodV1)
			if err != nil {
				t.Fatal(err)
			}
			obj, err := Make(g, c.values)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := asJSON(t, obj), fromYAML(t, c.want); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestRunPodRefuses(t *testing.T) {
	cases := []struct {
		name   string
		values Values
		want   string
	}{
		{"no image", Values{"name": "x"}, "parameter image is required"},
		{"no name", Values{"name": "", "image": "x"}, "parameter name is required"},
		{"unknown parameter", Values{"name": "x", "image": "x", "replicas": "3"}, "parameter replicas is unknown"},
		{"wrong type", Values{"name": "x", "image": "x", "env": "A=1"}, "parameter env must not be a text"},
		{"bad image", Values{"name": "x", "image": "UPPER:::"}, `invalid image name "UPPER:::": invalid reference format`},
		{"upper case image", Values{"name": "x", "image": "Nginx"}, "must be lowercase"},
		{"bad policy", Values{"name": "x", "image": "x", "image-pull-policy": "Sometimes"}, "invalid image pull policy: Sometimes"},
		{"bad restart", Values{"name": "x", "image": "x", "restart": "Maybe"}, "invalid restart policy: Maybe"},
		{"bad port", Values{"name": "x", "image": "x", "port": "70000"}, `invalid port "70000"`},
		{"bad env", Values{"name": "x", "image": "x", "env": []string{"A"}}, `"A" is not NAME=VALUE`},
		{"bad env name", Values{"name": "x", "image": "x", "env": []string{"=1"}}, `"=1" is not NAME=VALUE`},
		{"bad label", Values{"name": "x", "image": "x", "labels": []string{"a b=c"}}, `invalid label key "a b"`},
		{"bad request", Values{"name": "x", "image": "x", "requests": "cpu=much"}, `requests of cpu: "much"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Make(runPod{}, c.values)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestLookupOfRemovedGenerators(t *testing.T) {
	for name, want := range map[string]string{
		"deployment/apps.v1": "kind Deployment",
		"job/v1":             "kind Job",
		"run/v1":             "ReplicationController",
		"nonsense":           "not found: there is run-pod/v1",
	} {
		if _, err := Lookup(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Lookup(%q) = %v, want an error with %q", name, err, want)
		}
	}
}

func TestOverride(t *testing.T) {
	cases := []struct {
		name, overrides string
		how             OverrideType
		want            string // either "error: …" or the JSON of the spec
	}{
		{"nothing", "", OverrideMerge, `{"containers":[{"name":"c","image":"i","resources":{}}]}`},
		{"merge replaces lists", `{"spec":{"hostNetwork":true,"containers":[{"name":"d","image":"j"}]}}`, OverrideMerge,
			`{"containers":[{"name":"d","image":"j","resources":{}}],"hostNetwork":true}`},
		{"merge from YAML", "spec: {nodeName: n1}", OverrideMerge,
			`{"containers":[{"name":"c","image":"i","resources":{}}],"nodeName":"n1"}`},
		{"strategic merges lists by key", `{"spec":{"containers":[{"name":"c","tty":true}]}}`, OverrideStrategic,
			`{"containers":[{"name":"c","image":"i","resources":{},"tty":true}]}`},
		{"JSON patch", `[{"op":"replace","path":"/spec/containers/0/image","value":"k"}]`, OverrideJSON,
			`{"containers":[{"name":"c","image":"k","resources":{}}]}`},
		{"JSON patch that is none", `{"spec":{}}`, OverrideJSON, "error: not a JSON patch"},
		{"merge of a list", `[]`, OverrideMerge, "error: a merge patch is an object"},
		{"unknown field", `{"spec":{"hostNetwrok":true}}`, OverrideMerge, `error: unknown field "spec.hostNetwrok"`},
		{"other kind", `{"kind":"Node"}`, OverrideMerge, "error: must not change the kind"},
		{"broken", `{"spec":`, OverrideMerge, "error: overrides: "},
		{"unknown type", `{}`, "magic", `error: invalid override type "magic"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pod := &core.Pod{Spec: core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}}}
			pod.APIVersion, pod.Kind, pod.Name = "v1", "Pod", "p"
			out, err := Override(pod, c.overrides, c.how)
			if want, isError := strings.CutPrefix(c.want, "error: "); isError {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want an error with %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := asJSON(t, out.Spec); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fromYAML is the JSON that a pod written in YAML encodes to.
func fromYAML(t *testing.T, text string) string {
	t.Helper()
	pod := &core.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	return asJSON(t, pod)
}

func TestAutoscaler(t *testing.T) {
	of := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}}}
	for text, want := range map[string]string{
		"80%":  "map[averageUtilization:80 type:Utilization]",
		"500m": "map[averageValue:500m type:AverageValue]",
		"80":   "map[averageValue:80m type:AverageValue]",
		"0%":   "",
		"much": "",
		"-1":   "",
	} {
		made, err := Autoscaler("web", of, AutoscalerOptions{High: 2, CPU: text})
		if want == "" {
			if err == nil {
				t.Errorf("%s was taken", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		metrics, _, _ := unstructured.NestedSlice(made.Object, "spec", "metrics")
		if len(metrics) != 1 {
			t.Fatalf("%s: %v", text, metrics)
		}
		target, _, _ := unstructured.NestedMap(metrics[0].(map[string]any), "resource", "target")
		if got := fmt.Sprint(target); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// Of several images the first has the port; of an ingress's rules, hosts with one secret
// share an entry of tls, which has each host once.
func TestWhatIsThereOnce(t *testing.T) {
	all, err := containers([]string{"a", "b"}, nil, 80)
	if err != nil || all[0].(fields)["ports"] == nil || all[1].(fields)["ports"] != nil {
		t.Errorf("ports of %v (%v)", all, err)
	}
	_, tls, err := ingressRules([]string{"a/=s:1,tls=x", "b/=s:1,tls=x", "a/c=s:1,tls=x", "d/=s:1,tls", "a/e=s:1,tls=y", "/=s:1,tls"})
	if got, want := fmt.Sprint(tls), "[map[hosts:[a b] secretName:x] map[hosts:[d]]]"; err != nil || got != want {
		t.Errorf("tls is %s, want %s (%v)", got, want, err)
	}
}
