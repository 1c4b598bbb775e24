package limitranger

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// these are the limit ranges of every namespace.
type these []*corev1.LimitRange

func (r these) In(context.Context, string) ([]*corev1.LimitRange, error) { return r, nil }
func (these) Forget(string)                                              {}

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	return into
}

func plugin(t *testing.T, limits ...string) *Plugin {
	t.Helper()
	var ranges these
	for _, text := range limits {
		ranges = append(ranges, &corev1.LimitRange{Spec: *read[corev1.LimitRangeSpec](t, "limits: "+text)})
	}
	return New(ranges)
}

func through(t *testing.T, p *Plugin, obj core.Object) error {
	t.Helper()
	a := &admission.Attributes{Operation: admission.Create, Namespace: "shop", Object: obj}
	if err := p.Admit(t.Context(), a); err != nil {
		return err
	}
	return p.Validate(t.Context(), a)
}

func check(t *testing.T, name string, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s:\n  got: %s\n want: %s", name, got, want)
	}
}

// TestBounds compares the answers for pods with those of upstream 1.37.
func TestBounds(t *testing.T) {
	strict := `[{type: Container, default: {cpu: 300m, memory: 100Mi}, defaultRequest: {cpu: 100m, memory: 50Mi}, max: {cpu: 2}, min: {cpu: 50m}, maxLimitRequestRatio: {cpu: 4}},
		{type: Pod, max: {cpu: 3, memory: 1Gi}, min: {cpu: 60m}, maxLimitRequestRatio: {memory: 2}}]`
	bare := "[{type: Pod, max: {cpu: 2}, min: {memory: 50Mi}, maxLimitRequestRatio: {ephemeral-storage: 2}}]"
	for name, c := range map[string]struct{ limits, spec, want string }{
		"nothing said": {strict, "{containers: [{name: c}]}", ""},
		"limit too high": {strict, "{containers: [{name: c, resources: {limits: {cpu: 3}, requests: {cpu: 3}}}]}",
			"maximum cpu usage per Container is 2, but limit is 3"},
		"request too low": {strict, "{containers: [{name: c, resources: {limits: {cpu: 10m}, requests: {cpu: 10m}}}]}",
			"[minimum cpu usage per Container is 50m, but request is 10m, minimum cpu usage per Pod is 60m, but request is 10m]"},
		"too far apart": {strict, "{containers: [{name: c, resources: {limits: {cpu: 2}, requests: {cpu: 100m}}}]}",
			"cpu max limit to request ratio per Container is 4, but provided ratio is 20.000000"},
		"together too much": {strict,
			"{containers: [{name: c, resources: {limits: {cpu: 2}, requests: {cpu: 1}}}, {name: d, resources: {limits: {cpu: 2}, requests: {cpu: 1}}}]}",
			"maximum cpu usage per Pod is 3, but limit is 4"},
		"pod too far apart": {strict, "{containers: [{name: c, resources: {requests: {memory: 20Mi}}}]}",
			"memory max limit to request ratio per Pod is 2, but provided ratio is 5.000000"},
		"pod as a whole": {strict, "{resources: {limits: {cpu: 4}, requests: {cpu: 4}}, containers: [{name: c}]}",
			"maximum cpu usage per Pod is 3, but limit is 4"},
		"nothing to fill in": {bare, "{containers: [{name: c}]}",
			"[minimum memory usage per Pod is 50Mi.  No request is specified, maximum cpu usage per Pod is 2.  No limit is specified, ephemeral-storage max limit to " +
				"request ratio per Pod is 2, but no request is specified or request is 0]"},
		"init containers": {"[{type: Container, max: {cpu: 1}}]",
			"{initContainers: [{name: i, resources: {limits: {cpu: 2}}}], containers: [{name: c, resources: {limits: {cpu: 1}}}]}",
			"maximum cpu usage per Container is 1, but limit is 2"},
		"a negative bound": {"[{type: Container, max: {cpu: -1}}]", "{containers: [{name: c, resources: {limits: {cpu: 1}}}]}",
			"maximum cpu usage per Container is -1, but limit is 1"},
		"a huge amount": {"[{type: Container, max: {memory: 1Gi}}]", "{containers: [{name: c, resources: {limits: {memory: 99999999999999999999999999}}}]}",
			"maximum memory usage per Container is 1Gi, but limit is 100e24"},
		"no ranges": {"[]", "{containers: [{name: c, resources: {limits: {memory: 99999999999999999999999999}}}]}", ""},
	} {
		pod := &core.Pod{Spec: *read[core.PodSpec](t, c.spec)}
		check(t, name, through(t, plugin(t, c.limits), pod), c.want)
	}
}

func TestDefaults(t *testing.T) {
	pod := &core.Pod{Spec: *read[core.PodSpec](t,
		"{initContainers: [{name: i}], containers: [{name: c}, {name: d, resources: {limits: {cpu: 100m, memory: 10Mi}, requests: {cpu: 100m, memory: 10Mi}}}]}")}
	p := plugin(t, "[{type: Container, default: {cpu: 300m, memory: 100Mi}, defaultRequest: {cpu: 100m, memory: 50Mi}}]", "[{type: Container, default: {cpu: 9}}]")
	check(t, "admitted", through(t, p, pod), "")
	const note = "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c; cpu, memory request for init container i; " +
		"cpu, memory limit for init container i"
	if got := pod.Annotations["kubernetes.io/limit-ranger"]; got != note {
		t.Errorf("noted %q", got)
	}
	for _, c := range []core.Container{pod.Spec.Containers[0], pod.Spec.InitContainers[0]} {
		limits, requests := c.Resources.Limits, c.Resources.Requests
		if limits.Cpu().String() != "300m" || limits.Memory().String() != "100Mi" || requests.Cpu().String() != "100m" || requests.Memory().String() != "50Mi" {
			t.Errorf("container %s has %+v", c.Name, c.Resources)
		}
	}
	if pod.Spec.Containers[1].Resources.Limits.Cpu().String() != "100m" {
		t.Errorf("the limit was changed: %+v", pod.Spec.Containers[1].Resources)
	}
}

func TestOnlyWhatCounts(t *testing.T) {
	p := plugin(t, "[{type: Container, max: {cpu: 1}, default: {cpu: 1}}]")
	pod := &core.Pod{Spec: *read[core.PodSpec](t, "{containers: [{name: c, resources: {limits: {cpu: 2}}}]}")}
	for name, c := range map[string]struct {
		operation   admission.Operation
		subresource string
		want        string
	}{
		"an update":        {admission.Update, "", ""},
		"a status":         {admission.Update, "status", ""},
		"a resize":         {admission.Update, "resize", "maximum cpu usage per Container is 1, but limit is 2"},
		"a new pod":        {admission.Create, "", "maximum cpu usage per Container is 1, but limit is 2"},
		"a pod's eviction": {admission.Create, "eviction", ""},
	} {
		a := &admission.Attributes{Operation: c.operation, Subresource: c.subresource, Namespace: "shop", Object: pod, OldObject: pod}
		check(t, name, p.Validate(t.Context(), a), c.want)
	}
}

func TestClaims(t *testing.T) {
	p := plugin(t, "[{type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 5Gi}}]")
	for size, want := range map[string]string{
		"500Mi": "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi",
		"6Gi":   "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi",
		"2Gi":   "",
	} {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: *read[corev1.PersistentVolumeClaimSpec](t, "{resources: {requests: {storage: "+size+"}}}"),
		}
		check(t, size, through(t, p, claim), want)
	}
}
