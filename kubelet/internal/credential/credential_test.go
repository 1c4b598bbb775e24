package credential

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/core"
)

const config = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n"

// bed is a node with one plugin, a script that records its requests and answers
// with the content of the file answer.
type bed struct {
	t     *testing.T
	dir   string
	clock *clocktesting.FakePassiveClock
	node  *NodeCredentials
	*prometheus.Registry
}

const script = `#!/bin/sh
dir=${0%/*}
{ cat; echo; echo "$* $KIND"; } >> "$dir/asked"
if [ -e "$dir/hangs" ]; then sleep 1000; fi
if [ -e "$dir/fails" ]; then echo "no way" >&2; exit 3; fi
cat "$dir/answer"
`

func newBed(t *testing.T, more string, accounts ServiceAccounts) *bed {
	t.Helper()
	b := &bed{t: t, dir: t.TempDir(), clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)), Registry: prometheus.NewRegistry()}
	b.write("cloud", script, 0o755)
	b.write("config.yaml", config+`
- name: cloud
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.cloud.test", "hub.test:5000/team"]
  defaultCacheDuration: 10m
  args: [get, --quiet]
  env: [{name: KIND, value: test}]
`+more, 0o600)
	plugins, err := Load(filepath.Join(b.dir, "config.yaml"), b.dir)
	if err != nil {
		t.Fatal(err)
	}
	b.node = New(Options{
		Files: &Files{configs: []string{b.dir + "/none", b.dir + "/config.json"}, old: []string{b.dir + "/.dockercfg"}}, Plugins: plugins, BinDir: b.dir,
		Accounts: accounts, Clock: b.clock, Registry: b.Registry,
	})
	return b
}

func (b *bed) write(name, content string, mode os.FileMode) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(content), mode); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) answer(kind pluginv1.PluginCacheKeyType, lasts string, auth map[string]string) {
	b.t.Helper()
	response := pluginv1.CredentialProviderResponse{
		TypeMeta:     metav1.TypeMeta{APIVersion: "credentialprovider.kubelet.k8s.io/v1", Kind: "CredentialProviderResponse"},
		CacheKeyType: kind,
		Auth:         map[string]pluginv1.AuthConfig{},
	}
	if lasts != "" {
		d, err := time.ParseDuration(lasts)
		if err != nil {
			b.t.Fatal(err)
		}
		response.CacheDuration = &metav1.Duration{Duration: d}
	}
	for place, user := range auth {
		response.Auth[place] = pluginv1.AuthConfig{Username: user, Password: "pw"}
	}
	data, err := json.Marshal(response)
	if err != nil {
		b.t.Fatal(err)
	}
	b.write("answer", string(data), 0o600)
}

// asked returns the requests to the plugin since the last call, one per line.
func (b *bed) asked() []string {
	data, _ := os.ReadFile(filepath.Join(b.dir, "asked"))
	_ = os.Remove(filepath.Join(b.dir, "asked"))
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
}

func (b *bed) of(image string) string {
	b.t.Helper()
	found, err := b.node.Lookup(b.t.Context(), pod("p", "sa"), image)
	if err != nil {
		b.t.Errorf("%s: %v", image, err)
	}
	return users(found)
}

func users(found []Credential) string {
	var names []string
	for _, auth := range found {
		names = append(names, auth.Auth.GetUsername())
	}
	return strings.Join(names, " ")
}

func pod(name, account string) *core.Pod {
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: core.PodSpec{ServiceAccountName: account}}
}

func TestPluginIsAsked(t *testing.T) {
	b := newBed(t, "", nil)
	b.answer(pluginv1.ImagePluginCacheKeyType, "", map[string]string{"*.cloud.test": "any", "a.cloud.test": "host", "a.cloud.test/team": "team",
		"b.cloud.test": "other"})
	if got := b.of("a.cloud.test/team/app:v1"); got != "team host any" {
		t.Errorf("credentials %q", got)
	}
	want := []string{`{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"a.cloud.test/team/app"}`,
		"get --quiet test"}
	if got := b.asked(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	for image, runs := range map[string]int{
		"busybox": 0, "cloud.test/x": 0, "a.b.cloud.test/x": 0, "hub.test/team/x": 0, "hub.test:5000/other": 0,
		"hub.test:5000/teamwork": 1, "z.cloud.test": 0, "z.cloud.test/x@sha256:" + strings.Repeat("0", 64): 1, // z.cloud.test alone is an image on Docker Hub
	} {
		b.of(image)
		if got := len(b.asked()) / 2; got != runs {
			t.Errorf("%s: asked %d times, want %d", image, got, runs)
		}
	}
}

func TestAnswersAreKept(t *testing.T) {
	for kind, asks := range map[pluginv1.PluginCacheKeyType][4]int{ // requests for the same image, another tag, another image, another registry
		pluginv1.ImagePluginCacheKeyType: {0, 0, 1, 1}, pluginv1.RegistryPluginCacheKeyType: {0, 0, 0, 1}, pluginv1.GlobalPluginCacheKeyType: {0, 0, 0, 0},
	} {
		b := newBed(t, "", nil)
		b.answer(kind, "1h", map[string]string{"*.cloud.test": "any"})
		b.of("a.cloud.test/x:1")
		b.asked()
		for i, image := range []string{"a.cloud.test/x:1", "a.cloud.test/x:2", "a.cloud.test/y", "b.cloud.test/x"} {
			if got := b.of(image); got != "any" {
				t.Errorf("%s, %s: %q", kind, image, got)
			}
			if got := len(b.asked()) / 2; got != asks[i] {
				t.Errorf("%s, %s: asked %d times, want %d", kind, image, got, asks[i])
			}
		}
		b.clock.SetTime(b.clock.Now().Add(time.Hour))
		if b.of("a.cloud.test/x:1"); len(b.asked()) == 0 {
			t.Errorf("%s: kept for longer than allowed", kind)
		}
		if n := len(b.node.plugins[0].cache); n > 1 {
			t.Errorf("%s: %d answers are kept, the old ones too", kind, n)
		}
	}
	for lasts, kept := range map[string]bool{"0s": false, "": true} { // if empty, the configured 10m
		b := newBed(t, "", nil)
		b.answer(pluginv1.GlobalPluginCacheKeyType, lasts, nil)
		b.of("a.cloud.test/x")
		b.asked()
		b.clock.SetTime(b.clock.Now().Add(9 * time.Minute))
		if b.of("a.cloud.test/x"); (len(b.asked()) == 0) != kept {
			t.Errorf("for %q: kept %v", lasts, !kept)
		}
	}
}

func TestManyPullsAskOnce(t *testing.T) {
	b := newBed(t, "", nil)
	b.answer(pluginv1.RegistryPluginCacheKeyType, "", map[string]string{"*.cloud.test": "any"})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if got := b.of("a.cloud.test/x"); got != "any" {
				t.Errorf("credentials %q", got)
			}
		})
	}
	group.Wait()
	if got := len(b.asked()) / 2; got != 1 {
		t.Errorf("asked %d times", got)
	}
}

// A plugin's failure is reported with its name, does not prevent other
// credentials from being tried, and is not cached.
func TestPluginsThatFail(t *testing.T) {
	for name, test := range map[string]struct {
		file, content string
		want          string
	}{
		"it fails": {"fails", "", "exit status 3: no way"},
		"it hangs": {"hangs", "", "no answer within"},
		"no JSON":  {"answer", "secret=1", "not a CredentialProviderResponse"},
		"another version": {"answer",
			`{"apiVersion":"credentialprovider.kubelet.k8s.io/v1beta1","kind":"CredentialProviderResponse","cacheKeyType":"Image"}`,
			"to a request in credentialprovider.kubelet.k8s.io/v1"},
		"no kind": {"answer", `{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image"}`, "it answered with"},
		"a key of its own": {"answer", `{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse","cacheKeyType":"Moon"}`,
			`"Moon" is not one of`},
		"less than no time": {"answer",
			`{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse","cacheKeyType":"Image","cacheDuration":"-1s"}`, "negative"},
		"more than a plugin needs": {"answer", strings.Repeat("x", maxResponse+1), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, "", nil)
			b.write("config.json", `{"auths":{"a.cloud.test":{"username":"file"}}}`, 0o600)
			b.write(test.file, test.content, 0o600)
			if test.file == "hangs" {
				b.node.plugins[0].timeout = 100 * time.Millisecond
			}
			found, err := b.node.Lookup(t.Context(), pod("p", ""), "a.cloud.test/x")
			if users(found) != "file" || err == nil || !strings.Contains(err.Error(), "credential provider cloud") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q, %v; want %q", users(found), err, test.want)
			}
			if strings.Contains(err.Error(), "secret=") {
				t.Errorf("a possible password is shown: %v", err)
			}
			families, err := b.Gather()
			if err != nil || len(families) != 2 || families[1].GetName() != "kubelet_credential_provider_plugin_errors_total" ||
				families[1].GetMetric()[0].GetCounter().GetValue() != 1 {
				t.Errorf("measured %v, %v", families, err)
			}
			_ = os.Remove(filepath.Join(b.dir, test.file))
			b.answer(pluginv1.ImagePluginCacheKeyType, "", map[string]string{"*.cloud.test": "any"})
			b.node.plugins[0].timeout = pluginTimeout
			if got := b.of("a.cloud.test/x"); got != "file any" {
				t.Errorf("afterwards: %q", got)
			}
		})
	}
}

func TestNodesOwnFiles(t *testing.T) {
	b := newBed(t, "", nil)
	if got := b.of("r.test/x"); got != "" {
		t.Errorf("credentials %q of nowhere", got)
	}
	b.write(".dockercfg", `{"r.test":{"username":"old"}}`, 0o600)
	if got := b.of("r.test/x"); got != "old" {
		t.Errorf("credentials %q", got)
	}
	b.write("config.json", `{"auths":{"r.test":{"auth":"bmV3OnB3"},"r.test/team":{"username":"team"}}}`, 0o600)
	if got := b.of("r.test/team/x"); got != "team new" {
		t.Errorf("credentials %q", got)
	}
	b.write("config.json", `{`, 0o600)
	if _, err := b.node.Lookup(t.Context(), pod("p", ""), "r.test/x"); err == nil || !strings.Contains(err.Error(), "config.json is not a Docker configuration") {
		t.Errorf("err = %v", err)
	}
	f := NewFiles("/var/lib/kubelet", "/root")
	if want := []string{"/var/lib/kubelet/config.json", "config.json", "/root/.docker/config.json", "/.docker/config.json"}; !slices.Equal(f.configs, want) {
		t.Errorf("looks at %q", f.configs)
	}
}

func TestBadConfigurations(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"cloud": script, "other": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	provider := func(changes ...string) string {
		fields := map[string]string{"name": "cloud", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "matchImages": "[a.test]", "defaultCacheDuration": "1m"}
		for i := 0; i < len(changes); i += 2 {
			fields[changes[i]] = changes[i+1]
		}
		text, begin := "", "- "
		for field, value := range fields {
			if value != "" {
				text += begin + field + ": " + value + "\n"
				begin = "  "
			}
		}
		return config + text
	}
	token := func(rest string) string {
		return provider("tokenAttributes", "{serviceAccountTokenAudience: a, "+rest+"}")
	}
	for content, want := range map[string]string{
		"{":    "neither YAML nor JSON",
		config: "it contains no provider",
		strings.Replace(provider(), "/v1\nkind", "/v9\nkind", 1): "is expected",
		provider("matchImage", "[x]"):                            `unknown field "providers[0].matchImage"`,
		provider("name", "../cloud"):                             "that of a file",
		provider("name", "none"):                                 "its program",
		provider("name", "config.yaml"):                          "its program", // not executable
		provider("apiVersion", "v1"):                             "credentialprovider.kubelet.k8s.io/v1 is expected",
		provider("matchImages", ""):                              "matchImages: at least one",
		provider("matchImages", "['[a.test']"):                   "not a pattern",
		provider("defaultCacheDuration", ""):                     "defaultCacheDuration",
		provider("defaultCacheDuration", "-1m"):                  "defaultCacheDuration",
		provider("env", "[{value: x}]"):                          "without a name",
		provider() + strings.TrimPrefix(provider(), config):      "the name is duplicated",
		token("requireServiceAccount: true"):                     "cacheType",
		token("cacheType: Token"):                                "requireServiceAccount: it is needed",
		token("cacheType: Token, requireServiceAccount: false, requiredServiceAccountAnnotationKeys: [a]"):                                           "must be true",
		token("cacheType: Token, requireServiceAccount: true, requiredServiceAccountAnnotationKeys: [a], optionalServiceAccountAnnotationKeys: [a]"): "named twice",
		token("cacheType: Token, requireServiceAccount: true, optionalServiceAccountAnnotationKeys: ['?']"):                                          "annotation",
		strings.Replace(token("cacheType: Token, requireServiceAccount: true"), "credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v1beta1",
			1): "only credentialprovider",
	} {
		path := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
	folder := t.TempDir()
	if _, err := Load(folder, dir); err == nil {
		t.Error("an empty directory is taken")
	}
	for name, content := range map[string]string{"b.yaml": provider("name", "cloud"), "a.yml": provider("name", "other"), "readme.txt": "x"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := Load(folder, dir); err != nil || len(all) != 2 || all[0].Name != "other" {
		t.Errorf("%+v, %v", all, err)
	}
}
