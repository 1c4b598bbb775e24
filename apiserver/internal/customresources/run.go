package customresources

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/customresourcedefinition"
	"kctl/apiserver/internal/storage/cache"
)

// again is after how long a definition is looked at again that could not be
// dealt with, or whose objects need time to go.
const again = time.Second

// Run deals with definitions until ctx ends: it accepts names, establishes, and
// empties those that were deleted. Several servers may do so at once.
func (d *Definitions) Run(ctx context.Context) error {
	defer d.running.Wait()
	defer d.stop()
	for ctx.Err() == nil {
		if err := d.follow(ctx); err != nil && ctx.Err() == nil {
			d.logger.Warn("following definitions failed, starting over", zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-d.options.Registry.Clock.After(again):
		}
	}
	return ctx.Err()
}

// follow deals with all definitions at each change.
func (d *Definitions) follow(ctx context.Context) error {
	if err := d.options.Store.WaitReady(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list, err := d.options.Store.List(ctx, "", registry.ListOptions{ResourceVersion: "0", Limit: 1})
	if err != nil {
		return err
	}
	watcher, err := d.options.Store.Watch(ctx, "", registry.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	events := cache.Channel(ctx, watcher.Events())
	for {
		var retry <-chan time.Time
		if d.deal(ctx) {
			retry = d.options.Registry.Clock.After(again)
		}
		d.tell()
		select {
		case _, ok := <-events:
			if !ok {
				return errors.New("the watch ended")
			}
		case <-retry:
		}
	}
}

// deal looks at every definition that is not settled. It reports whether some
// have to be looked at again by themselves.
func (d *Definitions) deal(ctx context.Context) (unfinished bool) {
	s := d.snapshot()
	for _, e := range s.entries {
		if e.settled {
			continue
		}
		var err error
		if e.terminating {
			err = d.finish(ctx, e)
		} else {
			err = d.establish(ctx, s, e)
		}
		if err != nil && ctx.Err() == nil {
			unfinished = true
			if !errors.Is(err, errNotEmpty) {
				d.logger.Warn("a definition could not be dealt with, trying again", zap.String("definition", e.name), zap.Error(err))
			}
		}
	}
	return unfinished
}

func (d *Definitions) establish(ctx context.Context, s *snapshot, e *entry) error {
	var others []apiextensionsv1.CustomResourceDefinitionNames
	for _, other := range s.entries {
		if other.group == e.group && other.name != e.name {
			others = append(others, other.names)
		}
	}
	_, err := d.options.Store.UpdateTyped(ctx, "", e.name, "status", func(def *definition) error {
		settle(def, others, d.options.Registry.Clock.Now())
		return nil
	})
	return ignoreGone(err)
}

var errNotEmpty = errors.New("instances are still there")

// builtIn are the definitions whose objects would lie where those of the server's own
// lie, which are none of theirs.
var builtIn = map[string]bool{"customresourcedefinitions.apiextensions.k8s.io": true, "apiservices.apiregistration.k8s.io": true}

// finish deletes the objects of a definition that was deleted, and then lets it
// go.
func (d *Definitions) finish(ctx context.Context, e *entry) error {
	if !d.waits(e) {
		return nil
	}
	if e.established && !builtIn[e.name] {
		if err := d.say(ctx, e, "InstanceDeletionInProgress", "CustomResource deletion is in progress"); err != nil {
			return err
		}
		served, err := e.stored.served(e, e.storageVersion())
		if err != nil {
			// What can't be read can't be deleted one by one.
			d.logger.Error("the objects of a definition are left behind", zap.String("definition", e.name), zap.Error(err))
			return d.release(ctx, e)
		}
		if err := empty(ctx, served.Resource); err != nil {
			if errors.Is(err, errNotEmpty) {
				return err
			}
			return errors.Join(err, d.say(ctx, e, "InstanceDeletionFailed", "could not list instances: "+err.Error()))
		}
		if err := d.say(ctx, e, "InstanceDeletionCompleted", "removed all instances"); err != nil {
			return err
		}
	}
	return d.release(ctx, e)
}

// waits tells whether the definition still has the finalizer.
func (d *Definitions) waits(e *entry) bool {
	def, err := e.read()
	return err != nil || slices.Contains(def.Finalizers, customresourcedefinition.Finalizer)
}

// empty deletes all objects; those that wait for something keep it from being
// done.
func empty(ctx context.Context, r registry.Resource) error {
	if _, err := r.DeleteCollection(ctx, "", registry.Admit{}, &metav1.DeleteOptions{}, registry.ListOptions{}); err != nil {
		return err
	}
	left, err := r.List(ctx, "", registry.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if len(left.Items) > 0 {
		return errNotEmpty
	}
	return nil
}

// say notes how far the deletion of the instances is. What has begun is not said to
// begin again: each change of a definition has it looked at, and one that went back and
// forth would be, without end.
func (d *Definitions) say(ctx context.Context, e *entry, reason, message string) error {
	_, err := d.options.Store.UpdateTyped(ctx, "", e.name, "status", func(def *definition) error {
		if reason == "InstanceDeletionInProgress" && begun(def) {
			return nil
		}
		status := apiextensionsv1.ConditionTrue
		if reason == "InstanceDeletionCompleted" {
			status = apiextensionsv1.ConditionFalse
		}
		customresourcedefinition.SetCondition(def, condition{Type: apiextensionsv1.Terminating, Status: status, Reason: reason, Message: message}, d.options.Registry.Clock.Now())
		return nil
	})
	return ignoreGone(err)
}

// begun reports whether the deletion of the instances has failed or ended before.
func begun(def *definition) bool {
	return slices.ContainsFunc(def.Status.Conditions, func(c condition) bool {
		return c.Type == apiextensionsv1.Terminating && (c.Reason == "InstanceDeletionFailed" || c.Reason == "InstanceDeletionCompleted")
	})
}

func (d *Definitions) release(ctx context.Context, e *entry) error {
	// By its status: what is wrong with the rest must not keep it from ending.
	_, err := d.options.Store.UpdateTyped(ctx, "", e.name, "status", func(def *definition) error {
		def.Finalizers = slices.DeleteFunc(def.Finalizers, func(f string) bool { return f == customresourcedefinition.Finalizer })
		return nil
	})
	return ignoreGone(err)
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
