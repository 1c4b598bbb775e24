package handlers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestHugeAmounts(t *testing.T) {
	limits := func(text string) string {
		return `{"spec":{"containers":[{"resources":{"limits":{"cpu":` + text + `}}}]}}`
	}
	for body, refused := range map[string]bool{
		limits(`"1e99999999"`):                                       true,
		limits(`"1E+99999999"`):                                      true,
		limits(`"1e-99999999"`):                                      true,
		limits(`"-1.5e000100"`):                                      true,
		limits(`1e99999999`):                                         true,
		limits(`" 1e` + strings.Repeat("0", 500) + `999"`):           true,
		limits(`"` + strings.Repeat("9", 2000) + `"`):                true,
		limits(`"` + strings.Repeat("9", 2000) + `Gi"`):              true,
		limits(`"\u0031e99999999"`):                                  true,
		limits(`"1e\u0039\u0039\u0039\u0039"`):                       true,
		`{"spec":{"volumes":[{"emptyDir":{"sizeLimit":"1e9999"}}]}}`: true,
		limits(`"1e99"`):                                             false,
		limits(`1e99999999},"limits":{"memory":"1"`):                 true,
		limits(`"100m"`):                                             false,
		limits(`"1e3"`):                                              false,
		limits(`"1Ei"`):                                              false,
		`{"metadata":{"labels":{"commit":"7e12345"}}}`:               false,
		`{"spec":{"containers":[{"args":["` + strings.Repeat("9", 2000) + `"]}]}}`: false,
	} {
		for _, into := range []runtime.Object{&corev1.Pod{}, &unstructured.Unstructured{}} {
			if err := checkJSONQuantities([]byte(body), into); (err != nil) != refused {
				t.Errorf("%.100s: %v", body, err)
			}
		}
	}
	const hard = `{"spec":{"hard":{"pods":"1e99999999"}}}`
	if err := checkJSONQuantities([]byte(hard), &corev1.ResourceQuota{}); err == nil {
		t.Error("a quota of 1e99999999 pods is not refused")
	}
}

func TestHugeAmountsInProtobuf(t *testing.T) {
	for text, refused := range map[string]bool{"1e99999999": true, "1e99": false, "100m": false, strings.Repeat("9", 2000): true} {
		// A map entry, of a key and a quantity, as in ResourceList.
		amount := append([]byte{1<<3 | 2}, lengthed(text)...)
		entry := append(append([]byte{1<<3 | 2}, lengthed("cpu")...), append([]byte{2<<3 | 2}, lengthed(string(amount))...)...)
		message := append([]byte{1<<3 | 2}, lengthed(string(entry))...)
		if err := checkProtobufQuantities(message); (err != nil) != refused {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"commit": "7e12345"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1e3")}}}}
	message, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkProtobufQuantities(message); err != nil {
		t.Errorf("an ordinary pod: %v", err)
	}
}

func lengthed(text string) []byte {
	n := len(text)
	if n < 128 {
		return append([]byte{byte(n)}, text...)
	}
	return append([]byte{byte(n) | 128, byte(n >> 7)}, text...)
}

// An object begins with the length of its metadata and of its name, which may
// look like a digit; names and UIDs may contain what looks like an exponent.
func TestNamesAreNoAmounts(t *testing.T) {
	for length := range 64 {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: strings.Repeat("n", length), UID: "a9e41234-2f21-4c5a-b236-a67fbd08dda5",
			Annotations: map[string]string{"long": strings.Repeat("text ", 100)},
		}}
		message, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := checkProtobufQuantities(message); err != nil {
			t.Errorf("a name of %d characters: %v", length, err)
		}
	}
}
