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
		name    string
		options PodOptions
		want    string // YAML of the pod
	}{
		{
			name:    "the least",
			options: PodOptions{Name: "web", Image: "nginx"},
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
			options: PodOptions{
				Name: "job", Image: "localhost:5000/a/b@sha256:" + strings.Repeat("0", 64),
				PullPolicy: "Never", Port: "80", Labels: []string{"a=b", "c=d"},
				Annotations: []string{"note=x=y,z"}, Env: []string{"A=1", "B=x,y", "EMPTY="},
				Args: []string{"sh", "-c", "true"}, Command: true, Stdin: true, TTY: true,
				Restart: "OnFailure", ServiceAccount: "me", Privileged: true,
				Requests: "cpu=100m,memory=1Gi", Limits: "cpu=1",
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
			name:    "arguments, standard input left open",
			options: PodOptions{Name: "x", Image: "x", Args: []string{"a"}, Stdin: true, LeaveStdinOpen: true, Restart: "Never"},
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
			obj, err := Pod(c.options)
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
		name    string
		options PodOptions
		want    string
	}{
		{"no image", PodOptions{Name: "x"}, "--image is required"},
		{"no name", PodOptions{Image: "x"}, "parameter name is required"},
		{"bad image", PodOptions{Name: "x", Image: "UPPER:::"}, `invalid image name "UPPER:::": invalid reference format`},
		{"upper case image", PodOptions{Name: "x", Image: "Nginx"}, "must be lowercase"},
		{"bad policy", PodOptions{Name: "x", Image: "x", PullPolicy: "Sometimes"}, "invalid image pull policy: Sometimes"},
		{"bad restart", PodOptions{Name: "x", Image: "x", Restart: "Maybe"}, "invalid restart policy: Maybe"},
		{"bad port", PodOptions{Name: "x", Image: "x", Port: "70000"}, `invalid port "70000"`},
		{"bad env", PodOptions{Name: "x", Image: "x", Env: []string{"A"}}, `"A" is not NAME=VALUE`},
		{"bad env name", PodOptions{Name: "x", Image: "x", Env: []string{"=1"}}, `"=1" is not NAME=VALUE`},
		{"bad label", PodOptions{Name: "x", Image: "x", Labels: []string{"a b=c"}}, `invalid label key "a b"`},
		{"bad request", PodOptions{Name: "x", Image: "x", Requests: "cpu=much"}, `requests of cpu: "much"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Pod(c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestRemovedGenerators(t *testing.T) {
	for name, want := range map[string]string{
		"deployment/apps.v1": "kind Deployment",
		"job/v1":             "kind Job",
		"run/v1":             "ReplicationController",
		"nonsense":           "not found: there is run-pod/v1",
	} {
		if err := CheckGenerator(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckGenerator(%q) = %v, want an error with %q", name, err, want)
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
