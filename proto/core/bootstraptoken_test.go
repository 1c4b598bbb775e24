package core

import (
	"strings"
	"testing"
)

func TestSplitBootstrapToken(t *testing.T) {
	if id, secret, ok := SplitBootstrapToken("abcdef.0123456789abcdef"); id != "abcdef" || secret != "0123456789abcdef" || !ok {
		t.Errorf("%q %q %v", id, secret, ok)
	}
	for _, text := range []string{
		"", ".", "abcdef", "abcdef.", "abcdef.0123456789abcde", "abcde.0123456789abcdef", "abcdef.0123456789abcdef0",
		"ABCDEF.0123456789abcdef", "abcdef.0123456789abcdef\n", "abcdef:0123456789abcdef", "abcdef.01234567.9abcdef",
		"abcdef.0123456789abcdé",
		"abc ef.0123456789abcdef", "abcdef.0123456-89abcdef",
	} {
		if _, _, ok := SplitBootstrapToken(text); ok {
			t.Errorf("%q is taken for a token", text)
		}
	}
}

func TestIsBootstrapGroup(t *testing.T) {
	longest := "system:bootstrappers:" + strings.Repeat("x", 256)
	for group, want := range map[string]bool{
		"system:bootstrappers:a": true, "system:bootstrappers:kubeadm:default-node-token": true, "system:bootstrappers:-:7": true,
		longest: true, longest + "x": false,
		"system:bootstrappers": false, "system:bootstrappers:": false, "system:bootstrappers:a-": false, "system:bootstrappers:a:": false,
		"system:bootstrappers:A": false, "system:bootstrappers:a b": false, "system:bootstrappers:a\nsystem:masters": false,
		"system:bootstrappers:a\n": false, "system:masters": false, "x:system:bootstrappers:a": false, "": false,
	} {
		if IsBootstrapGroup(group) != want {
			t.Errorf("%q: %v, want %v", group, !want, want)
		}
	}
}
