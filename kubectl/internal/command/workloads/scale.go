package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/proto/rest"
)

// scaleOptions has the flags of one `kctl scale`.
type scaleOptions struct {
	send.Sender
	lookup.Selection
	replicas, current int64
	resourceVersion   string
	timeout           time.Duration
}

func newScale(c *frame.CLI) *cobra.Command {
	s := &scaleOptions{Sender: send.Sender{CLI: c}}
	cmd := &cobra.Command{
		Use:     "scale [--resource-version=VERSION] [--current-replicas=COUNT] --replicas=COUNT (-f FILE | TYPE NAME | TYPE/NAME)",
		Short:   "Set a new size for a deployment, replica set, or replication controller",
		Example: "  kctl scale deployment/web --replicas=3\n  kctl scale deployment/web --current-replicas=2 --replicas=3",
		RunE:    func(cmd *cobra.Command, args []string) error { return s.run(cmd, args) },
	}
	fs := cmd.Flags()
	s.AddFiles(fs, "identifying the resource to set a new size")
	s.AddLabels(fs)
	s.Add(cmd, send.FieldManager)
	s.AddRecord(cmd)
	fs.BoolVar(&s.All, "all", false, "Select all resources in the namespace of the specified resource types")
	fs.Int64Var(&s.replicas, "replicas", -1, "The new desired number of replicas. Required.")
	fs.Int64Var(&s.current, "current-replicas", -1,
		"Precondition for current size. Requires that the current size of the resource match this value in order to scale. -1 "+
			"(default) for no condition.")
	fs.StringVar(&s.resourceVersion, "resource-version", "",
		"Precondition for resource version. Requires that the current resource version match this value in order to scale.")
	fs.DurationVar(&s.timeout, "timeout", 0, "The length of time to wait before giving up on a scale operation, zero means don't wait.")
	_ = cmd.MarkFlagRequired("replicas")
	fs.Lookup("replicas").DefValue = "0" // as in kubectl's help
	return cmd
}

func (s *scaleOptions) run(cmd *cobra.Command, args []string) error {
	if s.replicas < 0 {
		//nolint:staticcheck // kubectl's words
		return errors.New("The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0")
	}
	targets, unread := lookup.Named(cmd.Context(), s.Sender.CLI, &s.Selection, args, "")
	if s.resourceVersion != "" && len(targets) > 1 {
		return errors.New("cannot use --resource-version with multiple resources")
	}
	met := false
	err := lookup.Each(cmd.Context(), s.Sender.CLI, targets, &s.Selection, func(t lookup.Target, object *unstructured.Unstructured) error {
		met = true
		if s.DryRun != frame.DryRunClient {
			if err := s.scale(cmd.Context(), t); err != nil {
				return err
			}
		}
		if err := s.setReplicas(object); err != nil {
			return err
		}
		if _, err := s.PatchCause(cmd.Context(), t); err != nil {
			return err
		}
		if s.timeout > 0 && s.DryRun == frame.DryRunNone {
			if err := s.untilScaled(cmd.Context(), t); err != nil {
				return err
			}
		}
		return s.Print(&s.Printing, s.DryRun.Mark("scaled"), object)
	})
	if err = errors.Join(unread, err); err == nil && !met {
		return errors.New("no objects passed to scale")
	}
	return err
}

// setReplicas updates an object that was read before with its new size, if it is known
// which field holds that.
func (s *scaleOptions) setReplicas(object *unstructured.Unstructured) error {
	if group := object.GroupVersionKind().Group; group != "" && group != "apps" {
		return nil
	}
	return unstructured.SetNestedField(object.Object, s.replicas, "spec", "replicas")
}

// scale changes the size through the scale subresource, which every kind that
// has replicas shares; a size that may only change from a known one is guarded
// by the revision at which it was read.
func (s *scaleOptions) scale(ctx context.Context, t lookup.Target) error {
	client, err := s.Server()
	if err != nil {
		return err
	}
	version := s.resourceVersion
	if s.current >= 0 || version != "" {
		var answer []byte
		if err := lookup.Get(ctx, client, t, &answer, rest.Sub("scale")); err != nil {
			return err
		}
		scale, err := lookup.Decode(answer)
		if err != nil {
			return err
		}
		have, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas")
		if err != nil {
			return fmt.Errorf("decode scale: %w", err)
		}
		if s.current >= 0 && have != s.current {
			return fmt.Errorf("Expected replicas to be %d, was %d", s.current, have) //nolint:staticcheck // kubectl's words
		}
		if version != "" && scale.GetResourceVersion() != version {
			//nolint:staticcheck // kubectl's words
			return fmt.Errorf("Expected resource version to be %s, was %s", version, scale.GetResourceVersion())
		}
		version = scale.GetResourceVersion()
	}
	body := fmt.Sprintf(`{"spec":{"replicas":%d}}`, s.replicas)
	if version != "" {
		body = fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, version, s.replicas)
	}
	_, err = s.Patch(ctx, t, types.MergePatchType, []byte(body), rest.Sub("scale"))
	if apierrors.IsNotFound(err) && !t.Has("scale") {
		return fmt.Errorf("cannot scale a %s: the kind has no scale subresource", t.Kind)
	}
	return err
}

// untilScaled waits until there are as many replicas as requested.
func (s *scaleOptions) untilScaled(ctx context.Context, t lookup.Target) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := lookup.Follow(ctx, s.Sender.CLI, t, func(object *unstructured.Unstructured) (bool, error) {
		have, _, err := unstructured.NestedInt64(object.Object, "status", "replicas")
		return have == s.replicas, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("timed out waiting for %q to be synced", t.ObjectName)
	}
	return err
}
