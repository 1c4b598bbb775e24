package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/cri/critest"
	"kctl/kubelet/internal/server/auth"
	"kctl/proto/core"
)

// startPod runs a container that counts, and returns a kubelet server for it.
func startPod(t *testing.T) (*httptest.Server, *cri.Client, string) {
	t.Helper()
	client := critest.Start(t).Client()
	n, _ := newNode(t)
	logs := t.TempDir()
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "ns", Uid: "uid-1"},
		LogDirectory: logs, Labels: n.labels(), Linux: &runtimeapi.LinuxPodSandboxConfig{},
	}
	sandboxID, err := client.RunPodSandbox(t.Context(), sandbox, "")
	if err != nil {
		t.Fatal(err)
	}
	id, err := client.CreateContainer(t.Context(), sandboxID, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"},
		Labels:   n.labels(),
		LogPath:  "c.log",
		Image:    &runtimeapi.ImageSpec{Image: critest.BusyboxImage},
		Command:  []string{"/bin/sh", "-c", "i=0; while true; do echo line $i; i=$((i+1)); sleep 0.05; done"},
	}, sandbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	n.status = core.PodStatus{ContainerStatuses: []core.ContainerStatus{{
		Name: "c", ContainerID: "containerd://" + id, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}}
	s, err := New(Config{
		NodeName: "node-1", Authenticator: auth.NewAuthenticator(auth.Authentication{Anonymous: true}, nil, clock.RealClock{}),
		Authorizer: auth.AlwaysAllow(), Debugging: true, Pods: n, Status: n.Status, Runtime: client, Clock: clock.RealClock{}, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server, client, id
}

func TestServerOnContainerd(t *testing.T) {
	server, client, id := startPod(t)
	t.Run("exec by WebSocket", func(t *testing.T) { execWebSocket(t, server) })
	t.Run("upgrade to SPDY", func(t *testing.T) {
		for path, protocol := range map[string]string{
			"/exec/ns/p/c?command=cat&input=1&output=1": "v4.channel.k8s.io",
			"/attach/ns/p/c?output=1":                   "v4.channel.k8s.io",
			"/portForward/ns/p":                         "portforward.k8s.io",
		} {
			upgradeSPDY(t, server, path, protocol)
		}
	})
	t.Run("run", func(t *testing.T) {
		if code, body := do(t, server, "POST", "/run/ns/p/c?cmd=/bin/echo&cmd=hello"); code != 200 || body != "hello\n" {
			t.Errorf("%d %q", code, body)
		}
	})
	t.Run("summary", func(t *testing.T) {
		_, body := get(t, server, "/stats/summary")
		var summary stats.Summary
		if err := json.Unmarshal([]byte(body), &summary); err != nil || len(summary.Pods) != 1 || summary.Pods[0].Containers[0].Memory.WorkingSetBytes == nil {
			t.Errorf("%s, %v", body, err)
		}
	})
	t.Run("running pods", func(t *testing.T) {
		if _, body := get(t, server, "/runningpods"); !strings.Contains(body, `"uid":"uid-1"`) {
			t.Error(body)
		}
	})
	t.Run("logs", func(t *testing.T) { followRotated(t, server, client, id) })
}

// execWebSocket speaks v4.channel.k8s.io: the first byte of each message is its
// channel (0 stdin, 1 stdout, 2 stderr, 3 the result).
func execWebSocket(t *testing.T, server *httptest.Server) {
	command := url.Values{"command": {"/bin/sh", "-c", "read line; echo got $line; echo bad >&2; exit 3"}, "input": {"1"}, "output": {"1"}, "error": {"1"}}
	address, err := url.Parse("ws" + strings.TrimPrefix(server.URL, "http") + "/exec/ns/p/c?" + command.Encode())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&websocket.Config{
		Location: address, Origin: &url.URL{Scheme: "http", Host: "localhost"}, Version: websocket.ProtocolVersionHybi13,
		Protocol: []string{"v4.channel.k8s.io"}, Header: http.Header{},
	}).DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := websocket.Message.Send(conn, append([]byte{0}, "hello\n"...)); err != nil {
		t.Fatal(err)
	}
	streams := map[byte]string{}
	for {
		var message []byte
		if err := websocket.Message.Receive(conn, &message); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if len(message) > 0 {
			streams[message[0]] += string(message[1:])
		}
	}
	if streams[1] != "got hello\n" || streams[2] != "bad\n" || !strings.Contains(streams[3], `"3"`) {
		t.Errorf("streams %q", streams)
	}
}

// upgradeSPDY sends the request by hand, because only the answer's header
// matters.
func upgradeSPDY(t *testing.T, server *httptest.Server, path, protocol string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn,
		"POST %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: %s\r\nContent-Length: 0\r\n\r\n", path, protocol)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("X-Stream-Protocol-Version") != protocol {
		t.Errorf("%s: %s %v", path, resp.Status, resp.Header)
	}
}

// followRotated follows the log until the container ends, while it is rotated
// as by the kubelet: no line may be missing.
func followRotated(t *testing.T, server *httptest.Server, client *cri.Client, id string) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/containerLogs/ns/p/c?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := 0
	read := func(n int) {
		for range n {
			if !lines.Scan() || lines.Text() != fmt.Sprintf("line %d", next) {
				t.Fatalf("got %q, %v; want line %d", lines.Text(), lines.Err(), next)
			}
			next++
		}
	}
	read(10)
	for range 2 {
		rotate(t, client, id)
		read(20)
	}
	if err := client.StopContainer(context.WithoutCancel(t.Context()), id, 0); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		if want := fmt.Sprintf("line %d", next); lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
		next++
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
}

func rotate(t *testing.T, client *cri.Client, id string) {
	t.Helper()
	status, err := client.ContainerStatus(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	path := status.GetLogPath()
	if err := os.Rename(path, filepath.Join(filepath.Dir(path), fmt.Sprintf("old-%d.log", time.Now().UnixNano()))); err != nil {
		t.Fatal(err)
	}
	if err := client.ReopenContainerLog(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}
