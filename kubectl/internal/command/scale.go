package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/rest"
	"kctl/proto/watch"
)

// scaling is one `kctl scale`.
type scaling struct {
	sending
	selection
	replicas, current int64
	resourceVersion   string
	timeout           time.Duration
}

func newScale(c *cli) *cobra.Command {
	s := &scaling{sending: sending{cli: c}}
	cmd := &cobra.Command{
		Use:     "scale [--resource-version=VERSION] [--current-replicas=COUNT] --replicas=COUNT (-f FILE | TYPE NAME | TYPE/NAME)",
		Short:   "Set a new size for a deployment, replica set, or replication controller",
		Example: "  kctl scale deployment/web --replicas=3\n  kctl scale deployment/web --current-replicas=2 --replicas=3",
		RunE:    func(cmd *cobra.Command, args []string) error { return s.run(cmd, args) },
	}
	fs := cmd.Flags()
	s.addFiles(fs, "identifying the resource to set a new size")
	s.addLabels(fs)
	s.add(cmd)
	fs.BoolVar(&s.all, "all", false, "Select all resources in the namespace of the specified resource types")
	fs.Int64Var(&s.replicas, "replicas", -1, "The new desired number of replicas. Required.")
	fs.Int64Var(&s.current, "current-replicas", -1, "Precondition for current size. Requires that the current size of the resource match this value in order to scale. -1 (default) for no condition.")
	fs.StringVar(&s.resourceVersion, "resource-version", "", "Precondition for resource version. Requires that the current resource version match this value in order to scale.")
	fs.DurationVar(&s.timeout, "timeout", 0, "The length of time to wait before giving up on a scale operation, zero means don't wait.")
	_ = cmd.MarkFlagRequired("replicas")
	return cmd
}

func (s *scaling) run(cmd *cobra.Command, args []string) error {
	if s.replicas < 0 {
		return errors.New("the --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0")
	}
	targets, err := s.named(cmd.Context(), &s.selection, args, "")
	if err != nil {
		return err
	}
	return s.each(cmd.Context(), targets, &s.selection, func(t target, object *unstructured.Unstructured) error {
		if s.dryRun == dryRunClient {
			return s.print(&s.output, s.dryRun.mark("scaled"), object)
		}
		if err := s.scale(cmd.Context(), t); err != nil {
			return err
		}
		if err := s.print(&s.output, s.dryRun.mark("scaled"), object); err != nil {
			return err
		}
		if s.timeout > 0 && s.dryRun == dryRunNone {
			return s.untilScaled(cmd.Context(), t)
		}
		return nil
	})
}

// scale changes the size through the scale subresource, which every kind that
// has replicas shares; a size that may only change from a known one is guarded
// by the revision at which it was read.
func (s *scaling) scale(ctx context.Context, t target) error {
	client, err := s.server()
	if err != nil {
		return err
	}
	version := s.resourceVersion
	if s.current >= 0 || version != "" {
		var answer []byte
		if err := t.in(client).Get(ctx, t.name, &answer, rest.Sub("scale")); err != nil {
			return err
		}
		scale, err := decode(answer)
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
			return fmt.Errorf("Expected resource version to be %s, was %s", version, scale.GetResourceVersion()) //nolint:staticcheck // kubectl's words
		}
		version = scale.GetResourceVersion()
	}
	body := fmt.Sprintf(`{"spec":{"replicas":%d}}`, s.replicas)
	if version != "" {
		body = fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, version, s.replicas)
	}
	_, err = s.sendPatch(ctx, t, types.MergePatchType, []byte(body), rest.Sub("scale"))
	if apierrors.IsNotFound(err) && !t.Has("scale") {
		return fmt.Errorf("cannot scale a %s: the kind has no scale subresource", t.Kind)
	}
	return err
}

// untilScaled waits until as many replicas are there as were asked for.
func (s *scaling) untilScaled(ctx context.Context, t target) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := s.follow(ctx, t, func(object *unstructured.Unstructured) (bool, error) {
		have, _, err := unstructured.NestedInt64(object.Object, "status", "replicas")
		return have == s.replicas, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("timed out waiting for %q to be synced", t.name)
	}
	return err
}

var errFollowed = errors.New("followed far enough")

// follow shows an object as it is and then every change to it, until enough
// says so; that it is deleted ends the wait with an error.
func (c *cli) follow(ctx context.Context, t target, enough func(*unstructured.Unstructured) (bool, error)) error {
	client, err := c.server()
	if err != nil {
		return err
	}
	one := rest.FieldSelector("metadata.name=" + t.name)
	found, err := list(ctx, t.in(client), 0, one)
	if err != nil {
		return err
	}
	if len(found.Items) == 0 {
		return apierrors.NewNotFound(t.GVR().GroupResource(), t.name)
	}
	if done, err := enough(&found.Items[0]); done || err != nil {
		return err
	}
	err = c.changes(ctx, t, found.GetResourceVersion(), []rest.Option{one}, func(event rest.Event) error {
		if event.Type == string(watch.Deleted) {
			return errors.New("object has been deleted")
		}
		object, err := decode(event.Object)
		if err != nil {
			return err
		}
		done, err := enough(object)
		if err == nil && done {
			return errFollowed
		}
		return err
	})
	if errors.Is(err, errFollowed) {
		return nil
	}
	return err
}
