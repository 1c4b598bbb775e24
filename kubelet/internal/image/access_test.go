package image

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"kctl/kubelet/internal/credential"
	"kctl/kubelet/internal/pullrecords"
	"kctl/proto/core"
)

// A private image that one pod has pulled can be used only by pods that could
// pull it themselves; for others it does not exist.
func TestAPrivateImageIsNotEverybodys(t *testing.T) {
	m, r, _, clock := setUp(0)
	private := func(_ context.Context, _ string, auth *runtimeapi.AuthConfig) error {
		if auth.GetUsername() != "mine" {
			return errors.New("denied")
		}
		return nil
	}
	r.pull = private
	var err error
	if m.Access, err = pullrecords.New(t.TempDir(), pullrecords.Policy{Verify: kubeletv1beta1.NeverVerifyPreloadedImages}, nil, clock, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	mine, other := secret("mine", `{"auths":{"r.test":{"username":"mine"}}}`), secret("other", `{"auths":{"r.test":{"username":"other"}}}`)
	for _, c := range []struct {
		request Request
		reason  string
		pulls   []string
	}{
		{request("r.test/x:1", corev1.PullIfNotPresent, mine), "", []string{"r.test/x:1 mine"}},
		{request("r.test/x:1", corev1.PullIfNotPresent, mine), "", nil},
		{request("r.test/x:1", corev1.PullNever, mine), "", nil},
		{request("r.test/x:1", corev1.PullNever), "ErrImageNeverPull", nil},
		{request("r.test/x:1", corev1.PullNever, other), "ErrImageNeverPull", nil},
		{request("r.test/x:1", corev1.PullIfNotPresent, other), "ErrImagePull", []string{"r.test/x:1 other"}},
	} {
		r.attempts = nil
		m.failures.Reset(pullKey{"u", "r.test/x:1"})
		_, err := m.Ensure(t.Context(), c.request)
		if c.reason == "" && err != nil || c.reason != "" && reasonOf(err) != c.reason || !slices.Equal(r.attempts, c.pulls) {
			t.Errorf("%s: %v, pulls %q", c.request.Policy, err, r.attempts)
		}
	}
	// The image has become public.
	r.pull, r.attempts = nil, nil
	m.failures.Reset(pullKey{"u", "r.test/x:1"})
	for range 2 {
		if _, err := m.Ensure(t.Context(), request("r.test/x:1", corev1.PullAlways)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Ensure(t.Context(), request("r.test/x:1", corev1.PullNever)); err != nil {
		t.Error(err)
	}
}

// countingNode counts how often it is asked.
type countingNode struct{ asked int }

func (n *countingNode) Lookup(context.Context, *core.Pod, string) ([]credential.Credential, error) {
	n.asked++
	return []credential.Credential{{Auth: &runtimeapi.AuthConfig{Username: "node"}}}, nil
}

// A pod that may not use the existing image pulls it with the credentials that
// were fetched for the check.
func TestCredentialsAreAskedForOnceARequest(t *testing.T) {
	m, _, _, clock := setUp(0)
	var err error
	if m.Access, err = pullrecords.New(t.TempDir(), pullrecords.Policy{Verify: kubeletv1beta1.NeverVerifyPreloadedImages}, nil, clock, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	mine := secret("mine", `{"auths":{"r.test":{"username":"mine"}}}`)
	if _, err := m.Ensure(t.Context(), request("r.test/x:1", corev1.PullIfNotPresent, mine)); err != nil {
		t.Fatal(err)
	}
	node := &countingNode{}
	m.Node = node
	if _, err := m.Ensure(t.Context(), request("r.test/x:1", corev1.PullIfNotPresent)); err != nil || node.asked != 1 {
		t.Errorf("%v, and the node was asked %d times", err, node.asked)
	}
}
