package daemon

import (
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestDebug(t *testing.T) {
	o := &LogOptions{Format: "json"}
	logger, err := o.Logger()
	if err != nil {
		t.Fatal(err)
	}
	handler := Debug(o, zap.NewNop())
	for _, step := range []struct {
		method, path, body string
		code               int
		answer             string
		debug              bool // whether debug lines are written then
	}{
		{"GET", "/debug/flags", "", 200, "handlers:\nv\n", false},
		{"PUT", "/debug/flags/v", "5", 200, "successfully set klog.logging.verbosity to 5", true},
		{"PUT", "/debug/flags/v", "loud", 400, "the body must be a number", true},
		{"PUT", "/debug/flags/v", "-1", 400, "the body must be a number", true},
		{"PUT", "/debug/flags/v", "4" + strings.Repeat("0", 1000), 400, "the body must be a number", true},
		{"POST", "/debug/flags/v", "0", 405, "", true},
		{"PUT", "/debug/flags/v", "0\n", 200, "verbosity to 0", false},
		{"GET", "/debug/pprof/", "", 200, "goroutine", false},
		{"GET", "/debug/pprof/goroutine?debug=1", "", 200, "goroutine profile: total", false},
		{"GET", "/debug/pprof/cmdline", "", 200, "daemon.test", false},
		{"GET", "/debug/pprof/nonsense", "", 404, "Unknown profile", false},
		{"GET", "/debug/other", "", 404, "", false},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(step.method, step.path, strings.NewReader(step.body)))
		if w.Code != step.code || !strings.Contains(w.Body.String(), step.answer) {
			t.Errorf("%s %s %.10s: %d %q", step.method, step.path, step.body, w.Code, w.Body)
		}
		if got := logger.Core().Enabled(zapcore.DebugLevel); got != step.debug {
			t.Errorf("after %s %s %.10s: debug lines %v", step.method, step.path, step.body, got)
		}
	}
}
