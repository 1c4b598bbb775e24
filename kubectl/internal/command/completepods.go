package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/pods"
	"kctl/proto/core"
)

// ofArgument is what may follow an argument that means a pod.
type ofArgument func(ctx context.Context, c *frame.CLI, arg, typed string) []string

// completePods completes a pod, or TYPE/NAME of what holds pods, and then what second
// makes of the pod.
func completePods(c *frame.CLI, second ofArgument) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		kind, name, slash := strings.Cut(typed, "/")
		switch {
		case len(args) == 1 && second != nil:
			return startingWith(second(cmd.Context(), c, args[0], typed), typed), cobra.ShellCompDirectiveNoFileComp
		case len(args) > 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case slash:
			return prefixed(kind+"/", names(cmd.Context(), c, kind, name), ""), cobra.ShellCompDirectiveNoFileComp
		}
		found, directive := names(cmd.Context(), c, core.Pods.Name, typed), cobra.ShellCompDirectiveNoFileComp
		if len(found) == 0 {
			directive |= cobra.ShellCompDirectiveNoSpace // a name comes behind the type
		}
		return append(found, prefixed("", startingWith(holdPods, typed), "/")...), directive
	}
}

// podNow is the pod that an argument means, nil if there is none yet or the server takes
// longer than a user who types.
func podNow(ctx context.Context, c *frame.CLI, arg string) *core.Pod {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	pod, err := pods.PodNow(ctx, c, arg)
	if err != nil {
		return nil
	}
	return pod
}

// podsBehindType are all pods, where the argument before is their type (pod NAME).
func podsBehindType(ctx context.Context, c *frame.CLI, arg, typed string) []string {
	if _, err := lookup.PodName(arg + "/" + typed + "x"); err != nil || strings.Contains(arg, "/") {
		return nil
	}
	return names(ctx, c, core.Pods.Name, typed)
}

// containersOf are the containers of the pod that an argument means.
func containersOf(ctx context.Context, c *frame.CLI, arg, _ string) []string {
	if pod := podNow(ctx, c, arg); pod != nil {
		return containers(pod)
	}
	return nil
}

func containers(pod *core.Pod) []string {
	var found []string
	for each := range core.Containers(&pod.Spec) {
		found = append(found, each.Name)
	}
	return found
}

// portsOf are LOCAL:REMOTE for each port of what an argument means, with the local one
// that is typed: those of a service are its own.
func portsOf(ctx context.Context, c *frame.CLI, arg, typed string) []string {
	if service := serviceNow(ctx, c, arg); service != nil {
		return forwards(servicePorts(service), typed)
	}
	if pod := podNow(ctx, c, arg); pod != nil {
		return forwards(podPorts(pod), typed)
	}
	return nil
}

// serviceNow is the service that an argument means, nil if it means none.
func serviceNow(ctx context.Context, c *frame.CLI, arg string) *corev1.Service {
	if !strings.Contains(arg, "/") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	object, err := lookup.One(ctx, c, arg)
	if err != nil || object.GetKind() != "Service" {
		return nil
	}
	service := &corev1.Service{}
	if lookup.Typed(object, service) != nil {
		return nil
	}
	return service
}

func servicePorts(service *corev1.Service) []int32 {
	var ports []int32
	for _, each := range service.Spec.Ports {
		ports = append(ports, each.Port)
	}
	return ports
}

func podPorts(pod *core.Pod) []int32 {
	var ports []int32
	for _, container := range pod.Spec.Containers {
		for _, each := range container.Ports {
			ports = append(ports, each.ContainerPort)
		}
	}
	return ports
}

func forwards(ports []int32, typed string) []string {
	local, _, _ := strings.Cut(typed, ":")
	var found []string
	for _, port := range ports {
		found = append(found, fmt.Sprintf("%s:%d", cmp.Or(local, fmt.Sprint(port)), port))
	}
	return found
}

// completeCopy completes POD:, NAMESPACE/ and NAMESPACE/POD: for `cp`, and files beside
// them. If none of these begins as typed, the shell completes files.
func completeCopy(c *frame.CLI) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		namespace, _, slash := strings.Cut(typed, "/")
		switch {
		case len(args) > 0 || strings.Contains(typed, ":") || strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, ".") ||
			strings.HasPrefix(typed, "~"):
			return nil, cobra.ShellCompDirectiveNoSpace
		case slash:
			return startingWith(podsIn(cmd.Context(), c, namespace), typed), cobra.ShellCompDirectiveNoSpace
		}
		found := append(prefixed("", names(cmd.Context(), c, core.Namespaces.Name, typed), "/"),
			prefixed("", names(cmd.Context(), c, core.Pods.Name, typed), ":")...)
		if typed == "" {
			found = append(found, "./", "/") // all files would be too many
		} else if len(found) > 0 {
			found = append(found, startingWith(filesHere(), typed)...)
		}
		return found, cobra.ShellCompDirectiveNoSpace
	}
}

// podsIn are the pods of a namespace, as NAMESPACE/POD:.
func podsIn(ctx context.Context, c *frame.CLI, namespace string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	client, err := c.Server()
	if err != nil {
		return nil
	}
	found, err := lookup.List(ctx, client.Resource(core.Pods, namespace), 0)
	if err != nil {
		return nil
	}
	var here []string
	for _, pod := range found.Items {
		here = append(here, namespace+"/"+pod.GetName()+":")
	}
	return here
}

// filesHere are the entries of the working directory, directories with a slash.
func filesHere() []string {
	entries, err := os.ReadDir(".")
	if err != nil {
		return nil
	}
	var files []string
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() {
			name += "/"
		}
		files = append(files, name)
	}
	return files
}
