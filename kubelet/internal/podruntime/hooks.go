package podruntime

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/release"
)

// maxHookOutput bounds how much of a hook's answer is read and shown.
const maxHookOutput = 1 << 10

// maxHookHeaders bounds the headers of such an answer.
const maxHookHeaders = 64 << 10

func hookTransport() http.RoundTripper {
	return &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see newHookClient
		DisableKeepAlives: true,
		Proxy:             nil, // pods are asked directly

		MaxResponseHeaderBytes: maxHookHeaders,
	}
}

// runHook runs one lifecycle hook until it is done or ctx ends.
func (m *Manager) runHook(ctx context.Context, pod *core.Pod, c *core.Container, id runtimestate.ContainerID, hook *corev1.LifecycleHandler) error {
	switch {
	case hook.Exec != nil:
		return m.execHook(ctx, id, hook.Exec.Command)
	case hook.HTTPGet != nil:
		return m.httpHook(ctx, pod, c, hook.HTTPGet)
	case hook.Sleep != nil:
		timer := m.Clock.NewTimer(time.Duration(hook.Sleep.Seconds) * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C():
			return nil
		case <-ctx.Done():
			return fmt.Errorf("sleep hook: %w", ctx.Err())
		}
	case hook.TCPSocket != nil:
		return errors.New("tcpSocket is not supported as a lifecycle hook")
	}
	return errors.New("lifecycle hook names no action")
}

func (m *Manager) execHook(ctx context.Context, id runtimestate.ContainerID, command []string) error {
	result, err := m.runtime.ExecSync(ctx, id.ID, command, 0)
	if err != nil {
		return fmt.Errorf("exec hook %q: %s", command, cri.Message(err))
	}
	if result.ExitCode != 0 {
		output := append(result.Stdout, result.Stderr...)
		if len(output) > maxHookOutput {
			output = output[:maxHookOutput]
		}
		return fmt.Errorf("exec hook %q exited with %d: %s", command, result.ExitCode, output)
	}
	return nil
}

func (m *Manager) httpHook(ctx context.Context, pod *core.Pod, c *core.Container, get *corev1.HTTPGetAction) error {
	host := get.Host
	if host == "" {
		status, err := m.state.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
		if err != nil {
			return err
		}
		switch {
		case pod.Spec.HostNetwork && m.HostIPs != nil && len(m.HostIPs()) > 0:
			host = m.HostIPs()[0]
		case len(status.IPs) > 0:
			host = status.IPs[0]
		default:
			return errors.New("httpGet hook: the pod has no address")
		}
	}
	port, err := hookPort(c, get.Port)
	if err != nil {
		return err
	}
	target, err := url.Parse("/" + strings.TrimPrefix(get.Path, "/"))
	if err != nil {
		return fmt.Errorf("httpGet hook: path %q: %w", get.Path, err)
	}
	target.Scheme, target.Host = "http", net.JoinHostPort(host, strconv.Itoa(port))
	if get.Scheme == corev1.URISchemeHTTPS {
		target.Scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return fmt.Errorf("httpGet hook: %w", err)
	}
	request.Header.Set("User-Agent", "kube-lifecycle/"+release.Kubernetes)
	request.Header.Set("Accept", "*/*")
	for _, header := range get.HTTPHeaders {
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
			continue
		}
		request.Header.Add(header.Name, header.Value)
	}
	response, err := m.HTTPClient.Do(request)
	if err != nil {
		return fmt.Errorf("httpGet hook: %w", err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxHookOutput)) // for the message only
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("httpGet hook: %s answered %s: %s", target, response.Status, body)
	}
	return nil
}

func hookPort(c *core.Container, port intstr.IntOrString) (int, error) {
	if port.Type == intstr.Int {
		return port.IntValue(), nil
	}
	for _, p := range c.Ports {
		if p.Name == port.StrVal {
			return int(p.ContainerPort), nil
		}
	}
	n, err := strconv.Atoi(port.StrVal)
	if err != nil {
		return 0, fmt.Errorf("httpGet hook: container %s has no port %q", c.Name, port.StrVal)
	}
	return n, nil
}
