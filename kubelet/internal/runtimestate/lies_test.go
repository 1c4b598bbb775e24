package runtimestate

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// Other clients of the runtime label as they like what they make. Nothing is removed from
// the machine by a name that leads out of the kubelet's directories.
func TestNamesThatLeadElsewhereAreNotAKubelets(t *testing.T) {
	labels := func(namespace, name, uid, container string) map[string]string {
		return map[string]string{
			kubelettypes.KubernetesPodNamespaceLabel: namespace, kubelettypes.KubernetesPodNameLabel: name,
			kubelettypes.KubernetesPodUIDLabel: uid, kubelettypes.KubernetesContainerNameLabel: container,
		}
	}
	runtime := simulated.New(simulated.Options{Clock: clock.RealClock{}, Lie: func(_ string, answer proto.Message) {
		for _, l := range []map[string]string{
			labels("ns", "p", "uid", "c"), labels("ns", "p", "..", "c"), labels("ns", "p", "../../etc", "c"), labels("..", "p", "uid", "c"),
			labels("ns", "p/../../etc", "uid", "c"), labels("ns", "p", "uid", "../c"), labels("ns", "p", strings.Repeat("u", 256), "c"), labels("ns", "p", "", "c"),
		} {
			switch a := answer.(type) {
			case *runtimeapi.ListPodSandboxResponse:
				a.Items = append(a.Items, &runtimeapi.PodSandbox{Id: "s", Labels: l})
			case *runtimeapi.ListContainersResponse:
				a.Containers = append(a.Containers, &runtimeapi.Container{Id: "c", Labels: l})
			}
		}
	}})
	r, err := NewReader(t.Context(), cri.NewOver(runtime.Connection(), cri.Options{}), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := r.Pods(t.Context())
	// Nothing is named by a container's name that a sandbox is labelled with.
	if err != nil || len(pods) != 1 || pods[0].UID != "uid" || len(pods[0].Sandboxes) != 2 || len(pods[0].Containers) != 1 {
		t.Errorf("pods: %+v, %v", pods, err)
	}
}

// A pod of a manifest may have any labels, and its sandboxes have them too. One that is not
// found again would be made again, without end.
func TestLabelsOfThePodAreNotTheSandboxs(t *testing.T) {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns",
		Name:      "p",
		UID:       "uid",
		Labels:    map[string]string{kubelettypes.KubernetesContainerNameLabel: "team/web"},
	}}
	runtime := simulated.New(simulated.Options{Clock: clock.RealClock{}, Lie: func(_ string, answer proto.Message) {
		if a, ok := answer.(*runtimeapi.ListPodSandboxResponse); ok {
			a.Items = append(a.Items, &runtimeapi.PodSandbox{Id: "s", Labels: SandboxLabels(pod)})
		}
	}})
	r, err := NewReader(t.Context(), cri.NewOver(runtime.Connection(), cri.Options{}), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := r.Pods(t.Context())
	if err != nil || len(pods) != 1 || len(pods[0].Sandboxes) != 1 {
		t.Errorf("pods: %+v, %v", pods, err)
	}
}

// What the API would not take of a pod's addresses is left out: it would refuse the rest of
// the status with it.
func TestSandboxIPs(t *testing.T) {
	for told, want := range map[string]string{
		"": "", "10.0.0.1": "10.0.0.1", "10.0.0.1 fd00::1": "10.0.0.1 fd00::1", "fd00::1 10.0.0.1": "fd00::1 10.0.0.1",
		"nonsense": "", "nonsense 10.0.0.1": "10.0.0.1", "10.0.0.1 10.0.0.1": "10.0.0.1", "10.0.0.1 10.0.0.2 fd00::1 fd00::2": "10.0.0.1 fd00::1",
		"fe80::1%eth0": "", "10.0.0.1/24": "", "010.0.0.1": "",
		"fd00:0::1": "fd00::1", "FD00::A 10.0.0.1": "fd00::a 10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "10.0.0.1 ::ffff:10.0.0.2 fd00::1": "10.0.0.1 fd00::1",
	} {
		network := &runtimeapi.PodSandboxNetworkStatus{}
		for i, ip := range strings.Fields(told) {
			if i == 0 {
				network.Ip = ip
				continue
			}
			network.AdditionalIps = append(network.AdditionalIps, &runtimeapi.PodIP{Ip: ip})
		}
		if got := sandboxIPs(network); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", told, got, want)
		}
	}
}

// An API server refuses a status of megabytes; its pod could neither be reported nor be deleted.
func TestTheTextsOfContainersAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	lie := &runtimeapi.ContainerStatus{
		Id: "c", State: runtimeapi.ContainerState_CONTAINER_EXITED, Reason: long, Message: long, ImageRef: long, Image: &runtimeapi.ImageSpec{Image: long},
	}
	c := (&Reader{}).convertContainer(t.Context(), lie, "s")
	if n := len(c.Reason) + len(c.Message) + len(c.Image) + len(c.ImageID); n > 20000 {
		t.Errorf("%d bytes of it are kept", n)
	}
}
