package workloads

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
)

// exposeOptions has the flags of one `kctl expose`.
type exposeOptions struct {
	send.Sender
	lookup.Selection
	name, protocol, targetPort, serviceType string
	clusterIP, externalName, selector       string
	port, labelPairs                        string
	externalIP, balancerIP, affinity        string
	overrides, overrideType                 string
}

func newExpose(c *frame.CLI) *cobra.Command {
	e := &exposeOptions{Sender: send.Sender{CLI: c, Operation: "exposed"}}
	cmd := &cobra.Command{
		Use: "expose (-f FILENAME | TYPE NAME) [--port=port] [--protocol=TCP|UDP|SCTP] [--target-port=number-or-name] " +
			"[--name=name] [--type=type]",
		Short:   "Take a pod, deployment, service or the like and expose it as a new service",
		Example: "  kctl expose deployment web --port=80 --target-port=8080",
		RunE:    func(cmd *cobra.Command, args []string) error { return e.run(cmd, args) },
	}
	fs := cmd.Flags()
	e.AddFiles(fs, "identifying the resource to expose a service")
	e.Add(cmd, "kubectl-expose")
	fs.StringVar(&e.name, "name", "", "The name for the newly created object.")
	fs.StringVar(&e.port, "port", "", "The port that the service should serve on. Copied from the resource being exposed, if unspecified")
	fs.StringVar(&e.protocol, "protocol", "", "The network protocol for the service to be created. Default is 'TCP'.")
	fs.StringVar(&e.targetPort, "target-port", "",
		"Name or number for the port on the container that the service should direct traffic to. Optional.")
	fs.StringVar(&e.serviceType, "type", "",
		"Type for this service: ClusterIP, NodePort, LoadBalancer, or ExternalName. Default is 'ClusterIP'.")
	fs.StringVar(&e.clusterIP, "cluster-ip", "",
		"ClusterIP to be assigned to the service. Leave empty to auto-allocate, or set to 'None' to create a headless service.")
	fs.StringVar(&e.externalName, "external-name", "", "External name of service")
	fs.StringVar(&e.selector, "selector", "",
		"A label selector to use for this service. Only equality-based selector requirements are supported.")
	fs.StringVarP(&e.labelPairs, "labels", "l", "", "Labels to apply to the service created by this call.")
	fs.StringVar(&e.externalIP, "external-ip", "", "Additional external IP address (not managed by Kubernetes) to accept for the service.")
	fs.StringVar(&e.balancerIP, "load-balancer-ip", "",
		"IP to assign to the LoadBalancer. If empty, an ephemeral IP will be created and used (cloud-provider specific).")
	fs.StringVar(&e.affinity, "session-affinity", "",
		"If non-empty, set the session affinity for the service to this; legal values: 'None', 'ClientIP'")
	fs.StringVar(&e.overrides, "overrides", "", "An inline JSON override for the generated object.")
	fs.StringVar(&e.overrideType, "override-type", string(generate.OverrideMerge),
		"The method used to override the generated object: json, merge, or strategic.")
	e.AddSaveConfig(fs)
	e.AddRecord(cmd)
	return cmd
}

func (e *exposeOptions) run(cmd *cobra.Command, args []string) error {
	targets, unread := lookup.Named(cmd.Context(), e.Sender.CLI, &e.Selection, args, "")
	return errors.Join(unread, lookup.EachGiven(cmd.Context(), e.Sender.CLI, targets, &e.Selection,
		func(t lookup.Target, object *unstructured.Unstructured) error {
			service, err := e.service(t, object)
			if err != nil {
				return err
			}
			service.SetNamespace("") // it is made where what it exposes is, whatever --overrides say
			return e.CreateGenerated(cmd.Context(), core.Services, service)
		}))
}

// exposable are the kinds that a service can be made for.
var exposable = []string{"Service", "ReplicationController", "Deployment", "Pod", "ReplicaSet"}

func (e *exposeOptions) service(t lookup.Target, object *unstructured.Unstructured) (core.Object, error) {
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
	name := cmp.Or(e.name, t.ObjectName[:min(len(t.ObjectName), validation.DNS1035LabelMaxLength)]) // as long as a service's may be
	service, err := generate.Service(name, generate.ServiceOptions{
		Type: e.serviceType, ClusterIP: e.clusterIP, ExternalName: e.externalName, Selector: selector, Labels: labels, Ports: ports,
		ExternalIP: e.externalIP, BalancerIP: e.balancerIP, Affinity: e.affinity,
	})
	if err != nil {
		return nil, err
	}
	return generate.OverrideObject(service, &corev1.Service{}, e.overrides, generate.OverrideType(e.overrideType))
}

// selected is the selector of the new service: as asked for, or that by which
// the object finds its pods, or, of a pod, its labels.
func (e *exposeOptions) selected(object *unstructured.Unstructured) (map[string]string, error) {
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
		return nil, fmt.Errorf(
			"couldn't retrieve selectors via --selector flag or introspection: invalid %s: no selectors, therefore cannot be exposed",
			strings.ToLower(object.GetKind()))
	}
	if expressions, _, _ := unstructured.NestedSlice(object.Object, "spec", "selector", "matchExpressions"); len(expressions) > 0 {
		return nil, errors.New(
			"couldn't retrieve selectors via --selector flag or introspection: a service can't select by the object's matchExpressions")
	}
	return selector, nil
}

// ports are those asked for, or else those of the object's containers.
func (e *exposeOptions) ports(object *unstructured.Unstructured) ([]generate.ServicePort, error) {
	protocols, numbers, err := containerPorts(object)
	if err != nil {
		return nil, err
	}
	portNumbers := numbers
	if e.port != "" {
		portNumbers = strings.Split(e.port, ",")
	}
	if len(portNumbers) == 0 {
		if e.clusterIP == "None" {
			return nil, nil
		}
		return nil, errors.New("couldn't find port via --port flag or introspection")
	}
	var ports []generate.ServicePort
	for i, text := range portNumbers {
		number, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("invalid port %q: must be a number", text)
		}
		port := generate.ServicePort{Port: int32(number), Protocol: cmp.Or(e.protocol, protocols[text], "TCP"), Target: e.targetPort}
		if len(portNumbers) > 1 {
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
		if err := lookup.Typed(object, service); err != nil {
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
