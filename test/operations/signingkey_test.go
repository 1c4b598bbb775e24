package operations_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// TestTheSigningKeyIsReplaced replaces the key of service account tokens in a running
// cluster as docs/operations.md says: a pod's token is good until the old key goes.
func TestTheSigningKeyIsReplaced(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})
	c.Create(harness.Pod("first", c.Shell(), "sleep", "3600"))
	c.AwaitRunning("first")
	page, work := harness.OpenPage(t, "docs/operations.md"), t.TempDir()
	step := func() {
		t.Helper()
		script := "set -e; cd " + work + "\n" + strings.ReplaceAll(page.Take(t, "Replacing the key of service account tokens"), "/etc/kctl", c.Dir)
		if r := c.Run("", "sh", "-c", script); r.Code != 0 {
			t.Fatalf("%s\n%s%s", script, r.Stdout, r.Stderr)
		}
		c.Kctl("pki", "check", "--dir", c.Dir)
		c.Restart("apiserver")
	}
	read := []string{"exec", "first", "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token"}
	valid := func(token string) error {
		t.Helper()
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: strings.TrimSpace(token)}}
		answer, err := c.Client().AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !answer.Status.Authenticated {
			return fmt.Errorf("the token is not valid: %s", answer.Status.Error)
		}
		return nil
	}
	created := func() string { return c.Kctl("create", "token", "default") }
	old := c.Kctl(read...)
	step()
	if err := errors.Join(valid(old), valid(created())); err != nil {
		t.Errorf("both keys are taken, and the old one signs: %v", err)
	}
	step()
	fresh := created()
	if err := errors.Join(valid(old), valid(fresh)); err != nil {
		t.Errorf("both keys are taken, and the new one signs: %v", err)
	}
	step()
	if err := errors.Join(valid(fresh), valid(created())); err != nil || valid(old) == nil {
		t.Errorf("only the new key is taken: the old token %v, new ones: %v", valid(old), err)
	}
	c.Restart("kubelet")
	harness.Eventually(t, time.Minute, func() error {
		r := c.Run("", c.Bin("kctl"), read...)
		if r.Code != 0 { // the kubelet has not got its pods yet
			return errors.New(r.Stderr)
		}
		return valid(r.Stdout)
	})
}
