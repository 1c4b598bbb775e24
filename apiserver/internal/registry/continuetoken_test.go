package registry

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestContinueTokenOfAnotherServer: kube-apiserver puts a slash before the key, and a list
// that was begun there goes on here.
func TestContinueTokenOfAnotherServer(t *testing.T) {
	const prefix = "/registry/configmaps/"
	for start, want := range map[string]string{
		`/default/a\u0000`: prefix + "default/a", `default/a\u0000`: prefix + "default/a",
		`//default/a\u0000`: "", `/../secrets/a\u0000`: "", `../a\u0000`: "", `a/./b\u0000`: "", `/\u0000`: "", `a`: "",
	} {
		text := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":7,"start":"` + start + `"}`))
		after, revision, err := decodeToken(prefix, text)
		if after != want || err == nil && revision != 7 || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %d, %v; want %q", start, after, revision, err, want)
		}
	}
}

// FuzzContinue: no token leads out of the listed collection, and a token that
// is accepted decodes to what encodes to it.
func FuzzContinue(f *testing.F) {
	const prefix = "/registry/pods/default/"
	token, err := encodeToken(prefix, prefix+"web-1", 42)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add("")
	for _, text := range []string{
		`{"v":"meta.k8s.io/v1","rv":-1,"start":"a\u0000"}`, `{"v":"meta.k8s.io/v1","rv":7,"start":"../kube-system/x\u0000"}`,
		`{"v":"meta.k8s.io/v1","rv":7,"start":"/x\u0000"}`, `{"v":"meta.k8s.io/v1","rv":7,"start":"a/../../b\u0000"}`, `{"v":"x"}`, `[]`, `{`,
	} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		after, revision, err := decodeToken(prefix, text)
		if err != nil {
			return
		}
		if !strings.HasPrefix(after, prefix) || len(after) == len(prefix) || strings.Contains(after+"/", "/../") {
			t.Errorf("%q leads to %q", text, after)
		}
		again, err := encodeToken(prefix, after, revision)
		if err != nil {
			t.Fatal(err)
		}
		if a, r, err := decodeToken(prefix, again); err != nil || a != after || r != revision {
			t.Errorf("%q, %d becomes %q, %d, %v", after, revision, a, r, err)
		}
	})
}
