package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/cri"
	"kctl/proto/core"
	"kctl/proto/upgrade"
)

// Streaming are the ways into running containers.
type Streaming interface {
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
	Exec(ctx context.Context, request *runtimeapi.ExecRequest) (string, error)
	Attach(ctx context.Context, request *runtimeapi.AttachRequest) (string, error)
	PortForward(ctx context.Context, request *runtimeapi.PortForwardRequest) (string, error)
}

// streams are those that a caller of exec or attach wants.
type streams struct{ stdin, stdout, stderr, tty bool }

// streamsOf reads them from the query, by the names that API servers use on
// this port or by those of the API.
func streamsOf(query url.Values) (streams, error) {
	flag := func(names ...string) bool {
		for _, name := range names {
			if isTrue(query.Get(name)) {
				return true
			}
		}
		return false
	}
	w := streams{flag("input", "stdin"), flag("output", "stdout"), flag("error", "stderr"), flag("tty")}
	if w.tty {
		w.stderr = false // a terminal has one output
	}
	if !w.stdin && !w.stdout && !w.stderr {
		return w, errors.New("you must specify at least 1 of stdin, stdout, stderr")
	}
	return w, nil
}

// target finds the running container that a caller of exec or attach names, and the
// streams it wants. Otherwise it answers the request.
func (s *Server) target(c *gin.Context) (id string, wanted streams, ok bool) {
	wanted, err := streamsOf(c.Request.URL.Query())
	if err != nil {
		s.refuse(c, http.StatusBadRequest, err)
		return "", wanted, false
	}
	pod, container := s.containerOf(c)
	if pod == nil {
		return "", wanted, false
	}
	if id, err = s.runningContainer(c.Request.Context(), pod, container); err != nil {
		s.refuse(c, http.StatusInternalServerError, err)
		return "", wanted, false
	}
	return id, wanted, true
}

// exec runs a command in a container, with streams.
func (s *Server) exec(c *gin.Context) {
	command := c.Request.URL.Query()["command"]
	if len(command) == 0 {
		s.refuse(c, http.StatusBadRequest, errors.New("you must specify a command"))
		return
	}
	id, wanted, ok := s.target(c)
	if !ok {
		return
	}
	s.stream(c, func(ctx context.Context) (string, error) {
		return s.Runtime.Exec(ctx, &runtimeapi.ExecRequest{
			ContainerId: id, Cmd: command, Stdin: wanted.stdin, Stdout: wanted.stdout, Stderr: wanted.stderr, Tty: wanted.tty,
		})
	})
}

// attach connects to a container's main process.
func (s *Server) attach(c *gin.Context) {
	id, wanted, ok := s.target(c)
	if !ok {
		return
	}
	s.stream(c, func(ctx context.Context) (string, error) {
		return s.Runtime.Attach(ctx, &runtimeapi.AttachRequest{
			ContainerId: id, Stdin: wanted.stdin, Stdout: wanted.stdout, Stderr: wanted.stderr, Tty: wanted.tty,
		})
	})
}

// portForward connects to ports in a pod's network.
func (s *Server) portForward(c *gin.Context) {
	ports, err := portsOf(c.Request.URL.Query())
	if err != nil {
		s.refuse(c, http.StatusBadRequest, err)
		return
	}
	pod := s.podOf(c, c.Param("uid"))
	if pod == nil {
		return
	}
	sandbox, err := s.readySandbox(c.Request.Context(), pod)
	if err != nil {
		s.refuse(c, http.StatusInternalServerError, err)
		return
	}
	s.stream(c, func(ctx context.Context) (string, error) {
		return s.Runtime.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: sandbox, Port: ports})
	})
}

// portsOf reads the ports that WebSocket callers name; others name them in the
// stream.
func portsOf(query url.Values) ([]int32, error) {
	var ports []int32
	for _, text := range append(query["port"], query["ports"]...) {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return nil, fmt.Errorf("invalid port %q", text)
		}
		ports = append(ports, int32(port))
	}
	return ports, nil
}

// run runs a command in a container and answers with its output.
func (s *Server) run(c *gin.Context) {
	pod, container := s.containerOf(c)
	if pod == nil {
		return
	}
	command := c.QueryArray("cmd")
	if len(command) == 0 {
		s.refuse(c, http.StatusBadRequest, errors.New("you must specify a command: cmd"))
		return
	}
	id, err := s.runningContainer(c.Request.Context(), pod, container)
	if err != nil {
		s.refuse(c, http.StatusInternalServerError, err)
		return
	}
	result, err := s.Runtime.ExecSync(c.Request.Context(), id, command, 0)
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("command exited with code %d: %s%s", result.ExitCode, result.Stdout, result.Stderr)
	}
	if err != nil {
		s.refuse(c, http.StatusInternalServerError, err)
		return
	}
	c.Header("Content-Type", "text/plain; charset=utf-8")
	_, _ = c.Writer.Write(append(result.Stdout, result.Stderr...)) // the caller may have gone
}

// runningContainer is the id of the pod's newest container of that name. The
// creation times may not show which one that is, if the machine's clock was set
// back.
func (s *Server) runningContainer(ctx context.Context, pod *core.Pod, container string) (string, error) {
	containers, err := s.Runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
		LabelSelector: map[string]string{kubelettypes.KubernetesPodUIDLabel: string(pod.UID),
			kubelettypes.KubernetesContainerNameLabel: container},
	})
	if err != nil {
		return "", err
	}
	if len(containers) == 0 {
		return "", fmt.Errorf("container not found (%q)", container)
	}
	return slices.MaxFunc(containers, func(a, b *runtimeapi.Container) int {
		return cmp.Or(cmp.Compare(a.GetMetadata().GetAttempt(), b.GetMetadata().GetAttempt()), cmp.Compare(a.GetCreatedAt(), b.GetCreatedAt()))
	}).GetId(), nil
}

func (s *Server) readySandbox(ctx context.Context, pod *core.Pod) (string, error) {
	sandboxes, err := s.Runtime.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{
		State:         &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
		LabelSelector: map[string]string{kubelettypes.KubernetesPodUIDLabel: string(pod.UID)},
	})
	if err != nil {
		return "", err
	}
	if len(sandboxes) == 0 {
		return "", fmt.Errorf("sandbox not found for pod %q", pod.Name)
	}
	return sandboxes[0].GetId(), nil
}

// addressTimeout is how long an address may take to be used instead of its caller.
const addressTimeout = 10 * time.Second

// stream passes the request on to the address that the runtime returns. It does
// not look at the protocol between the caller and the runtime (SPDY,
// WebSocket).
//
// The runtime keeps each address until it is used, or for a minute, and only so many at
// a time: those that nobody uses would keep others out of their pods.
func (s *Server) stream(c *gin.Context, ask func(context.Context) (address string, err error)) {
	if !asksForUpgrade(c.Request.Header) {
		s.refuse(c, http.StatusInternalServerError, errors.New("Upgrade request required"))
		return
	}
	ctx := context.WithoutCancel(c.Request.Context()) // an address may come all the same
	address, err := ask(ctx)
	if err != nil {
		s.refuse(c, http.StatusInternalServerError, errors.New(cri.Message(err)))
		return
	}
	target, err := url.Parse(address)
	if err != nil || target.Host == "" {
		s.refuse(c, http.StatusInternalServerError, fmt.Errorf("the runtime's streaming address %q can't be used", address))
		return
	}
	proxy := &httputil.ReverseProxy{
		Transport: s.streams,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = target, target.Host
			// The runtime does not need to know who the caller is.
			r.Out.Header.Del("Authorization")
		},
		ErrorLog: zap.NewStdLog(s.Logger),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			s.use(ctx, address) // the request may not have got that far
			s.refuse(c, http.StatusBadGateway, fmt.Errorf("the runtime's streaming server: %w", err))
		},
	}
	upgrade.Serve(proxy, c.Writer, c.Request)
}

// asksForUpgrade tells whether a request will be passed on as one for an upgrade: not if the
// protocol is unprintable.
func asksForUpgrade(header http.Header) bool {
	return upgrade.IsRequested(header) && !strings.ContainsFunc(header.Get("Upgrade"), func(r rune) bool { return r < ' ' || r > '~' })
}

// use uses an address up, if it was not: without an upgrade, the runtime does nothing else.
func (s *Server) use(ctx context.Context, address string) {
	ctx, cancel := context.WithTimeout(ctx, addressTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return // it was no address
	}
	if answer, err := s.streams.RoundTrip(request); err == nil { // or it is forgotten in a minute
		_ = answer.Body.Close()
	}
}
