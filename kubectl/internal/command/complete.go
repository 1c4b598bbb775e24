package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/proto/core"
)

// newCompletion prints the scripts by which shells complete command lines. They
// call kctl itself, which knows the verbs, types and names.
func newCompletion(*frame.CLI) *cobra.Command {
	scripts := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
	}
	return &cobra.Command{
		Use: "completion SHELL", Short: "Output shell completion code for the specified shell (bash, zsh, fish, or powershell)",
		Example:   "  source <(kctl completion bash)\n  kctl completion zsh > \"${fpath[1]}/_kctl\"\n  kctl completion fish | source",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return frame.UsageError(cmd, "Shell not specified.")
			}
			if len(args) > 1 {
				return frame.UsageError(cmd, "Too many arguments. Expected only the shell type.")
			}
			script, ok := scripts[args[0]]
			if !ok {
				return frame.UsageError(cmd, "Unsupported shell type %q.", args[0])
			}
			return script(cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// completionTime bounds how long completion waits for a server: after that, the
// user will have typed the word.
const completionTime = 3 * time.Second

// The verbs whose arguments are completed, by what their first argument is.
var (
	completesTypes = []string{"get", "describe", "delete", "edit", "label", "annotate", "patch", "wait", "scale", "autoscale", "expose", "explain",
		"taint", "image", "env", "resources", "serviceaccount", "status", "history", "undo", "restart", "pause", "resume"}
	completesPods  = []string{"logs", "exec", "attach", "port-forward", "trace", "debug"}
	completesNodes = []string{"cordon", "uncordon", "drain"}
)

// addCompletion gives verbs the live names of what they take, and the flags of
// all verbs theirs.
func addCompletion(c *frame.CLI, root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return names(cmd.Context(), c, core.Namespaces.Name, typed), cobra.ShellCompDirectiveNoFileComp
	})
	_ = root.RegisterFlagCompletionFunc("context", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		config, err := c.Flags.Raw()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for name := range config.Contexts {
			names = append(names, name)
		}
		return startingWith(names, typed), cobra.ShellCompDirectiveNoFileComp
	})
	completeBelow(c, root)
}

func completeBelow(c *frame.CLI, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		name := sub.Name()
		switch {
		case sub.ValidArgsFunction != nil || len(sub.ValidArgs) > 0:
		case sub.Name() == "status" && sub.Parent().Name() != "rollout":
		case slices.Contains(completesTypes, name):
			sub.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
				return completeTypes(c, cmd, args, typed)
			}
		case slices.Contains(completesPods, name):
			sub.ValidArgsFunction = completeNames(c, core.Pods.Name)
		case slices.Contains(completesNodes, name), sub.Parent().Name() == "top" && name == "node":
			sub.ValidArgsFunction = completeNames(c, core.Nodes.Name)
		case name == "use-context":
			sub.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
				complete, _ := cmd.Root().GetFlagCompletionFunc("context")
				return complete(cmd, args, typed)
			}
		}
		completeBelow(c, sub)
	}
}

func completeNames(c *frame.CLI, resource string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd.Context(), c, resource, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTypes completes a type, and behind it, or behind TYPE/, names.
func completeTypes(c *frame.CLI, cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	if kind, name, ok := strings.Cut(typed, "/"); ok {
		var full []string
		for _, each := range names(ctx, c, kind, name) {
			full = append(full, kind+"/"+each)
		}
		return full, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) > 0 {
		return names(ctx, c, args[0], typed), cobra.ShellCompDirectiveNoFileComp
	}
	discovery, err := c.Discovery()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	resources, err := discovery.Resources(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	seen := map[string]bool{}
	for _, r := range resources {
		if !seen[r.Name] && r.Preferred && (r.Can("list") || r.Can("get")) {
			seen[r.Name] = true
			names = append(names, r.Name)
		}
	}
	return startingWith(names, typed), cobra.ShellCompDirectiveNoFileComp
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
	sort.Strings(found)
	return found
}
