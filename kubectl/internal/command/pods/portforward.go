package pods

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/remote"
	"kctl/proto/core"
)

// portForwardOptions has the flags of one `kctl port-forward`.
type portForwardOptions struct {
	*frame.CLI
	wait      podWait
	addresses []string // to listen on
}

func newPortForward(c *frame.CLI) *cobra.Command {
	f := &portForwardOptions{CLI: c}
	cmd := &cobra.Command{
		Use:     "port-forward (POD | TYPE/NAME) [LOCAL_PORT:]REMOTE_PORT...",
		Short:   "Forward one or more local ports to a pod",
		Example: "  kctl port-forward pod/web 8080:80\n  kctl port-forward service/web 8080:http\n  kctl port-forward web :80",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return frame.UsageError(cmd, "TYPE/NAME and list of ports are required for port-forward")
			}
			if err := f.wait.check(); err != nil {
				return frame.UsageError(cmd, "%s", err)
			}
			return f.run(cmd.Context(), args[0], args[1:])
		},
	}
	cmd.Flags().StringSliceVar(&f.addresses, "address", []string{"localhost"}, "Addresses to listen on (comma separated).")
	f.wait.add(cmd.Flags(), usualPodWait)
	return cmd
}

// run forwards the wanted ports of the pod that an argument means.
func (f *portForwardOptions) run(ctx context.Context, arg string, wanted []string) error {
	pod, object, err := podOf(ctx, f.CLI, arg, f.wait)
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("unable to forward port because pod is not running. Current status=%v", pod.Status.Phase)
	}
	ports := make([]string, len(wanted))
	for i := range wanted {
		if ports[i], err = podPort(pod, object, wanted[i]); err != nil {
			return err
		}
	}
	loaded, err := f.Kubeconfig()
	if err != nil {
		return err
	}
	client, err := f.Server()
	if err != nil {
		return err
	}
	address := client.URL(core.Pods.Path(pod.Namespace, pod.Name) + "/portforward")
	return remote.Forward(ctx, loaded.Client, address, remote.Ports{Listen: f.addresses, Ports: ports, Out: f.Out, Err: f.Err})
}

// podPort translates [LOCAL:]REMOTE, where REMOTE may be a name, and is a
// service's port where the object is one, into a pod's port.
func podPort(pod *core.Pod, object *unstructured.Unstructured, wanted string) (string, error) {
	local, remote, both := strings.Cut(wanted, ":")
	if !both {
		remote = local
	}
	target := remote
	if object != nil && object.GetKind() == core.Services.Kind {
		service := &corev1.Service{}
		if err := lookup.Typed(object, service); err != nil {
			return "", err
		}
		var err error
		if target, err = targetPort(service, remote); err != nil {
			return "", err
		}
	}
	number, err := strconv.Atoi(target)
	if err != nil {
		if number, err = namedPort(pod, target); err != nil {
			return "", err
		}
	}
	if !both {
		if local = remote; local == target || !isNumber(local) {
			local = strconv.Itoa(number)
		}
	}
	return fmt.Sprintf("%s:%d", local, number), nil
}

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

// targetPort is the pod's port for one of a service's ports.
func targetPort(service *corev1.Service, wanted string) (string, error) {
	for _, port := range service.Spec.Ports {
		if port.Name == wanted || strconv.Itoa(int(port.Port)) == wanted {
			if service.Spec.ClusterIP == corev1.ClusterIPNone {
				return strconv.Itoa(int(port.Port)), nil
			}
			return port.TargetPort.String(), nil
		}
	}
	return "", fmt.Errorf("Service %s does not have a service port %s", service.Name, wanted) //nolint:staticcheck // kubectl's words
}

func namedPort(pod *core.Pod, name string) (int, error) {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == name {
				return int(port.ContainerPort), nil
			}
		}
	}
	return 0, fmt.Errorf("Pod '%s' does not have a named port '%s'", pod.Name, name) //nolint:staticcheck // kubectl's words
}
