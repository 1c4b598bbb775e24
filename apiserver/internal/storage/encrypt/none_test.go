package encrypt

import (
	"strings"
	"testing"
)

// Whoever has lost a key, or the whole configuration, is told which key it was, and nothing of the value.
func TestALostKeyIsNamed(t *testing.T) {
	sealed, err := mustTransformer(t, providers(keysOf("aescbc", "lost", key16))).Seal(t.Context(), place, []byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, without := None{}.Open(t.Context(), place, sealed)
	_, _, other := mustTransformer(t, providers(keysOf("aescbc", "kept", key16))).Open(t.Context(), place, sealed)
	for _, err := range []error{without, other} {
		if err == nil || !strings.HasSuffix(strings.TrimSuffix(err.Error(), ", and there is no encryption configuration (--encryption-provider-config)"),
			`sealed with: "k8s:enc:aescbc:v1:lost"`) {
			t.Errorf("%v", err)
		}
	}
	for _, stored := range []string{"k8s:enc:", "k8s:enc:aescbc:v1:lost", "k8s:enc:" + strings.Repeat("x", 400) + ":a:b:c"} {
		if _, _, err := (None{}).Open(t.Context(), place, []byte(stored)); err == nil || !strings.Contains(err.Error(), "sealed with: k8s:enc:…, and") {
			t.Errorf("%.30s: %v", stored, err)
		}
	}
	if plain, stale, err := (None{}).Open(t.Context(), place, []byte("{}")); string(plain) != "{}" || stale || err != nil {
		t.Errorf("a plain value: %q, stale %v, %v", plain, stale, err)
	}
}
