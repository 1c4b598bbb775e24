package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
)

// exposing is one `kctl expose`.
type exposing struct {
	sending
	selection
	name, protocol, targetPort, serviceType string
	clusterIP, externalName, selector       string
	port, labelPairs                        string
}

func newExpose(c *cli) *cobra.Command {
	e := &exposing{sending: sending{cli: c, operation: "exposed"}}
	cmd := &cobra.Command{
		Use:     "expose (-f FILENAME | TYPE NAME) [--port=port] [--protocol=TCP|UDP|SCTP] [--target-port=number-or-name] [--name=name] [--type=type]",
		Short:   "Take a pod, deployment, service or the like and expose it as a new service",
		Example: "  kctl expose deployment web --port=80 --target-port=8080",
		RunE:    func(cmd *cobra.Command, args []string) error { return e.run(cmd, args) },
	}
	fs := cmd.Flags()
	e.addFiles(fs, "identifying the resource to expose a service")
	e.add(cmd)
	fs.StringVar(&e.name, "name", "", "The name for the newly created object.")
	fs.StringVar(&e.port, "port", "", "The port that the service should serve on. Copied from the resource being exposed, if unspecified")
	fs.StringVar(&e.protocol, "protocol", "", "The network protocol for the service to be created. Default is 'TCP'.")
	fs.StringVar(&e.targetPort, "target-port", "", "Name or number for the port on the container that the service should direct traffic to. Optional.")
	fs.StringVar(&e.serviceType, "type", "", "Type for this service: ClusterIP, NodePort, LoadBalancer, or ExternalName. Default is 'ClusterIP'.")
	fs.StringVar(&e.clusterIP, "cluster-ip", "", "ClusterIP to be assigned to the service. Leave empty to auto-allocate, or set to 'None' to create a headless service.")
	fs.StringVar(&e.externalName, "external-name", "", "External name of service")
	fs.StringVar(&e.selector, "selector", "", "A label selector to use for this service. Only equality-based selector requirements are supported.")
	fs.StringVarP(&e.labelPairs, "labels", "l", "", "Labels to apply to the service created by this call.")
	return cmd
}

func (e *exposing) run(cmd *cobra.Command, args []string) error {
	targets, err := e.named(cmd.Context(), &e.selection, args, "")
	if err != nil {
		return err
	}
	return e.each(cmd.Context(), targets, &e.selection, func(t target, object *unstructured.Unstructured) error {
		service, err := e.service(t, object)
		if err != nil {
			return err
		}
		return e.createGenerated(cmd.Context(), core.Services, service)
	})
}

// exposable are the kinds that a service can be put before.
var exposable = []string{"Service", "ReplicationController", "Deployment", "Pod", "ReplicaSet"}

func (e *exposing) service(t target, object *unstructured.Unstructured) (core.Object, error) {
	if !slices.Contains(exposable, t.Kind) {
		return nil, fmt.Errorf("cannot expose a %s", t.Kind)
	}
	selector, err := e.selected(object)
	if err != nil {
		return nil, err
	}
	labels := object.GetLabels()
	if e.labelPairs != "" {
		if labels, err = generate.Pairs("labels", strings.Split(e.labelPairs, ",")); err != nil {
			return nil, err
		}
	}
	ports, err := e.ports(object)
	if err != nil {
		return nil, err
	}
	name := e.name
	if name == "" {
		name = t.name
	}
	return generate.Service(name, generate.ServiceOptions{
		Type: e.serviceType, ClusterIP: e.clusterIP, ExternalName: e.externalName, Selector: selector, Labels: labels, Ports: ports,
	})
}

// selected is the selector of the new service: as asked for, or that by which
// the object finds its pods, or, of a pod, its labels.
func (e *exposing) selected(object *unstructured.Unstructured) (map[string]string, error) {
	if e.selector != "" {
		return generate.Pairs("selector", strings.Split(e.selector, ","))
	}
	if object.GetKind() == "Pod" {
		if len(object.GetLabels()) == 0 {
			return nil, errors.New("couldn't retrieve selectors via --selector flag or introspection: the pod has no labels and cannot be exposed")
		}
		return object.GetLabels(), nil
	}
	path := []string{"spec", "selector", "matchLabels"}
	if object.GetAPIVersion() == "v1" {
		path = path[:2]
	}
	selector, found, err := unstructured.NestedStringMap(object.Object, path...)
	if err != nil || !found || len(selector) == 0 {
		return nil, errors.New("couldn't retrieve selectors via --selector flag or introspection: the object has no labels to select by")
	}
	return selector, nil
}

// ports are those asked for, or else those of the object's containers.
func (e *exposing) ports(object *unstructured.Unstructured) ([]generate.ServicePort, error) {
	protocols, numbers, err := containerPorts(object)
	if err != nil {
		return nil, err
	}
	asked := numbers
	if e.port != "" {
		asked = strings.Split(e.port, ",")
	}
	if len(asked) == 0 {
		if e.clusterIP == "None" {
			return nil, nil
		}
		return nil, errors.New("couldn't find port via --port flag or introspection")
	}
	var ports []generate.ServicePort
	for i, text := range asked {
		number, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("invalid port %q: must be a number", text)
		}
		port := generate.ServicePort{Port: int32(number), Protocol: e.protocol, Target: e.targetPort}
		if port.Protocol == "" {
			port.Protocol = "TCP"
			if named := protocols[text]; named != "" {
				port.Protocol = named
			}
		}
		if len(asked) > 1 {
			port.Name = fmt.Sprintf("port-%d", i+1)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// containerPorts are the ports that an object's containers, or the service that
// it is, name, with their protocols.
func containerPorts(object *unstructured.Unstructured) (map[string]string, []string, error) {
	protocols := map[string]string{}
	var numbers []string
	note := func(number int32, protocol string) {
		text := strconv.Itoa(int(number))
		if _, known := protocols[text]; !known {
			numbers = append(numbers, text)
		}
		protocols[text] = protocol
	}
	if object.GetKind() == "Service" {
		service := &corev1.Service{}
		if err := typed(object, service); err != nil {
			return nil, nil, err
		}
		for _, port := range service.Spec.Ports {
			note(port.Port, string(port.Protocol))
		}
		return protocols, numbers, nil
	}
	spec, err := podSpec(object)
	if err != nil {
		return nil, nil, err
	}
	for i := range spec.Containers {
		for _, port := range spec.Containers[i].Ports {
			note(port.ContainerPort, string(port.Protocol))
		}
	}
	return protocols, numbers, nil
}

// autoscaling is one `kctl autoscale`.
type autoscaling struct {
	sending
	name           string
	low, high, cpu int32
}

func newAutoscale(c *cli) *cobra.Command {
	a := &autoscaling{sending: sending{cli: c, operation: "autoscaled"}}
	var selected selection
	cmd := &cobra.Command{
		Use:     "autoscale (-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS [--cpu-percent=CPU]",
		Short:   "Auto-scale a deployment, replica set, stateful set, or replication controller",
		Example: "  kctl autoscale deployment web --min=2 --max=10 --cpu-percent=80",
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.high < 1 {
				return fmt.Errorf("--max=MAXPODS is required and must be at least 1, max: %d", a.high)
			}
			if a.high < a.low {
				return fmt.Errorf("--max=MAXPODS must be larger or equal to --min=MINPODS, max: %d, min: %d", a.high, a.low)
			}
			targets, err := c.named(cmd.Context(), &selected, args, "")
			if err != nil {
				return err
			}
			return c.each(cmd.Context(), targets, &selected, func(t target, object *unstructured.Unstructured) error {
				return a.autoscale(cmd.Context(), t, object)
			})
		},
	}
	selected.addFiles(cmd.Flags(), "identifying the resource to autoscale.")
	a.add(cmd)
	cmd.Flags().Int32Var(&a.low, "min", -1, "The lower limit for the number of pods that can be set by the autoscaler.")
	cmd.Flags().Int32Var(&a.high, "max", -1, "The upper limit for the number of pods that can be set by the autoscaler. Required.")
	cmd.Flags().Int32Var(&a.cpu, "cpu-percent", -1, "The target average CPU utilization (represented as a percent of requested CPU) over all the pods.")
	cmd.Flags().StringVar(&a.name, "name", "", "The name for the newly created object. If not specified, the name of the input resource will be used.")
	_ = cmd.MarkFlagRequired("max")
	return cmd
}

func (a *autoscaling) autoscale(ctx context.Context, t target, object *unstructured.Unstructured) error {
	if !t.Has("scale") {
		return fmt.Errorf("cannot autoscale a %s: the kind has no scale subresource", t.Kind)
	}
	name := a.name
	if name == "" {
		name = t.name
	}
	return a.createGenerated(ctx, autoscalers, generate.Autoscaler(name, object, a.low, a.high, a.cpu))
}
