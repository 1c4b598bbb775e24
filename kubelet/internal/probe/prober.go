package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/httpget"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// Target is what to probe, and how.
type Target struct {
	Pod       *core.Pod
	Container *core.Container
	ID        runtimestate.ContainerID
	IP        string // the pod's; empty for pods in the host's network
	Probe     *corev1.Probe
}

// Result is the result of a probe.
type Result int

const (
	Success Result = iota
	Failure
	// Warning is a success with a warning for users.
	Warning
)

// Answer is the outcome of a probe.
type Answer struct {
	Result Result
	Output string
}

func failed(format string, args ...any) Answer { return Answer{Failure, fmt.Sprintf(format, args...)} }

// maxOutput bounds how much of a container's output is kept.
const maxOutput = 10 << 10

// maxMessage bounds a gRPC message and its headers: a health service answers with
// a single word.
const maxMessage = 64 << 10

// Runtime runs commands in containers.
type Runtime interface {
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
}

// Prober probes containers over the network and with commands.
type Prober struct {
	runtime Runtime
	// hostIP is the address of pods in the host's network.
	hostIP    func() string
	transport *http.Transport
	dialer    *net.Dialer
}

// NewProber returns a Prober that runs commands by runtime.
func NewProber(runtime Runtime, hostIP func() string) *Prober {
	dialer := newDialer()
	return &Prober{runtime: runtime, hostIP: hostIP, transport: newTransport(dialer), dialer: dialer}
}

// Probe runs a probe once. An error means that the container could not be
// probed; a container that is probed and does not answer in time has failed.
func (p *Prober) Probe(ctx context.Context, target Target) (Answer, error) {
	timeout := time.Duration(target.Probe.TimeoutSeconds) * time.Second
	probe := target.Probe
	switch {
	case probe.Exec != nil:
		return p.exec(ctx, target, timeout)
	case probe.HTTPGet != nil:
		host, err := p.host(target, probe.HTTPGet.Host)
		if err != nil {
			return Answer{}, err
		}
		request, err := httpget.NewRequest(ctx, probe.HTTPGet, target.Container, host, "probe")
		if err != nil {
			return Answer{}, err
		}
		return p.httpGet(request, timeout), nil
	case probe.TCPSocket != nil:
		address, err := p.address(target, probe.TCPSocket.Host, probe.TCPSocket.Port)
		if err != nil {
			return Answer{}, err
		}
		return p.tcp(ctx, address, timeout), nil
	case probe.GRPC != nil:
		address, err := p.address(target, "", intstr.FromInt32(probe.GRPC.Port))
		if err != nil {
			return Answer{}, err
		}
		return p.grpc(ctx, address, ptr.Deref(probe.GRPC.Service, ""), timeout)
	}
	return Answer{}, fmt.Errorf("missing probe handler for container %q", target.Container.Name)
}

// address is host, or else the pod, and port.
func (p *Prober) address(target Target, host string, port intstr.IntOrString) (string, error) {
	host, err := p.host(target, host)
	if err != nil {
		return "", err
	}
	number, err := httpget.PortNumber(target.Container, port)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}

// host is the host that a probe names, or else the pod's address.
func (p *Prober) host(target Target, named string) (string, error) {
	switch {
	case named != "":
		return named, nil
	case target.Pod.Spec.HostNetwork:
		target.IP = p.hostIP()
	}
	if target.IP == "" {
		return "", errors.New("the pod has no address yet")
	}
	return target.IP, nil
}

// exec runs the probe's command in the container.
func (p *Prober) exec(ctx context.Context, target Target, timeout time.Duration) (Answer, error) {
	command := target.Probe.Exec.Command
	result, err := p.runtime.ExecSync(ctx, target.ID.ID, command, timeout)
	if errors.Is(err, context.DeadlineExceeded) {
		return failed("command timed out: %q timed out after %v", strings.Join(command, " "), timeout), nil
	}
	if call := (*cri.Error)(nil); errors.As(err, &call) {
		err = call.Err // what gRPC says is what users know from upstream's events
	}
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Output: string(result.Output(maxOutput))}
	if result.ExitCode != 0 {
		answer.Result = Failure
	}
	return answer, nil
}

// tcp opens a connection.
func (p *Prober) tcp(ctx context.Context, address string, timeout time.Duration) Answer {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := p.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return failed("%v", err)
	}
	_ = connection.Close() // it was opened, and that is the answer
	return Answer{}
}
