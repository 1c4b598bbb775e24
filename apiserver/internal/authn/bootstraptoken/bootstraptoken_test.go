package bootstraptoken

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/core"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const usage = "usage-bootstrap-authentication"

type secrets map[string]*core.Secret

func (s secrets) Secret(_ context.Context, namespace, name string) (*core.Secret, error) {
	if secret := s[name]; secret != nil && namespace == "kube-system" {
		return secret, nil
	}
	return nil, apierrors.NewNotFound(core.Secrets.GVR().GroupResource(), name)
}

func secret(change ...func(*core.Secret)) *core.Secret {
	s := &core.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef", Namespace: "kube-system"}, Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{core.BootstrapTokenID: []byte("abcdef"), core.BootstrapTokenSecret: []byte("0123456789abcdef"), usage: []byte("true")},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func with(key, value string) func(*core.Secret) {
	return func(s *core.Secret) { s.Data[key] = []byte(value) }
}

func TestTokens(t *testing.T) {
	const token = "abcdef.0123456789abcdef"
	for name, test := range map[string]struct {
		secret *core.Secret
		token  string
		groups []string // nil for nobody
		err    string
	}{
		"good": {secret(), token, []string{"system:bootstrappers"}, ""},
		"with groups": {secret(with(core.BootstrapTokenGroups,
			"system:bootstrappers:kubeadm:default-node-token, system:bootstrappers:a,system:bootstrappers:a")), token,
			[]string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:bootstrappers:a"}, ""},
		"not yet run out": {secret(with(core.BootstrapTokenExpiration, now.Add(time.Second).Format(time.RFC3339))), token, []string{"system:bootstrappers"},
			""},
		"run out":               {secret(with(core.BootstrapTokenExpiration, now.Format(time.RFC3339))), token, nil, "it has expired"},
		"unreadable expiration": {secret(with(core.BootstrapTokenExpiration, "tomorrow")), token, nil, "not a time"},
		"another secret":        {secret(), "abcdef.0123456789abcdee", nil, "secret part is wrong"},
		"empty secret":          {secret(with(core.BootstrapTokenSecret, "")), token, nil, "secret part is wrong"},
		"another id":            {secret(with(core.BootstrapTokenID, "fedcba")), token, nil, "a different id"},
		"another type":          {secret(func(s *core.Secret) { s.Type = corev1.SecretTypeOpaque }), token, nil, "a different id"},
		"for signing only":      {secret(with(usage, "false")), token, nil, "can't be used for authentication"},
		"usage in words":        {secret(with(usage, "yes")), token, nil, "can't be used for authentication"},
		"being deleted":         {secret(func(s *core.Secret) { s.DeletionTimestamp = &metav1.Time{Time: now} }), token, nil, "being deleted"},
		"a group of the system": {secret(with(core.BootstrapTokenGroups, "system:masters")), token, nil, `group "system:masters" is not one of`},
		"a group by a newline":  {secret(with(core.BootstrapTokenGroups, "system:bootstrappers:a\nsystem:masters")), token, nil, "is not one of"},
		"unknown":               {secret(), "zzzzzz.0123456789abcdef", nil, ""},
		"not of the form":       {secret(), "ABCDEF.0123456789abcdef", nil, ""},
		"with a newline":        {secret(), token + "\n", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Authenticator{Secrets: secrets{test.secret.Name: test.secret}, Audiences: []string{"api"}, Clock: testingclock.NewFakePassiveClock(now)}
			user, audiences, ok, err := a.AuthenticateToken(t.Context(), test.token, nil)
			if ok != (test.groups != nil) || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("%+v %v %v, want error %q", user, ok, err, test.err)
			}
			if err != nil && strings.Contains(err.Error(), "0123456789abcde") {
				t.Errorf("the error shows a secret: %v", err)
			}
			if ok && (user.Username != "system:bootstrap:abcdef" || !slices.Equal(user.Groups, test.groups) || !slices.Equal(audiences, []string{"api"})) {
				t.Errorf("%+v for %v", user, audiences)
			}
		})
	}
}

func TestTokenForAnotherAudience(t *testing.T) {
	a := &Authenticator{Secrets: secrets{"bootstrap-token-abcdef": secret()}, Audiences: []string{"api"}, Clock: testingclock.NewFakePassiveClock(now)}
	if _, _, ok, err := a.AuthenticateToken(t.Context(), "abcdef.0123456789abcdef", []string{"vault"}); ok || err == nil {
		t.Errorf("good for vault too (%v)", err)
	}
}
