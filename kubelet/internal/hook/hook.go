package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/httpget"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

// maxOutput limits how many bytes of a command's output are shown.
const maxOutput = 1 << 10

// maxAnswer is how many bytes of an answer are waited for, as by upstream.
const maxAnswer = 10 << 10

// Runtime runs commands in containers.
type Runtime interface {
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
}

// Options are what a Runner needs.
type Options struct {
	Runtime Runtime
	// Address returns the host for httpGet hooks that name none.
	Address func(ctx context.Context, pod *core.Pod) (string, error)
	// FellBack is called for an HTTPS hook that a server answered over plain HTTP; host
	// is the server's.
	FellBack func(pod *core.Pod, host string)
	Clock    clock.Clock
}

// Runner runs hooks. It is safe for concurrent use.
type Runner struct {
	Options
	client *http.Client
}

// New returns a Runner.
func New(o Options) *Runner {
	return &Runner{o, &http.Client{Transport: httpget.NewTransport(), CheckRedirect: httpget.StayOnHost}}
}

// Run runs one hook of a container until it is done or ctx ends.
func (r *Runner) Run(ctx context.Context, pod *core.Pod, c *core.Container, id runtimestate.ContainerID,
	hook *corev1.LifecycleHandler) error {
	switch {
	case hook.Exec != nil:
		return r.exec(ctx, id, hook.Exec.Command)
	case hook.HTTPGet != nil:
		return r.get(ctx, pod, c, hook.HTTPGet)
	case hook.Sleep != nil:
		if err := backoff.Sleep(ctx, r.Clock, core.Seconds(hook.Sleep.Seconds)); err != nil {
			return fmt.Errorf("sleep hook: %w", err)
		}
		return nil
	case hook.TCPSocket != nil:
		return errors.New("tcpSocket is not supported as a lifecycle hook")
	}
	return errors.New("lifecycle hook has no action")
}

func (r *Runner) exec(ctx context.Context, id runtimestate.ContainerID, command []string) error {
	result, err := r.Runtime.ExecSync(ctx, id.ID, command, 0)
	if err != nil {
		return fmt.Errorf("exec hook %q: %s", command, cri.Message(err))
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("exec hook %q exited with %d: %s", command, result.ExitCode, result.Output(maxOutput))
	}
	return nil
}

// get asks the pod, or the host that the hook names, over HTTP. That it answers is
// enough, whatever the answer is, as for upstream.
func (r *Runner) get(ctx context.Context, pod *core.Pod, c *core.Container, get *corev1.HTTPGetAction) error {
	host := get.Host
	if host == "" {
		var err error
		if host, err = r.Address(ctx, pod); err != nil {
			return err
		}
	}
	request, err := httpget.NewRequest(ctx, get, c, host, "lifecycle")
	if err != nil {
		return fmt.Errorf("httpGet hook: %w", err)
	}
	err = r.send(request)
	if errors.Is(err, http.ErrSchemeMismatch) {
		// Upstream once asked all hooks over HTTP, and some still name HTTPS by mistake.
		request = request.Clone(ctx)
		request.URL.Scheme = "http"
		request.Header.Del("Authorization") // not for everybody on the way to read
		if err = r.send(request); err == nil {
			r.FellBack(pod, request.URL.Host)
		}
	}
	if err != nil {
		return fmt.Errorf("httpGet hook: %w", err)
	}
	return nil
}

// send waits for the end of the answer, too, if it is short: a container may begin to
// answer, and drain.
func (r *Runner) send(request *http.Request) error {
	response, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.ContentLength <= maxAnswer { // or is unknown
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // whatever it is
	}
	return nil
}
