package workloads

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
)

// autoscaleOptions has the flags of one `kctl autoscale`.
type autoscaleOptions struct {
	send.Sender
	generate.AutoscalerOptions
	name    string
	percent int32
}

var autoscalers = core.Resource{
	Group:      "autoscaling",
	Version:    "v2",
	Name:       "horizontalpodautoscalers",
	Kind:       "HorizontalPodAutoscaler",
	Namespaced: true,
}

func newAutoscale(c *frame.CLI) *cobra.Command {
	a := &autoscaleOptions{Sender: send.Sender{CLI: c, Printing: frame.Printing{Undivided: true}}}
	var selected lookup.Selection
	cmd := &cobra.Command{
		Use:     "autoscale (-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS [--cpu=CPU] [--memory=MEMORY]",
		Short:   "Auto-scale a deployment, replica set, stateful set, or replication controller",
		Example: "  kctl autoscale deployment web --min=2 --max=10 --cpu=80%",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			targets, unread := lookup.Named(cmd.Context(), c, &selected, args, "")
			return errors.Join(unread, lookup.EachGiven(cmd.Context(), c, targets, &selected,
				func(t lookup.Target, object *unstructured.Unstructured) error {
					return a.autoscale(cmd.Context(), t, object)
				}))
		},
	}
	fs := cmd.Flags()
	selected.AddFiles(fs, "identifying the resource to autoscale.")
	a.Add(cmd, "kubectl-autoscale")
	a.AddSaveConfig(fs)
	a.AddRecord(cmd)
	fs.Int32Var(&a.Low, "min", -1, "The lower limit for the number of pods that can be set by the autoscaler.")
	fs.Int32Var(&a.High, "max", -1, "The upper limit for the number of pods that can be set by the autoscaler. Required.")
	fs.StringVar(&a.CPU, "cpu", "",
		"Target CPU utilization over all the pods: a percentage of what they ask for (e.g. 70%) or a quantity (e.g. 500m).")
	fs.StringVar(&a.Memory, "memory", "",
		"Target memory utilization over all the pods: a percentage of what they ask for (e.g. 60%) or a quantity (e.g. 200Mi).")
	fs.Int32Var(&a.percent, "cpu-percent", -1,
		"The target average CPU utilization (represented as a percent of requested CPU) over all the pods.")
	_ = fs.MarkHidden("cpu-percent")
	fs.StringVar(&a.name, "name", "", "The name for the newly created object. If not specified, the name of the input resource will be used.")
	_ = cmd.MarkFlagRequired("max")
	return cmd
}

func (a *autoscaleOptions) check() error {
	if a.percent >= 0 { // cobra would say so on standard output
		fmt.Fprintln(a.Err,
			"Flag --cpu-percent has been deprecated, Use --cpu with percentage or resource quantity format (e.g., '70%' for "+
				"utilization or '500m' for milliCPU).")
	}
	switch {
	case a.High < 1:
		return fmt.Errorf("--max=MAXPODS is required and must be at least 1, max: %d", a.High)
	case a.High < a.Low:
		return fmt.Errorf("--max=MAXPODS must be larger or equal to --min=MINPODS, max: %d, min: %d", a.High, a.Low)
	case a.percent >= 0 && a.CPU != "":
		return errors.New("--cpu-percent and --cpu are mutually exclusive")
	case a.percent >= 0:
		a.CPU = fmt.Sprintf("%d%%", a.percent)
	}
	return nil
}

func (a *autoscaleOptions) autoscale(ctx context.Context, t lookup.Target, object *unstructured.Unstructured) error {
	if !t.Has("scale") {
		return fmt.Errorf("cannot autoscale a %s: the kind has no scale subresource", t.Kind)
	}
	scaler, err := generate.Autoscaler(cmp.Or(a.name, t.ObjectName), object, a.AutoscalerOptions)
	if err != nil {
		return err
	}
	a.Operation = "autoscaled"
	if a.DryRun == frame.DryRunClient {
		a.Operation = "created" // as kubectl says
	}
	return a.CreateGenerated(ctx, autoscalers, scaler)
}
