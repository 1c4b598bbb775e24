package secret

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

func errorOf(errs field.ErrorList) string {
	if err := errs.ToAggregate(); err != nil {
		return err.Error()
	}
	return ""
}

func TestValidate(t *testing.T) {
	data := func(pairs ...string) map[string][]byte {
		out := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = []byte(pairs[i+1])
		}
		return out
	}
	for name, c := range map[string]struct {
		secret core.Secret
		want   string
	}{
		"opaque":          {core.Secret{Data: data("a.b", "c")}, ""},
		"a bad key":       {core.Secret{Data: data("a/b", "c")}, `data[a/b]: Invalid value: "a/b"`},
		"too much":        {core.Secret{Data: data("a", strings.Repeat("x", check.MaxDataBytes+1))}, "data: Too long: "},
		"token, no owner": {core.Secret{Type: corev1.SecretTypeServiceAccountToken}, "metadata.annotations[kubernetes.io/service-account.name]: Required value"},
		"docker, no data": {core.Secret{Type: corev1.SecretTypeDockerConfigJson}, "data[.dockerconfigjson]: Required value"},
		"docker, not JSON": {core.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: data(".dockerconfigjson", "{hunter2")},
			`data[.dockerconfigjson]: Invalid value: "<secret contents redacted>"`},
		"docker":       {core.Secret{Type: corev1.SecretTypeDockercfg, Data: data(".dockercfg", "{}")}, ""},
		"basic, empty": {core.Secret{Type: corev1.SecretTypeBasicAuth}, "[data[username]: Required value, data[password]: Required value]"},
		"basic":        {core.Secret{Type: corev1.SecretTypeBasicAuth, Data: data("username", "me")}, ""},
		"ssh":          {core.Secret{Type: corev1.SecretTypeSSHAuth}, "data[ssh-privatekey]: Required value"},
		"tls, half":    {core.Secret{Type: corev1.SecretTypeTLS, Data: data("tls.crt", "x")}, "data[tls.key]: Required value"},
	} {
		got := errorOf(validate(&c.secret))
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("%s: the error tells the secret", name)
		}
	}
}

func TestUpdate(t *testing.T) {
	fixed := &core.Secret{Type: corev1.SecretTypeOpaque, Immutable: new(true), Data: map[string][]byte{"a": []byte("b")}}
	changed := fixed.DeepCopy()
	changed.Data["a"] = []byte("c")
	freed := fixed.DeepCopy()
	freed.Immutable = nil
	other := fixed.DeepCopy()
	other.Type = "example.com/other"
	for name, c := range map[string]struct {
		now  *core.Secret
		want string
	}{
		"nothing": {fixed.DeepCopy(), ""},
		"data":    {changed, "data: Forbidden: field is immutable when `immutable` is set"},
		"freed":   {freed, "immutable: Forbidden: field is immutable when `immutable` is set"},
		"type":    {other, `type: Invalid value: "example.com/other": field is immutable`},
	} {
		if got := errorOf(validateUpdate(t.Context(), c.now, fixed)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	s := &core.Secret{Data: map[string][]byte{"a": []byte("old"), "b": []byte("b")}, StringData: map[string]string{"a": "new"}}
	setDefaults(s)
	if s.Type != corev1.SecretTypeOpaque || string(s.Data["a"]) != "new" || string(s.Data["b"]) != "b" || s.StringData != nil {
		t.Errorf("defaulted secret is %+v", s)
	}
}
