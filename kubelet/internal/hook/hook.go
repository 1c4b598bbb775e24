package hook

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
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/release"
)

// maxOutput limits how many bytes of a hook's answer are read and shown.
const maxOutput = 1 << 10

// maxHeaders limits the headers of such an answer.
const maxHeaders = 64 << 10

// Runtime runs commands in containers.
type Runtime interface {
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
}

// Runner runs hooks. It is safe for concurrent use.
type Runner struct {
	runtime Runtime
	// address returns the host for httpGet hooks that name none.
	address func(ctx context.Context, pod *core.Pod) (string, error)
	clock   clock.Clock
	client  *http.Client
}

// New returns a Runner. Like upstream, it does not verify certificates: hooks
// reach a pod by its address, for which it has none.
func New(runtime Runtime, address func(ctx context.Context, pod *core.Pod) (string, error), clock clock.Clock) *Runner {
	return &Runner{runtime: runtime, address: address, clock: clock, client: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
			DisableKeepAlives:      true,
			Proxy:                  nil, // pods are asked directly
			MaxResponseHeaderBytes: maxHeaders,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a hook asks the pod, and nobody else
		},
	}}
}

// Run runs one hook of a container until it is done or ctx ends.
func (r *Runner) Run(ctx context.Context, pod *core.Pod, c *core.Container, id runtimestate.ContainerID, hook *corev1.LifecycleHandler) error {
	switch {
	case hook.Exec != nil:
		return r.exec(ctx, id, hook.Exec.Command)
	case hook.HTTPGet != nil:
		return r.get(ctx, pod, c, hook.HTTPGet)
	case hook.Sleep != nil:
		timer := r.clock.NewTimer(time.Duration(hook.Sleep.Seconds) * time.Second)
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

func (r *Runner) exec(ctx context.Context, id runtimestate.ContainerID, command []string) error {
	result, err := r.runtime.ExecSync(ctx, id.ID, command, 0)
	if err != nil {
		return fmt.Errorf("exec hook %q: %s", command, cri.Message(err))
	}
	if result.ExitCode != 0 {
		output := append(result.Stdout, result.Stderr...)
		if len(output) > maxOutput {
			output = output[:maxOutput]
		}
		return fmt.Errorf("exec hook %q exited with %d: %s", command, result.ExitCode, output)
	}
	return nil
}

// get asks the pod, or the host that the hook names, over HTTP.
func (r *Runner) get(ctx context.Context, pod *core.Pod, c *core.Container, get *corev1.HTTPGetAction) error {
	request, err := r.request(ctx, pod, c, get)
	if err != nil {
		return err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return fmt.Errorf("httpGet hook: %w", err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxOutput)) // for the message only
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("httpGet hook: %s answered %s: %s", request.URL, response.Status, body)
	}
	return nil
}

func (r *Runner) request(ctx context.Context, pod *core.Pod, c *core.Container, get *corev1.HTTPGetAction) (*http.Request, error) {
	host := get.Host
	if host == "" {
		var err error
		if host, err = r.address(ctx, pod); err != nil {
			return nil, err
		}
	}
	port, err := portNumber(c, get.Port)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse("/" + strings.TrimPrefix(get.Path, "/"))
	if err != nil {
		return nil, fmt.Errorf("httpGet hook: path %q: %w", get.Path, err)
	}
	target.Scheme, target.Host = "http", net.JoinHostPort(host, strconv.Itoa(port))
	if get.Scheme == corev1.URISchemeHTTPS {
		target.Scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("httpGet hook: %w", err)
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
	return request, nil
}

// portNumber is the port, which may be the name of one of the container's.
func portNumber(c *core.Container, port intstr.IntOrString) (int, error) {
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
