package lookup

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

var errGone = errors.New("gone")

// UntilGone waits until an object is gone. An empty uid stands for any.
func UntilGone(ctx context.Context, c *frame.CLI, t Target, uid types.UID) error {
	client, err := c.Server()
	if err != nil {
		return err
	}
	one := rest.FieldSelector("metadata.name=" + t.ObjectName)
	found, err := List(ctx, t.In(client), 0, one)
	if apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) {
		return nil // may delete, but not read: nothing to wait with
	}
	if apierrors.IsNotFound(err) {
		return nil // gone with its type, a definition that is deleted, too
	}
	if err != nil {
		return err
	}
	if len(found.Items) == 0 || uid != "" && found.Items[0].GetUID() != uid {
		return nil
	}
	err = Changes(ctx, c, Watch{Target: t, Version: found.GetResourceVersion(), Options: []rest.Option{one}}, func(event rest.Event) error {
		object, err := Decode(event.Object)
		if err != nil {
			return err
		}
		if event.Type == string(watch.Deleted) || uid != "" && object.GetUID() != uid {
			return errGone
		}
		return nil
	})
	if errors.Is(err, errGone) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

var errFollowed = errors.New("followed far enough")

// Follow shows an object as it is and then every change to it, until enough
// returns true; if it is deleted, the wait ends with an error.
func Follow(ctx context.Context, c *frame.CLI, t Target, enough func(*unstructured.Unstructured) (bool, error)) error {
	client, err := c.Server()
	if err != nil {
		return err
	}
	one := rest.FieldSelector("metadata.name=" + t.ObjectName)
	found, err := List(ctx, t.In(client), 0, one)
	if err != nil {
		return err
	}
	if len(found.Items) == 0 {
		return apierrors.NewNotFound(t.GVR().GroupResource(), t.ObjectName)
	}
	if done, err := enough(&found.Items[0]); done || err != nil {
		return err
	}
	err = Changes(ctx, c, Watch{Target: t, Version: found.GetResourceVersion(), Options: []rest.Option{one}}, func(event rest.Event) error {
		if event.Type == string(watch.Deleted) {
			return errors.New("object has been deleted")
		}
		object, err := Decode(event.Object)
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
