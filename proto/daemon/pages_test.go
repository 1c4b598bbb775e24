package daemon

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	clocktesting "k8s.io/utils/clock/testing"
)

func ask(t *testing.T, handler http.Handler, path, accept string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// The formats are those of kube-scheduler v1.37.0's answers.
func TestPages(t *testing.T) {
	began := time.Date(2026, 11, 22, 8, 1, 46, 0, time.UTC)
	flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
	flags.StringSlice("paths", []string{"/a", "/b"}, "")
	flags.Bool("profiling", true, "")
	pages := &Pages{
		Program: "kube-scheduler", Clock: clocktesting.NewFakePassiveClock(began.Add(3723 * time.Second)), Started: began, Flags: flags,
		Config: map[string]any{"componentconfig": map[string]int{"parallelism": 16}}, Paths: []string{"/configz", "/flagz"},
	}
	mux := http.NewServeMux()
	pages.AddTo(mux)
	const structured = ";v=v1beta1;g=config.k8s.io;as="
	for name, test := range map[string]struct {
		path, accept string
		code         int
		form         string
		want         []string
	}{
		"status": {StatusPath, "", http.StatusOK, "text/plain; charset=utf-8",
			[]string{"\nkube-scheduler statusz\nWarning: ", "\n\nStarted:  Sun Nov 22 08:01:46 UTC 2026\nUp:  1 hr 02 min 03 sec\nGo version:  go",
				"\nEmulation version:  1.37\nPaths:  /configz /flagz\n"}},
		"status, anything": {StatusPath, "*/*", http.StatusOK, "text/plain; charset=utf-8", []string{"statusz"}},
		"status, JSON": {StatusPath, "application/json" + structured + "Statusz", http.StatusOK, "application/json;g=config.k8s.io;v=v1beta1;as=Statusz",
			[]string{`"kind": "Statusz"`, `"apiVersion": "config.k8s.io/v1beta1"`, `"name": "kube-scheduler"`, `"startTime": "2026-11-22T08:01:46Z"`,
				`"uptimeSeconds": 3723`, `"emulationVersion": "1.37"`}},
		"status, YAML": {StatusPath, "text/html, application/yaml" + structured + "Statusz,text/plain", http.StatusOK,
			"application/yaml;g=config.k8s.io;v=v1beta1;as=Statusz", []string{"kind: Statusz\n", "paths:\n- /configz\n"}},
		"status, just JSON": {StatusPath, "application/json", http.StatusNotAcceptable, "application/json",
			[]string{`"message": "only the following media types are accepted: application/json, application/yaml, text/plain"`, `"code": 406`}},
		"status, other kind": {StatusPath, "application/json" + structured + "Flagz", http.StatusNotAcceptable, "application/json", nil},
		"status, no such":    {StatusPath, ";;;", http.StatusNotAcceptable, "application/json", nil},
		"flags": {FlagsPath, "text/plain", http.StatusOK, "text/plain; charset=utf-8",
			[]string{"\nkube-scheduler flagz\n", "\npaths: [/a,/b]\nprofiling: true\n"}},
		"flags, JSON": {FlagsPath, "application/json" + structured + "Flagz", http.StatusOK, "application/json;g=config.k8s.io;v=v1beta1;as=Flagz",
			[]string{`"kind": "Flagz"`, `"profiling": "true"`}},
		"configuration": {ConfigPath, "", http.StatusOK, "application/json", []string{`"componentconfig": {`, `"parallelism": 16`}},
	} {
		w := ask(t, mux, test.path, test.accept)
		if w.Code != test.code || w.Header().Get("Content-Type") != test.form {
			t.Errorf("%s: %d as %s", name, w.Code, w.Header().Get("Content-Type"))
		}
		for _, want := range test.want {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: no %q in %s", name, want, w.Body)
			}
		}
	}
	for _, path := range []string{StatusPath, FlagsPath, ConfigPath} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d, allowed is %q", path, w.Code, w.Header().Get("Allow"))
		}
	}
	older := ask(t, mux, StatusPath, "application/json;v=v1alpha1;g=config.k8s.io;as=Statusz")
	if older.Code != http.StatusOK || !strings.HasPrefix(older.Header().Get("Warning"), "299 - ") ||
		!strings.Contains(older.Body.String(), "config.k8s.io/v1alpha1") {
		t.Errorf("v1alpha1: %d %v %s", older.Code, older.Header(), older.Body)
	}
}

func TestChecksAreCounted(t *testing.T) {
	health, broken := NewHealth(), false
	health.Add("sched", func(context.Context) error {
		if broken {
			return errors.New("broken")
		}
		return nil
	}, Readyz)
	mux := Endpoints(health, prometheus.NewRegistry())
	ask(t, mux, "/healthz", "")
	ask(t, mux, "/readyz", "")
	broken = true
	ask(t, mux, "/readyz?exclude=ping", "")
	told := ask(t, mux, "/metrics/slis", "").Body.String()
	all := ask(t, Endpoints(health, NewRegistry()), "/metrics", "").Body.String()
	if started := regexp.MustCompile(`(?m)^process_start_time_seconds .*$`).FindString(all); started == "" || !strings.Contains(told, started+"\n") {
		t.Errorf("the process started at %q, and the results of checks are\n%s", started, told)
	}
	for _, want := range []string{
		`kubernetes_healthcheck{name="ping",type="healthz"} 1`, `kubernetes_healthcheck{name="sched",type="readyz"} 0`,
		`kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 1`,
		`kubernetes_healthchecks_total{name="sched",status="error",type="readyz"} 1`,
		`kubernetes_healthchecks_total{name="sched",status="success",type="readyz"} 1`,
	} {
		if !strings.Contains(told, want+"\n") {
			t.Errorf("no %s in\n%s", want, told)
		}
	}
}
