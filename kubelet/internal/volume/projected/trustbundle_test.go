package projected

import (
	"context"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/kubelet/internal/volume/keys"
)

func block(content string, headers ...string) string {
	b := &pem.Block{Type: "CERTIFICATE", Bytes: []byte(content), Headers: map[string]string{}}
	for _, h := range headers {
		b.Headers[h] = "x"
	}
	return string(pem.EncodeToMemory(b))
}

// bundles has one bundle by name, and three of the signer a.b/c.
type bundles struct{ err error }

func (b bundles) TrustBundle(_ context.Context, name string) (string, error) {
	if name != "mine" && b.err == nil {
		return "", apierrors.NewNotFound(schema.GroupResource{Resource: "clustertrustbundles"}, name)
	}
	return "a comment\n" + block("two", "Header") + block("one"), b.err
}

func (b bundles) TrustBundlesOf(_ context.Context, signer string, selector labels.Selector) (out []string, err error) {
	for content, set := range map[string]labels.Set{"one": {"live": "yes"}, "two": {"live": "yes"}, "three": {"live": "no"}} {
		if signer == "a.b/c" && selector.Matches(set) {
			out = append(out, block(content)+block("one"))
		}
	}
	return out, b.err
}

func TestTrustBundles(t *testing.T) {
	live := &metav1.LabelSelector{MatchLabels: map[string]string{"live": "yes"}}
	all := &metav1.LabelSelector{}
	for name, c := range map[string]struct {
		source corev1.ClusterTrustBundleProjection
		err    error
		want   []string // the blocks' content; nil for an error
	}{
		"by name":           {corev1.ClusterTrustBundleProjection{Name: new("mine")}, nil, []string{"one", "two"}},
		"no such name":      {corev1.ClusterTrustBundleProjection{Name: new("other")}, nil, nil},
		"none, optional":    {corev1.ClusterTrustBundleProjection{Name: new("other"), Optional: new(true)}, nil, []string{}},
		"of a signer":       {corev1.ClusterTrustBundleProjection{SignerName: new("a.b/c"), LabelSelector: all}, nil, []string{"one", "three", "two"}},
		"by labels":         {corev1.ClusterTrustBundleProjection{SignerName: new("a.b/c"), LabelSelector: live}, nil, []string{"one", "two"}},
		"without selector":  {corev1.ClusterTrustBundleProjection{SignerName: new("a.b/c")}, nil, nil},
		"nothing, optional": {corev1.ClusterTrustBundleProjection{SignerName: new("a.b/c"), Optional: new(true)}, nil, []string{}},
		"server away":       {corev1.ClusterTrustBundleProjection{Name: new("mine"), Optional: new(true)}, errors.New("away"), nil},
		"neither":           {corev1.ClusterTrustBundleProjection{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.source.Path = "ca.pem"
			payload, err := trustBundle(t.Context(), bundles{c.err}, &c.source, keys.NewDefaults(nil, nil))
			if (err == nil) != (c.want != nil) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if err != nil {
				return
			}
			got := string(payload["ca.pem"].Data)
			for _, content := range c.want {
				if strings.Count(got, block(content)) != 1 {
					t.Errorf("%s is not there once:\n%s", content, got)
				}
			}
			if n := strings.Count(got, "BEGIN"); n != len(c.want) || strings.Contains(got, "comment") || strings.Contains(got, "Header") {
				t.Errorf("%d blocks, want %d:\n%s", n, len(c.want), got)
			}
		})
	}
}
