package chain

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// options are for a server that has not read its rules yet.
func options(flags *config.Options) (o Options, ready chan struct{}) {
	ready = make(chan struct{})
	return Options{
		Flags: flags, Rules: rbac.NewAuthorizer(), Ready: ready,
		Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}, Logger: zap.NewNop(),
	}, ready
}

// asks is the answer to a user who wants to delete a node.
func asks(t *testing.T, union authz.Union, groups ...string) (authz.Decision, error) {
	t.Helper()
	decision, _, err := union.Authorize(t.Context(), &authz.Attributes{
		User: &request.User{Username: "somebody", Groups: groups},
		Info: request.Info{Resource: true, Verb: "delete", APIVersion: "v1", ResourceName: "nodes", Name: "n"},
	})
	return decision, err
}

// gathered is the registry's metrics in Prometheus' text format.
func gathered(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	text := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(text, httptest.NewRequest(http.MethodGet, "/", nil))
	return text.Body.String()
}

// The modes are asked in order until one decides, after system:masters, which
// nobody refuses. AlwaysDeny leaves the decision to those after it, as
// upstream's.
func TestModes(t *testing.T) {
	for _, test := range []struct {
		modes []string
		want  authz.Decision
	}{
		{[]string{config.ModeAlwaysDeny}, authz.NoOpinion},
		{[]string{config.ModeAlwaysDeny, config.ModeAlwaysAllow}, authz.Allow},
		{[]string{config.ModeRBAC}, authz.NoOpinion},
	} {
		flags := config.Defaults()
		flags.AuthorizationModes = test.modes
		o, ready := options(flags)
		close(ready)
		union, files, err := New(o)
		if err != nil || len(files) > 0 {
			t.Fatalf("%v: %d files to follow, %v", test.modes, len(files), err)
		}
		if got, err := asks(t, union); got != test.want || err != nil {
			t.Errorf("%v: %v, %v", test.modes, got, err)
		}
		counts := `apiserver_authorization_decisions_total{decision="allowed",name="alwaysallow",type="AlwaysAllow"} 1`
		if text := gathered(t, o.Metrics); strings.Contains(text, counts) != (test.want == authz.Allow) {
			t.Errorf("%v: counted\n%s", test.modes, text)
		}
		if got, err := asks(t, union, core.GroupMasters); got != authz.Allow || err != nil {
			t.Errorf("%v: to a master: %v, %v", test.modes, got, err)
		}
	}
}

// Until the rules are read, a user without a permission is told to retry: one
// of them may allow the request.
func TestBeforeTheRulesAreRead(t *testing.T) {
	o, ready := options(config.Defaults())
	union, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := asks(t, union); got != authz.NoOpinion || !errors.Is(err, authz.ErrStarting) {
		t.Errorf("before: %v, %v", got, err)
	}
	close(ready)
	if got, err := asks(t, union); got != authz.NoOpinion || err != nil {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

// A file replaces the modes, and new content replaces the old if it is valid.
func TestTheFileChanges(t *testing.T) {
	content := func(authorizer string) []byte {
		return []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: " + authorizer + ", name: only}\n")
	}
	flags := config.Defaults()
	flags.AuthorizationModes, flags.AuthorizationConfig = []string{config.ModeAlwaysAllow}, filepath.Join(t.TempDir(), "authorization.yaml")
	if err := os.WriteFile(flags.AuthorizationConfig, content(config.ModeAlwaysDeny), 0o600); err != nil {
		t.Fatal(err)
	}
	o, ready := options(flags)
	close(ready)
	union, files, err := New(o)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files to follow, %v", len(files), err)
	}
	if got, err := asks(t, union); got != authz.NoOpinion || err != nil {
		t.Errorf("by the file: %v, %v", got, err)
	}
	if err := files[0].Apply(content("Nonsense")); err == nil || !strings.Contains(err.Error(), "--authorization-config="+flags.AuthorizationConfig) {
		t.Errorf("a content that is not valid: %v", err)
	}
	if got, _ := asks(t, union); got != authz.NoOpinion {
		t.Errorf("after a content that is not valid: %v", got)
	}
	if err := files[0].Apply(content(config.ModeAlwaysAllow)); err != nil {
		t.Fatal(err)
	}
	if got, err := asks(t, union); got != authz.Allow || err != nil {
		t.Errorf("after the change: %v, %v", got, err)
	}
}

// Errors name the flag that they come from.
func TestRefusals(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for want, set := range map[string]func(*config.Options){
		"authorization mode Nonsense: unknown": func(o *config.Options) { o.AuthorizationModes = []string{"Nonsense"} },
		missing: func(o *config.Options) {
			o.AuthorizationModes, o.AuthorizationPolicyFile = []string{config.ModeABAC}, missing
		},
		"--authorization-config": func(o *config.Options) { o.AuthorizationConfig = missing },
		"--authorization-webhook-config-file: ": func(o *config.Options) {
			o.AuthorizationModes, o.AuthorizationWebhook.ConfigFile = []string{config.ModeWebhook}, missing
		},
	} {
		flags := config.Defaults()
		set(flags)
		o, _ := options(flags)
		if _, _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
