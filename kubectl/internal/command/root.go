package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/access"
	"kctl/kubectl/internal/command/change"
	"kctl/kubectl/internal/command/create"
	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/machine"
	"kctl/kubectl/internal/command/nodes"
	"kctl/kubectl/internal/command/pods"
	"kctl/kubectl/internal/command/read"
	"kctl/kubectl/internal/command/server"
	"kctl/kubectl/internal/command/settings"
	"kctl/kubectl/internal/command/workloads"
	"kctl/kubectl/internal/preferences"
)

// Main runs a command line, which begins with the program's name, and returns the exit
// code. If it is called as kubectl, kctl behaves like kubectl where the two differ by
// default.
func Main(args []string, streams frame.Streams) int {
	c := frame.New(streams, clock.RealClock{})
	if name := filepath.Base(args[0]); name == frame.Kubectl {
		c.Name = name
	}
	return untilSignal(func(ctx context.Context) int { return run(ctx, c, args[1:]) })
}

func run(ctx context.Context, c *frame.CLI, args []string) int {
	c.Args = args
	root := newRoot(c)
	profile := addProfile(root)
	args, err := prefer(c, root, args)
	if err == nil {
		err = runPlugin(root, args)
	}
	if err != nil {
		return c.Report(ctx, err)
	}
	root.SetArgs(args)
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	err = root.ExecuteContext(ctx)
	return c.Report(ctx, errors.Join(err, profile.end()))
}

// The groups of verbs in the help.
const (
	groupPods    = "pods"
	groupObjects = "objects"
	groupLook    = "look"
	groupCluster = "cluster"
	groupSelf    = "self"
)

func newRoot(c *frame.CLI) *cobra.Command {
	root := &cobra.Command{
		Use:   c.Name,
		Short: "kctl runs pods and shows every step of their way",
		Long: "kctl speaks to Kubernetes API servers: its own and upstream's alike.\n\n" +
			"Options of kubectl that kctl does not support are rejected with an error.",
		Example: "  kctl up                                # a cluster on this machine, as root\n" +
			"  kctl run web --image=kctl.local/demo   # a pod in it\n" +
			"  kctl trace pod/web                     # how it came to run, leg by leg",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			if _, _, found := plugin(args, 1); found && strings.HasPrefix(c.Args[0], "-") {
				return fmt.Errorf("flags cannot be placed before plugin name: %s", c.Args[0])
			}
			return frame.UnknownVerb(cmd, args[0])
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	c.Flags.Add(root.PersistentFlags())
	root.PersistentFlags().StringVar(&c.KubercFile, preferences.Flag, "",
		"Path to the kuberc file to use for preferences. This can be disabled by exporting KUBERC=off.")
	root.PersistentFlags().IntVarP(&c.Verbosity, "v", "v", 0,
		"Show more: 5 what was not worth saying, 6 the requests with method, address and answer, 7 headers too, 8 bodies too, 9 as curl")
	root.PersistentFlags().BoolVar(&c.Strict, "warnings-as-errors", false,
		"Treat warnings received from the server as errors and exit with a non-zero exit code")
	root.PersistentFlags().BoolVar(&c.MatchVersion, "match-server-version", false, "Require server version to match client version")
	root.PersistentFlags().Duration("log-flush-frequency", 0, "It has no effect: nothing that kctl says is held back.")
	root.SetFlagErrorFunc(frame.FlagError)
	addVerbs(c, root)
	addExamples(root)
	addCompletion(c, root)
	refuseUnknownTopics(root)
	return root
}

// addVerbs adds all verbs, in the groups in which the help shows them.
func addVerbs(c *frame.CLI, root *cobra.Command) {
	for _, g := range []cobra.Group{
		{ID: groupPods, Title: "Pods:"},
		{ID: groupLook, Title: "Inspection:"},
		{ID: groupObjects, Title: "Changes:"},
		{ID: groupCluster, Title: "Clusters:"},
		{ID: groupSelf, Title: "Other:"},
	} {
		root.AddGroup(&g)
	}
	add := func(group string, verbs ...*cobra.Command) {
		for _, verb := range verbs {
			verb.GroupID = group
			root.AddCommand(verb)
		}
	}
	add(groupPods, pods.Verbs(c)...)
	add(groupLook, read.Verbs(c)...)
	add(groupLook, pods.NewExplainSchedule(c))
	add(groupObjects, create.New(c))
	add(groupObjects, change.Verbs(c)...)
	add(groupObjects, workloads.Verbs(c)...)
	add(groupObjects, nodes.Verbs(c)...)
	add(groupCluster, machine.Verbs(c)...)
	add(groupCluster, server.Verbs(c)...)
	add(groupCluster, access.Verbs(c)...)
	add(groupCluster, read.NewTop(c))
	add(groupSelf, settings.Verbs(c)...)
	add(groupSelf, server.NewVersion(c), newOptions(), newCompletion(c), newPlugin(c), newAlpha(c))
}

// refuseUnknownTopics makes `kctl help VERB` say that there is no such verb.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil || help == root {
		return
	}
	help.Example = "  kctl help get\n  kctl help rollout undo"
	known := help.Run
	help.Run = func(cmd *cobra.Command, args []string) {
		if found, _, err := root.Find(args); len(args) > 0 && (err != nil || found == root) {
			cmd.PrintErrf("Unknown help topic %#q\n", args)
			root.SetOut(root.ErrOrStderr())
			_ = root.Usage()
			return
		}
		known(cmd, args)
	}
}

// usageTemplate leaves the flags of all verbs out of each verb's help: `kctl
// options` lists them. How to ask for the help of verbs below is said in kubectl's words.
func usageTemplate(whole string) string {
	whole = strings.ReplaceAll(whole, `Use "{{.CommandPath}} [command] --help" for more information about a command.`,
		`Use "{{.CommandPath}} <command> --help" for more information about a given command.`)
	before, rest, ok := strings.Cut(whole, "{{if .HasAvailableInheritedFlags}}")
	_, after, closed := strings.Cut(rest, "{{end}}")
	if !ok || !closed {
		return whole
	}
	return before + "{{if .HasAvailableInheritedFlags}}\n\nUse \"{{.Root.Name}} options\" for the flags of all commands.{{end}}" + after
}

// newAlpha is there for scripts: kubectl has it, too, with no verbs below it.
func newAlpha(c *frame.CLI) *cobra.Command {
	none := func(*cobra.Command, []string) {
		fmt.Fprintf(c.Err, "No alpha commands are available in this version of %s\n", c.Name)
	}
	cmd := &cobra.Command{Use: "alpha", Short: "Commands for features in alpha", Hidden: true, Args: cobra.ArbitraryArgs, Run: none}
	cmd.SetHelpFunc(none)
	return cmd
}

// newOptions lists the flags of all verbs.
func newOptions() *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "Print the list of flags inherited by all commands", Args: frame.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "The following options can be passed to any command:\n\n%s", cmd.InheritedFlags().FlagUsages())
		},
	}
}
