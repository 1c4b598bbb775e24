package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"kctl/scheduler/internal/config"
	"kctl/scheduler/internal/fixture"
)

// requests records what an API server without objects was asked for first: the
// lease, or pods.
type requests struct {
	mu    sync.Mutex
	order []string
	both  context.CancelFunc // called after a request for each of them
}

func (r *requests) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.note(request.URL.Path)
	switch {
	case request.URL.Query().Get("watch") != "":
		w.(http.Flusher).Flush()
		<-request.Context().Done()
	case request.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, request.Body)
	case strings.Contains(request.URL.Path, "/leases/"):
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "code": 404, "reason": "NotFound"})
	default:
		_, _ = fmt.Fprintf(w, `{"kind":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, fixture.ListKind(path.Base(request.URL.Path)))
	}
}

func (r *requests) note(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range []string{"leases", "pods"} {
		if strings.Contains(path, "/"+resource) && !strings.Contains(strings.Join(r.order, " "), resource) {
			r.order = append(r.order, resource)
		}
	}
	if len(r.order) == 2 {
		r.both()
	}
}

// A standby watches the cluster before it leads, unless delayCacheUntilActive
// is set.
func TestWhenAStandbyBeginsToWatch(t *testing.T) {
	for delay, want := range map[string]string{"false": "pods leases", "true": "leases pods"} {
		ctx, cancel := context.WithCancel(t.Context())
		asked := &requests{both: cancel}
		server := httptest.NewServer(asked)
		file := filepath.Join(t.TempDir(), "config")
		content := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\ndelayCacheUntilActive: %s\n", delay)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(kubeconfig,
			[]byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],`+
				`"users":[{"name":"u","user":{}}],"clusters":[{"name":"c","cluster":{"server":"`+server.URL+`"}}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		options, flags := config.NewOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
		options.AddFlags(flags)
		if err := flags.Parse([]string{"--config=" + file, "--kubeconfig=" + kubeconfig, "--secure-port=0"}); err != nil {
			t.Fatal(err)
		}
		configuration, err := options.Complete()
		if err != nil {
			t.Fatal(err)
		}
		_ = Run(ctx, options, configuration, nil, zap.NewNop()) // until both were requested
		server.CloseClientConnections()
		server.Close()
		if got := strings.Join(asked.order, " "); got != want {
			t.Errorf("delayCacheUntilActive %s: asked for %q, want %q", delay, got, want)
		}
	}
}
