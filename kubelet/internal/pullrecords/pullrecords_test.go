package pullrecords

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/kubelet/internal/credential"
)

const image, id = "registry.example/team/app:1", "sha256:1"

var preloaded = Policy{Verify: kubeletv1beta1.NeverVerifyPreloadedImages}

func recordsIn(t *testing.T, dir string, policy Policy, there ...*runtimeapi.Image) *Records {
	t.Helper()
	r, err := New(dir, policy, func() ([]*runtimeapi.Image, error) { return there, nil }, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bySecret is a pass from a secret in that namespace.
func bySecret(namespace, password string) credential.Credential {
	return credential.Credential{
		Auth:   &runtimeapi.AuthConfig{Username: "u", Password: password},
		Secret: &credential.Owner{UID: "uid-" + namespace, Namespace: namespace, Name: "pull"},
	}
}

func byAccount(namespace string) credential.Credential {
	return credential.Credential{Auth: &runtimeapi.AuthConfig{Username: "u"}, Account: &credential.Owner{UID: "uid", Namespace: namespace, Name: "robot"}}
}

func pull(t *testing.T, r *Records, by *credential.Credential) {
	t.Helper()
	end, err := r.RecordIntent(image)
	if err != nil {
		t.Fatal(err)
	}
	end(id, by)
}

func may(r *Records, passes ...credential.Credential) bool {
	return r.MayUse(image, id, func() []credential.Credential { return passes })
}

func TestWhoMayHaveWhatWasPulled(t *testing.T) {
	dir := t.TempDir()
	r := recordsIn(t, dir, preloaded)
	checks := map[Check]int{}
	r.Checked = func(c Check) { checks[c]++ }
	if !may(r) {
		t.Error("an image without a record can't be used")
	}
	mine := bySecret("a", "secret")
	pull(t, r, &mine)
	if intents, records, err := r.Count(); intents != 0 || records != 1 || err != nil {
		t.Errorf("after a pull there are %d and %d: %v", intents, records, err)
	}
	for range 2 { // the second time as after a restart
		for what, c := range map[string]struct {
			passes []credential.Credential
			want   bool
		}{
			"nothing":                 {nil, false},
			"the secret":              {[]credential.Credential{mine}, true},
			"the secret renewed":      {[]credential.Credential{bySecret("a", "secret")}, true},
			"another with the same":   {[]credential.Credential{bySecret("b", "secret")}, true},
			"another":                 {[]credential.Credential{bySecret("c", "other")}, false},
			"the node's":              {[]credential.Credential{{Auth: mine.Auth}}, false},
			"an account":              {[]credential.Credential{byAccount("a")}, false},
			"another and the secret ": {[]credential.Credential{bySecret("c", "other"), mine}, true},
		} {
			if got := may(r, c.passes...); got != c.want {
				t.Errorf("with %s: %v", what, got)
			}
		}
		if want := (map[Check]int{ByPolicy: 1, ByRecord: 4, MustPull: 4}); !maps.Equal(checks, want) {
			t.Errorf("%v was counted, not %v", checks, want)
		}
		r = recordsIn(t, dir, preloaded)
	}
	if !may(r, bySecret("b", "changed since")) {
		t.Error("the secret that was as good is forgotten")
	}
	if r.MayUse("registry.example/other/name:1", id, func() []credential.Credential { return []credential.Credential{mine} }) {
		t.Error("the pass for one repository is good for another one's")
	}
	account := byAccount("a")
	pull(t, r, &account)
	if !may(r, byAccount("a")) || may(r, byAccount("b")) || !may(r, mine) {
		t.Error("service accounts are told apart otherwise")
	}
	pull(t, r, nil)
	if !may(r) {
		t.Error("an image that was pulled without credentials is not for everybody")
	}
	r.Prune([]string{id}, time.Unix(2000, 0))
	if entries, _ := os.ReadDir(filepath.Join(dir, "image_manager", "pulled")); len(entries) != 1 {
		t.Errorf("of an image that is there: %v", entries)
	}
	r.Prune(nil, time.Unix(1000, 0)) // it was pulled after that
	r.Prune(nil, time.Unix(2000, 0))
	for _, kind := range []string{"pulling", "pulled"} {
		if entries, _ := os.ReadDir(filepath.Join(dir, "image_manager", kind)); len(entries) != 0 {
			t.Errorf("left in %s: %v", kind, entries)
		}
	}
}

// Upstream's kubelet makes the directories when it starts, and its node tests wait for them.
func TestDirectoriesAreThereFromTheStart(t *testing.T) {
	dir := t.TempDir()
	r := recordsIn(t, dir, preloaded)
	for _, kind := range []string{"pulling", "pulled"} {
		if info, err := os.Stat(filepath.Join(dir, "image_manager", kind)); err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s: %v %v", kind, info, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "image_manager")); err != nil {
		t.Fatal(err)
	}
	pull(t, r, nil)
	if intents, records, err := r.Count(); intents != 0 || records != 1 || err != nil {
		t.Errorf("after they were removed, a pull leaves %d and %d: %v", intents, records, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(dir, preloaded, nil, r.clock, r.logger); err == nil {
		t.Error("no error without a directory to have them in")
	}
}

// An image whose pull was interrupted by the kubelet's end does not count as
// preloaded.
func TestAPullThatWasCutShort(t *testing.T) {
	dir := t.TempDir()
	first := recordsIn(t, dir, preloaded)
	for _, name := range []string{image, "busybox", "gone:1"} {
		if _, err := first.RecordIntent(name); err != nil {
			t.Fatal(err)
		}
	}
	if may(first, bySecret("a", "x")) {
		t.Error("an image that is being pulled may be used")
	}
	r := recordsIn(t, dir, preloaded, &runtimeapi.Image{Id: id, RepoTags: []string{image}},
		&runtimeapi.Image{Id: "sha256:2", RepoTags: []string{"docker.io/library/busybox:latest"}})
	if may(r, bySecret("a", "x")) || r.MayUse("busybox", "sha256:2", func() []credential.Credential { return nil }) {
		t.Error("an image whose pull was interrupted may be used")
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "image_manager", "pulling")); len(entries) != 1 {
		t.Errorf("%d pulls are noted, want that of what is not there", len(entries))
	}
	failed, err := r.RecordIntent(image)
	if err != nil {
		t.Fatal(err)
	}
	failed("", nil)
	if may(r) {
		t.Error("a pull that failed lets others in")
	}
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		pulled bool
		want   bool
	}{
		{Policy{Verify: kubeletv1beta1.NeverVerify}, true, true},
		{preloaded, false, true}, {preloaded, true, false},
		{Policy{Verify: kubeletv1beta1.AlwaysVerify}, false, false},
		{Policy{Verify: kubeletv1beta1.NeverVerifyAllowlistedImages}, false, false},
		{Policy{Verify: kubeletv1beta1.NeverVerifyAllowlistedImages, Allowed: []string{"registry.example/team/*"}}, true, true},
		{Policy{Verify: kubeletv1beta1.NeverVerifyAllowlistedImages, Allowed: []string{"registry.example/team/app"}}, true, true},
		{Policy{Verify: kubeletv1beta1.NeverVerifyAllowlistedImages, Allowed: []string{"registry.example/te/*", "registry.example/team"}}, false, false},
	} {
		if err := c.policy.Validate(); err != nil {
			t.Error(err)
		}
		r := recordsIn(t, t.TempDir(), c.policy)
		if c.pulled {
			mine := bySecret("a", "x")
			pull(t, r, &mine)
		}
		if got := may(r); got != c.want {
			t.Errorf("%+v, pulled %v: %v", c.policy, c.pulled, got)
		}
	}
	for _, p := range []Policy{
		{Verify: "Sometimes"}, {}, {Verify: kubeletv1beta1.NeverVerify, Allowed: []string{"a/*"}},
		{Verify: kubeletv1beta1.NeverVerifyAllowlistedImages, Allowed: []string{"a:1"}},
		{Verify: kubeletv1beta1.NeverVerifyAllowlistedImages, Allowed: []string{"a*"}},
		{Verify: kubeletv1beta1.NeverVerifyAllowlistedImages, Allowed: []string{"/*"}},
		{Verify: kubeletv1beta1.NeverVerifyAllowlistedImages, Allowed: []string{" a"}},
	} {
		if p.Validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}

// Records of upstream's kubelet, as 1.37 writes them, are honoured.
func TestUpstreamsRecordsAreRead(t *testing.T) {
	dir := t.TempDir()
	r := recordsIn(t, dir, preloaded)
	hash := bySecret("", "secret").Hash()
	record := `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2026-11-26T19:00:00Z","imageRef":"` + id +
		`","credentialMapping":{"registry.example/team/app":{"kubernetesSecrets":[{"uid":"1","namespace":"x","name":"y","credentialHash":"` + hash + `"}]}}}`
	path := r.files.path(done, id)
	if !strings.HasPrefix(filepath.Base(path), "sha256-") {
		t.Error(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	if may(r) || may(r, bySecret("a", "other")) || !may(r, bySecret("a", "secret")) {
		t.Error("the record is read otherwise")
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if may(r, bySecret("a", "secret")) {
		t.Error("a record that can't be read lets pods in")
	}
}
