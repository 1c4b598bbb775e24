package workloads

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/doctor"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/rollout"
)

func newRollout(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("rollout", "Manage the rollout of a deployment, daemon set or stateful set")
	cmd.AddCommand(newRolloutStatus(c), newRolloutHistory(c), newRolloutUndo(c), newRolloutRestart(c),
		newRolloutPause(c, "pause", "paused", true), newRolloutPause(c, "resume", "resumed", false))
	return cmd
}

// rolloutOptions is what the verbs below `kctl rollout` share.
type rolloutOptions struct {
	send.Sender
	lookup.Selection
}

func (r *rolloutOptions) add(cmd *cobra.Command) {
	r.AddFiles(cmd.Flags(), "identifying the resource to get from a server.")
	r.AddLabels(cmd.Flags())
}

func newRolling(c *frame.CLI) *rolloutOptions {
	return &rolloutOptions{Sender: send.Sender{CLI: c, Printing: frame.Printing{Undivided: true}}}
}

func (r *rolloutOptions) run(cmd *cobra.Command, args []string, do func(lookup.Target, *unstructured.Unstructured) error) error {
	if len(args) == 0 && !r.FromFiles() {
		return errors.New("required resource not specified")
	}
	targets, unread := lookup.Targets(cmd.Context(), r.Sender.CLI, &r.Selection, args, "")
	met := false
	err := lookup.Each(cmd.Context(), r.Sender.CLI, targets, &r.Selection, func(t lookup.Target, object *unstructured.Unstructured) error {
		met = true
		return do(t, object)
	})
	if err = errors.Join(unread, err); err != nil || met {
		return err
	}
	namespace, err := r.Namespace()
	if err == nil && cmd.Name() != "history" && cmd.Name() != "undo" { // of which kubectl does not say so
		fmt.Fprintf(r.Err, "No resources found in %s namespace.\n", namespace)
	}
	return err
}

func newRolloutPause(c *frame.CLI, verb, past string, paused bool) *cobra.Command {
	r := newRolling(c)
	cmd := &cobra.Command{
		Use: verb + " RESOURCE", Short: strings.ToUpper(verb[:1]) + verb[1:] + " the rollout of a resource",
		Example: "  kctl rollout " + verb + " deployment/web",
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd, args, func(t lookup.Target, object *unstructured.Unstructured) error {
				if t.Kind != "Deployment" {
					return fmt.Errorf("%s %q %sing is not supported", t.FullName(), t.ObjectName, strings.TrimSuffix(past, "ed"))
				}
				is, _, err := unstructured.NestedBool(object.Object, "spec", "paused")
				if err != nil {
					return fmt.Errorf("decode deployment %s: %w", t.ObjectName, err)
				}
				if is == paused {
					state := "not paused"
					if paused {
						state = "already paused"
					}
					return fmt.Errorf("%s.%s %q is %s", t.Name, t.Group, t.ObjectName, state)
				}
				body := `{"spec":{"paused":true}}`
				if !paused {
					body = `{"spec":{"paused":null}}`
				}
				changed, err := r.Patch(cmd.Context(), t, types.StrategicMergePatchType, []byte(body))
				if err != nil {
					return err
				}
				return r.Print(&r.Printing, past, changed)
			})
		},
	}
	r.add(cmd)
	r.Printing.AddChecked(cmd)
	cmd.Flags().StringVar(&r.Manager, "field-manager", "kubectl-rollout", "Name of the manager used to track field ownership.")
	return cmd
}

// restartedAt is the annotation that requests a new revision of the same pods.
// It is kubectl's own.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

func newRolloutRestart(c *frame.CLI) *cobra.Command {
	r := newRolling(c)
	cmd := &cobra.Command{
		Use: "restart RESOURCE", Short: "Restart a resource", Example: "  kctl rollout restart deployment/web",
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd, args, func(t lookup.Target, object *unstructured.Unstructured) error {
				switch t.Kind {
				case "Deployment", "DaemonSet", "StatefulSet":
				default:
					return fmt.Errorf("%s %q restarting is not supported", t.FullName(), t.ObjectName)
				}
				if paused, _, _ := unstructured.NestedBool(object.Object, "spec", "paused"); paused {
					return fmt.Errorf("%s.%s %q can't restart paused deployment (run rollout resume first)", t.Name, t.Group, t.ObjectName)
				}
				now := r.Clock.Now().Format(time.RFC3339)
				if at, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", restartedAt); at == now {
					return fmt.Errorf("failed to create patch for %s: if restart has already been triggered within the past second, please wait before "+
						"attempting to trigger another", t.ObjectName)
				}
				body := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, now)
				changed, err := r.Patch(cmd.Context(), t, types.StrategicMergePatchType, []byte(body))
				if err != nil {
					return err
				}
				return r.Print(&r.Printing, "restarted", changed)
			})
		},
	}
	r.add(cmd)
	r.Printing.AddChecked(cmd)
	cmd.Flags().StringVar(&r.Manager, "field-manager", "kubectl-rollout", "Name of the manager used to track field ownership.")
	return cmd
}

func newRolloutStatus(c *frame.CLI) *cobra.Command {
	r := newRolling(c)
	var watch bool
	var timeout time.Duration
	var revision int64
	var unheard atomic.Bool // as it was in the beginning, when last seen
	cmd := &cobra.Command{
		Use: "status (TYPE NAME | TYPE/NAME)", Short: "Show the status of the rollout",
		Example: "  kctl rollout status deployment/web --timeout=60s",
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd, args, func(t lookup.Target, object *unstructured.Unstructured) error {
				first := object.GetGeneration()
				show := func(object *unstructured.Unstructured) (bool, error) {
					unheard.Store(doctor.Unheard(object) && object.GetGeneration() == first)
					text, done, err := rollout.Status(object, revision)
					if err == nil {
						fmt.Fprint(printer.VisibleTo(r.Out), text)
					}
					return done, err
				}
				if !watch {
					_, err := show(object)
					return err
				}
				defer r.warnUnheard(object, &unheard)()
				return r.untilRolledOut(cmd.Context(), t, timeout, show)
			})
		},
	}
	r.add(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "Watch the status of the rollout until it's done.")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "The length of time to wait before ending watch, zero means never.")
	cmd.Flags().Int64Var(&revision, "revision", 0, "Pin to a specific revision for showing its status. Defaults to 0 (last revision).")
	return cmd
}
