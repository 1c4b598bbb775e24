package quantity

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestHuge(t *testing.T) {
	for text, want := range map[string]bool{
		"1": false, "1e99": false, "1E-99": false, "0.5Gi": false, "": false, "e1000": false, "abc": false,
		"1e100": true, "-1E+0000100": true, " 1e-999999999 ": true, "1e" + strings.Repeat("0", 300) + "1": false,
		strings.Repeat("9", maxText+1) + "e10": true, strings.Repeat("9", maxText+1) + "E-9": true, "." + strings.Repeat("9", maxText) + "e1": true,
		strings.Repeat("9", maxText+1): true, strings.Repeat("9", maxText+1) + "Ki": true, strings.Repeat("9", maxText+1) + "KiB": false,
	} {
		if got := Huge([]byte(text)); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}

func TestFindHuge(t *testing.T) {
	for text, want := range map[string]string{
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e100"}}}]}}`: "1e100",
		`{"a":[{"sizeLimit":1e100}]}`:                                        "1e100",
		`{"metadata":{"annotations":{"a":"1e100"}},"limits":{"cpu":"1"}}`:    "",
		`{"limits":{"cpu":"1e100"},"limits":{"memory":"1"}}`:                 "1e100",
		`{"limits":{"cpu":"1e100"}`:                                          "1e100",
		`{"limits":`:                                                         "",
		strings.Repeat("[", maxDepth+1) + `{"limits":"1e100"}`:               "",
		strings.Repeat("[", 1_000_000) + `"1e100"`:                           "",
	} {
		if got, found := findHuge([]byte(text), nil); found != (want != "") || got != want {
			t.Errorf("%.100s: %q, %v", text, got, found)
		}
	}
}

// TestFindHugeInTypes: quantities are where the type has them, whatever the field's name.
func TestFindHugeInTypes(t *testing.T) {
	for _, c := range []struct {
		into any
		text string
		want string
	}{
		{corev1.ResourceQuota{}, `{"spec":{"hard":{"pods":"1e100"}}}`, "1e100"},
		{corev1.ResourceQuota{}, `{"spec":{"hard":{"pods":1e100},"hard":{"cpu":"1"}}}`, "1e100"},
		{&corev1.LimitRange{}, `{"spec":{"limits":[{"type":"1e100","max":{"cpu":"1"}},{"maxLimitRequestRatio":{"cpu":"1e100"}}]}}`, "1e100"},
		{&corev1.LimitRange{}, `{"spec":{"limits":[{"type":"1e100"}]}}`, ""},
		{&corev1.Pod{}, `{"spec":{"volumes":[{"emptyDir":{"sizeLimit":"1e100"}}]}}`, "1e100"},
		{&corev1.Pod{}, `{"spec":{"containers":[{"env":[{"name":"limits","value":"1e100"}],"args":["1e100"]}]},"limits":"1e100"}`, ""},
		{&unstructured.Unstructured{}, `{"spec":{"limits":{"a":"1e100"}}}`, "1e100"},
		{&corev1.ConfigMap{}, `{"data":{"limits":"1e100"}}`, ""},
		{&autoscalingv2.HorizontalPodAutoscaler{}, `{"spec":{"metrics":[{"external":{"target":{"averageValue":"1e100"}}}]}}`, "1e100"},
	} {
		if got, found := findHuge([]byte(c.text), c.into); found != (c.want != "") || got != c.want {
			t.Errorf("%s: %q, %v", c.text, got, found)
		}
	}
}
