package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/preferences"
)

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs a command line and returns the exit code.
func Main(args []string, streams Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, args, streams, clock.RealClock{})
}

func run(ctx context.Context, args []string, streams Streams, clock clock.WithTicker) int {
	c := newCLI(streams, clock)
	root := newRoot(c)
	args, err := c.prefer(root, args)
	if err == nil {
		err = runPlugin(root, args)
	}
	if err != nil {
		return c.report(ctx, root, err)
	}
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	called, err := root.ExecuteContextC(ctx)
	return c.report(ctx, called, err)
}

// The groups of verbs in the help.
const (
	groupPods    = "pods"
	groupObjects = "objects"
	groupLook    = "look"
	groupCluster = "cluster"
	groupSelf    = "self"
)

func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "kctl",
		Short: "kctl runs pods and shows every hop of their way",
		Long:  "kctl speaks to Kubernetes API servers: its own and upstream's alike.\n\nWhat kubectl has and kctl does not is refused by name.",
		Example: "  kctl up                                # a cluster on this machine, as root\n" +
			"  kctl run web --image=kctl.local/demo   # a pod in it\n" +
			"  kctl trace pod/web                     # how it came to run, leg by leg",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	c.flags.Add(root.PersistentFlags())
	root.PersistentFlags().StringVar(&c.kubercFile, preferences.Flag, "", "Path to the kuberc file to use for preferences. This can be disabled by exporting KUBERC=off.")
	root.PersistentFlags().IntVarP(&c.verbosity, "v", "v", 0, "Show the requests: 6 method, address and answer, 7 headers too, 8 bodies too, 9 as curl")
	root.PersistentFlags().BoolVar(&c.strict, "warnings-as-errors", false, "Treat warnings received from the server as errors and exit with a non-zero exit code")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &flagError{cmd, err} })
	for _, g := range []cobra.Group{
		{ID: groupPods, Title: "Pods:"},
		{ID: groupLook, Title: "Looking:"},
		{ID: groupObjects, Title: "Changing:"},
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
	add(groupPods, newRun(c), newLogs(c), newExec(c), newAttach(c), newCopy(c), newDebug(c), newPortForward(c), newTrace(c))
	add(groupLook, newGet(c), newDescribe(c), newEvents(c), newWait(c), newExplain(c), newExplainSchedule(c), newKustomize(c))
	add(groupObjects, newCreate(c), newApply(c), newDelete(c), newLabel(c), newAnnotate(c), newPatch(c),
		newReplace(c), newEdit(c), newDiff(c), newSet(c), newScale(c), newAutoscale(c), newRollout(c), newExpose(c),
		newCordon(c), newUncordon(c), newDrain(c), newTaint(c))
	add(groupCluster, clusterVerbs(c)...)
	add(groupCluster, newClusterInfo(c), newAPIResources(c), newAPIVersions(c), newAuth(c), newTop(c), newCertificate(c), newProxy(c))
	add(groupSelf, newConfig(c), newKuberc(c), newVersion(c), newOptions(), newCompletion(c), newPlugin(c))
	addExamples(root)
	c.addCompletion(root)
	return root
}

// usageTemplate leaves the flags of all verbs out of each verb's help: `kctl
// options` lists them.
func usageTemplate(whole string) string {
	before, rest, ok := strings.Cut(whole, "{{if .HasAvailableInheritedFlags}}")
	_, after, closed := strings.Cut(rest, "{{end}}")
	if !ok || !closed {
		return whole
	}
	return before + "{{if .HasAvailableInheritedFlags}}\n\nUse \"kctl options\" for the flags of all commands.{{end}}" + after
}

func unknownVerb(root *cobra.Command, name string) error {
	message := fmt.Sprintf("unknown command %q for %q", name, root.CommandPath())
	root.SuggestionsMinimumDistance = 2
	if near := root.SuggestionsFor(name); len(near) > 0 {
		message += "\n\nDid you mean this?\n\t" + strings.Join(near, "\n\t") + "\n"
	}
	return fmt.Errorf("%s", message)
}

// newOptions lists the flags of all verbs.
func newOptions() *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "Print the list of flags inherited by all commands", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "The following options can be passed to any command:\n\n%s", cmd.InheritedFlags().FlagUsages())
		},
	}
}
