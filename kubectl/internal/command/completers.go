package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd/api"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
)

// completionTime bounds how long completion waits for a server: after that, the
// user will have typed the word.
const completionTime = 3 * time.Second

// The types that hold pods, and those that can be scaled or rolled out, in kubectl's words.
var (
	holdPods  = []string{"daemonsets", "deployments", "jobs", "pods", "replicasets", "replicationcontrollers", "services", "statefulsets"}
	scalable  = []string{"deployment", "replicaset", "replicationcontroller", "statefulset"}
	rolledOut = []string{"deployment", "daemonset", "statefulset"}
)

// completers say how the arguments of each verb are completed.
func completers(c *frame.CLI) map[string]cobra.CompletionFunc {
	all := map[string]cobra.CompletionFunc{
		"top node": completeNames(c, core.Nodes.Name), "top pod": completeNames(c, core.Pods.Name),
		"create token": completeNames(c, core.ServiceAccounts.Name),
		"logs":         completePods(c, containersOf), "port-forward": completePods(c, portsOf), "cp": completeCopy(c),
		"config use-context": firstOnly(contexts(c)), "config delete-context": firstOnly(contexts(c)),
		"config rename-context": firstOnly(contexts(c)), "config set-context": firstOnly(contexts(c)),
		"config delete-cluster": firstOnly(clusters(c)), "config delete-user": firstOnly(users(c)),
		"rollout pause": completeTypes(c, "deployment"), "rollout resume": completeTypes(c, "deployment"),
		"taint": completeTypes(c, "node"), "expose": completeTypes(c, "pod", "service", "replicationcontroller", "deployment", "replicaset"),
		"set image": once(completeTypes(c, "daemonsets", "deployments", "pods", "cronjobs", "replicasets", "replicationcontrollers",
			"statefulsets")),
	}
	for _, verb := range []string{"get", "describe", "delete", "edit", "label", "annotate", "patch", "wait", "explain", "debug",
		"apply edit-last-applied", "apply view-last-applied", "set env", "set resources", "set serviceaccount"} {
		all[verb] = completeTypes(c)
	}
	all["rollout status"] = once(completeTypes(c, rolledOut...))
	for _, verb := range []string{"rollout history", "rollout undo", "rollout restart"} {
		all[verb] = completeTypes(c, rolledOut...)
	}
	for _, verb := range []string{"exec", "attach"} {
		all[verb] = completePods(c, nil)
	}
	for _, verb := range []string{"trace", "explain-schedule"} {
		all[verb] = completePods(c, podsBehindType)
	}
	for _, verb := range []string{"cordon", "uncordon", "drain"} {
		all[verb] = completeNames(c, core.Nodes.Name)
	}
	all["scale"], all["autoscale"] = completeTypes(c, scalable...), completeTypes(c, scalable...)
	return all
}

// addCompletion gives verbs the live names of what they take, and their flags theirs.
func addCompletion(c *frame.CLI, root *cobra.Command) {
	namespaces := func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return names(cmd.Context(), c, core.Namespaces.Name, typed), cobra.ShellCompDirectiveNoFileComp
	}
	flags := map[string]cobra.CompletionFunc{"namespace": namespaces, "context": contexts(c), "cluster": clusters(c), "user": users(c)}
	for name, complete := range flags {
		_ = root.RegisterFlagCompletionFunc(name, complete)
	}
	for verb, complete := range completers(c) {
		if cmd, _, err := root.Find(strings.Fields(verb)); err == nil {
			cmd.ValidArgsFunction = complete
		}
	}
	completeFlags(c, root)
}

// completeFlags completes flags of single verbs, by their names.
func completeFlags(c *frame.CLI, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		completeFlags(c, sub)
	}
	flags := map[string]cobra.CompletionFunc{"subresource": fixed("status", "scale", "resize")}
	switch cmd.Name() {
	case "exec", "attach", "logs":
		flags["container"] = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return startingWith(containersOf(cmd.Context(), c, args[0], typed), typed), cobra.ShellCompDirectiveNoFileComp
		}
	case "get":
		flags["output"] = fixed(printer.Names...)
	case "clusterrolebinding":
		flags["clusterrole"] = func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return names(cmd.Context(), c, core.ClusterRoles.Name, typed), cobra.ShellCompDirectiveNoFileComp
		}
	}
	if cmd.Flags().Lookup("filename") != nil {
		_ = cmd.MarkFlagFilename("filename", "json", "yaml", "yml")
	}
	for name, complete := range flags {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, complete)
		}
	}
}

// fixed completes one of some words.
func fixed(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return startingWith(words, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// firstOnly completes the first argument only.
func firstOnly(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// once completes one object: TYPE NAME or TYPE/NAME.
func once(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

func completeNames(c *frame.CLI, resource string) cobra.CompletionFunc {
	return firstOnly(func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return names(cmd.Context(), c, resource, typed), cobra.ShellCompDirectiveNoFileComp
	})
}

// fromFile completes names that the kubeconfig has.
func fromFile(c *frame.CLI, keys func(*api.Config) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		config, err := c.Flags.Files().GetStartingConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return startingWith(keys(config), typed), cobra.ShellCompDirectiveNoFileComp
	}
}

func contexts(c *frame.CLI) cobra.CompletionFunc {
	return fromFile(c, func(config *api.Config) []string { return slices.Collect(maps.Keys(config.Contexts)) })
}

func clusters(c *frame.CLI) cobra.CompletionFunc {
	return fromFile(c, func(config *api.Config) []string { return slices.Collect(maps.Keys(config.Clusters)) })
}

func users(c *frame.CLI) cobra.CompletionFunc {
	return fromFile(c, func(config *api.Config) []string { return slices.Collect(maps.Keys(config.AuthInfos)) })
}

// prefixed are names with something before and behind each.
func prefixed(before string, names []string, behind string) []string {
	var full []string
	for _, name := range names {
		full = append(full, before+name+behind)
	}
	return full
}

// completeTypes completes a type, one of allowed if there are any, and behind it, or
// behind TYPE/, names.
func completeTypes(c *frame.CLI, allowed ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		kind, name, slash := strings.Cut(typed, "/")
		bySlash := len(args) > 0 && strings.Contains(args[0], "/")
		without := func(found []string, given []string) []string {
			return slices.DeleteFunc(found, func(name string) bool { return slices.Contains(given, name) })
		}
		switch {
		case len(args) > 0 && !bySlash:
			return without(names(ctx, c, args[0], typed), args[1:]), cobra.ShellCompDirectiveNoFileComp
		case slash:
			return without(prefixed(kind+"/", names(ctx, c, kind, name), ""), args), cobra.ShellCompDirectiveNoFileComp
		}
		types := startingWith(allowed, typed)
		if len(allowed) == 0 {
			types = typesServed(ctx, c, typed)
		}
		if bySlash {
			return prefixed("", types, "/"), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return types, cobra.ShellCompDirectiveNoFileComp
	}
}

// typesServed completes the last of a list of types, "pods,deployments.a": with their
// groups, because two groups may have resources of one name.
func typesServed(ctx context.Context, c *frame.CLI, typed string) []string {
	before, last := "", typed
	if at := strings.LastIndex(typed, ","); at >= 0 {
		before, last = typed[:at+1], typed[at+1:]
	}
	discovery, err := c.Discovery()
	if err != nil {
		return nil
	}
	resources, err := discovery.Resources(ctx)
	if err != nil {
		return nil
	}
	var types []string
	for _, r := range resources {
		if r.Preferred && r.Can("get") {
			types = append(types, r.FullName())
		}
	}
	return prefixed(before, startingWith(types, last), "")
}

// names are the names of a resource's objects that have the prefix.
func names(ctx context.Context, c *frame.CLI, resource, typed string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	targets, err := lookup.Targets(ctx, c, &lookup.Selection{}, []string{resource}, "")
	if err != nil {
		return nil
	}
	var names []string
	err = lookup.Each(ctx, c, targets, &lookup.Selection{}, func(t lookup.Target, _ *unstructured.Unstructured) error {
		names = append(names, t.ObjectName)
		return nil
	})
	if err != nil {
		cobra.CompErrorln(fmt.Sprint(err))
	}
	return startingWith(names, typed)
}

func startingWith(names []string, typed string) []string {
	var found []string
	for _, name := range names {
		if strings.HasPrefix(name, typed) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}
