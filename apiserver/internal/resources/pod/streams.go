package pod

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/kubeletclient"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Streams serves what a pod's kubelet provides: pods/log, exec, attach and
// portforward.
type Streams struct {
	pods, nodes registry.Resource
	kubelets    *kubeletclient.Client
}

// NewStreams returns the streams of pods on nodes.
func NewStreams(pods, nodes registry.Resource, kubelets *kubeletclient.Client) *Streams {
	return &Streams{pods: pods, nodes: nodes, kubelets: kubelets}
}

type connect = func(ctx context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error

// Exec is pods/exec.
func (s *Streams) Exec() registry.Subresource {
	return s.stream("exec", "PodExecOptions", s.intoContainer("exec"))
}

// Attach is pods/attach.
func (s *Streams) Attach() registry.Subresource {
	return s.stream("attach", "PodAttachOptions", s.intoContainer("attach"))
}

// PortForward is pods/portforward.
func (s *Streams) PortForward() registry.Subresource {
	return s.stream("portforward", "PodPortForwardOptions", s.portForward)
}

func (s *Streams) stream(name, kind string, serve connect) registry.Subresource {
	return registry.Subresource{
		Name: name, Kind: corev1.SchemeGroupVersion.WithKind(kind),
		Connect: map[string]connect{http.MethodGet: serve, http.MethodPost: serve},
	}
}

// intoContainer connects a client with a container through the kubelet's exec or
// attach.
func (s *Streams) intoContainer(what string) connect {
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error {
		to, streams, err := s.containerStreams(ctx, what, namespace, name, r)
		if err != nil {
			return err
		}
		return s.kubelets.Exec(w, r.WithContext(ctx), to, streams)
	}
}

// containerStreams returns the kubelet's path and query for the requested
// streams, and which these are.
func (s *Streams) containerStreams(ctx context.Context, what, namespace, name string,
	r *http.Request) (*url.URL, kubeletclient.Streams, error) {
	asked := r.URL.Query()
	pod, container, err := s.podAndContainer(ctx, namespace, name, asked.Get("container"))
	if err != nil {
		return nil, kubeletclient.Streams{}, err
	}
	query := url.Values{}
	// Kubelets call the three streams by older names.
	for theirs, ours := range map[string]string{"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"} {
		if request.Flag(asked, theirs) {
			query.Set(ours, "1")
		}
	}
	if what == "exec" {
		query["command"] = asked["command"]
	}
	to, err := s.url(ctx, pod, []string{what, namespace, name, container}, query)
	if err != nil {
		return nil, kubeletclient.Streams{}, err
	}
	// What is requested comes last: upstream leaves it to the kubelet.
	if err := kubeletclient.RequireUpgrade(r); err != nil {
		return nil, kubeletclient.Streams{}, err
	}
	if !query.Has("input") && !query.Has("output") && !query.Has("error") {
		return nil, kubeletclient.Streams{}, apierrors.NewBadRequest("you must specify at least 1 of stdin, stdout, stderr")
	}
	if what == "exec" && len(query["command"]) == 0 {
		return nil, kubeletclient.Streams{}, apierrors.NewBadRequest("you must specify at least one command for the container")
	}
	return to, kubeletclient.Streams{
		Stdin: query.Has("input"), Stdout: query.Has("output"), Stderr: query.Has("error"), TTY: query.Has("tty"),
	}, nil
}

func (s *Streams) portForward(ctx context.Context, w http.ResponseWriter, r *http.Request, namespace, name string) error {
	ports := r.URL.Query()["ports"]
	for _, value := range ports {
		for port := range strings.SplitSeq(value, ",") {
			if _, err := strconv.ParseUint(port, 10, 16); err != nil {
				return apierrors.NewBadRequest("cannot convert to []int32: " + err.Error())
			}
		}
	}
	pod, err := s.assignedPod(ctx, namespace, name)
	if err != nil {
		return err
	}
	query := url.Values{}
	if len(ports) > 0 {
		query.Set("port", strings.Join(ports, ","))
	}
	to, err := s.url(ctx, pod, []string{"portForward", namespace, name}, query)
	if err != nil {
		return err
	}
	return s.kubelets.PortForward(w, r.WithContext(ctx), to)
}

// podAndContainer is the pod, which has a node, and its requested container.
func (s *Streams) podAndContainer(ctx context.Context, namespace, name, asked string) (*core.Pod, string, error) {
	pod, err := registry.GetStored[*core.Pod](ctx, s.pods, namespace, name)
	if err != nil {
		return nil, "", err
	}
	container, err := chooseContainer(pod, asked)
	if err == nil {
		err = hasHost(pod, name)
	}
	return pod, container, err
}

func (s *Streams) assignedPod(ctx context.Context, namespace, name string) (*core.Pod, error) {
	pod, err := registry.GetStored[*core.Pod](ctx, s.pods, namespace, name)
	if err != nil {
		return nil, err
	}
	return pod, hasHost(pod, name)
}

func hasHost(pod *core.Pod, name string) error {
	if pod.Spec.NodeName == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", name))
	}
	return nil
}

// url is the URL at the pod's kubelet. For a missing node, the error is that
// there is no such pod, as in upstream.
func (s *Streams) url(ctx context.Context, pod *core.Pod, parts []string, query url.Values) (*url.URL, error) {
	node, err := registry.GetStored[*core.Node](ctx, s.nodes, "", pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(core.Pods.GVR().GroupResource(), pod.Spec.NodeName)
	}
	if err != nil {
		return nil, err
	}
	return s.kubelets.URL(node, "/"+strings.Join(parts, "/"), query)
}
