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
	"kctl/proto/backoff"
)

// retryInterval is when to look again at a definition that could not be processed, or
// whose objects need time to go.
const retryInterval = time.Second

// Run maintains definitions until ctx ends: it accepts names, establishes, and
// deletes the objects of deleted ones. Several servers may do so at once.
func (d *Definitions) Run(ctx context.Context) error {
	defer d.running.Wait()
	defer d.stop()
	for ctx.Err() == nil {
		if err := d.follow(ctx); err != nil && ctx.Err() == nil {
			d.logger.Warn("following definitions failed, starting over", zap.Error(err))
		}
		_ = backoff.Sleep(ctx, d.options.Registry.Clock, retryInterval)
	}
	return ctx.Err()
}

// start runs a store until it ends, or not at all if the server has ended.
func (d *Definitions) start(run func()) {
	d.runningMu.Lock()
	defer d.runningMu.Unlock()
	if d.ctx.Err() == nil {
		d.running.Go(run)
	}
}

// stop ends all stores, and lets none begin afterwards.
func (d *Definitions) stop() {
	d.runningMu.Lock()
	defer d.runningMu.Unlock()
	d.cancel()
}

// follow processes all definitions at each change.
func (d *Definitions) follow(ctx context.Context) error {
	if err := d.options.Store.WaitReady(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	endings := newEndings(ctx, d)
	defer endings.running.Wait()
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
		if d.processAll(ctx, endings) {
			retry = d.options.Registry.Clock.After(retryInterval)
		}
		d.Notify()
		select {
		case _, ok := <-events:
			if !ok {
				return errors.New("the watch ended")
			}
		case <-endings.wake:
		case <-retry:
		}
	}
}

// processAll processes every definition that is not settled, and lets the endings of
// those begin that are being deleted. It reports whether some of the others have to be
// looked at again later.
func (d *Definitions) processAll(ctx context.Context, endings *endings) (unfinished bool) {
	s := d.snapshot()
	for _, e := range s.entries {
		if e.settled {
			continue
		}
		if e.terminating {
			endings.begin(e)
			continue
		}
		if err := d.establish(ctx, s, e); err != nil && ctx.Err() == nil {
			unfinished = true
			d.reportRetry(e, err)
		}
	}
	return unfinished
}

func (d *Definitions) reportRetry(e *entry, err error) {
	d.logger.Warn("a definition could not be dealt with, trying again", zap.String("definition", e.name), zap.Error(err))
}

func (d *Definitions) establish(ctx context.Context, s *snapshot, e *entry) error {
	var others []apiextensionsv1.CustomResourceDefinitionNames
	for _, other := range s.entries {
		if other.group == e.group && other.name != e.name {
			others = append(others, other.names)
		}
	}
	err := d.updateStatus(ctx, e, func(def *definition) { settleStatus(def, others, d.options.Registry.Clock.Now()) })
	if errors.Is(err, errGone) {
		return nil // one that has taken its name is looked at when it is seen
	}
	return err
}

var errGone = errors.New("the definition no longer exists")

// updateStatus changes the status of a definition, or its finalizers. If the definition is
// gone it returns errGone, and leaves one alone that has taken its name since: objects that
// are there belong to that one, or were left to stay by whoever released the definition.
func (d *Definitions) updateStatus(ctx context.Context, e *entry, change func(*definition)) error {
	replaced := false
	_, err := d.options.Store.UpdateTyped(ctx, "", e.name, "status", func(def *definition) error {
		if replaced = def.UID != e.uid; !replaced {
			change(def)
		}
		return nil
	})
	if err == nil && replaced || apierrors.IsNotFound(err) {
		return errGone
	}
	return err
}

var errInstancesRemain = errors.New("instances are still there")

// builtIn are the definitions whose objects would have the same keys as built-in
// ones.
var builtIn = map[string]bool{"customresourcedefinitions.apiextensions.k8s.io": true, "apiservices.apiregistration.k8s.io": true}

// deleteInstances deletes the objects of a deleted definition, and then releases it.
func (d *Definitions) deleteInstances(ctx context.Context, e *entry) error {
	if e.established && !builtIn[e.name] {
		if err := d.reportTerminating(ctx, e, "InstanceDeletionInProgress", "CustomResource deletion is in progress"); err != nil {
			return err
		}
		if e.creations.underWay.Load() > 0 {
			return errInstancesRemain
		}
		served, err := e.store.served(e, e.storageVersion())
		if err == nil {
			err = deleteAll(ctx, served.Resource)
		}
		switch {
		case errors.Is(err, errInstancesRemain):
			return err
		case err != nil:
			return errors.Join(err, d.reportTerminating(ctx, e, "InstanceDeletionFailed", "could not list instances: "+err.Error()))
		}
		if err := d.reportTerminating(ctx, e, "InstanceDeletionCompleted", "removed all instances"); err != nil {
			return err
		}
	}
	return d.removeFinalizer(ctx, e)
}

// hasFinalizer reports whether the definition still has the finalizer.
func hasFinalizer(e *entry) bool {
	def, err := e.decodeDefinition()
	return err != nil || slices.Contains(def.Finalizers, customresourcedefinition.Finalizer)
}

// deleteAll deletes all objects; it is not done while some wait for something.
func deleteAll(ctx context.Context, r registry.Resource) error {
	if _, err := r.DeleteCollection(ctx, "", registry.Admission{}, &metav1.DeleteOptions{}, registry.ListOptions{}); err != nil {
		return err
	}
	left, err := r.List(ctx, "", registry.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if len(left.Items) > 0 {
		return errInstancesRemain
	}
	return nil
}

// reportTerminating records the progress of deleting the instances. It never reports a deletion that
// has begun as beginning again: each change of a definition triggers another look at
// it, so alternating conditions would never end.
func (d *Definitions) reportTerminating(ctx context.Context, e *entry, reason, message string) error {
	return d.updateStatus(ctx, e, func(def *definition) {
		if reason == "InstanceDeletionInProgress" && deletionReported(def) {
			return
		}
		status := apiextensionsv1.ConditionTrue
		if reason == "InstanceDeletionCompleted" {
			status = apiextensionsv1.ConditionFalse
		}
		customresourcedefinition.SetCondition(def, condition{Type: apiextensionsv1.Terminating, Status: status, Reason: reason, Message: message},
			d.options.Registry.Clock.Now())
	})
}

// deletionReported reports whether the deletion of the instances has failed or ended before.
func deletionReported(def *definition) bool {
	return slices.ContainsFunc(def.Status.Conditions, func(c condition) bool {
		return c.Type == apiextensionsv1.Terminating && (c.Reason == "InstanceDeletionFailed" || c.Reason == "InstanceDeletionCompleted")
	})
}

func (d *Definitions) removeFinalizer(ctx context.Context, e *entry) error {
	// Through its status: faults in the rest must not keep it from ending.
	return d.updateStatus(ctx, e, func(def *definition) {
		def.Finalizers = slices.DeleteFunc(def.Finalizers, func(f string) bool { return f == customresourcedefinition.Finalizer })
	})
}
