package imagepolicy

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/api/imagepolicy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/webhookclient"
	"kctl/proto/core"
)

// service refuses images with "bad" in their name, fails for "fail", and
// records its requests.
type service struct{ asked []string }

func (s *service) Ask(_ context.Context, question, answer any) error {
	review := question.(*v1alpha1.ImageReview).DeepCopy()
	text, err := json.Marshal(review.Spec)
	if err != nil {
		return err
	}
	s.asked = append(s.asked, string(text))
	if strings.Contains(string(text), "fail") {
		return errors.New("it is down")
	}
	review.Status.Allowed = !strings.Contains(string(text), "bad")
	if strings.Contains(string(text), "why") {
		review.Status.Reason = "no such registry"
	}
	*answer.(*v1alpha1.ImageReview) = *review
	return nil
}

func pod(annotations map[string]string, images ...string) *core.Pod {
	p := &core.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	for i, image := range images {
		switch i {
		case 0:
			p.Spec.Containers = []core.Container{{Image: image}}
		case 1:
			p.Spec.InitContainers = []core.Container{{Image: image}}
		default:
			e := corev1.EphemeralContainer{}
			e.Image = image
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, e)
		}
	}
	return p
}

// TestValidate compares requests and refusals with kube-apiserver v1.37.0's.
func TestValidate(t *testing.T) {
	const refused = "image policy webhook backend denied one or more images: no such registry"
	notes := map[string]string{"a.image-policy.k8s.io/x": "1", "x.image-policy.k8s.io": "n", "image-policy.k8s.io/y": "3", "other": "2"}
	for name, test := range map[string]struct {
		subresource string
		old, now    *core.Pod
		open        bool
		asked, want string
	}{
		"a good pod": {"", nil, pod(notes, "good:1", "init:1", "e"), false,
			`{"containers":[{"image":"good:1"},{"image":"init:1"}],"annotations":{"a.image-policy.k8s.io/x":"1"},"namespace":"n"}`, ""},
		"a bad one": {"", nil, pod(nil, "why-bad"), false, `{"containers":[{"image":"why-bad"}],"namespace":"n"}`, refused},
		"bad for no reason": {"", nil, pod(nil, "bad"), false, `{"containers":[{"image":"bad"}],"namespace":"n"}`,
			"one or more images rejected by webhook backend"},
		"nobody to ask":       {"", nil, pod(nil, "fail"), false, `{"containers":[{"image":"fail"}],"namespace":"n"}`, "image policy: it is down"},
		"nobody to ask, open": {"", nil, pod(nil, "fail"), true, `{"containers":[{"image":"fail"}],"namespace":"n"}`, ""},
		"same images":         {"", pod(map[string]string{"a": "b"}, "bad"), pod(nil, "bad"), false, "", ""},
		"another image":       {"", pod(nil, "good"), pod(nil, "why-bad"), false, `{"containers":[{"image":"why-bad"}],"namespace":"n"}`, refused},
		"another note": {"", pod(nil, "good"), pod(notes, "good"), false,
			`{"containers":[{"image":"good"}],"annotations":{"a.image-policy.k8s.io/x":"1"},"namespace":"n"}`, ""},
		"an ephemeral container": {"ephemeralcontainers", pod(nil, "good"), pod(nil, "good", "i", "why-bad"), false,
			`{"containers":[{"image":"why-bad"}],"namespace":"n"}`, refused},
		"a status": {"status", pod(nil, "good"), pod(nil, "bad"), false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{}
			p := &Plugin{Service: s, failOpen: test.open, answers: webhookclient.NewAnswers[answer](clock.RealClock{})}
			a := &admission.Attributes{Operation: admission.Create, Resource: core.Pods, Subresource: test.subresource, Namespace: "n", Object: test.now}
			if test.old != nil {
				a.Operation, a.OldObject = admission.Update, test.old
			}
			got := ""
			if err := p.Validate(t.Context(), a); err != nil {
				got = err.Error()
			}
			if asked := strings.Join(s.asked, " "); got != test.want || asked != test.asked {
				t.Errorf("%q, asked %s\nwant %q, %s", got, asked, test.want, test.asked)
			}
		})
	}
}

func TestAnswersAreRemembered(t *testing.T) {
	s, now := &service{}, testingclock.NewFakePassiveClock(time.Unix(0, 0))
	p := &Plugin{Service: s, allowTTL: time.Minute, answers: webhookclient.NewAnswers[answer](now)}
	ask := func(image string) int {
		_ = p.Validate(t.Context(), &admission.Attributes{Operation: admission.Create, Resource: core.Pods, Object: pod(nil, image)})
		return len(s.asked)
	}
	if ask("good"); ask("good") != 1 {
		t.Errorf("asked %d times", len(s.asked))
	}
	if ask("bad"); ask("bad") != 3 {
		t.Error("refusals are remembered for no time")
	}
	if now.SetTime(time.Unix(60, 0)); ask("good") != 4 {
		t.Error("an answer was remembered for too long")
	}
	if long := strings.Repeat("x", maxCachedSize); ask(long) != 5 || ask(long) != 6 {
		t.Error("a question of any length is remembered")
	}
}

func TestConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	const kubeconfig = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: " +
		"c, user: u}}]\ncurrent-context: x\n"
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{
		"":                                  "no configuration in --admission-control-config-file",
		"imagePolicy: {kubeConfigFile: /x}": "no such file",
		"imagePolicy: {foo: 1}":             `unknown field "foo"`,
		"imagePolicy: {kubeConfigFile: " + file + ", allowTTL: 1801}":                              "valid value is between 1s and 30m0s for allowTTL, got 1801",
		"imagePolicy: {kubeConfigFile: " + file + ", denyTTL: -2}":                                 "for denyTTL, got -2",
		"imagePolicy: {kubeConfigFile: " + file + ", allowTTL: 9223372036854775807}":               "for allowTTL",
		"imagePolicy: {kubeConfigFile: " + file + ", retryBackoff: -1}":                            "between 1ms and 5m0s for retryBackoff, got -1",
		"imagePolicy: {kubeConfigFile: " + file + ", allowTTL: -1, denyTTL: 50, retryBackoff: 50}": "",
		"imagePolicy: {kubeConfigFile: " + file + ", defaultAllow: true}":                          "",
	} {
		files := configuration.Files{}
		if content != "" {
			files[Name] = []byte(content)
		}
		p, err := New(files, clock.RealClock{}, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
		if err == nil && p.failOpen && (p.allowTTL != 5*time.Minute || p.denyTTL != 30*time.Second) {
			t.Errorf("defaults: %v %v", p.allowTTL, p.denyTTL)
		}
		if err == nil && !p.failOpen && (p.allowTTL != 0 || p.denyTTL != 50*time.Second) {
			t.Errorf("the configured durations: %v %v", p.allowTTL, p.denyTTL)
		}
	}
}
