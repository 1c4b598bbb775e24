package eventhandlers

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
)

// crowded is a pod with about every field that affects scheduling, and some
// that don't.
func crowded() *core.Pod {
	always, never, zero := corev1.ContainerRestartPolicyAlways, corev1.PreemptNever, int64(0)
	now := metav1.NewTime(time.Unix(1_700_000_000, 0))
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return fixture.Pod("p", fixture.On("n1"), fixture.Priority(7), fixture.Gate("g"), fixture.Requests("cpu", "1", "example.org/gpu", "2"),
		fixture.HostPort("", "TCP", 80), func(p *core.Pod) {
			p.ResourceVersion, p.Generation, p.CreationTimestamp, p.DeletionTimestamp = "5", 3, now, &now
			p.Labels, p.Annotations = map[string]string{"app": "web"}, map[string]string{"a": "b"}
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", APIVersion: "apps/v1", Name: "r", UID: "u", Controller: new(bool)}}
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{}}`)}}}
			c := &p.Spec.Containers[0]
			c.Env, c.Command = []corev1.EnvVar{{Name: "A", Value: "\"b\""}}, []string{"/bin/web"}
			c.Resources.Limits = fixture.List("cpu", "3")
			p.Spec.InitContainers = []core.Container{{Name: "side", Image: "demo", RestartPolicy: &always,
				Resources: corev1.ResourceRequirements{Requests: fixture.List("cpu", "500m")}}}
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
			p.Spec.Overhead, p.Spec.Resources = fixture.List("cpu", "10m"), &corev1.ResourceRequirements{Requests: fixture.List("memory", "1Gi")}
			p.Spec.NodeSelector, p.Spec.HostNetwork, p.Spec.PreemptionPolicy = map[string]string{"disk": "ssd"}, true, &never
			p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &zero}}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone", LabelSelector: selector}},
			}}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: selector}}
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
			p.Spec.Volumes = []corev1.Volume{
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "d"}}},
			}
			p.Status = core.PodStatus{
				Phase:             corev1.PodRunning,
				NominatedNodeName: "n2",
				StartTime:         &now,
				PodIP:             "10.0.0.1",
				Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now}},
				ContainerStatuses: []core.ContainerStatus{{Name: "main", AllocatedResources: fixture.List("cpu", "2"),
					Resources: &corev1.ResourceRequirements{Requests: fixture.List("cpu", "2")}}},
				InitContainerStatuses: []core.ContainerStatus{{Name: "side", ContainerID: "1"}},
			}
		})
}

func encode(t *testing.T, obj any) []byte {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decodedPod(t *testing.T, p pods, pod *core.Pod) *core.Pod {
	t.Helper()
	got, err := p.Decode(encode(t, pod))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Only the fields with which a pod is placed and counted are kept.
func TestDecodedPodsAreSlim(t *testing.T) {
	want := crowded()
	got := decodedPod(t, pods{shared: newShared()}, want)
	whole := decodedPod(t, pods{whole: true}, want)
	if before, after := framework.NewPodInfo(want), framework.NewPodInfo(got); !reflect.DeepEqual(before.Requests, after.Requests) ||
		!reflect.DeepEqual(before.ScoredRequests, after.ScoredRequests) || !reflect.DeepEqual(before.HostPorts, after.HostPorts) {
		t.Errorf("counts %+v, whole %+v", after, before)
	}
	want.ManagedFields = nil
	if !apiequality.Semantic.DeepEqual(whole, want) {
		t.Errorf("a whole pod is %+v, want %+v", whole, want)
	}
	want.TypeMeta, want.Annotations = metav1.TypeMeta{}, nil
	c := &want.Spec.Containers[0]
	c.Env, c.Command = nil, nil
	want.Spec.EphemeralContainers, want.Spec.Volumes = nil, want.Spec.Volumes[2:]
	want.Status.PodIP, want.Status.InitContainerStatuses = "", nil
	if !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("decoded\n%+v, want\n%+v", got, want)
	}
}

// What the fast decoder does not accept is decoded like any other object.
func TestNamesAreToldApartByCase(t *testing.T) {
	for name, sink := range map[string]pods{"slim": {shared: newShared()}, "whole": {whole: true}} {
		pod, err := sink.Decode([]byte(`{"metadata":{"name":"p"},"spec":{"nodename":"n1","priority":1,"Priority":2}}`))
		if err != nil || pod.Spec.NodeName != "" || *pod.Spec.Priority != 1 {
			t.Errorf("%s: %+v (%v) has fields by names that are not theirs", name, pod, err)
		}
	}
}

func TestOddPodsAreDecoded(t *testing.T) {
	for name, text := range map[string]string{
		"no text that is UTF-8": "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\xff\",\"volumes\":null}}",
		"in what is passed over": "{\"metadata\":{\"name\":\"p\",\"annotations\":{\"a\":\"\xff\"},\"managedFields\":[{\"manager\":\"m\"}]},\"spec\":{\"nodeName\":\"n\"," +
			"\"containers\":[{\"name\":\"c\",\"command\":[\"/bin/web\"],\"env\":[{\"name\":\"A\"}],\"readinessProbe\":{\"tcpSocket\":{\"port\":80}}}]}}",
		"names in another case": `{"Metadata":{"Name":"p"},"Spec":{"NodeName":"n"},"status":{"startTime":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			want := &core.Pod{}
			wantErr := json.Unmarshal([]byte(text), want)
			got, err := pods{shared: newShared()}.Decode([]byte(text))
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("error %v, want %v", err, wantErr)
			}
			if err == nil && (got.Name != want.Name || got.Spec.NodeName != want.Spec.NodeName) {
				t.Errorf("decoded %+v, want %+v", got, want)
			}
		})
	}
}

// Pods of one template share the values that they have in common; pods of other
// kinds keep theirs.
func TestPodsOfATemplateShare(t *testing.T) {
	p := pods{shared: newShared()}
	made := func(app, cpu string) *core.Pod {
		pod := crowded()
		pod.Labels = map[string]string{"app": app, "tier": "web"}
		pod.Spec.Containers[0].Resources.Requests = fixture.List("cpu", cpu, "memory", "1Gi")
		return decodedPod(t, p, pod)
	}
	same := func(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	first, second, other := made("a", "1"), made("a", "1"), made("b", "2")
	if !same(first.Labels, second.Labels) || !same(first.Spec.Containers, second.Spec.Containers) || !same(first.Spec.Tolerations, second.Spec.Tolerations) {
		t.Error("two pods of one template have labels, containers or tolerations of their own")
	}
	if cpu := other.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]; other.Labels["app"] != "b" || cpu.String() != "2" {
		t.Errorf("another pod has the labels %v and asks for %v", other.Labels, cpu)
	}
	for i := range maxShared + 10 {
		if _, err := p.shared.labels.of([]byte(`{"app":"` + strconv.Itoa(i) + `"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if kept := len(p.shared.labels); kept > maxShared {
		t.Errorf("%d sets of labels are kept", kept)
	}
	kept := len(p.shared.labels)
	if long := made(strings.Repeat("a", maxText), "1"); len(long.Labels["app"]) != maxText || len(p.shared.labels) != kept {
		t.Error("labels are kept that are longer than any template's, or are not the pod's")
	}
}

// No name or image can make one pod pass for another.
func TestContainersAreToldApart(t *testing.T) {
	s := newShared()
	requests := []byte(`{"cpu":"1"}`)
	for _, containers := range [][]wireContainer{
		{{Name: "a", Image: "b"}},
		{{Name: "a", Image: "b" + string(rune(0))}},
		{{Name: "ab"}},
		{{Name: "a", Image: "b", Ports: requests}},
		{{Name: "a", Image: "b"}, {}},
	} {
		if _, err := s.containersOf(containers); err != nil && len(containers[0].Ports) == 0 {
			t.Fatal(err)
		}
	}
	if len(s.containers) != 4 { // invalid ports are refused
		t.Errorf("%d of 4 are told apart", len(s.containers))
	}
}

// The fields that tell which node features a pod needs are kept, and not shared
// with pods of the same template that differ in them.
func TestFeaturesAreKept(t *testing.T) {
	p := pods{shared: newShared()}
	plain := decodedPod(t, p, fixture.Pod("plain"))
	mounts := []corev1.VolumeMount{{Name: "data", MountPath: "/data", BindMountOptions: []string{"noexec"}}}
	debugged := fixture.Pod("debugged", func(p *core.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", VolumeMounts: mounts}}}
	})
	if got := decodedPod(t, p, debugged); !apiequality.Semantic.DeepEqual(got.Spec, debugged.Spec) {
		t.Errorf("decoded\n%+v, want\n%+v", got.Spec, debugged.Spec)
	}
	special := fixture.Pod("special", func(p *core.Pod) {
		no := false
		p.Spec.HostUsers = &no
		p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	})
	got := decodedPod(t, p, special)
	special.TypeMeta = metav1.TypeMeta{}
	if !apiequality.Semantic.DeepEqual(got, special) {
		t.Errorf("decoded\n%+v, want\n%+v", got, special)
	}
	if plain.Spec.Containers[0].RestartPolicyRules != nil || decodedPod(t, p, fixture.Pod("later")).Spec.Containers[0].RestartPolicyRules != nil {
		t.Error("a plain pod has another's rules")
	}
}

func TestDecodedNodesAreSlim(t *testing.T) {
	node := fixture.Node("n1", fixture.Taint("a", "b", corev1.TaintEffectNoSchedule), func(n *core.Node) {
		n.Spec.Unschedulable, n.Spec.PodCIDR = true, "10.0.0.0/24"
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"demo"}, SizeBytes: 5}}
		n.Status.DeclaredFeatures = []string{"A", "B"}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Message: strings.Repeat("x", 10)}}
	})
	got, err := nodes{shared: newShared()}.Decode(encode(t, node))
	if err != nil {
		t.Fatal(err)
	}
	node.Spec.PodCIDR, node.Status.Conditions = "", nil
	if !apiequality.Semantic.DeepEqual(got, node) {
		t.Errorf("decoded\n%+v, want\n%+v", got, node)
	}
}
