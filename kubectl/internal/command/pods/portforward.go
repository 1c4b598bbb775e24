package pods

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

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
	if remote == "" {
		return "", errors.New("remote port cannot be empty")
	}
	declared, target := declaredPorts(pod), remote
	behind := object != nil && object.GetKind() == core.Services.Kind
	if behind {
		port, err := servicePort(object, remote)
		if err != nil {
			return "", err
		}
		if !both {
			local = strconv.Itoa(int(port.Port))
		}
		target = port.TargetPort.String()
	}
	number, err := strconv.Atoi(target)
	if err != nil {
		if number, err = namedPort(pod, declared, target); err != nil {
			return "", err
		}
	}
	if !behind && onlyUDP(declared, func(p corev1.ContainerPort) (int32, corev1.Protocol) { return p.ContainerPort, p.Protocol },
		int32(number)) {
		return "", udpError(remote)
	}
	if !both && !isNumber(local) {
		local = strconv.Itoa(number)
	}
	return fmt.Sprintf("%s:%d", local, number), nil
}

func udpError(port string) error {
	return fmt.Errorf("UDP protocol is not supported for %s", port) //nolint:staticcheck // kubectl's words
}

// onlyUDP says whether a port is declared as one of UDP, and not of TCP too: what is
// forwarded is TCP, and would find nobody there.
func onlyUDP[T any](ports []T, of func(T) (int32, corev1.Protocol), wanted int32) bool {
	var udp, tcp bool
	for _, port := range ports {
		if number, protocol := of(port); number == wanted {
			udp, tcp = udp || protocol == corev1.ProtocolUDP, tcp || protocol == corev1.ProtocolTCP
		}
	}
	return udp && !tcp
}

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

// servicePort is one of a service's ports. Without an address of its own, a service is
// reached at the ports of its pods.
func servicePort(object *unstructured.Unstructured, wanted string) (*corev1.ServicePort, error) {
	service := &corev1.Service{}
	if err := lookup.Typed(object, service); err != nil {
		return nil, err
	}
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		if port.Name != wanted && strconv.Itoa(int(port.Port)) != wanted {
			continue
		}
		if onlyUDP(service.Spec.Ports, func(p corev1.ServicePort) (int32, corev1.Protocol) { return p.Port, p.Protocol }, port.Port) {
			return nil, udpError(wanted)
		}
		if service.Spec.ClusterIP == corev1.ClusterIPNone {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
		return port, nil
	}
	return nil, fmt.Errorf("Service %s does not have a service port %s", service.Name, wanted) //nolint:staticcheck // kubectl's words
}

func declaredPorts(pod *core.Pod) []corev1.ContainerPort {
	var declared []corev1.ContainerPort
	for i := range pod.Spec.Containers {
		declared = append(declared, pod.Spec.Containers[i].Ports...)
	}
	return declared
}

func namedPort(pod *core.Pod, declared []corev1.ContainerPort, name string) (int, error) {
	for _, port := range declared {
		if port.Name == name {
			return int(port.ContainerPort), nil
		}
	}
	return 0, fmt.Errorf("Pod '%s' does not have a named port '%s'", pod.Name, name) //nolint:staticcheck // kubectl's words
}
