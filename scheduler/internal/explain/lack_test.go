package explain

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/scheduler/framework"
)

func TestLacks(t *testing.T) {
	node := &framework.NodeInfo{
		Allocatable: framework.Resource{MilliCPU: 2000, Memory: 25 << 30, EphemeralStorage: 100 << 30, AllowedPods: 1},
		Requested:   framework.Resource{MilliCPU: 100, Memory: 1 << 30}, Pods: []*framework.PodInfo{{}},
	}
	want := &framework.Resource{MilliCPU: 2000, Memory: 1 << 40, EphemeralStorage: 1 << 30}
	want.Scalar = map[corev1.ResourceName]int64{"example.org/a": 3}
	const says = "[{pods 1 0 1} {cpu 2 1900m 2} {memory 1Ti 24Gi 25Gi} {example.org/a 3 0 0}]"
	if got := fmt.Sprint(lacks(want, node)); got != says {
		t.Errorf("got  %s\nwant %s", got, says)
	}
	for n, want := range map[int64]string{0: "0", 1023: "1023", 1536: "1.5Ki", 25274216 << 10: "24.1Gi", -3 << 20: "-3Mi"} {
		if got := bytes(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
}
