package credential

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"kctl/proto/core"
)

// accounts are service accounts with some annotations.
type accounts map[string]map[string]string

func (a accounts) ServiceAccount(_ context.Context, namespace, name string) (*core.ServiceAccount, error) {
	annotations, known := a[name]
	if !known {
		return nil, errors.New("not found")
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Annotations: annotations}}, nil
}

func (a accounts) Token(_ context.Context, pod *core.Pod, audience string) (string, error) {
	return fmt.Sprintf("%s-%s-%s", audience, pod.Spec.ServiceAccountName, pod.Name), nil
}

func TestTokensOfServiceAccounts(t *testing.T) {
	known := accounts{"sa": {"cloud/role": "r", "cloud/hint": "h", "other": "x"}, "plain": {}}
	for name, test := range map[string]struct {
		attributes string
		pods       []*core.Pod
		asked      []string // what the requests have in addition
		err        string
	}{
		"one of an account for its pods": {"cacheType: ServiceAccount, requireServiceAccount: true, requiredServiceAccountAnnotationKeys: [cloud/role], " +
			"optionalServiceAccountAnnotationKeys: [cloud/hint, cloud/none]",
			[]*core.Pod{pod("p", "sa"), pod("q", "sa")}, []string{`"serviceAccountToken":"reg-sa-p","serviceAccountAnnotations":{"cloud/hint":"h","cloud/role":"r"}`},
			""},
		"one of each pod": {"cacheType: Token, requireServiceAccount: true",
			[]*core.Pod{pod("p", "sa"), pod("q", "sa"), pod("q", "sa")}, []string{`"serviceAccountToken":"reg-sa-p"`, `"serviceAccountToken":"reg-sa-q"`}, ""},
		"two accounts": {"cacheType: ServiceAccount, requireServiceAccount: true", []*core.Pod{pod("p", "sa"), pod("q", "plain")},
			[]string{`reg-sa-p`, `reg-plain-q`}, ""},
		"an annotation that is not there": {"cacheType: ServiceAccount, requireServiceAccount: true, requiredServiceAccountAnnotationKeys: [cloud/role]",
			[]*core.Pod{pod("p", "plain")}, nil, "lacks the annotation cloud/role"},
		"an account that is not there": {"cacheType: ServiceAccount, requireServiceAccount: true", []*core.Pod{pod("p", "none")}, nil,
			"service account none: not found"},
		"a static pod":            {"cacheType: ServiceAccount, requireServiceAccount: true", []*core.Pod{pod("p", "")}, nil, ""},
		"a static pod, that does": {"cacheType: ServiceAccount, requireServiceAccount: false", []*core.Pod{pod("p", "")}, []string{`"image":"a.cloud.test/x"}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, "  tokenAttributes: {serviceAccountTokenAudience: reg, "+test.attributes+"}\n", known)
			b.answer(pluginv1.RegistryPluginCacheKeyType, "", map[string]string{"*.cloud.test": "any"})
			for _, pod := range test.pods {
				if _, err := b.node.Lookup(t.Context(), pod, "a.cloud.test/x"); test.err == "" && err != nil ||
					test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
					t.Errorf("err = %v, want %q", err, test.err)
				}
			}
			asked := b.asked()
			if len(asked) != 2*len(test.asked) {
				t.Fatalf("asked %q", asked)
			}
			for i, want := range test.asked {
				if !strings.Contains(asked[2*i], want) {
					t.Errorf("asked %s, want %s in it", asked[2*i], want)
				}
			}
		})
	}
}
