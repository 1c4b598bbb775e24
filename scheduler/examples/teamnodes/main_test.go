package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/scheduler/internal/fixture"
)

// The example is built as by its users: in a module of its own, which can
// import only what is not internal. Then it runs, and places a pod.
func TestExample(t *testing.T) {
	program := buildAsThirdParty(t)
	labelled := func(team string) func(*core.Node) {
		return func(n *core.Node) { n.Labels["example.com/team"] = team }
	}
	api := &api{
		nodes:    []*core.Node{fixture.Node("n1", labelled("red")), fixture.Node("n2", labelled("blue")), fixture.Node("n3", labelled("red"))},
		pods:     []*core.Pod{fixture.Pod("p", func(p *core.Pod) { p.Labels = map[string]string{"example.com/team": "blue"} })},
		bindings: make(chan core.Binding, 1),
	}
	server := httptest.NewTLSServer(api)
	defer server.Close()
	defer server.CloseClientConnections() // its watches would never end

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--kubeconfig", kubeconfig(t, server), "--config", "scheduler.yaml", "--secure-port=0")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case binding := <-api.bindings:
		if binding.Name != "p" || binding.Target.Name != "n2" {
			t.Errorf("pod %s was bound to %s, want p on n2", binding.Name, binding.Target.Name)
		}
		cancel()
		<-ended
	case err := <-ended:
		t.Fatalf("ended with %v:\n%s", err, output.String())
	}
}

// buildAsThirdParty compiles main.go in a module outside this one.
func buildAsThirdParty(t *testing.T) string {
	t.Helper()
	scheduler, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	read := func(name string) string {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	mod := strings.Replace(read("../../go.mod"), "module kctl/scheduler", "module example.com/teamnodes", 1)
	mod = strings.Replace(mod, "replace kctl/proto => ../proto", fmt.Sprintf(
		"require kctl/scheduler v0.0.0\nreplace kctl/scheduler => %s\nreplace kctl/proto => %s", scheduler, filepath.Join(filepath.Dir(scheduler), "proto")), 1)
	for name, content := range map[string]string{"main.go": read("main.go"), "go.mod": mod, "go.sum": read("../../go.sum")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "teamnodes")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-mod=mod", "-o", program, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOPROXY=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("a third party can't build it: %v\n%s", err, out)
	}
	return program
}

func kubeconfig(t *testing.T, server *httptest.Server) string {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": server.URL, "certificate-authority-data": ca}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": "t"}}},
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// api is the part of an API server that a scheduler needs: its lists never
// change, and it accepts Bindings.
type api struct {
	nodes    []*core.Node
	pods     []*core.Pod
	bindings chan core.Binding
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	switch {
	case resource == "binding":
		var binding core.Binding
		if err := json.NewDecoder(r.Body).Decode(&binding); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.bindings <- binding
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusSuccess})
	case r.URL.Query().Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done() // nothing ever changes
	case r.Method == http.MethodGet:
		list := map[string]any{"kind": fixture.ListKind(resource), "apiVersion": "v1", "metadata": metav1.ListMeta{ResourceVersion: "1"}, "items": []any{}}
		switch resource {
		case "nodes":
			list["items"] = a.nodes
		case "pods":
			list["items"] = a.pods
		}
		_ = json.NewEncoder(w).Encode(list)
	default: // an event
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(corev1.Event{})
	}
}
